//! End to end in saturation: from the first request to the last receipt, everything that was accepted counted.
//!
//! Each run has a fresh server that deletes finished deliveries about as fast as new ones come in.

use anyhow::{Result, ensure};
use serde_json::json;

use super::limits::{self, CONNECTIONS, Limits};
use super::{Bench, arrived};
use crate::api::reset_sink;
use crate::child::helper;
use crate::load::{Requests, closed};
use crate::requests::Publish;
use crate::row::{Bound, Row};
use crate::service::{KEY, Service};
use crate::stopwatch::median;

/// Destinations of all runs.
const DESTINATIONS: u64 = 100;
/// Destinations that get each event in the third run.
const FAN_OUT: u64 = 10;
/// Events in a batch.
const BATCH: u64 = 100;
/// CPU seconds for 1,000 events.
const CPU: f64 = 0.15;

/// Times that everything is measured, the limits among it: a shared machine is not the same from one minute to the next.
const ROUNDS: usize = 3;

/// What one run came to.
pub(super) struct Run {
    /// Deliveries per second.
    pub(super) deliveries: f64,
    /// Events accepted per second while it was published.
    pub(super) accepted: f64,
    /// CPU seconds of the server for 1,000 events.
    pub(super) cpu: f64,
    /// Events for each fsync; none where the server does not say.
    pub(super) per_commit: f64,
    /// Deliveries that were received more than once.
    pub(super) repeated: f64,
}

pub(crate) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let (mut limits, mut singles, mut batches, mut fan_outs) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        limits.push(limits::measure(bench.stack).await?);
        let single = |address: &str| Publish::singles(address, KEY, "bench", |number| number % DESTINATIONS);
        singles.push(run(bench, "singles", 1, single).await?);
        batches.push(in_batches(bench).await?);
        let fan_out = |address: &str| {
            Publish::singles(address, KEY, "bench", |number| number % (DESTINATIONS / FAN_OUT))
        };
        fan_outs.push(run(bench, "fan-out", FAN_OUT, fan_out).await?);
    }
    let of = |figure: fn(&Limits) -> f64| median(&mut limits.iter().map(figure).collect::<Vec<_>>());
    let (plain, relay, relay_cpu) = (of(|run| run.plain), of(|run| run.relay), of(|run| run.relay_cpu));
    let mut rows = limits::rows(&limits);

    let row = Row::note("published one by one, end to end", middle(&singles, |run| run.deliveries), "/s");
    rows.push(row.limit(relay, "relay").required(Bound::AtLeast(0.40 * relay)));
    let row = Row::note("  CPU of the server per 1,000 events", middle(&singles, |run| run.cpu), "s");
    rows.push(row.limit(relay_cpu, "relay").required(Bound::AtMost(CPU)));
    rows.extend(details(&singles));

    let row = Row::note("batches of 100, end to end", middle(&batches, |run| run.deliveries), "/s");
    rows.push(row.limit(plain, "plain").required(Bound::AtLeast(0.35 * plain)));
    let row = Row::note("  CPU of the server per 1,000 events", middle(&batches, |run| run.cpu), "s");
    rows.push(row.required(Bound::AtMost(CPU)));
    rows.extend(details(&batches));

    let row = Row::note("fan-out 1 → 10, deliveries", middle(&fan_outs, |run| run.deliveries), "/s");
    rows.push(row.limit(plain, "plain").required(Bound::AtLeast(0.35 * plain)));
    let cpu = middle(&fan_outs, |run| run.cpu) / FAN_OUT as f64;
    rows.push(Row::note("  CPU of the server per 1,000 deliveries", cpu, "s"));
    rows.extend(details(&fan_outs));
    Ok(rows)
}

/// One run of batches.
pub(super) async fn in_batches(bench: &Bench) -> Result<Run> {
    let batch =
        |address: &str| Publish::batches(address, KEY, "bench", BATCH, |number| number % DESTINATIONS);
    run(bench, "batches", 1, batch).await
}

/// The median over the rounds.
pub(super) fn middle(runs: &[Run], figure: fn(&Run) -> f64) -> f64 {
    median(&mut runs.iter().map(figure).collect::<Vec<_>>())
}

fn details(runs: &[Run]) -> Vec<Row> {
    vec![
        Row::note("  accepted", middle(runs, |run| run.accepted), "/s"),
        Row::note("  events per fsync", middle(runs, |run| run.per_commit), ""),
        Row::note("  deliveries received twice", runs.iter().map(|run| run.repeated).sum(), ""),
    ]
}

async fn run<R: Requests>(
    bench: &Bench,
    name: &str,
    fan_out: u64,
    requests: impl Fn(&str) -> R,
) -> Result<Run> {
    let (_sink, sink) = helper(bench.stack, &["sink"])?;
    let mut place = bench.place.clone();
    place.extra.extend(["--retention", "1s"].map(String::from));
    let service = Service::start(&place, name).await?;
    let mut api = service.api().await?;
    for index in 0..DESTINATIONS {
        let event_type = format!("bench.{:05}", index / fan_out);
        api.destination(&format!("http://{sink}/ok/{index}"), &event_type, &json!({})).await?;
    }
    reset_sink(&sink, fan_out).await?;
    let commits = api.metric("tidegate_commit_seconds_count").await?;
    let cpu = service.process.cpu_seconds();
    let sent =
        closed(bench.stack, CONNECTIONS, bench.publish, requests(&service.address)).await?.all_accepted()?;
    let expected = sent.accepted * fan_out;
    let stats = arrived(&sink, expected).await?;
    let cpu = service.process.cpu_seconds() - cpu;
    ensure!(
        stats.distinct == expected,
        "{} different deliveries were received of {expected}",
        stats.distinct
    );
    let commits =
        api.metric("tidegate_commit_seconds_count").await?.zip(commits).map(|(after, before)| after - before);
    let took = stats.last_at.saturating_sub(sent.began_at) as f64 / 1e9;
    Ok(Run {
        deliveries: expected as f64 / took,
        accepted: sent.accepted as f64 / sent.took,
        cpu: cpu / sent.accepted as f64 * 1_000.0,
        per_commit: commits.map_or(f64::NAN, |commits| sent.accepted as f64 / commits.max(1.0)),
        repeated: (stats.received - stats.distinct) as f64,
    })
}
