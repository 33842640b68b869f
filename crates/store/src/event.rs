//! Acceptance: events come in, all of a batch or none, once per key.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::delivery::{Delivery, Priority};
use tidegate_core::id::{DeliveryId, EventId};
use tidegate_core::pattern::EventType;
use tidegate_core::time::{Millis, Timestamp};

use crate::{AccountNo, DestinationNo};

/// What a destination is sent: the event's own part, shared by all its deliveries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The event's id: `webhook-id`.
    pub id: EventId,
    /// What happened.
    pub event_type: EventType,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// The bytes that came in.
    pub payload: Bytes,
    /// What they are.
    pub body: Body,
}

/// What a payload's bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A JSON value, as it stood in the request.
    Json,
    /// The text of a JSON string, to be sent as it is: with this `content_type`, or as plain text.
    Text(Option<Arc<str>>),
    /// JSON, under another `content_type`.
    JsonAs(Arc<str>),
}

/// An event to be accepted, with its deliveries.
#[derive(Clone, Debug)]
pub struct NewEvent {
    /// Whose.
    pub account: AccountNo,
    /// What is sent. Its id is numbered ([`EventId::sequence`]).
    pub message: Arc<Message>,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// Stale from then on: the earliest of what event and type say.
    pub expires_at: Option<Timestamp>,
    /// Not before then.
    pub deliver_at: Option<Timestamp>,
    /// Keeps its order among those with the same key.
    pub ordering_key: Option<Arc<str>>,
    /// How urgent.
    pub priority: Priority,
    /// The publisher's own id: unique per account and type for 24 h.
    pub external_id: Option<ExternalId>,
    /// One for each destination. Their numbers follow one another without a gap, so that the event names them all by the
    /// first and their count. Some may be final already: expired on arrival.
    pub deliveries: Vec<(DestinationNo, Delivery)>,
}

/// The publisher's own id of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalId {
    /// The id.
    pub id: Arc<str>,
    /// A hash of the payload: the same id with another payload is a conflict.
    pub payload_hash: [u8; 32],
}

/// How long an idempotency key and an external id are remembered.
pub const REMEMBERED: Millis = Millis::hours(24);

/// An `Idempotency-Key`: the same key and body give the first answer again.
#[derive(Clone, Debug)]
pub struct IdempotencyKey {
    /// Whose.
    pub account: AccountNo,
    /// Of which endpoint.
    pub endpoint: &'static str,
    /// The key.
    pub key: String,
    /// A hash of the request's body.
    pub body_hash: [u8; 32],
}

/// What comes in with one request.
pub struct Accept {
    /// When, on our clock.
    pub now: Timestamp,
    /// The events: all or none.
    pub events: Vec<NewEvent>,
    /// The key, and how to put the answer that is stored with it into bytes, once it is known what became of each event.
    pub idempotency: Option<(IdempotencyKey, RenderAnswer)>,
    /// Where it comes from the outbox, its number there: it leaves it with the commit.
    pub outbox: Option<u64>,
}

/// Makes an answer from what became of each event. Where another node had the same in hand, it is made anew.
pub type RenderAnswer = Box<dyn Fn(&[Item]) -> Vec<u8> + Send>;

/// What became of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// It is in.
    New(EventId),
    /// It was in already, by its external id: nothing was added.
    Duplicate {
        /// As this event.
        first: EventId,
        /// So many destinations that one went to; `None`: it is gone by now.
        routed: Option<u32>,
    },
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is committed: one item for each event.
    Stored(Vec<Item>),
    /// The key was used for the same body before: the first answer.
    Again(Vec<u8>),
    /// The key was used for another body: nothing was added.
    KeyReused,
    /// It is not in the outbox any more: another node has accepted it.
    Taken,
    /// An external id was used for another payload: nothing was added.
    Conflict {
        /// Which event of the request.
        index: usize,
        /// The event that has the id.
        first: EventId,
    },
}

/// New deliveries of an event that is there: replays.
#[derive(Clone, Debug)]
pub struct NewReplay {
    /// To which destination.
    pub destination: DestinationNo,
    /// Of which delivery.
    pub replay_of: DeliveryId,
    /// Of which event.
    pub event: EventId,
    /// The new delivery.
    pub delivery: Delivery,
}

/// An event as it lies in the store.
#[derive(Clone, Debug)]
pub struct StoredEvent {
    /// Whose.
    pub account: AccountNo,
    /// What is sent.
    pub message: Arc<Message>,
    /// When it happened.
    pub occurred_at: Timestamp,
    /// Stale from then on.
    pub expires_at: Option<Timestamp>,
    /// Not before then.
    pub deliver_at: Option<Timestamp>,
    /// Its order.
    pub ordering_key: Option<Arc<str>>,
    /// How urgent.
    pub priority: Priority,
    /// The publisher's own id.
    pub external_id: Option<Arc<str>>,
    /// How many deliveries it was accepted with: `routed`.
    pub routed: u32,
}
