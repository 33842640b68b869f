//! One node of a cluster: what its process has in memory.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use tidegate_core::delivery::Delivery;
use tidegate_core::refill::Refill;
use tidegate_core::sequence::Sequence;
use tidegate_core::slots::{Epoch, Membership, NodeNo, Seat, Slot};
use tidegate_core::time::{Millis, Mono};
use tidegate_engine::dispatcher::{Dispatcher, Effect, LaneId, Mark, Sending};
use tidegate_engine::tenancy::Tenancy;

use super::clock::Clock;
use super::work::{Accepted, Arrival, Ask, Claimed, Group, Settled, Work};
use crate::world::Answer;

/// A node, or the place of one.
pub(super) struct Node {
    /// Grows with each start and each end: what was meant for an earlier life reaches nobody.
    pub(super) life: u64,
    pub(super) state: State,
    pub(super) clock: Clock,
    pub(super) no: NodeNo,
    pub(super) seat: Seat,
    pub(super) paused_until: Option<i64>,
    pub(super) cut_until: Option<i64>,
    /// Since when nothing is wrong with it.
    pub(super) well_since: i64,
    /// What came while it was frozen.
    pub(super) deferred: Vec<Arrival>,
    /// It was frozen in the middle of a turn: what comes next is taken in before it looks at the clock.
    pub(super) mid_turn: bool,
    /// It was frozen, and has not renewed its lease since.
    pub(super) just_woke: bool,
    /// A notice for it was lost since it last read news.
    pub(super) missed_notice: bool,
    pub(super) membership: Option<Membership>,
    pub(super) task: Task,
    pub(super) leaving: bool,
    pub(super) tenancy: Tenancy,
    pub(super) lease_until: Mono,
    pub(super) dispatcher: Dispatcher,
    pub(super) inbox: VecDeque<Input>,
    pub(super) effects: Vec<Effect>,
    pub(super) lanes: Vec<LaneRecord>,
    pub(super) recorder: Recorder,
    pub(super) writer: Writer,
    /// The epochs under which it has its slots, as the store's handle knows them.
    pub(super) epochs: BTreeMap<Slot, Epoch>,
    pub(super) cursors: BTreeMap<u8, u64>,
    pub(super) news: u64,
    pub(super) desk: Desk,
    pub(super) by_poll: bool,
    /// What went stale is being looked for.
    pub(super) sweep: u64,
    pub(super) sequence: Sequence,
    pub(super) alarm: (u64, i64),
    /// Publishers that wait for an answer.
    pub(super) asking: BTreeSet<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Down,
    /// It learns the database's time.
    Starting,
    Up,
    /// All slots are passed on: the last results are written.
    Closing,
}

/// The thread of the cluster: what it is asked for, one thing after the other, so that news is never read with slots of before a
/// claim that came first.
#[derive(Debug, Default)]
pub(super) struct Desk {
    /// The question whose answer it waits for.
    pub(super) token: Option<u64>,
    pub(super) asks: VecDeque<(u64, Ask)>,
}

/// What the task of the membership does.
#[derive(Debug, Default)]
pub(super) struct Task {
    /// The question that it waits for, or the round that it sleeps until.
    pub(super) token: u64,
    pub(super) doing: Doing,
    pub(super) freed: bool,
    pub(super) emptied: Vec<Slot>,
    pub(super) leave: bool,
    /// Until the next round, from when the last renewal was sent.
    pub(super) next: Millis,
    pub(super) sent: Mono,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Doing {
    #[default]
    Waiting,
    Renewing,
    Claiming,
    GivingBack,
}

/// What reaches the driver.
#[derive(Debug)]
pub(super) enum Input {
    Commit(Vec<Work>),
    Answered(u64),
    Refilled {
        lane: LaneId,
        token: u64,
        refill: Box<Refill>,
    },
    Noticed,
    News(Option<Vec<(usize, Delivery)>>),
    Overdue(Option<Vec<(usize, Delivery)>>),
    Take(Vec<Claimed>),
    Pass(Vec<Slot>, Millis),
    Lose(Vec<Slot>),
    Work(Mono),
    /// The lease could not be renewed.
    OutOfReach,
    Second,
}

/// What the driver knows of a lane.
#[derive(Clone, Debug, Default)]
pub(super) struct LaneRecord {
    /// The refill that was asked for in this tenure.
    pub(super) asked: u64,
    pub(super) state: Vec<u8>,
    pub(super) timeouts_at: Mono,
    pub(super) shown_in_flight: u32,
    /// The epoch under which it was taken.
    pub(super) epoch: Option<Epoch>,
}

/// What waits for the next record, and what was handed over.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    pub(super) settled: Vec<Settled>,
    pub(super) touched: BTreeSet<LaneId>,
    pub(super) marks: BTreeMap<LaneId, Mark>,
    pub(super) empty: Vec<Slot>,
    pub(super) under_way: BTreeMap<u64, Handed>,
    pub(super) tickets: u64,
}

/// A record that is not known to be committed.
#[derive(Debug)]
pub(super) struct Handed {
    pub(super) marks: BTreeMap<LaneId, Mark>,
    pub(super) empty: Vec<Slot>,
}

/// The writer thread.
#[derive(Debug, Default)]
pub(super) struct Writer {
    pub(super) queue: VecDeque<Work>,
    pub(super) token: u64,
    pub(super) phase: Phase,
    /// Groups that were committed from the seat, as far as it knows.
    pub(super) groups: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) enum Phase {
    #[default]
    Idle,
    Beginning(Rc<Group>),
    Committing(Rc<Group>, BTreeSet<Slot>),
    /// Something is wrong: tries again in a while, first of all to find out about this group.
    Resting(Option<(Rc<Group>, BTreeSet<Slot>)>),
    Recovering(Option<(Rc<Group>, BTreeSet<Slot>)>),
}

/// A request, from the decision to make it until its answer is taken in.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) node: usize,
    pub(super) lane: LaneId,
    pub(super) sending: Sending,
    pub(super) answer: Option<Answer>,
    /// It is at the receiver.
    pub(super) there: bool,
    /// Its slot was taken over while its node was frozen: it may overlap with others.
    pub(super) excused: bool,
}

impl Node {
    /// The place of a node.
    pub(super) fn down() -> Self {
        Self {
            life: 0,
            state: State::Down,
            clock: Clock::default(),
            no: NodeNo(0),
            seat: Seat::new(0).expect("the first"),
            paused_until: None,
            cut_until: None,
            well_since: 0,
            deferred: Vec::new(),
            mid_turn: false,
            just_woke: false,
            missed_notice: false,
            membership: None,
            task: Task::default(),
            leaving: false,
            tenancy: Tenancy::default(),
            lease_until: Mono::from_millis(i64::MAX),
            dispatcher: Dispatcher::new(0),
            inbox: VecDeque::new(),
            effects: Vec::new(),
            lanes: Vec::new(),
            recorder: Recorder::default(),
            writer: Writer::default(),
            epochs: BTreeMap::new(),
            cursors: BTreeMap::new(),
            news: 0,
            desk: Desk::default(),
            by_poll: false,
            sweep: 0,
            sequence: Sequence::default(),
            alarm: (0, i64::MAX),
            asking: BTreeSet::new(),
        }
    }

    /// Whether it is still in this life.
    pub(super) fn is(&self, life: u64) -> bool {
        self.life == life && self.state != State::Down
    }
    pub(super) const fn is_paused(&self) -> bool {
        self.paused_until.is_some()
    }
    /// Whether publishers find it.
    pub(super) fn listens(&self) -> bool {
        self.state == State::Up && !self.leaving
    }
}

impl Recorder {
    /// A lane has got this far, and waits until that is committed.
    pub(super) fn await_commit(&mut self, lane: LaneId, mark: Mark) {
        self.marks.insert(lane, mark);
        self.touched.insert(lane);
    }
}

impl Writer {
    /// What waits to be accepted.
    pub(super) fn take_accepts(&mut self) -> Vec<Accepted> {
        let (accepts, records) =
            self.queue.drain(..).partition::<Vec<_>, _>(|work| matches!(work, Work::Accept(_)));
        self.queue.extend(records);
        accepts
            .into_iter()
            .filter_map(|work| if let Work::Accept(it) = work { Some(it) } else { None })
            .collect()
    }
}
