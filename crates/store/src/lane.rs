//! What a lane starts from, and how its window is filled again.

use std::sync::Arc;

use tidegate_core::delivery::Delivery;
use tidegate_core::order::Line;
use tidegate_core::policy::Policy;
use tidegate_core::refill::{Refill, Wanted};
use tidegate_core::time::Timestamp;

use crate::{AccountNo, DestinationNo};

/// A lane as it was last stored.
#[derive(Clone, Debug)]
pub struct StoredLane {
    /// Of which destination.
    pub destination: DestinationNo,
    /// The state behind its gates, encoded; `None`: it never sent anything.
    pub state: Option<Vec<u8>>,
    /// What its timeouts have learned, encoded.
    pub timeouts: Option<Vec<u8>>,
    /// Open deliveries.
    pub open: u64,
    /// When that was stored, where several nodes may ask.
    pub saved_at: Option<Timestamp>,
    /// Attempts that were in flight then.
    pub in_flight: u32,
}

/// The question of a lane whose window runs low.
#[derive(Clone, Debug)]
pub struct RefillQuery {
    /// Which lane.
    pub destination: DestinationNo,
    /// Its policy: which deliveries keep an order, which windows concern which types.
    pub policy: Arc<Policy>,
    /// How much to bring of each part.
    pub wanted: Wanted,
    /// Lines that stand: nothing of them is wanted.
    pub halted: Vec<Line>,
    /// The time: what is due by now is no longer waiting for its own time.
    pub now: Timestamp,
    /// Lines are looked at in the order of their keys, from after this one, so that with very many of them each has its
    /// turn.
    pub after_key: Option<Arc<str>>,
}

/// The answer.
#[derive(Debug, Default)]
pub struct Refilled {
    /// What the lane gets.
    pub refill: Refill,
    /// Where the next look at the lines should begin; `None`: from the start.
    pub after_key: Option<Arc<str>>,
}

/// An open delivery whose end has come: stale, or too old.
#[derive(Clone, Debug)]
pub struct Overdue {
    /// Of which destination.
    pub destination: DestinationNo,
    /// The delivery.
    pub delivery: Delivery,
}

/// What waits, kept and never counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Deliveries that are not final.
    pub deliveries: u64,
    /// The bytes of their payloads, once for each delivery.
    pub bytes: u64,
}

/// Whose waiting deliveries are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// A destination's.
    Destination(DestinationNo),
    /// All of an account's.
    Account(AccountNo),
}
