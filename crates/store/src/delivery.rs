//! Deliveries and attempts as they lie in the store.

use std::sync::Arc;

use tidegate_core::delivery::Delivery;
use tidegate_core::gate::Probe;
use tidegate_core::id::{AttemptId, DeliveryId, EventId};
use tidegate_core::outcome::Outcome;
use tidegate_core::time::{Millis, Timestamp};

use crate::{AccountNo, DestinationNo};

/// A delivery with what the rules need not know.
#[derive(Clone, Debug)]
pub struct StoredDelivery {
    /// Whose.
    pub account: AccountNo,
    /// Of which event.
    pub event: EventId,
    /// To which destination.
    pub destination: DestinationNo,
    /// The delivery. In flight it is stored as it was before.
    pub delivery: Delivery,
    /// The publisher's `deliver_at`, while the event has one.
    pub deliver_at: Option<Timestamp>,
    /// When it became final.
    pub finished_at: Option<Timestamp>,
    /// The delivery that it repeats.
    pub replay_of: Option<DeliveryId>,
    /// The publisher's own id of the event.
    pub external_event_id: Option<Arc<str>>,
}

/// One request that was made.
#[derive(Clone, Debug)]
pub struct StoredAttempt {
    /// Its id, numbered.
    pub id: AttemptId,
    /// For which delivery.
    pub delivery: DeliveryId,
    /// To which destination.
    pub destination: DestinationNo,
    /// Attempt number, starting at 1.
    pub number: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// From the look-up of the name to the complete header block, or the error.
    pub response_time: Millis,
    /// What bounded that.
    pub timeout: Millis,
    /// How it ended.
    pub outcome: Outcome,
    /// A sentence where there is more to say than the outcome.
    pub error: Option<String>,
    /// Their header block, of failures: names and values.
    pub response_headers: Vec<(String, String)>,
    /// The beginning of their body, of failures.
    pub response_body: Vec<u8>,
    /// What it was to find out, if it went before the others for that.
    pub probe: Option<Probe>,
}

impl StoredAttempt {
    /// Bytes that were kept of their answer.
    pub(crate) fn kept_bytes(&self) -> usize {
        let headers = self.response_headers.iter().map(|(name, value)| name.len() + value.len());
        headers.sum::<usize>() + self.response_body.len() + self.error.as_ref().map_or(0, String::len)
    }
}

/// How much to read of the attempts for several deliveries. What one look brings may go a little beyond it.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// So many attempts.
    pub attempts: usize,
    /// So many bytes of the answers to them.
    pub bytes: usize,
}

/// The attempts for several deliveries, as far as there was room.
#[derive(Clone, Debug, Default)]
pub struct Attempts {
    /// Delivery by delivery, the first attempt first.
    pub items: Vec<StoredAttempt>,
    /// So many of the deliveries were looked at, the first ones.
    pub looked_at: usize,
    /// So many of those have more attempts than are here: the first 1,000 are.
    pub cut: usize,
}
