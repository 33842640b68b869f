//! The outbox: events that applications put there in their own transactions (`tidegate.publish`), until a node accepts them.

use bytes::Bytes;
use tidegate_core::id::EventId;
use tidegate_core::time::Timestamp;

/// An event in the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outboxed {
    /// Its number there.
    pub no: u64,
    /// The id that its publisher was told: the event must get it.
    pub event: EventId,
    /// What happened.
    pub event_type: String,
    /// JSON, as it was given.
    pub payload: Bytes,
    /// The other fields, as a JSON object.
    pub options: String,
    /// When it was put there, by the database's clock.
    pub created_at: Timestamp,
}

/// One that the rules refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What was refused.
    pub outboxed: Outboxed,
    /// Why.
    pub error: String,
    /// When.
    pub refused_at: Timestamp,
}
