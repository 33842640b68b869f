//! The requests that were made for a delivery, as they were made.
//!
//! They are not kept: what is kept of event, delivery, attempt and destination makes them anew, by the code that sends. Where
//! the destination was changed since, that is said.

use std::sync::Arc;

use axum::extract::State;
use bytes::Bytes;
use serde::Serialize;
use tidegate_core::id::kind;
use tidegate_core::time::Timestamp;
use tidegate_engine::sender::{Envelope, Request, ShownValue};
use tidegate_store::delivery::{StoredAttempt, StoredDelivery};
use tidegate_store::event::Message;
use utoipa::ToSchema;

use super::find;
use crate::api::error::ApiError;
use crate::api::extract::PathId;
use crate::api::openapi::Refusals;
use crate::api::{App, Data, as_optional_text, ok};
use crate::auth::{Call, Viewer};
use crate::catalogue::DestinationEntry;

/// What stands for the payload, which is told elsewhere.
const PAYLOAD: &str = "…";

/// The requests of a delivery.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Requests)]
pub(crate) struct RequestsView {
    /// Where they went; null: the destination was deleted, and nothing more is known of them.
    #[schema(required = true)]
    url: Option<String>,
    /// What stood around the payload, with `…` in its place; null: nothing, the body was the payload.
    #[schema(required = true)]
    envelope: Option<String>,
    /// Each of them, the first one first.
    attempts: Vec<RequestView>,
}

/// One request.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Request)]
pub(crate) struct RequestView {
    /// Attempt number, starting at 1.
    number: u32,
    /// When the destination was changed, if that was after this request: it may have been another than is shown.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    changed_at: Option<Timestamp>,
    /// Its headers.
    headers: Vec<HeaderView>,
}

/// One header.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RequestHeader)]
pub(crate) struct HeaderView {
    /// Its name.
    name: String,
    /// Its value; null where that is a secret or made with one.
    #[schema(required = true)]
    value: Option<String>,
    /// What is not shown: `signature`, made from id, timestamp and body, or `credential`.
    #[schema(value_type = Option<String>, required = true)]
    hidden: Option<&'static str>,
}

/// Show the requests that were made for a delivery.
///
/// Made anew from what is kept, by the code that sends; never a secret.
#[utoipa::path(
    get,
    path = "/v1/deliveries/{id}/requests",
    tag = "deliveries",
    params(("id" = String, Path)),
    responses((status = 200, description = "As they were made.", body = Data<RequestsView>), Refusals)
)]
pub(super) async fn requests(
    State(app): State<App>,
    Call { caller, .. }: Call<Viewer>,
    PathId(id): PathId<kind::Delivery>,
) -> Result<axum::Json<Data<RequestsView>>, ApiError> {
    let stored = find(&app, &caller, id).await?;
    let Some(entry) = app.catalogue.destination(stored.destination) else {
        return Ok(ok(RequestsView { url: None, envelope: None, attempts: Vec::new() }));
    };
    let store = app.engine.store();
    let event = store.event(caller.account, stored.event).await?.ok_or_else(ApiError::not_found)?;
    let attempts = store.attempts(id).await?;
    // However long the payload is, it need not be signed again to be left out.
    let message = Message { payload: Bytes::from_static(PAYLOAD.as_bytes()), ..(*event.message).clone() };
    let message = Arc::new(message);
    let mut envelope = None;
    let mut shown = Vec::with_capacity(attempts.len());
    for attempt in &attempts {
        let request = made(&entry, &message, &stored, attempt).shown();
        // All attempts carry the same.
        if envelope.is_none() && entry.endpoint.envelope() == Envelope::Standard {
            envelope = Some(String::from_utf8_lossy(&request.body).into_owned());
        }
        shown.push(RequestView {
            number: attempt.number,
            changed_at: Some(entry.row.updated_at).filter(|changed| *changed > attempt.started_at),
            headers: request.headers.into_iter().map(HeaderView::new).collect(),
        });
    }
    Ok(ok(RequestsView { url: Some(entry.spec.document.url.clone()), envelope, attempts: shown }))
}

fn made(
    entry: &DestinationEntry,
    message: &Arc<Message>,
    stored: &StoredDelivery,
    attempt: &StoredAttempt,
) -> Request {
    Request {
        endpoint: Arc::clone(&entry.endpoint),
        message: Arc::clone(message),
        delivery: stored.delivery.id,
        number: attempt.number,
        expires_at: stored.delivery.expires_at,
        timeout: attempt.timeout,
        now: attempt.started_at,
    }
}

impl HeaderView {
    fn new((name, value): (String, ShownValue)) -> Self {
        let (value, hidden) = match value {
            ShownValue::Plain(text) => (Some(text), None),
            ShownValue::Signature => (None, Some("signature")),
            ShownValue::Credential => (None, Some("credential")),
        };
        Self { name, value, hidden }
    }
}
