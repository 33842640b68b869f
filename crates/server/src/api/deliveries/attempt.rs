//! One request that was made, as it is shown.

use std::collections::BTreeMap;

use serde::Serialize;
use tidegate_core::gate::Probe;
use tidegate_core::id::{AttemptId, DeliveryId};
use tidegate_core::outcome::Outcome;
use tidegate_core::time::Timestamp;
use tidegate_store::delivery::StoredAttempt;
use utoipa::ToSchema;

use crate::api::as_text;
use crate::api::{App, nodes};

/// Header names and values; several values of one name are joined by commas.
pub(crate) type Headers = BTreeMap<String, String>;

/// One request that was made.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Attempt)]
pub(crate) struct AttemptView {
    /// Its id.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String)]
    id: AttemptId,
    /// For which delivery.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String)]
    pub(crate) delivery_id: DeliveryId,
    /// Attempt number, starting at 1.
    number: u32,
    /// When it started.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    started_at: Timestamp,
    /// From the look-up of the name to the complete header block, or the error.
    response_time_ms: i64,
    /// What bounded that.
    timeout_ms: i64,
    /// `success`, or how it failed.
    #[schema(value_type = String)]
    outcome: &'static str,
    /// The status they answered with.
    #[schema(required = true)]
    status_code: Option<u16>,
    /// What went wrong.
    #[schema(required = true)]
    error: Option<String>,
    /// Their headers, of failures.
    response_headers: Headers,
    /// The beginning of their body, of failures.
    #[schema(required = true)]
    response_body: Option<String>,
    /// What it was to find out, if it went before the others for that: `breaker` or `throttle`.
    #[schema(value_type = Option<String>, required = true)]
    probe: Option<&'static str>,
    /// Whether it counts against `max_attempts`.
    counted: bool,
    /// Which node made it.
    node: String,
}

impl AttemptView {
    /// As people see it.
    pub(crate) fn new(app: &App, attempt: &StoredAttempt) -> Self {
        Self {
            node: nodes::name_of(app, attempt.id.sequence(), attempt.started_at),
            id: attempt.id,
            delivery_id: attempt.delivery,
            number: attempt.number,
            started_at: attempt.started_at,
            response_time_ms: attempt.response_time.get(),
            timeout_ms: attempt.timeout.get(),
            outcome: attempt.outcome.word(),
            status_code: attempt.outcome.status(),
            error: error(&attempt.outcome, attempt.error.as_deref()),
            response_headers: headers(&attempt.response_headers),
            response_body: body(&attempt.response_body),
            probe: attempt.probe.map(Probe::word),
            counted: attempt.outcome.uses_attempt(),
        }
    }
}

/// What went wrong, as a sentence: what was noted, else what the outcome says by itself.
pub(crate) fn error(outcome: &Outcome, noted: Option<&str>) -> Option<String> {
    match (outcome, noted) {
        (_, Some(noted)) => Some(noted.to_owned()),
        (Outcome::Success { .. }, None) => None,
        (outcome, None) => Some(outcome.to_string()),
    }
}

/// Their headers as an object.
pub(crate) fn headers(pairs: &[(String, String)]) -> Headers {
    let mut all = Headers::new();
    for (name, value) in pairs {
        all.entry(name.clone())
            .and_modify(|known| {
                known.push_str(", ");
                known.push_str(value);
            })
            .or_insert_with(|| value.clone());
    }
    all
}

/// The beginning of their body as text; what is no UTF-8 is replaced.
pub(crate) fn body(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned())
}
