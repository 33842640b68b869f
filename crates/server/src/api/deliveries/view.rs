//! A delivery as it is shown.

use serde::Serialize;
use tidegate_core::delivery::{Delivery, Status};
use tidegate_core::id::{DeliveryId, DestinationId, EventId};
use tidegate_core::time::Timestamp;
use tidegate_store::delivery::StoredDelivery;
use utoipa::ToSchema;

use super::state::Standing;
use crate::api::{App, as_optional_text, as_text};

/// One event on its way to one destination.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delivery)]
pub(crate) struct DeliveryView {
    /// Its id.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String)]
    pub(crate) id: DeliveryId,
    /// Of which event.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String)]
    event_id: EventId,
    /// What happened.
    event_type: String,
    /// The publisher's own id of the event.
    #[schema(required = true)]
    external_event_id: Option<String>,
    /// To which destination; it may have been deleted.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, required = true)]
    destination_id: Option<DestinationId>,
    /// `queued`, `retry_scheduled`, `delivering`, `delivered`, `dead_letter`, `expired` or `cancelled`.
    #[schema(value_type = String)]
    status: &'static str,
    /// Why it waits.
    #[schema(value_type = Option<String>, required = true)]
    hold_reason: Option<&'static str>,
    /// Until when, where that is known, not counting the queue before it.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    retry_at: Option<Timestamp>,
    /// Requests made.
    attempts_count: u32,
    /// Attempts that count against `max_attempts`.
    attempts_used: u32,
    /// Attempts that may be used; null: as many as start before it expires.
    #[schema(required = true)]
    max_attempts: Option<u32>,
    /// 1 critical … 4 bulk.
    priority: u8,
    /// Keeps its order among those with the same key.
    #[schema(required = true)]
    ordering_key: Option<String>,
    /// When it happened.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    occurred_at: Timestamp,
    /// When it was accepted.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// Not before then, if its publisher asked for that.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    deliver_at: Option<Timestamp>,
    /// Stale from then on.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    expires_at: Option<Timestamp>,
    /// When it became final.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    finished_at: Option<Timestamp>,
    /// How and why it ended.
    #[schema(required = true)]
    final_reason: Option<String>,
    /// Whether it will be stale before it can be sent, as things stand.
    will_expire: bool,
    /// The delivery that it repeats.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, required = true)]
    replay_of: Option<DeliveryId>,
}

impl DeliveryView {
    /// The delivery as the store has it and as it stands.
    pub(crate) fn new(app: &App, stored: &StoredDelivery, standing: &Standing) -> Self {
        let delivery = &stored.delivery;
        let end = match standing.status {
            Status::Final(end) => Some(end),
            Status::Queued | Status::RetryScheduled { .. } | Status::Delivering => None,
        };
        Self {
            id: delivery.id,
            event_id: stored.event,
            event_type: delivery.event_type.to_string(),
            external_event_id: stored.external_event_id.as_deref().map(str::to_owned),
            destination_id: app.catalogue.destination_id(stored.destination),
            status: standing.status.word(),
            hold_reason: standing.hold_reason.map(tidegate_core::delivery::HoldReason::word),
            retry_at: standing.retry_at,
            attempts_count: delivery.attempts_made,
            attempts_used: delivery.attempts_used,
            max_attempts: delivery.plan.max_attempts(),
            priority: delivery.priority.get(),
            ordering_key: delivery.ordering_key.as_deref().map(str::to_owned),
            occurred_at: delivery.occurred_at(),
            created_at: delivery.accepted_at,
            deliver_at: stored.deliver_at,
            expires_at: delivery.expires_at,
            finished_at: stored
                .finished_at
                .or_else(|| end.map(|_| over_since(delivery, app.engine.now().wall))),
            final_reason: end.map(|end| end.to_string()),
            will_expire: standing.will_expire,
            replay_of: stored.replay_of,
        }
    }
}

/// Since when a delivery is over that is not stored so yet: its expiry or its greatest age, else a moment ago.
fn over_since(delivery: &Delivery, now: Timestamp) -> Timestamp {
    let by_itself = delivery.expires_at.into_iter().chain([delivery.too_old_at]);
    by_itself.fold(now, Timestamp::min)
}
