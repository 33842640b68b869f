//! How the account does: what waits, what is under way, what became of the last day.

use std::time::Duration;

use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tidegate_core::delivery::HoldReason;
use tidegate_core::time::{Millis, Timestamp};
use tidegate_engine::View;
use tidegate_engine::pulse::Beat;
use tidegate_store::lane::Of;
use tidegate_store::stats::Tally;
use tidegate_store::{AccountNo, DestinationNo};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::openapi::Refusals;
use super::{App, Data, as_optional_text, as_text, ok, survey, waiting};
use crate::auth::{Call, Viewer};

/// Destinations that are asked for their oldest delivery at a time, and how often.
const READ_AT_ONCE: usize = 30;
const MAX_READS: usize = 10;
/// So long the first look after a start waits until all destinations were looked over.
const PATIENCE: Duration = Duration::from_millis(20);

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show)).routes(routes!(ended))
}

/// The account at a glance.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatsView {
    /// Destinations.
    destinations: usize,
    /// Deliveries that wait.
    queued_events: u64,
    /// The bytes of their payloads, once for each.
    queued_bytes: u64,
    /// Requests in flight.
    inflight: usize,
    /// The last 24 hours.
    last_24h: Counts,
    /// The same by the hour, the oldest first. How long attempts took is known of this node, since it started.
    hours: Vec<HourView>,
    /// The last hour by the minute, the oldest first: of this node, since it started.
    minutes: Vec<HourView>,
    /// Since when minutes and response times are known: when this node started.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    minutes_since: Timestamp,
    /// What holds destinations whose deliveries wait, the most deliveries first.
    held: Vec<HeldView>,
    /// When the oldest of the deliveries that wait was accepted.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    oldest_queued_at: Option<Timestamp>,
}

/// What waits behind one kind of hold.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Held)]
pub(crate) struct HeldView {
    /// The word for what holds them.
    #[schema(value_type = String)]
    reason: &'static str,
    /// Deliveries that wait.
    deliveries: u64,
    /// Destinations that are held so.
    destinations: u64,
}

/// What happened in some time.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Counts {
    /// Deliveries accepted.
    accepted: u64,
    /// They have it.
    delivered: u64,
    /// Given up.
    dead_letter: u64,
    /// Stale.
    expired: u64,
    /// Withdrawn.
    cancelled: u64,
    /// Requests made.
    attempts: u64,
    /// Of these, answered 2xx.
    successes: u64,
    /// Of these, not answered in time.
    timeouts: u64,
}

/// One hour, or minute.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HourView {
    /// Its beginning.
    #[schema(format = DateTime)]
    start: String,
    /// Events accepted, as far as this node knows: since it started.
    #[schema(required = true)]
    events: Option<u64>,
    /// What happened in it.
    #[serde(flatten)]
    counts: Counts,
    /// Half of its attempts took no longer.
    #[schema(required = true)]
    p50_ms: Option<i64>,
    /// 99 of 100 of its attempts took no longer.
    #[schema(required = true)]
    p99_ms: Option<i64>,
}

impl HourView {
    fn new(start: Timestamp, tally: &Tally, took: Option<&Beat>) -> Self {
        let mut counts = Counts::default();
        counts.add(tally);
        let quantile = |permyriad| took.and_then(|beat| beat.quantile(permyriad)).map(Millis::get);
        let events = took.map(|beat| beat.events);
        Self { start: start.to_string(), events, counts, p50_ms: quantile(5_000), p99_ms: quantile(9_900) }
    }
}

impl Counts {
    fn add(&mut self, tally: &Tally) {
        self.accepted += tally.accepted;
        self.delivered += tally.delivered;
        self.dead_letter += tally.dead_letter;
        self.expired += tally.expired;
        self.cancelled += tally.cancelled;
        self.attempts += tally.attempts;
        self.successes += tally.successes;
        self.timeouts += tally.timeouts;
    }
}

/// Show how the account does.
#[utoipa::path(
    get, path = "/v1/stats", tag = "observing",
    responses((status = 200, description = "The account at a glance.", body = Data<StatsView>), Refusals)
)]
async fn show(
    State(app): State<App>,
    Call { caller, .. }: Call<Viewer>,
) -> Result<impl IntoResponse, ApiError> {
    let account = caller.account;
    let destinations: Vec<_> = app.catalogue.destinations(account).iter().map(|entry| entry.row.no).collect();
    let count = destinations.len();
    let seen = see(&app, account, destinations).await?;
    let inflight: u64 = seen.iter().map(|lane| u64::from(lane.inflight)).sum();
    let store = app.engine.store();
    let waiting = store.waiting(Of::Account(account));
    let now = app.engine.now().wall;
    let open = store.still_open(seen.iter().map(|lane| lane.no).collect(), now).await?;
    let queued_events = open.iter().sum::<u64>().saturating_sub(inflight);
    let hours = store.hours(Of::Account(account), now - Millis::hours(24)).await?;
    let recent =
        app.engine.look(move |view| (view.pulse.minutes(account, now), view.pulse.hours(account, now)));
    let (minutes, took) = recent.await?;
    let mut last_24h = Counts::default();
    hours.iter().for_each(|hour| last_24h.add(&hour.tally));
    let of_hour = |start: Timestamp| took.iter().find(|beat| beat.start == start);
    Ok(ok(StatsView {
        destinations: count,
        queued_events,
        queued_bytes: waiting.bytes,
        inflight: usize::try_from(inflight).unwrap_or(usize::MAX),
        last_24h,
        hours: hours.iter().map(|hour| HourView::new(hour.start, &hour.tally, of_hour(hour.start))).collect(),
        minutes: minutes.iter().map(|beat| HourView::new(beat.start, &beat.tally, Some(beat))).collect(),
        minutes_since: now - Millis::new(app.engine.now().mono.as_millis()),
        held: held(&seen),
        oldest_queued_at: if queued_events > 0 { oldest(&app, account, &seen).await? } else { None },
    }))
}

/// How deliveries ended that are kept.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Ended {
    /// They have it.
    delivered: u64,
    /// Given up.
    dead_letter: u64,
    /// Stale.
    expired: u64,
    /// Withdrawn.
    cancelled: u64,
}

/// Show how deliveries ended that are kept.
///
/// Kept counts, by the hour in which they ended: of the time that what is over is kept for.
#[utoipa::path(
    get, path = "/v1/stats/ended", tag = "observing",
    responses((status = 200, description = "So many of each.", body = Data<Ended>), Refusals)
)]
async fn ended(
    State(app): State<App>,
    Call { caller, .. }: Call<Viewer>,
) -> Result<axum::Json<Data<Ended>>, ApiError> {
    let from = app.engine.now().wall - app.config.retention;
    let hours = app.engine.store().hours(Of::Account(caller.account), from).await?;
    let mut all = Tally::ZERO;
    hours.iter().for_each(|hour| all.add(&hour.tally));
    let Tally { delivered, dead_letter, expired, cancelled, .. } = all;
    Ok(ok(Ended { delivered, dead_letter, expired, cancelled }))
}

/// What was seen of a lane.
struct Seen {
    no: DestinationNo,
    /// Requests in flight.
    inflight: u32,
    /// What holds it, and since when.
    held: Option<(HoldReason, Timestamp)>,
    /// What holds those that wait, and how many each.
    by_reason: Vec<(HoldReason, u64)>,
}

async fn see(app: &App, account: AccountNo, destinations: Vec<DestinationNo>) -> Result<Vec<Seen>, ApiError> {
    let store = app.engine.store().clone();
    let see = move |view: &View<'_>, no: DestinationNo| {
        let (lane, inflight) = (view.lane(no)?, view.in_flight_of(no));
        let queued = store.waiting(Of::Destination(no)).deliveries.saturating_sub(u64::from(inflight));
        Some((no, inflight, lane.held(), queued, lane.waits()))
    };
    let seen: Vec<_> =
        survey::look_over(app, account, destinations, see).await?.into_iter().flatten().collect();
    let waiting = seen.iter().map(|(no, _, _, queued, waits)| (*no, *queued, *waits)).collect();
    let reasons = waiting::by_reason(app, waiting).await;
    let all = seen.into_iter().zip(reasons);
    Ok(all.map(|((no, inflight, held, ..), by_reason)| Seen { no, inflight, held, by_reason }).collect())
}

fn held(seen: &[Seen]) -> Vec<HeldView> {
    let mut all: Vec<HeldView> = Vec::new();
    for (reason, deliveries) in seen.iter().flat_map(|lane| lane.by_reason.iter().copied()) {
        match all.iter_mut().find(|held| held.reason == reason.word()) {
            Some(held) => {
                held.deliveries += deliveries;
                held.destinations += 1;
            }
            None => all.push(HeldView { reason: reason.word(), deliveries, destinations: 1 }),
        }
    }
    all.sort_by_key(|held| std::cmp::Reverse(held.deliveries));
    all
}

/// When the oldest delivery that waits was accepted. What a sheet says of a destination is never younger than what is true, so
/// reading begins with those that it names first, and ends when no other can have an older one.
async fn oldest(app: &App, account: AccountNo, seen: &[Seen]) -> Result<Option<Timestamp>, ApiError> {
    let known = survey::sheet(app, account, PATIENCE).await?.map(|sheet| sheet.waiting());
    let oldest = oldest_of(app, &known.unwrap_or_default()).await?;
    // There is no sheet yet, or all that waits came after it was made.
    if oldest.is_none() { oldest_of(app, &held_longest(app, seen)).await } else { Ok(oldest) }
}

async fn oldest_of(app: &App, known: &[(Timestamp, DestinationNo)]) -> Result<Option<Timestamp>, ApiError> {
    let mut oldest: Option<Timestamp> = None;
    for some in known.chunks(READ_AT_ONCE).take(MAX_READS) {
        if oldest.zip(some.first()).is_some_and(|(oldest, (next, _))| oldest <= *next) {
            break;
        }
        let asked = some.iter().map(|(_, no)| *no).collect();
        let read = app.engine.store().survey(asked, app.engine.now().wall).await?;
        oldest = read.into_iter().filter_map(|one| one.oldest_open).chain(oldest).min();
    }
    Ok(oldest)
}

/// The destinations that have been held longest, of those for which something waits: the best guess that memory has.
fn held_longest(app: &App, seen: &[Seen]) -> Vec<(Timestamp, DestinationNo)> {
    let waits = |lane: &&Seen| app.engine.store().waiting(Of::Destination(lane.no)).deliveries > 0;
    let since = |lane: &Seen| lane.held.map_or(Timestamp::MAX, |(_, since)| since);
    let mut waiting: Vec<_> = seen.iter().filter(waits).map(|lane| (since(lane), lane.no)).collect();
    waiting.sort_unstable();
    waiting.truncate(READ_AT_ONCE);
    waiting
}
