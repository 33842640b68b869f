//! `/metrics`: what Prometheus reads. Labels by destination stay bounded.

mod text;

use std::sync::atomic::Ordering::Relaxed;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use tidegate_core::delivery::HoldReason;
use tidegate_core::time::{Millis, Timestamp};
use tidegate_engine::dispatcher::Waits;
use tidegate_engine::metrics::{BOUNDS_US, ENDS, Histogram, OUTCOMES};
use tidegate_store::DestinationNo;
use tidegate_store::lane::Of;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::text::Page;
use super::error::{ApiError, ErrorBody};
use super::page::MAX_TOTAL;
use super::{App, waiting};

/// Destinations with a label of their own: the busiest. All others are one `other`.
const LABELLED: usize = 100;

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show))
}

/// What one lane looks like.
#[derive(Clone, Copy, Default)]
struct Gauge {
    queued: u64,
    inflight: u64,
    denied: u64,
    oldest_seconds: f64,
}

impl Gauge {
    fn busy(&self) -> u64 {
        self.queued.saturating_add(self.inflight)
    }
    fn join(&mut self, other: &Self) {
        self.queued += other.queued;
        self.inflight += other.inflight;
        self.denied += other.denied;
        self.oldest_seconds = self.oldest_seconds.max(other.oldest_seconds);
    }
}

/// What was seen of a lane.
struct Seen {
    destination: DestinationNo,
    queued: u64,
    inflight: u64,
    denied: u64,
    held: Option<(HoldReason, Timestamp)>,
    waits: Waits,
}

/// Metrics for Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "observing", security(()),
    responses(
        (status = 200, description = "The text format of Prometheus.", body = String, content_type = "text/plain"),
        (status = 503, description = "The server is shutting down.", body = ErrorBody)
    )
)]
async fn show(State(app): State<App>) -> Result<impl IntoResponse, ApiError> {
    let store = app.engine.store().clone();
    let look = app.engine.look(move |view| {
        let see = |(destination, lane): (DestinationNo, &tidegate_engine::dispatcher::Lane)| {
            let inflight = lane.in_flight_count() as u64;
            let queued = store.waiting(Of::Destination(destination)).deliveries.saturating_sub(inflight);
            Seen {
                destination,
                queued,
                inflight,
                denied: lane.slots_denied(),
                held: lane.held(),
                waits: lane.waits(),
            }
        };
        // Each node tells of what it works.
        view.lanes().filter(|(no, _)| !view.is_elsewhere(*no)).map(see).collect::<Vec<_>>()
    });
    let lanes = look.await?;
    let mut page = Page::default();
    counters(&app, &mut page);
    if app.engine.cluster().is_some() {
        let refused = app.engine.store().count_refused_outbox(MAX_TOTAL).await?;
        page.gauge(
            "tidegate_outbox_refused",
            "Events that were published in SQL and refused; more than 10,000 are not counted out.",
            refused,
        );
    }
    gauges(&app, &lanes, &mut page).await;
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], page.finish()))
}

fn counters(app: &App, page: &mut Page) {
    let metrics = app.engine.metrics();
    let status = app.engine.store().status();
    page.counter("tidegate_events_accepted_total", "Events accepted.", metrics.events_accepted.load(Relaxed));
    page.counter(
        "tidegate_deliveries_accepted_total",
        "Deliveries accepted.",
        metrics.deliveries_accepted.load(Relaxed),
    );
    page.head("tidegate_attempts_total", "counter", "Attempts that ended, by outcome.");
    for (word, count) in OUTCOMES.iter().zip(&metrics.attempts) {
        page.sample("tidegate_attempts_total", &[("outcome", word)], count.load(Relaxed));
    }
    page.head("tidegate_deliveries_final_total", "counter", "Deliveries that ended, by status.");
    for (word, count) in ENDS.iter().zip(&metrics.finals) {
        page.sample("tidegate_deliveries_final_total", &[("status", word)], count.load(Relaxed));
    }
    histogram(
        page,
        "tidegate_attempt_duration_seconds",
        "From the start of an attempt to its answer.",
        &metrics.attempt_duration,
    );
    histogram(
        page,
        "tidegate_delivery_latency_seconds",
        "From acceptance to success.",
        &metrics.delivery_latency,
    );
    histogram(page, "tidegate_commit_seconds", "How long a commit took.", &metrics.commit_duration);
    page.counter("tidegate_commits_total", "Commits made.", status.commits);
    page.counter(
        "tidegate_refills_total",
        "Times that a lane looked into the store.",
        metrics.refills.load(Relaxed),
    );
    page.counter(
        "tidegate_events_forgotten_total",
        "Events deleted by the retention.",
        metrics.events_forgotten.load(Relaxed),
    );
    page.counter(
        "tidegate_schedule_errors_total",
        "Quiet hours that could not be read any more.",
        app.catalogue.schedule_errors(),
    );
    page.counter(
        "tidegate_stale_results_total",
        "Results that were refused because another node worked the destination by then.",
        status.stale,
    );
    page.counter(
        "tidegate_refused_rows_total",
        "Rows that the store could not hold: a fault of the server's own, told in its log.",
        status.refused,
    );
    page.counter(
        "tidegate_cut_off_total",
        "Attempts that were cut off when the server stopped, a slot moved or the lease ended: they may be made twice.",
        metrics.cut_off.load(Relaxed),
    );
    if let Some(seen) = app.engine.cluster() {
        let held = seen.holders.iter().filter(|holder| holder.is_some() && **holder == seen.me).count();
        page.gauge("tidegate_slots", "Slots that this node works, of 256.", held as u64);
        let there = seen.nodes.iter().filter(|row| row.lease_left > Millis::ZERO).count();
        page.gauge("tidegate_nodes", "Nodes whose lease holds.", there as u64);
        page.head("tidegate_slot_moves_total", "counter", "Slots that moved, by how.");
        for (what, slots) in &seen.moved {
            page.sample("tidegate_slot_moves_total", &[("what", what)], *slots);
        }
    }
    page.gauge("tidegate_store_wal_bytes", "Bytes of the write-ahead log.", status.wal_bytes);
    page.gauge(
        "tidegate_store_full",
        "1 while writes wait: the disk is full, or the database is out of reach.",
        u64::from(status.waits),
    );
}

async fn gauges(app: &App, lanes: &[Seen], page: &mut Page) {
    let now = app.engine.now().wall;
    let mut held = std::collections::BTreeMap::<&'static str, u64>::new();
    let waiting = lanes.iter().map(|seen| (seen.destination, seen.queued, seen.waits)).collect();
    for (reason, count) in waiting::by_reason(app, waiting).await.into_iter().flatten() {
        *held.entry(reason.word()).or_default() += count;
    }
    let mut all: Vec<(DestinationNo, Gauge)> = Vec::with_capacity(lanes.len());
    for seen in lanes {
        let held_for = seen.held.map_or(0.0, |(_, since)| (now - since).as_secs_f64().max(0.0));
        all.push((
            seen.destination,
            Gauge {
                queued: seen.queued,
                inflight: seen.inflight,
                denied: seen.denied,
                oldest_seconds: held_for,
            },
        ));
    }
    page.head("tidegate_held_deliveries", "gauge", "Deliveries that are held, by reason.");
    for reason in HoldReason::ALL {
        let count = held.get(reason.word()).copied().unwrap_or(0);
        page.sample("tidegate_held_deliveries", &[("reason", reason.word())], count);
    }
    let rows = labelled(app, all).await;
    let rows: Vec<(&str, &Gauge)> = rows.iter().map(|(label, gauge)| (label.as_str(), gauge)).collect();
    page.by_destination("tidegate_queue_depth", "gauge", "Deliveries that wait.", &rows, |gauge| {
        gauge.queued as f64
    });
    page.by_destination("tidegate_inflight", "gauge", "Requests in flight.", &rows, |gauge| {
        gauge.inflight as f64
    });
    let denied = "Times that a delivery found every slot taken.";
    page.by_destination("tidegate_concurrency_slot_denied_total", "counter", denied, &rows, |gauge| {
        gauge.denied as f64
    });
    let oldest = "Age of the oldest delivery that waits; of `other`, how long the longest hold has lasted.";
    page.by_destination("tidegate_oldest_held_seconds", "gauge", oldest, &rows, |gauge| gauge.oldest_seconds);
}

/// The busiest by their ids, the rest together.
async fn labelled(app: &App, mut all: Vec<(DestinationNo, Gauge)>) -> Vec<(String, Gauge)> {
    all.sort_unstable_by_key(|(destination, gauge)| (std::cmp::Reverse(gauge.busy()), *destination));
    let rest = all.split_off(all.len().min(LABELLED));
    let mut other = Gauge::default();
    for (_, gauge) in &rest {
        other.join(gauge);
    }
    let now = app.engine.now().wall;
    let numbers = all.iter().map(|(destination, _)| *destination).collect();
    // A store that cannot be read must not hide everything else.
    if let Ok(surveyed) = app.engine.store().survey(numbers, now).await {
        for ((_, gauge), surveyed) in all.iter_mut().zip(surveyed) {
            // One in flight does not wait.
            let oldest = surveyed.oldest_open.filter(|_| gauge.queued > 0);
            gauge.oldest_seconds = oldest.map_or(0.0, |since| (now - since).as_secs_f64().max(0.0));
        }
    }
    let mut rows: Vec<(String, Gauge)> = Vec::with_capacity(all.len() + 1);
    for (destination, gauge) in all {
        match app.catalogue.destination_id(destination) {
            Some(id) => rows.push((id.to_string(), gauge)),
            None => other.join(&gauge),
        }
    }
    rows.push(("other".to_owned(), other));
    rows
}

fn histogram(page: &mut Page, name: &str, about: &str, histogram: &Histogram) {
    let (counts, sum_us) = histogram.read();
    page.histogram(name, about, &BOUNDS_US, &counts, sum_us);
}
