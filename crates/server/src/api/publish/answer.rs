//! What a publisher is told.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tidegate_core::gate::Decision;
use tidegate_core::id::EventId;
use tidegate_store::DestinationNo;
use tidegate_store::event::{Item, NewEvent};
use utoipa::ToSchema;

use super::build::arrived_late;
use crate::api::error::ApiError;
use crate::api::{App, Data};

/// Deliveries of one request that are asked whether they will make it: the engine stands still meanwhile.
const MAX_ASKED: usize = 200;

/// An event that was accepted.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Published {
    /// The event's id.
    #[serde(serialize_with = "crate::api::as_text")]
    #[schema(value_type = String)]
    pub(super) id: EventId,
    /// `queued`; `expired` if it was stale when it came in.
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
        let status = if expired { "expired" } else { "queued" };
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
            Item::Duplicate(first) => {
                answer.id = *first;
                answer.duplicate = true;
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

/// Asks the lanes whether events that expire will be sent in time, as far as can be seen now. The events go there and come
/// back, so that nothing is copied; where none expires, nobody is asked.
pub(super) async fn warn(
    app: &App,
    events: Vec<NewEvent>,
    answers: &mut [Published],
) -> Result<Vec<NewEvent>, ApiError> {
    if !events.iter().any(|event| {
        event.expires_at.is_some() && event.deliveries.iter().any(|(_, delivery)| !arrived_late(delivery))
    }) {
        return Ok(events);
    }
    let (events, doubts) = app
        .engine
        .look(move |view| {
            let mut doubts: Vec<(usize, DestinationNo, String)> = Vec::new();
            let asked = events.iter().enumerate().filter(|(_, event)| event.expires_at.is_some());
            let asked = asked
                .flat_map(|(index, event)| event.deliveries.iter().map(move |delivery| (index, delivery)));
            for (index, (destination, delivery)) in
                asked.filter(|(_, (_, delivery))| !arrived_late(delivery)).take(MAX_ASKED)
            {
                let Some(lane) = view.lane(*destination) else { continue };
                let explanation = lane.explain(view.now, delivery);
                if explanation.will_expire() {
                    let why = match explanation.decision {
                        Decision::Wait(wait) => wait.hold.to_string(),
                        _ => "there is too little time left to send it".to_owned(),
                    };
                    doubts.push((index, *destination, why));
                }
            }
            (events, doubts)
        })
        .await?;
    for (index, destination, why) in doubts {
        let Some(id) = app.catalogue.destination_id(destination) else { continue };
        if let Some(answer) = answers.get_mut(index) {
            answer.warnings.push(format!("it will expire before {id} can get it: {why}"));
        }
    }
    Ok(events)
}
