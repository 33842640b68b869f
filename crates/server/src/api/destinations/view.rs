//! A destination as it is shown: its document, its policies in force, and how it does now. Never a secret.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;
use tidegate_core::id::DestinationId;
use tidegate_core::time::{Millis, Timestamp};
use tidegate_core::timeout::{TimeoutMode, TimeoutReport};
use tidegate_store::DestinationNo;
use tidegate_store::stats::Surveyed;
use utoipa::ToSchema;

use super::lane::{Snapshot, snapshots};
use crate::api::error::ApiError;
use crate::api::survey::RATES_OVER;
use crate::api::{App, as_optional_text, as_text};
use crate::catalogue::DestinationEntry;
use crate::policy::breaker::BreakerDocument;
use crate::policy::destination::{AuthShown, EnvelopeWord};
use crate::policy::document::{OnExhaustedWord, OrderingWord};
use crate::policy::rate::RateLimitDocument;
use crate::policy::retry::RetryDocument;
use crate::policy::schedule::ScheduleDocument;

/// A destination. Policies are shown as they are in force: where it says nothing, the account's default.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Destination)]
pub(crate) struct DestinationView {
    /// Its id.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String)]
    id: DestinationId,
    /// Your own id for it.
    #[schema(required = true)]
    external_id: Option<String>,
    /// Its name.
    name: String,
    /// Where it is.
    url: String,
    /// Whether it is switched on. A destination that was disabled is not.
    active: bool,
    /// The outbound events that it gets, as patterns.
    event_types: Vec<String>,
    /// Requests in flight at most.
    max_concurrency: u32,
    /// In which order it gets its deliveries.
    ordering: OrderingWord,
    /// What follows in a line when a delivery is dead.
    on_exhausted: OnExhaustedWord,
    /// The pinned timeout.
    #[schema(required = true)]
    timeout_seconds: Option<u64>,
    /// How fast; null: as fast as it takes them.
    #[schema(required = true)]
    rate_limit: Option<RateLimitDocument>,
    /// Quiet hours, where there is one window.
    #[schema(required = true)]
    delivery_schedule: Option<ScheduleDocument>,
    /// Quiet hours.
    delivery_schedules: Vec<ScheduleDocument>,
    /// How to retry; null: as the event's life or the account's default suggest.
    #[schema(required = true)]
    retry_policy: Option<RetryDocument>,
    /// When to stop trying.
    circuit_breaker: BreakerDocument,
    /// Statuses that are final at once.
    permanent_statuses: Vec<u16>,
    /// What the body is.
    envelope: EnvelopeWord,
    /// How requests authenticate themselves, without the credential.
    #[schema(required = true)]
    auth_config: Option<AuthShown>,
    /// Headers besides ours.
    custom_headers: BTreeMap<String, String>,
    /// The signing secret, once: in the answer to the call that made the server make it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) signing_secret: Option<String>,
    /// What receivers verify with, where the secret is an Ed25519 key: `whpk_…`.
    #[schema(required = true)]
    signing_public_key: Option<String>,
    /// While a secret is being changed: until when the one before signs as well.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    previous_valid_until: Option<Timestamp>,
    /// The first that holds of `disabled`, `paused`, `circuit_open`, `throttled`, `unavailable`, `quiet_hours`,
    /// `rate_limited`, `at_capacity`; else `active`.
    #[schema(value_type = String)]
    status: &'static str,
    /// All that holds it.
    holds: Vec<HoldView>,
    /// Until when it is left alone because it answered 429.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    throttled_until: Option<Timestamp>,
    /// The same as a sentence.
    #[schema(required = true)]
    throttle_reason: Option<String>,
    /// How often in a row it answered so.
    consecutive_throttles: u32,
    /// Deliveries that are neither final nor in flight.
    queued_events: u64,
    /// Requests in flight.
    inflight: u32,
    /// The node that works it; null where there is only one.
    #[schema(required = true)]
    node: Option<String>,
    /// When the state shown here was stored, if another node works it: seconds ago at most. Null: it is of this moment.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    as_of: Option<Timestamp>,
    /// When the oldest of the queued ones was accepted.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    oldest_queued_at: Option<Timestamp>,
    /// What is left of its rate; null: it has no limit.
    #[schema(required = true)]
    rate_now: Option<RateNowView>,
    /// How long an attempt may take.
    timeout: TimeoutView,
    /// Share of attempts answered 2xx; null without attempts.
    #[schema(required = true)]
    success_rate_24h: Option<f64>,
    /// Share of attempts not answered in time; null without attempts.
    #[schema(required = true)]
    timeout_rate_24h: Option<f64>,
    /// When it was made.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it was last changed.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// Grows with each change; the `ETag`.
    version: u64,
}

/// One thing that holds a destination.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Hold)]
pub(crate) struct HoldView {
    /// The word for it.
    #[schema(value_type = String)]
    reason: &'static str,
    /// Since when, as far as that is known.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    since: Option<Timestamp>,
    /// When it ends by itself; null where it does not.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    until: Option<Timestamp>,
    /// A sentence.
    detail: String,
}

/// What is left of a rate.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RateNow)]
pub(crate) struct RateNowView {
    /// Attempts that may start at once.
    tokens: u64,
    /// The most that this can be.
    burst: u64,
    /// Attempts a minute in the long run; of an adaptive limit the learned rate.
    per_minute: f64,
}

/// How long an attempt may take.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Timeout)]
pub(crate) struct TimeoutView {
    /// `adaptive`, `default` or `manual`.
    #[schema(value_type = String)]
    mode: &'static str,
    /// What an attempt gets now.
    ms: i64,
    /// The 99th percentile when it was last computed.
    #[schema(required = true)]
    p99_ms: Option<i64>,
    /// Samples of the last seven days.
    sample_count: u64,
    /// When it was last computed.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    computed_at: Option<Timestamp>,
    /// Where it is moving to.
    #[schema(required = true)]
    target_ms: Option<i64>,
    /// The next step towards a shorter one, as long as it answers as it does now.
    #[schema(required = true)]
    next_step: Option<NextStepView>,
}

/// A step that is still to come.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NextStep)]
pub(crate) struct NextStepView {
    /// When it is taken.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// What an attempt gets from then on.
    ms: i64,
}

impl From<&TimeoutReport> for TimeoutView {
    fn from(report: &TimeoutReport) -> Self {
        let mode = match report.mode {
            TimeoutMode::Adaptive => "adaptive",
            TimeoutMode::Default => "default",
            TimeoutMode::Manual(_) => "manual",
        };
        Self {
            mode,
            ms: report.ms.get(),
            p99_ms: report.p99_ms.map(Millis::get),
            sample_count: report.sample_count,
            computed_at: report.computed_at,
            target_ms: report.target_ms.map(Millis::get),
            next_step: report.next_step.map(|step| NextStepView { at: step.at, ms: step.to.get() }),
        }
    }
}

/// One destination, as it is now.
pub(super) async fn one(app: &App, entry: &Arc<DestinationEntry>) -> Result<DestinationView, ApiError> {
    let mut views = many(app, std::slice::from_ref(entry)).await?;
    views.pop().ok_or_else(ApiError::not_found)
}

/// Destinations, as they are now, in their order.
pub(super) async fn many(
    app: &App,
    entries: &[Arc<DestinationEntry>],
) -> Result<Vec<DestinationView>, ApiError> {
    let numbers: Vec<_> = entries.iter().map(|entry| entry.row.no).collect();
    let mut surveyed = app.engine.store().survey(numbers.clone(), app.engine.now().wall - RATES_OVER).await?;
    let open = app.engine.store().still_open(numbers.clone(), app.engine.now().wall).await?;
    let lanes = snapshots(app, numbers.clone()).await?;
    // What is in flight does not wait: where something is, the oldest of the others is looked for.
    let out = |(no, lane): (&DestinationNo, &Option<Snapshot>)| {
        let flights = lane.as_ref().map(|lane| lane.flights.clone()).filter(|flights| !flights.is_empty());
        Some((*no, flights?))
    };
    let flights: HashMap<_, _> = numbers.iter().zip(&lanes).filter_map(out).collect();
    if !flights.is_empty() {
        let oldest = app.engine.store().oldest_queued(flights.clone()).await?;
        for (no, surveyed) in numbers.iter().zip(&mut surveyed).filter(|(no, _)| flights.contains_key(no)) {
            surveyed.oldest_open = oldest.get(no).copied();
        }
    }
    let all = entries.iter().zip(lanes).zip(surveyed.iter().zip(open));
    let show = |((entry, lane), (surveyed, open)): ((&Arc<DestinationEntry>, Option<Snapshot>), (_, _))| {
        show(app, entry, lane.as_ref(), surveyed, open)
    };
    Ok(all.map(show).collect())
}

fn show(
    app: &App,
    entry: &DestinationEntry,
    lane: Option<&Snapshot>,
    surveyed: &Surveyed,
    open: u64,
) -> DestinationView {
    let no = entry.row.no;
    let inflight = lane.map_or(0, |lane| lane.in_flight);
    // One in flight does not wait.
    let queued_events = open.saturating_sub(u64::from(inflight));
    let Surveyed { oldest_open, tally } = *surveyed;
    let oldest_queued_at = oldest_open.filter(|_| queued_events > 0);
    let rate = |count: u64| (tally.attempts > 0).then(|| count as f64 / tally.attempts as f64);
    let (document, policy) = (&entry.spec.document, &entry.policy);
    let schedules: Vec<ScheduleDocument> =
        policy.quiet.windows().iter().map(|window| ScheduleDocument::from(window.spec())).collect();
    let report = || {
        let unused = tidegate_core::timeout::Timeouts::new();
        unused.report(&policy.timeout, &policy.timeout_params)
    };
    let holds = lane.map(|lane| lane.holds.as_slice()).unwrap_or_default();
    let throttle =
        holds.iter().find(|(hold, _)| hold.reason() == tidegate_core::delivery::HoldReason::Throttled);
    DestinationView {
        id: entry.row.id,
        external_id: entry.row.external_id.clone(),
        name: document.name.clone(),
        url: document.url.clone(),
        active: lane.map_or(document.active, |lane| lane.enabled),
        event_types: document.event_types.clone(),
        max_concurrency: policy.max_concurrency.get(),
        ordering: policy.ordering.into(),
        on_exhausted: policy.on_exhausted.into(),
        timeout_seconds: match policy.timeout {
            TimeoutMode::Manual(pinned) => u64::try_from(pinned.get() / 1_000).ok(),
            TimeoutMode::Adaptive | TimeoutMode::Default => None,
        },
        rate_limit: entry.spec.in_force.rate_limit.map(RateLimitDocument::shown),
        delivery_schedule: if schedules.len() == 1 { schedules.first().cloned() } else { None },
        delivery_schedules: schedules,
        retry_policy: document.policies.retry_policy.clone(),
        circuit_breaker: BreakerDocument::from(&policy.breaker),
        permanent_statuses: entry.spec.in_force.permanent_statuses.clone().unwrap_or_default(),
        envelope: document.envelope,
        auth_config: document.auth.clone(),
        custom_headers: document.custom_headers.clone(),
        signing_secret: None,
        signing_public_key: entry.spec.signing_public_key.clone(),
        previous_valid_until: entry
            .spec
            .previous_secret_valid_until
            .filter(|end| app.engine.now().wall < *end),
        status: lane.map_or("active", |lane| lane.status),
        throttled_until: lane.and_then(|lane| lane.throttled_until),
        throttle_reason: throttle.map(|(hold, _)| hold.to_string()),
        consecutive_throttles: lane.map_or(0, |lane| lane.episodes),
        queued_events,
        inflight,
        node: crate::api::nodes::worker_of(app, no),
        as_of: lane.and_then(|lane| lane.as_of),
        oldest_queued_at,
        rate_now: lane.and_then(|lane| lane.rate).map(|rate| RateNowView {
            tokens: rate.tokens,
            burst: rate.burst,
            per_minute: rate.per_minute,
        }),
        timeout: TimeoutView::from(&lane.map_or_else(report, |lane| lane.timeout)),
        success_rate_24h: rate(tally.successes),
        timeout_rate_24h: rate(tally.timeouts),
        created_at: entry.row.created_at,
        updated_at: entry.row.updated_at,
        version: entry.row.version,
        holds: holds
            .iter()
            .map(|(hold, since)| HoldView {
                reason: hold.reason().word(),
                since: *since,
                until: hold.until(),
                detail: hold.to_string(),
            })
            .collect(),
    }
}
