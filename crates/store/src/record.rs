//! What the engine writes down: results, lanes, holds, in one commit.

use tidegate_core::delivery::{Delivery, HoldReason};
use tidegate_core::id::EventId;
use tidegate_core::slots::Epoch;
use tidegate_core::time::Timestamp;

use crate::catalogue::AuditEntry;
use crate::cluster::OrderNo;
use crate::delivery::StoredAttempt;
use crate::event::NewEvent;
use crate::event::NewReplay;
use crate::{AccountNo, DestinationNo};

/// One group of results. Attempt, new state and the lane's state change together.
#[derive(Debug)]
pub struct Record {
    /// When, on our clock.
    pub now: Timestamp,
    /// Handed back with the commit.
    pub ticket: u64,
    /// Deliveries with a new state.
    pub settled: Vec<Settled>,
    /// Lanes with a new state.
    pub lanes: Vec<LaneSave>,
    /// Rows for the hold log.
    pub holds: Vec<HoldRow>,
    /// Rows for the destinations' log.
    pub notices: Vec<NoticeRow>,
    /// Orders that are carried out with it: what they led to and their end are one commit.
    pub orders: Vec<OrderDone>,
    /// Who asked for what is in it: a deed and its line in the audit log are one commit.
    pub audit: Vec<AuditEntry>,
    /// Some lane stands until it is committed: it does not wait for others to be committed with.
    pub awaited: bool,
}

/// Nothing yet, at no time.
impl Default for Record {
    fn default() -> Self {
        Self {
            now: Timestamp::MIN,
            ticket: 0,
            settled: Vec::new(),
            lanes: Vec::new(),
            holds: Vec::new(),
            notices: Vec::new(),
            orders: Vec::new(),
            audit: Vec::new(),
            awaited: false,
        }
    }
}

/// A delivery with a new state. One that is final already stays so.
#[derive(Debug)]
pub struct Settled {
    /// Whose.
    pub account: AccountNo,
    /// Of which destination.
    pub destination: DestinationNo,
    /// The delivery as it is now.
    pub delivery: Box<Delivery>,
    /// Its event and the length of the payload, where they are at hand: else the store looks for them.
    pub event: Option<(EventId, usize)>,
    /// The attempt that led to it, if one did.
    pub attempt: Option<StoredAttempt>,
    /// The epoch of its slot under which it came about: if the node has lost the slot since, it is refused, even where the node
    /// has the slot again by now. `None`: under whichever it is written, or there are no other nodes.
    pub epoch: Option<Epoch>,
}

/// A lane's state, encoded. What changes with each attempt is apart from what is large and changes slowly.
#[derive(Clone, Debug)]
pub struct LaneSave {
    /// Of which destination.
    pub destination: DestinationNo,
    /// The state behind its gates.
    pub state: Option<Vec<u8>>,
    /// What its timeouts have learned.
    pub timeouts: Option<Vec<u8>>,
    /// Attempts in flight, for those who look at it from another node.
    pub in_flight: u32,
    /// The epoch of its slot under which it came about, as with [`Settled::epoch`].
    pub epoch: Option<Epoch>,
}

/// A place in a destination's log: a time, and the number of a row among those of that time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPlace {
    /// The time.
    pub at: Timestamp,
    /// The number.
    pub no: i64,
}

impl LogPlace {
    /// Before everything of this time.
    pub const fn before(at: Timestamp) -> Self {
        Self { at, no: i64::MIN }
    }
}

/// An interval in which work of a destination waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldRow {
    /// Which.
    pub destination: DestinationNo,
    /// Why.
    pub reason: HoldReason,
    /// From when.
    pub since: Timestamp,
    /// To when.
    pub until: Timestamp,
}

/// Something about a destination that people want to know: the breaker opened, it was disabled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticeRow {
    /// Which.
    pub destination: DestinationNo,
    /// When.
    pub at: Timestamp,
    /// A word: `circuit_opened`, `circuit_closed`, `throttled`, `disabled`, `timeout_changed`, `order_halted`.
    pub kind: String,
    /// A sentence.
    pub detail: String,
}

/// An order that is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderDone {
    /// Its number.
    pub no: OrderNo,
    /// Of which lane.
    pub destination: DestinationNo,
    /// The epoch of its slot under which it was, as with [`Settled::epoch`]: where that has passed, the order stays open.
    pub epoch: Option<Epoch>,
}

/// What one commit made durable: handed to the engine by the writer thread, before anybody gets an answer, so that an
/// event whose publisher has gone away is on its way all the same.
#[derive(Debug, Default)]
pub struct Commit {
    /// Events that are in.
    pub accepted: Vec<NewEvent>,
    /// Replays that are in.
    pub replays: Vec<NewReplay>,
    /// Records that are in, by their tickets.
    pub recorded: Vec<u64>,
    /// Results in them that were refused, because another node owns their destination by now: it is that node's to say what
    /// became of them.
    pub stale: usize,
    /// Rows of records that cannot be stored as they are: a fault of ours. They were logged and left out, so that their records
    /// end and all else in them is in.
    pub refused: usize,
    /// How many things were asked for in this group: requests, records, changes.
    pub things: usize,
    /// How long it took, from the first statement to the end of the commit, in microseconds.
    pub took_micros: u64,
}
