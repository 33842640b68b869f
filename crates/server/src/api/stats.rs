//! How the account does: what waits, what is under way, what became of the last day.

use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tidegate_core::time::Millis;
use tidegate_store::lane::Of;
use tidegate_store::stats::Tally;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::openapi::Refusals;
use super::{App, Data, ok};
use crate::auth::{Call, Viewer};

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show))
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
    /// The same by the hour, the oldest first.
    hours: Vec<HourView>,
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

/// One hour.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HourView {
    /// Its beginning.
    #[schema(format = DateTime)]
    start: String,
    /// What happened in it.
    #[serde(flatten)]
    counts: Counts,
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
    let asked = destinations.clone();
    let inflight = app.engine.look_at(asked, move |view| {
        destinations.iter().filter_map(|no| view.lane(*no)).map(|lane| lane.in_flight().count()).sum()
    });
    let inflight = inflight.await?;
    let waiting = app.engine.store().waiting(Of::Account(account));
    let from = app.engine.now().wall - Millis::hours(24);
    let hours = app.engine.store().hours(Of::Account(account), from).await?;
    let mut last_24h = Counts::default();
    let mut shown = Vec::with_capacity(hours.len());
    for hour in &hours {
        last_24h.add(&hour.tally);
        let mut counts = Counts::default();
        counts.add(&hour.tally);
        shown.push(HourView { start: hour.start.to_string(), counts });
    }
    Ok(ok(StatsView {
        destinations: count,
        queued_events: waiting.deliveries.saturating_sub(inflight as u64),
        queued_bytes: waiting.bytes,
        inflight,
        last_24h,
        hours: shown,
    }))
}
