//! What came of an attempt: the report for the rules, and what the log keeps.

use std::time::Duration;

use bytes::Bytes;
use http::header::{DATE, RETRY_AFTER};
use http::response::Parts;
use http::{HeaderMap, HeaderValue};
use tidegate_core::lane::Report;
use tidegate_core::outcome::Outcome;
use tidegate_core::rate_headers::{self, RateHint};
use tidegate_core::retry_after;
use tidegate_core::time::{Millis, Timestamp};

/// How much of a body is read, so that the connection can be used again.
const MAX_READ: usize = 64 * 1024;
/// How much of it the log keeps.
const MAX_KEPT: usize = 4 * 1024;
/// How much the log keeps of the headers, names and values together.
const MAX_KEPT_HEADERS: usize = 8 * 1024;
/// How long a body is waited for once its head has come. The outcome stands by then, and takes effect with the end of the
/// attempt: what the log keeps of a body is not worth a destination that is asked again after it has refused. For a success
/// it is only a slot that is held: a new connection costs less than a second of that.
const SUCCESS_BODY_TIME: Duration = Duration::from_secs(1);
const FAILURE_BODY_TIME: Duration = Duration::from_millis(500);
const REFUSAL_BODY_TIME: Duration = Duration::from_millis(100);

/// What came of an attempt.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What the rules need.
    pub report: Report,
    /// Why there was no response, as a coarse sentence.
    pub error: Option<String>,
    /// The headers of a failure (of a success where that is configured), 8 KiB at most.
    pub response_headers: Vec<(String, String)>,
    /// The first 4 KiB of its body, as they came.
    pub response_body: Bytes,
}

impl Answer {
    /// The status they gave, if they did.
    pub fn status(&self) -> Option<u16> {
        self.report.outcome.status()
    }

    /// An attempt that ended without a response, and why.
    pub fn without_answer(outcome: Outcome, elapsed: Millis, error: &str) -> Self {
        Self {
            report: Report { outcome, elapsed, rate_hint: None },
            error: Some(error.to_owned()),
            response_headers: Vec::new(),
            response_body: Bytes::new(),
        }
    }
}

/// A response whose outcome stands and whose body is being read.
pub(super) struct Reading {
    report: Report,
    headers: HeaderMap,
    keep: bool,
}

impl Reading {
    /// Decides the outcome. `now` is when the head was complete.
    pub(super) fn new(head: Parts, now: Timestamp, elapsed: Millis, keep_success: bool) -> Self {
        let Parts { status, headers, .. } = head;
        let date = headers.get(DATE).map(HeaderValue::as_bytes);
        let waits = headers.get_all(RETRY_AFTER).into_iter().map(HeaderValue::as_bytes);
        let outcome = Outcome::classify(status.as_u16(), retry_after::longest(waits, date, now));
        let rate_hint = rate_hint(&headers, date, now);
        let keep = keep_success || !matches!(outcome, Outcome::Success { .. });
        Self { report: Report { outcome, elapsed, rate_hint }, headers, keep }
    }

    /// How long the body may take, within the attempt's deadline.
    pub(super) fn patience(&self) -> Duration {
        match self.report.outcome {
            Outcome::Success { .. } => SUCCESS_BODY_TIME,
            Outcome::RateLimited { .. } | Outcome::Unavailable { .. } => REFUSAL_BODY_TIME,
            _ => FAILURE_BODY_TIME,
        }
    }

    pub(super) fn body_limit(&self) -> usize {
        MAX_READ
    }

    pub(super) fn answer(self, body: &[u8]) -> Answer {
        let Self { report, headers, keep } = self;
        if !keep {
            return Answer { report, error: None, response_headers: Vec::new(), response_body: Bytes::new() };
        }
        // A copy: a slice would hold the whole buffer for as long as the log keeps it.
        let response_body = Bytes::copy_from_slice(&body[..body.len().min(MAX_KEPT)]);
        Answer { report, error: None, response_headers: kept_headers(&headers), response_body }
    }
}

fn kept_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut room = MAX_KEPT_HEADERS;
    let fits = |(name, value): &(&http::HeaderName, &HeaderValue)| {
        let left = room.checked_sub(name.as_str().len() + value.len());
        room = left.unwrap_or(room);
        left.is_some()
    };
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().filter(fits).map(|(name, value)| (name.as_str().to_owned(), text(value))).collect()
}

/// Reads what they say of their limits; nearly always nothing, so a look at the names comes first.
fn rate_hint(headers: &HeaderMap, date: Option<&[u8]>, now: Timestamp) -> Option<RateHint> {
    let is_limit = |name: &str| name.contains("ratelimit") || name.contains("rate-limit");
    if !headers.keys().any(|name| is_limit(name.as_str())) {
        return None;
    }
    rate_headers::parse(headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())), date, now)
}
