//! An event as it is shown.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::value::RawValue;
use tidegate_core::delivery::event_status;
use tidegate_core::id::EventId;
use tidegate_core::sequence::Sequence;
use tidegate_core::time::Timestamp;
use tidegate_store::DestinationNo;
use tidegate_store::delivery::{Room, StoredDelivery};
use tidegate_store::event::{Body, StoredEvent};
use utoipa::ToSchema;

use crate::api::deliveries::attempt::AttemptView;
use crate::api::deliveries::state::{self, Standing};
use crate::api::deliveries::view::DeliveryView;
use crate::api::error::ApiError;
use crate::api::{App, as_optional_text, as_text};

/// Attempts that one answer shows.
const ROOM: Room = Room { attempts: 10_000, bytes: 8 << 20 };

/// An outbound event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub(crate) struct EventView {
    /// Its id.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String)]
    id: EventId,
    /// What happened.
    event_type: String,
    /// Its publisher's id.
    #[schema(required = true)]
    external_event_id: Option<String>,
    /// From its deliveries: the least advanced of those that are not final, else the worst end.
    #[schema(value_type = String)]
    status: &'static str,
    /// How many destinations it was accepted for.
    routed: u32,
    /// When it happened.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    occurred_at: Timestamp,
    /// When it was accepted.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// Stale from then on.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    expires_at: Option<Timestamp>,
    /// Not before then.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    deliver_at: Option<Timestamp>,
    /// Keeps its order among those with the same key.
    #[schema(required = true)]
    ordering_key: Option<String>,
    /// 1 critical … 4 bulk.
    priority: u8,
    /// What the payload is.
    content_type: String,
    /// Bytes of the payload.
    payload_size: usize,
}

/// An event with all that became of it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventStory {
    /// The event.
    #[serde(flatten)]
    event: EventView,
    /// What is sent: JSON as it came in; other text as a string.
    #[schema(value_type = serde_json::Value)]
    payload: Box<RawValue>,
    /// How many of its deliveries, replays included, have each status.
    #[schema(value_type = std::collections::BTreeMap<String, u64>)]
    delivery_counts: BTreeMap<&'static str, u64>,
    /// Its deliveries, replays included.
    deliveries: Vec<DeliveryView>,
    /// The requests that were made for them.
    attempts: Vec<AttemptView>,
    /// For how many of these deliveries, the first ones, the requests are here: for all, unless there are more than 10,000 or
    /// their answers have more than 8 MiB (and of one delivery the first 1,000). The others' are at `GET /v1/deliveries/{id}`.
    attempts_shown_for: usize,
}

impl EventView {
    /// The word for how far it is.
    pub(super) const fn status(&self) -> &'static str {
        self.status
    }
}

/// An event with its status.
pub(super) async fn summary(app: &App, event: &StoredEvent) -> Result<EventView, ApiError> {
    Ok(show(event, &Deliveries::of(app, event).await?))
}

/// An event with all that became of it; so many of its deliveries are told one by one.
pub(super) async fn story(app: &App, event: &StoredEvent, most: usize) -> Result<EventStory, ApiError> {
    let all = Deliveries::of(app, event).await?;
    let told = || all.stored.iter().take(most);
    let ids = told().map(|stored| stored.delivery.id).collect();
    let attempts = app.engine.store().attempts_of(ids, ROOM).await?;
    let shown = told().zip(&all.standings);
    Ok(EventStory {
        event: show(event, &all),
        payload: payload(event),
        delivery_counts: all.counts(),
        deliveries: shown.map(|(stored, standing)| DeliveryView::new(app, stored, standing)).collect(),
        attempts: attempts.items.iter().map(|attempt| AttemptView::new(app, attempt)).collect(),
        attempts_shown_for: attempts.looked_at,
    })
}

/// All deliveries of an event, the oldest first, and how each stands.
pub(super) struct Deliveries {
    stored: Vec<StoredDelivery>,
    standings: Vec<Standing>,
}

impl Deliveries {
    pub(super) async fn of(app: &App, event: &StoredEvent) -> Result<Self, ApiError> {
        let stored = app.engine.store().deliveries_of(event.message.id).await?;
        let standings = state::many(app, &stored).await?;
        Ok(Self { stored, standings })
    }

    /// The number of the first.
    pub(super) fn first(&self) -> Option<Sequence> {
        self.stored.iter().map(|stored| stored.delivery.id.sequence()).min()
    }

    /// The number of the newest of those that fit.
    pub(super) fn newest(&self, fits: impl Fn(&StoredDelivery, &Standing) -> bool) -> Option<Sequence> {
        let those =
            self.stored.iter().zip(&self.standings).filter(|(stored, standing)| fits(stored, standing));
        those.map(|(stored, _)| stored.delivery.id.sequence()).max()
    }

    fn counts(&self) -> BTreeMap<&'static str, u64> {
        let mut counts = BTreeMap::new();
        for standing in &self.standings {
            *counts.entry(standing.status.word()).or_default() += 1;
        }
        counts
    }

    fn status(&self) -> &'static str {
        let newest = newest(&self.stored);
        event_status(newest.values().map(|index| &self.standings[*index].status))
    }
}

/// The newest delivery of each destination counts.
pub(super) fn newest(deliveries: &[StoredDelivery]) -> HashMap<DestinationNo, usize> {
    let mut newest: HashMap<DestinationNo, usize> = HashMap::new();
    for (index, stored) in deliveries.iter().enumerate() {
        let place = newest.entry(stored.destination).or_insert(index);
        if stored.delivery.place.sequence > deliveries[*place].delivery.place.sequence {
            *place = index;
        }
    }
    newest
}

/// An event, whose deliveries are these.
pub(super) fn show(event: &StoredEvent, deliveries: &Deliveries) -> EventView {
    let message = &event.message;
    EventView {
        id: message.id,
        event_type: message.event_type.to_string(),
        external_event_id: event.external_id.as_deref().map(str::to_owned),
        status: deliveries.status(),
        routed: event.routed,
        occurred_at: event.occurred_at,
        created_at: message.accepted_at,
        expires_at: event.expires_at,
        deliver_at: event.deliver_at,
        ordering_key: event.ordering_key.as_deref().map(str::to_owned),
        priority: event.priority.get(),
        content_type: match &message.body {
            Body::Json => "application/json".to_owned(),
            Body::Text(None) => "text/plain".to_owned(),
            Body::Text(Some(kind)) | Body::JsonAs(kind) => kind.to_string(),
        },
        payload_size: message.payload.len(),
    }
}

/// JSON goes out as it came in; what is no JSON, as a string.
fn payload(event: &StoredEvent) -> Box<RawValue> {
    let text = String::from_utf8_lossy(&event.message.payload).into_owned();
    let as_json = match event.message.body {
        Body::Json | Body::JsonAs(_) => RawValue::from_string(text.clone()).ok(),
        Body::Text(_) => None,
    };
    as_json.unwrap_or_else(|| serde_json::value::to_raw_value(&text).expect("a string is JSON"))
}
