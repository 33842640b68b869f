//! A test event: sent past all gates but the address check, and answered with what came of it.

use std::sync::Arc;

use axum::extract::State;
use serde::Serialize;
use tidegate_core::id::{DeliveryId, EventId};
use tidegate_core::pattern::EventType;
use tidegate_core::sequence::Sequence;
use tidegate_core::time::{Millis, Timestamp};
use tidegate_engine::sender::{Answer, Pool, Request};
use tidegate_store::event::{Body, Message};
use utoipa::ToSchema;

use super::find::find;
use crate::api::deliveries::Nothing;
use crate::api::deliveries::attempt::{self, Headers};
use crate::api::error::ApiError;
use crate::api::extract::{OptionalJson, PathText};
use crate::api::openapi::WriteRefusals;
use crate::api::{App, Data, as_text, ok};
use crate::auth::{Call, Editor};

/// The type of a test event.
const EVENT_TYPE: &str = "tidegate.test";
/// What it says.
const PAYLOAD: &[u8] = br#"{"test":true,"message":"A test event from Tidegate. Nothing happened."}"#;

/// What came of a test event.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TestResult {
    /// Its id: what the destination saw as `webhook-id`.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String)]
    event_id: EventId,
    /// When it was sent.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    started_at: Timestamp,
    /// `success`, or how it failed.
    #[schema(value_type = String)]
    outcome: &'static str,
    /// The status they answered with.
    #[schema(required = true)]
    status_code: Option<u16>,
    /// What went wrong.
    #[schema(required = true)]
    error: Option<String>,
    /// How long it took.
    response_time_ms: i64,
    /// How long it might have taken.
    timeout_ms: i64,
    /// Their headers, as far as they are kept.
    response_headers: Headers,
    /// The beginning of their body.
    #[schema(required = true)]
    response_body: Option<String>,
}

/// Send a test event.
///
/// Signed like any other, of the type `tidegate.test`, at once, whatever holds the destination. It counts neither for the
/// breaker nor for the timeout, and is not kept.
#[utoipa::path(
    post,
    path = "/v1/destinations/{id}/test",
    tag = "destinations",
    params(("id" = String, Path, description = "Its id or external id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "What came of it.", body = Data<TestResult>), WriteRefusals)
)]
pub(super) async fn test(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    PathText(name): PathText,
    OptionalJson(Nothing {}): OptionalJson<Nothing>,
) -> Result<axum::Json<Data<TestResult>>, ApiError> {
    let entry = find(&app, &caller, &name)?;
    let no = entry.row.no;
    let timeout = app
        .engine
        .look_at([no], move |view| view.lane(no).map(|lane| lane.state().timeout(lane.policy(), None)));
    let timeout = timeout.await?.unwrap_or(entry.policy.timeout_params.default);
    let now = app.engine.now().wall;
    let first = app.engine.number(2);
    let event_id = EventId::numbered(first, app.engine.draw());
    let message = Message {
        id: event_id,
        event_type: EventType::parse(EVENT_TYPE)?,
        accepted_at: now,
        payload: bytes::Bytes::from_static(PAYLOAD),
        body: Body::Json,
    };
    let request = Request {
        endpoint: Arc::clone(&entry.endpoint),
        message: Arc::new(message),
        delivery: DeliveryId::numbered(Sequence::from_stored(first.get() + 1), app.engine.draw()),
        number: 1,
        expires_at: None,
        timeout,
        now,
    };
    let answer = app.engine.sender().send(&Pool::default(), request).await;
    Ok(ok(result(event_id, now, timeout, &answer)))
}

fn result(event_id: EventId, started_at: Timestamp, timeout: Millis, answer: &Answer) -> TestResult {
    let outcome = &answer.report.outcome;
    TestResult {
        event_id,
        started_at,
        outcome: outcome.word(),
        status_code: outcome.status(),
        error: attempt::error(outcome, answer.error.as_deref()),
        response_time_ms: answer.report.elapsed.get(),
        timeout_ms: timeout.get(),
        response_headers: attempt::headers(&answer.response_headers),
        response_body: attempt::body(&answer.response_body),
    }
}
