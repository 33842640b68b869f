//! What receivers, publishers and the database see of a cluster: the oracles of one node, over all of them, and how often
//! each rare thing happened.

use tidegate_core::time::Millis;
use tidegate_engine::dispatcher::{LaneId, Presence, Sending};

use super::Cluster;
use super::node::State;
use super::setup::Setup;
use super::work::Event;
use crate::oracle::{Oracles, Violations};
use crate::run::{self, Note, Observer, View};
use crate::world::Answer;

/// What nodes' clocks may differ by, with what they drift apart in a run: bounds hold within that.
const SLACK: Millis = Millis::new(60);
/// How often the watcher looks whether anything is left waiting, in microseconds.
const LOOK_EVERY: i64 = 500_000;
/// A node to which nothing happened for so long has had time to do what is to be done.
const SETTLED: i64 = 6_000_000;

/// How often things happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events that were answered.
    pub published: u64,
    /// Nodes that died.
    pub crashes: u64,
    /// Nodes that froze.
    pub pauses: u64,
    /// Nodes that were cut off from the database.
    pub cuts: u64,
    /// Nodes that left cleanly.
    pub leaves: u64,
    /// Times that the database was away.
    pub aways: u64,
    /// Nodes that died right after they had taken slots.
    pub storms: u64,
    /// Slots that were taken after a lease had ended.
    pub take_overs: u64,
    /// Slots that were taken after they had been given back.
    pub hand_overs: u64,
    /// Results that were refused under an old epoch.
    pub stale_refused: u64,
    /// News that a poll found after its notice was lost.
    pub lost_notices_survived: u64,
    /// Frozen nodes that woke up and held nothing.
    pub woke_with_nothing: u64,
    /// Requests of frozen nodes that were still out when their slot was taken: the one exception.
    pub overlaps: u64,
    /// Nodes whose lease ended while they had requests out: they cut them off.
    pub lease_ended_busy: u64,
    /// Requests that were cut off.
    pub cut_off: u64,
    /// Requests that were decided on before and stopped after the end of a lease.
    pub stopped_at_the_last_moment: u64,
    /// Slots whose last attempt outlasted the time to drain.
    pub drained_late: u64,
    /// Claims that waited for a group of the old owner.
    pub claims_that_waited: u64,
    /// Commits whose answer was lost, that were made …
    pub doubtful_made: u64,
    /// … and that were not.
    pub doubtful_lost: u64,
    /// Slots of dead nodes that were seen to be worked again in time.
    pub revivals: u64,
}

/// The watchers.
pub struct Watch {
    /// The same as for one node.
    pub oracles: Oracles,
    /// How often things happened.
    pub counts: Counts,
    /// Slots worked by two, or by nobody.
    slots: Violations,
    /// When something last went wrong, or will have.
    pub(super) disturbed_at: i64,
    pub(super) lanes: Vec<LaneId>,
}

impl Watch {
    pub(super) fn new(setup: &Setup) -> Self {
        let slots = setup.world.slots * u32::try_from(setup.nodes).unwrap_or(1);
        let world = run::Setup { slots, ..setup.world.clone() };
        let oracles = Oracles::new(&world);
        let oracles = Oracles {
            rate: oracles.rate.within(SLACK),
            quiet: oracles.quiet.within(SLACK),
            expiry: oracles.expiry.within(SLACK),
            shut: oracles.shut.within(SLACK),
            order: oracles.order.by_answers(),
            ..oracles
        };
        Self {
            oracles,
            counts: Counts::default(),
            slots: Violations::default(),
            disturbed_at: 0,
            lanes: Vec::new(),
        }
    }

    /// Each oracle's name and what it found wrong.
    pub fn verdicts(&self) -> Vec<(&'static str, &[String])> {
        let slots = ("slots: worked by one node, and by one soon after a death", self.slots.kept());
        self.oracles.verdicts().into_iter().chain([slots]).collect()
    }

    pub(super) fn wrong(&mut self, describe: impl FnOnce() -> String) {
        self.slots.add(describe);
    }

    /// A lane, which is the same on all nodes.
    pub(super) fn know(&mut self, lane: LaneId) {
        if lane.index() == self.lanes.len() {
            self.lanes.push(lane);
        }
    }
}

impl Cluster {
    /// Tells the oracles, who see the true time.
    pub(super) fn tell(&mut self, n: usize, note: &Note<'_>) {
        let now = self.now();
        let view = View { now, dispatcher: &self.nodes[n].dispatcher, backing: &self.database.backing };
        let oracles = &mut self.watch.oracles;
        oracles.ledger.note(&view, note);
        oracles.rate.note(&view, note);
        oracles.quiet.note(&view, note);
        oracles.expiry.note(&view, note);
        oracles.order.note(&view, note);
        oracles.shut.note(&view, note);
        oracles.liveness.note(&view, note);
        if !matches!(note, Note::Answered(..)) {
            oracles.concurrency.note(&view, note);
        }
    }

    /// Whether what may go goes, and whether explanations are right, as the owners see it.
    pub(super) fn look(&mut self) {
        self.plan(self.us + LOOK_EVERY, Event::Look);
        let now = self.now();
        for lane in 0..self.watch.lanes.len() {
            let id = self.watch.lanes[lane];
            let works = |n: &usize| {
                let node = &self.nodes[*n];
                let well = node.state == State::Up && !node.is_paused() && self.us - node.well_since > SETTLED;
                well && self.owns(*n, lane) && node.dispatcher.lane(id).presence() == Presence::Here
            };
            let owner = (0..self.nodes.len()).find(works).filter(|_| !self.is_away());
            let backing = &self.database.backing;
            match owner {
                Some(n) => {
                    let node = &self.nodes[n];
                    let view = View { now: self.now_at(n), dispatcher: &node.dispatcher, backing };
                    let view = View { now: tidegate_core::time::Now { mono: now.mono, ..view.now }, ..view };
                    self.watch.oracles.liveness.look(&view, lane);
                    self.watch.oracles.agreement.note(&view, &Note::Stepped);
                }
                None => {
                    let view = View { now, dispatcher: &self.nodes[0].dispatcher, backing };
                    self.watch.oracles.liveness.note(&view, &Note::Lost(id));
                }
            }
        }
    }
}

impl Watch {
    /// A receiver has answered: the request is not there any more.
    pub(super) fn served(&mut self, lane: LaneId, _: &Sending, _: &Answer, excused: bool) {
        self.gone(lane, excused);
    }

    /// A request is not at its receiver any more; one that is excused was not counted.
    pub(super) fn gone(&mut self, lane: LaneId, excused: bool) {
        if !excused {
            self.oracles.concurrency.ended(lane);
        }
    }
}
