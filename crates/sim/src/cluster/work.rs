//! What happens in a cluster, what nodes ask of the database, and what they hear.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tidegate_core::delivery::{Delivery, Place};
use tidegate_core::lane::LastStop;
use tidegate_core::refill::Refill;
use tidegate_core::slots::{Epoch, Roll, Slot};
use tidegate_core::time::{Mono, Timestamp};
use tidegate_engine::dispatcher::LaneId;
use tidegate_store::lane::StoredLane;

/// What happens.
#[derive(Debug)]
pub(super) enum Event {
    Start(usize),
    Publish(usize),
    Told {
        publisher: usize,
        lane: LaneId,
        place: Place,
    },
    AtDatabase {
        node: usize,
        life: u64,
        ask: Ask,
    },
    AtNode {
        node: usize,
        life: u64,
        arrival: Arrival,
    },
    /// A receiver has answered.
    Served(u64),
    Fault,
    Crash(usize, u64),
    Wake(usize, u64),
    Join(usize, u64),
    /// Slots of a node that crashed then are to be worked again.
    Revived(Vec<Slot>, i64),
    /// The watcher looks around.
    Look,
}

/// What the database is asked for. A token tells to which question an answer belongs.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    Renew {
        token: u64,
        sent: Mono,
        leaving: bool,
    },
    Claim {
        token: u64,
        slots: Vec<Slot>,
        asked_at: i64,
    },
    GiveBack {
        token: u64,
        slots: Vec<Slot>,
        asked_at: i64,
    },
    /// The first bundle of a group.
    Begin {
        token: u64,
        group: Rc<Group>,
    },
    /// The second.
    Commit {
        token: u64,
        group: Rc<Group>,
    },
    /// How far the seat has got: after a commit whose answer was lost.
    Recover {
        token: u64,
    },
    News {
        token: u64,
        cursors: BTreeMap<u8, u64>,
        held: BTreeSet<Slot>,
    },
    Refill {
        lane: LaneId,
        tenure: u64,
    },
    Overdue {
        token: u64,
    },
    /// What time it is; asked then, by the node's clock.
    Clock {
        sent: i64,
    },
    /// The others are to be told that there is something for them, or that slots are free.
    Announce {
        freed: bool,
    },
    Leave,
}

/// What reaches a node.
#[derive(Debug)]
pub(super) enum Arrival {
    /// Somebody publishes.
    Published { publisher: usize, at: i64 },
    /// The millisecond of what was accepted may be over.
    Past(Accepted),
    /// A request is about to be written.
    Depart(u64),
    /// Its answer is here.
    Answered(u64),
    Renewed { token: u64, sent: Mono, roll: Box<Roll> },
    Claimed { token: u64, claimed: Vec<Claimed> },
    GaveBack { token: u64 },
    Begun { token: u64, stale: BTreeSet<Slot> },
    Committed { token: u64 },
    Recovered { token: u64, groups: u64 },
    News { token: u64, cursors: BTreeMap<u8, u64>, brought: Vec<(usize, Delivery)> },
    Refilled { lane: LaneId, tenure: u64, refill: Box<Refill> },
    Overdue { token: u64, overdue: Vec<(usize, Delivery)> },
    Clock { micros: i64, sent: i64 },
    Left,
    /// No answer, or a bad one, to what had this token.
    Failed(u64),
    /// A refill could not be read.
    NotRefilled { lane: LaneId, tenure: u64 },
    Noticed,
    Freed,
    /// Time: for the machine, the membership's next round, the writer's next try, and what is done now and then.
    Alarm(u64),
    Round(u64),
    TryAgain(u64),
    ReadAgain { lane: LaneId, tenure: u64 },
    Poll,
    LookAtClock,
    Second,
    MustLeave,
}

/// A slot that was granted, with its lanes as they were stored.
#[derive(Debug)]
pub(super) struct Claimed {
    pub(super) slot: Slot,
    pub(super) epoch: Epoch,
    pub(super) last_stop: LastStop,
    pub(super) lanes: Vec<StoredLane>,
}

/// A delivery that was accepted, whose publisher waits.
#[derive(Clone, Debug)]
pub(super) struct Accepted {
    pub(super) publisher: usize,
    pub(super) lane: LaneId,
    pub(super) delivery: Delivery,
}

/// One thing that is to be written.
#[derive(Clone, Debug)]
pub(super) enum Work {
    Accept(Accepted),
    Record(Record),
}

/// What the driver hands over at once.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) ticket: u64,
    pub(super) settled: Vec<Settled>,
    pub(super) lanes: Vec<LaneSave>,
}

/// A delivery's new state, and the epoch under which it got it.
#[derive(Clone, Debug)]
pub(super) struct Settled {
    pub(super) lane: LaneId,
    pub(super) epoch: Option<Epoch>,
    pub(super) delivery: Delivery,
}

/// What is new of a lane, as it was then.
#[derive(Clone, Debug)]
pub(super) struct LaneSave {
    pub(super) lane: LaneId,
    pub(super) epoch: Option<Epoch>,
    pub(super) state: Option<Vec<u8>>,
    pub(super) timeouts: Option<Vec<u8>>,
    pub(super) as_of: Timestamp,
}

/// What is committed at once, and the epochs under which the node had its slots when it began.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) works: Vec<Work>,
    pub(super) epochs: BTreeMap<Slot, Epoch>,
}

impl Group {
    /// The slots that are asked after: those of results and lanes, and those that the node believes to hold.
    pub(super) fn touched(&self) -> BTreeSet<Slot> {
        let mut touched = BTreeSet::new();
        for work in &self.works {
            match work {
                Work::Accept(accepted) => {
                    touched.extend(Some(slot(accepted.lane)).filter(|slot| self.epochs.contains_key(slot)));
                }
                Work::Record(record) => {
                    touched.extend(record.settled.iter().map(|settled| slot(settled.lane)));
                    touched.extend(record.lanes.iter().map(|save| slot(save.lane)));
                }
            }
        }
        touched
    }
}

/// The slot of a lane: destinations are numbered as lanes are.
pub(super) fn slot(lane: LaneId) -> Slot {
    Slot::of(u32::try_from(lane.index()).expect("few destinations"))
}
