//! The dispatcher: which delivery goes next, over all destinations of a node.
//!
//! ```text
//!   Accepted, Overdue, Withdraw, Hasten,      ┌───────────┐
//!   Finished, NotSent, PutAside, Refilled,    │           │      Send, Settle, Refill,
//!   Saved, Adopt, Command, Wake;        ────► │   step    │ ───► Held, Changed, SaveLane
//!   of several nodes: Take, Pass, Lose,       │           │
//!   Behind, Shown                             └───────────┘
//!
//!   lane: one destination; its queue, its gates' state, its attempts in flight
//!   turns: accounts in turn, destinations in turn within an account
//!   capacity: the node's slots, and how many of them doubtful lanes may hold
//!   timers: when to look at a sleeping lane again
//! ```
//!
//! An effect is a request to the driver; what comes of it returns as an input. A lost wake-up loses nothing: the next
//! step does the same work.

mod capacity;
mod lane;
mod queue;
mod timers;
mod turns;

pub use capacity::Trust;
pub use lane::{Lane, Mark, Presence, Waits};

use std::sync::Arc;

use tidegate_core::delivery::{Delivery, HoldReason, Place, Withdrawn};
use tidegate_core::draw::Draw;
use tidegate_core::health::DisabledCause;
use tidegate_core::id::DeliveryId;
use tidegate_core::lane::{Aftermath, Attempt, LaneState, Report};
use tidegate_core::pattern::EventType;
use tidegate_core::policy::Policy;
use tidegate_core::refill::Refill;
use tidegate_core::time::{Millis, Now, Timestamp};

use capacity::Capacity;
use lane::Poll;
use timers::Timers;
use turns::Turns;

/// A jump of the wall clock by more than this makes every sleeping lane look again.
const CLOCK_STEP: Millis = Millis::new(250);

/// A lane's number, for as long as the dispatcher lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(u32);

impl LaneId {
    /// Its place in a list that has one entry per lane, in the order in which they were opened.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An account's number, as the driver has it (the server's passes that of the store): accounts take turns by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AccountNo(pub u32);

/// What happened.
#[derive(Debug)]
pub enum Input {
    /// A delivery was accepted and committed.
    Accepted {
        /// For which destination.
        lane: LaneId,
        /// The delivery.
        delivery: Delivery,
    },
    /// An attempt ended.
    Finished {
        /// At which destination.
        lane: LaneId,
        /// For which delivery.
        delivery: DeliveryId,
        /// How.
        report: Report,
        /// Chance for the retry's jitter.
        draw: Draw,
    },
    /// An attempt was not made: its delivery goes back to its gates.
    NotSent {
        /// At which destination.
        lane: LaneId,
        /// Which delivery.
        delivery: DeliveryId,
    },
    /// An attempt was not made and none will be: the process died several times while it worked on this delivery.
    PutAside {
        /// At which destination.
        lane: LaneId,
        /// Which delivery.
        delivery: DeliveryId,
    },
    /// The store answered [`Effect::Refill`].
    Refilled {
        /// For which destination.
        lane: LaneId,
        /// What it found.
        refill: Refill,
    },
    /// Everything that the lane asked to store, up to `mark`, is committed.
    Saved {
        /// Which lane.
        lane: LaneId,
        /// How far.
        mark: Mark,
    },
    /// The store's sweeper found an open delivery that is stale or too old, in memory or not.
    Overdue {
        /// Of which destination.
        lane: LaneId,
        /// The delivery, as the store has it.
        delivery: Box<Delivery>,
    },
    /// A delivery is withdrawn, in memory or not. One that is in flight cannot be called back: if it succeeds it is
    /// delivered, else it is cancelled then. One that is over stays as it is.
    Withdraw {
        /// Of which destination.
        lane: LaneId,
        /// The delivery, as the store has it.
        delivery: Box<Delivery>,
        /// By whom.
        by: Withdrawn,
    },
    /// A delivery need not wait for its own time any longer, in memory or not. It keeps its place in its line; nothing
    /// happens if it is in flight or over.
    Hasten {
        /// Of which destination.
        lane: LaneId,
        /// The delivery, as the store has it.
        delivery: Box<Delivery>,
    },
    /// The destination's policy changed.
    Adopt {
        /// Which lane.
        lane: LaneId,
        /// The new policy.
        policy: Arc<Policy>,
    },
    /// A person wants something.
    Command {
        /// Of which lane.
        lane: LaneId,
        /// What.
        command: Command,
    },
    /// This node works a lane from now on: the state that the store has of it.
    Take {
        /// Which lane.
        lane: LaneId,
        /// Its state.
        state: Box<LaneState>,
    },
    /// The lane is to go to another node: nothing starts any more.
    Pass {
        /// Which lane.
        lane: LaneId,
    },
    /// Another node works it: what is in flight here counts no more.
    Lose {
        /// Which lane.
        lane: LaneId,
    },
    /// The store may have deliveries that the lane was not told of: it reads its backlog again.
    Behind {
        /// Which lane.
        lane: LaneId,
    },
    /// What another node has stored of a lane that it works.
    Shown {
        /// Which lane.
        lane: LaneId,
        /// Its state.
        state: Box<LaneState>,
    },
    /// Nothing but time.
    Wake,
}

/// What a person may want of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Hold everything.
    Pause,
    /// Go on after a pause, or after a halted line, which goes on with its next delivery.
    Resume {
        /// Where all deliveries keep one order and the line was not halted: withdraw the head if an attempt of it has failed,
        /// so that the next one goes. A head that was never tried, or is only in the store, is not touched.
        skip_head: bool,
    },
    /// Switch it off.
    Disable(DisabledCause),
    /// Switch it on again.
    Enable,
    /// Forget breaker, throttle and `unavailable`, and probe at once.
    RetryNow,
    /// The destination was deleted. What waits in memory is dropped, to be withdrawn from the store by
    /// [`Input::Withdraw`]; nothing starts any more; what is in flight ends as delivered, or else as withdrawn.
    Retire,
}

/// What to do.
#[derive(Debug)]
pub enum Effect {
    /// Make a request.
    Send {
        /// To which destination.
        lane: LaneId,
        /// What.
        sending: Sending,
    },
    /// Store a delivery's new state, the attempt that led to it, and the lane's state, in one commit.
    Settle {
        /// Of which destination.
        lane: LaneId,
        /// The delivery as it is now.
        delivery: Box<Delivery>,
        /// The attempt that ended, if one did.
        attempt: Option<(Attempt, Report)>,
        /// To be handed back with [`Input::Saved`] when it is committed.
        mark: Mark,
    },
    /// Store the lane's state: it changed without an attempt.
    SaveLane {
        /// Which lane.
        lane: LaneId,
    },
    /// Look up more deliveries of this lane than it has in memory: [`Lane::wanted`] says which.
    Refill {
        /// Which lane.
        lane: LaneId,
    },
    /// Work waited for this reason during this time: one row of the hold log.
    Held {
        /// Which lane.
        lane: LaneId,
        /// Why.
        reason: HoldReason,
        /// From when.
        since: Timestamp,
        /// To when.
        until: Timestamp,
    },
    /// Something about the destination changed that people want to know.
    Changed {
        /// Which lane.
        lane: LaneId,
        /// What.
        aftermath: Aftermath,
    },
}

/// One request to make: what the sender must know of the delivery.
#[derive(Clone, Debug)]
pub struct Sending {
    /// The delivery.
    pub delivery: DeliveryId,
    /// Its place in the destination's order.
    pub place: Place,
    /// The event's type: a header tells the receiver.
    pub event_type: EventType,
    /// When it goes stale: another header tells.
    pub expires_at: Option<Timestamp>,
    /// Attempt number, starting at 1.
    pub number: u32,
    /// How long it may take, and what it finds out.
    pub attempt: Attempt,
}

/// The machine. See the module's description.
#[derive(Debug)]
pub struct Dispatcher {
    lanes: Vec<Lane>,
    turns: Turns,
    capacity: Capacity,
    timers: Timers,
    offset: Option<Millis>,
    /// Reads under way whose rows will come as inputs. Until then lanes remember what they have settled, so that an outdated row
    /// sends nothing twice.
    readers: u32,
}

impl Dispatcher {
    /// A node that makes at most `slots` requests at a time.
    pub fn new(slots: u32) -> Self {
        Self {
            lanes: Vec::new(),
            turns: Turns::default(),
            capacity: Capacity::new(slots),
            timers: Timers::default(),
            offset: None,
            readers: 0,
        }
    }

    /// Opens a destination's lane. With `backlog`, the store may hold open deliveries of it: the next step asks for them.
    pub fn open(
        &mut self,
        account: AccountNo,
        policy: Arc<Policy>,
        state: LaneState,
        backlog: bool,
    ) -> LaneId {
        let id = LaneId(u32::try_from(self.lanes.len()).expect("fewer than 2³² destinations"));
        let lane = Lane::new(id, account, policy, state, backlog);
        self.lanes.push(lane);
        self.run(id);
        id
    }

    /// The node is to stop: from now on nothing starts.
    pub const fn stop_starting(&mut self) {
        self.capacity.close();
    }

    /// While `hold`, the node starts nothing: what is in flight ends, all else waits. With the next step after that it
    /// goes on where it was.
    pub const fn hold_starts(&mut self, hold: bool) {
        self.capacity.hold(hold);
    }

    /// Somebody begins, or ends, to read open deliveries from the store that will come as [`Input::Accepted`],
    /// [`Input::Overdue`], [`Input::Withdraw`] or [`Input::Hasten`]. Lanes remember what they settle meanwhile, so that an
    /// outdated row sends nothing twice.
    pub const fn reads(&mut self, begins: bool) {
        self.readers = if begins { self.readers + 1 } else { self.readers.saturating_sub(1) };
    }

    /// A lane, to look at.
    pub fn lane(&self, id: LaneId) -> &Lane {
        &self.lanes[id.index()]
    }
    /// All lanes, in the order in which they were opened.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }
    /// Requests in flight on this node.
    pub fn in_flight(&self) -> u32 {
        self.capacity.in_flight()
    }
    /// Of these, the ones of lanes whose last attempt did not succeed, or that have only hung so far.
    pub fn in_flight_of_suspects(&self) -> u32 {
        self.capacity.in_flight_of(Trust::Suspect)
    }
    /// When to call [`step`](Self::step) with [`Input::Wake`], unless something happens before.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.timers.next()
    }

    /// One turn of the machine: takes in what happened, then starts whatever may start.
    pub fn step(&mut self, now: Now, input: Input, effects: &mut Vec<Effect>) {
        self.note_clock(now, effects);
        self.take_in(now, input, effects);
        while let Some(lane) = self.timers.pop_due(now.wall) {
            self.lanes[lane.index()].wake_at = None;
            self.run(lane);
        }
        self.dispatch(now, effects);
    }

    /// After the wall clock was set every "until" may be wrong, so all sleeping lanes look again. Buckets and waits are stored as
    /// wall times, so they are stored anew: the next process would take the jump for time that passed.
    fn note_clock(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let offset = now.offset();
        let by = offset - *self.offset.get_or_insert(offset);
        if by.get().abs() <= CLOCK_STEP.get() {
            return;
        }
        self.offset = Some(offset);
        for index in 0..self.lanes.len() {
            let lane = self.lanes[index].id();
            let waits = self.lanes[index].clock_set(by);
            if waits || self.lanes[index].state().rate.is_some() {
                effects.push(Effect::SaveLane { lane });
            }
            self.run(lane);
        }
    }

    fn take_in(&mut self, now: Now, input: Input, effects: &mut Vec<Effect>) {
        let lane = match input {
            Input::Wake => return,
            Input::Accepted { lane, delivery } => {
                self.lanes[lane.index()].accepted(now, delivery, effects);
                lane
            }
            Input::Finished { lane, delivery, report, draw } => {
                self.moved(lane, |lane| lane.finished(now, delivery, &report, draw, effects));
                lane
            }
            Input::NotSent { lane, delivery } => {
                self.moved(lane, |lane| lane.not_sent(now, delivery, effects));
                lane
            }
            Input::PutAside { lane, delivery } => {
                self.moved(lane, |lane| lane.put_aside(now, delivery, effects));
                lane
            }
            Input::Refilled { lane, refill } => {
                self.lanes[lane.index()].refilled(now, refill, self.readers > 0);
                lane
            }
            Input::Saved { lane, mark } => {
                if !self.lanes[lane.index()].saved(mark, self.readers > 0) {
                    return;
                }
                lane
            }
            Input::Overdue { lane, delivery } => {
                self.lanes[lane.index()].overdue(now, *delivery, effects);
                lane
            }
            Input::Withdraw { lane, delivery, by } => {
                self.lanes[lane.index()].withdraw(now, *delivery, by, effects);
                lane
            }
            Input::Hasten { lane, delivery } => {
                self.lanes[lane.index()].hasten(now, *delivery, effects);
                lane
            }
            Input::Adopt { lane, policy } => {
                self.lanes[lane.index()].adopt(now, policy);
                lane
            }
            Input::Command { lane, command } => {
                self.lanes[lane.index()].command(now, command, effects);
                lane
            }
            Input::Take { lane, state } => {
                self.moved(lane, |lane| lane.take(*state));
                lane
            }
            Input::Pass { lane } => {
                self.lanes[lane.index()].pass();
                lane
            }
            Input::Lose { lane } => {
                self.moved(lane, Lane::leave);
                lane
            }
            Input::Behind { lane } => {
                self.lanes[lane.index()].look_again();
                lane
            }
            Input::Shown { lane, state } => {
                self.moved(lane, |lane| lane.show(*state));
                lane
            }
        };
        self.run(lane);
    }

    /// Changes a lane, and tells the node's capacity if its attempts in flight or its trust have changed with it.
    fn moved(&mut self, id: LaneId, change: impl FnOnce(&mut Lane)) {
        let lane = &mut self.lanes[id.index()];
        let before = (lane.trust(), lane.state().in_flight);
        change(lane);
        self.capacity.moved(before, (lane.trust(), lane.state().in_flight));
    }

    /// Puts a lane in line to be looked at, unless it stands there already.
    fn run(&mut self, id: LaneId) {
        let lane = &mut self.lanes[id.index()];
        if !lane.in_turn {
            lane.in_turn = true;
            self.turns.push(lane.trust(), lane.account(), id);
        }
    }

    /// Starts what may start: lane by lane, one delivery each, until no lane has any or the node is full.
    fn dispatch(&mut self, now: Now, effects: &mut Vec<Effect>) {
        while let Some(id) = self.capacity.next_hung(now.mono) {
            self.notice_stall(now, id);
        }
        while let Some(id) = self.turns.pop(|trust| self.capacity.admits(trust)) {
            self.lanes[id.index()].in_turn = false;
            self.notice_stall(now, id);
            let lane = &mut self.lanes[id.index()];
            let before = (lane.trust(), lane.state().in_flight);
            if !self.capacity.admits(before.0) {
                // Its trust has changed since it stood in line: it goes to the end of the right ring.
                self.run(id);
                continue;
            }
            match lane.poll(now, effects) {
                Poll::Started => {
                    let after = (lane.trust(), lane.state().in_flight);
                    self.capacity.moved(before, after);
                    if after == (Trust::Unproven, 1) {
                        self.capacity.watch(now.mono, id);
                    }
                    self.run(id);
                }
                Poll::Sleep(until) => {
                    let sooner = |until: &Timestamp| lane.wake_at.is_none_or(|armed| *until < armed);
                    if let Some(until) = until.filter(sooner) {
                        self.timers.arm(id, lane.wake_at.replace(until), until);
                    }
                }
            }
        }
    }

    /// Takes trust from a lane whose attempts hang, until one ends. Asked when the lane wants another slot, and once its very
    /// first attempt has lasted `HUNG_AFTER`.
    fn notice_stall(&mut self, now: Now, id: LaneId) {
        self.moved(id, |lane| lane.notice_stall(now));
    }
}
