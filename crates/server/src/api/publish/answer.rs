//! What a publisher is told.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tidegate_core::delivery::Delivery;
use tidegate_core::gate::{Decision, Explanation, Hold};
use tidegate_core::id::EventId;
use tidegate_core::time::Timestamp;
use tidegate_engine::View;
use tidegate_store::DestinationNo;
use tidegate_store::event::{Item, NewEvent};
use utoipa::ToSchema;

use super::build::scheduled_too_late;
use crate::api::error::ApiError;
use crate::api::{App, Data};

/// Deliveries of one request that are asked whether they will make it: the engine stands still meanwhile.
const MAX_ASKED: usize = 200;

/// Why a delivery is not sent that could start only just before its expiry.
const TOO_LITTLE_TIME: &str = "there is too little time left to send it";

/// An event that was accepted.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Published {
    /// The event's id.
    #[serde(serialize_with = "crate::api::as_text")]
    #[schema(value_type = String)]
    pub(super) id: EventId,
    /// `queued`; `expired` if it was stale when it came in; `delivered` if it goes nowhere.
    #[schema(value_type = String)]
    pub(super) status: &'static str,
    /// How many destinations it goes to.
    pub(super) routed: u32,
    /// Whether it was there already, by its `external_event_id`: then `id` is the first one's.
    pub(super) duplicate: bool,
    /// What its publisher should know.
    pub(super) warnings: Vec<String>,
}

impl Published {
    pub(super) fn new(id: EventId, routed: usize, expired: bool) -> Self {
        let mut warnings = Vec::new();
        if expired {
            warnings.push("it was already expired when it was accepted: it will not be sent".to_owned());
        }
        if routed == 0 {
            warnings.push("no destination matches: it will not be sent".to_owned());
        }
        let status = match (routed, expired) {
            (0, _) => "delivered",
            (_, true) => "expired",
            (_, false) => "queued",
        };
        Self { id, status, routed: u32::try_from(routed).unwrap_or(u32::MAX), duplicate: false, warnings }
    }
}

/// Events that were accepted together.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchAnswer {
    /// How many.
    accepted: usize,
    /// One for each, in the order of the request.
    items: Vec<Published>,
}

/// One event, or a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Single,
    Batch,
}

impl Shape {
    /// An idempotency key is good for one of these.
    pub(super) const fn endpoint(self) -> &'static str {
        match self {
            Self::Single => "outbound-events",
            Self::Batch => "outbound-events/batch",
        }
    }
}

/// The answer as bytes, once it is known what became of each event.
pub(super) fn render(shape: Shape, mut answers: Vec<Published>, items: &[Item]) -> Vec<u8> {
    for (answer, item) in answers.iter_mut().zip(items) {
        match item {
            Item::New(id) => answer.id = *id,
            Item::Duplicate { first, routed } => {
                answer.id = *first;
                answer.duplicate = true;
                answer.routed = routed.unwrap_or(answer.routed);
                answer.status = if answer.routed == 0 { "delivered" } else { "queued" };
                answer.warnings.clear();
            }
        }
    }
    let rendered = match shape {
        Shape::Batch => {
            serde_json::to_vec(&Data { data: BatchAnswer { accepted: answers.len(), items: answers } })
        }
        Shape::Single => match answers.pop() {
            Some(data) => serde_json::to_vec(&Data { data }),
            None => Ok(Vec::new()),
        },
    };
    rendered.expect("strings and numbers become JSON")
}

/// 202 with JSON that is there already.
pub(super) fn json(bytes: Vec<u8>) -> Response {
    (StatusCode::ACCEPTED, [(header::CONTENT_TYPE, "application/json")], bytes).into_response()
}

/// A delivery that will not be sent in time: of which event, to where, and why.
type Doubt = (usize, DestinationNo, String);

/// Warns of deliveries that will not be sent in time, as far as can be seen now: the lanes are asked, unless it is certain
/// already. The events go there and come back, so that nothing is copied; where none expires, nobody is asked.
pub(super) async fn warn(
    app: &App,
    events: Vec<NewEvent>,
    answers: &mut [Published],
) -> Result<Vec<NewEvent>, ApiError> {
    if events.iter().all(|event| event.expires_at.is_none()) {
        return Ok(events);
    }
    let mut doubts: Vec<Doubt> = Vec::new();
    for (index, event) in events.iter().enumerate() {
        let late = event.deliveries.iter().filter(|(_, delivery)| scheduled_too_late(delivery));
        doubts.extend(late.map(|(destination, _)| (index, *destination, TOO_LITTLE_TIME.to_owned())));
    }
    let open = |event: &NewEvent| event.deliveries.iter().any(|(_, delivery)| !delivery.status.is_final());
    let events = if events.iter().any(|event| event.expires_at.is_some() && open(event)) {
        let (events, more) = app.engine.look(move |view| ask(view, events)).await?;
        doubts.extend(more);
        events
    } else {
        events
    };
    for (index, destination, why) in doubts {
        let Some(id) = app.catalogue.destination_id(destination) else { continue };
        if let Some(answer) = answers.get_mut(index) {
            answer.warnings.push(format!("it will expire before {id} can get it: {why}"));
        }
    }
    Ok(events)
}

/// What the lanes say of those that expire and are not over.
fn ask(view: &View<'_>, events: Vec<NewEvent>) -> (Vec<NewEvent>, Vec<Doubt>) {
    let asked = events.iter().enumerate().filter(|(_, event)| event.expires_at.is_some());
    let asked =
        asked.flat_map(|(index, event)| event.deliveries.iter().map(move |delivery| (index, delivery)));
    let asked = asked.filter(|(_, (_, delivery))| !delivery.status.is_final()).take(MAX_ASKED);
    let doubts = asked.filter_map(|(index, (destination, delivery))| {
        let explanation = view.lane(*destination)?.explain(view.now, delivery);
        explanation.will_expire().then(|| (index, *destination, cause(&explanation, delivery)))
    });
    let doubts = doubts.collect();
    (events, doubts)
}

/// What makes it late: the first hold that ends too late, or not by itself, or else the night into which the others end.
fn cause(explanation: &Explanation, delivery: &Delivery) -> String {
    let Decision::Wait(wait) = explanation.decision else { return TOO_LITTLE_TIME.to_owned() };
    let too_late = |at: Timestamp| {
        delivery.expires_at.is_some_and(|expiry| expiry - at < tidegate_core::limits::MIN_TIME_TO_SEND)
    };
    let late = |hold: &Hold| hold.is_for_a_person() || hold.until().is_some_and(too_late);
    let hold = explanation
        .gates
        .iter()
        .filter_map(|gate| gate.hold)
        .find(late)
        .unwrap_or(Hold::QuietHours { until: wait.not_before });
    hold.to_string()
}
