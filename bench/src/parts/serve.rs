//! End to end in saturation: from the first request to the last receipt, everything that was accepted counted.
//!
//! Each run has a fresh server that deletes finished deliveries about as fast as new ones come in.

use anyhow::{Result, ensure};
use serde_json::json;

use super::limits::CONNECTIONS;
use super::{Bench, arrived};
use crate::api::reset_sink;
use crate::child::helper;
use crate::load::{Requests, closed};
use crate::requests::Publish;
use crate::row::{Bound, Row};
use crate::service::{KEY, Service};

/// Destinations of all runs.
const DESTINATIONS: u64 = 100;
/// Destinations that get each event in the third run.
const FAN_OUT: u64 = 10;
/// Events in a batch.
const BATCH: u64 = 100;
/// CPU seconds for 1,000 events.
const CPU: f64 = 0.15;

/// What one run came to.
struct Run {
    /// Deliveries per second.
    deliveries: f64,
    /// Events accepted per second while it was published.
    accepted: f64,
    /// CPU seconds of the server for 1,000 events.
    cpu: f64,
    /// Events for each fsync; none where the server does not say.
    per_commit: Option<f64>,
    /// Deliveries that were received more than once.
    repeated: u64,
}

pub(crate) async fn measure(bench: &mut Bench) -> Result<Vec<Row>> {
    let limits = bench.limits().await?;
    let mut rows = Vec::new();

    let singles = run(bench, "singles", 1, |address| {
        Publish::singles(address, KEY, "bench", |number| number % DESTINATIONS)
    })
    .await?;
    let row = Row::note("published one by one, end to end", singles.deliveries, "/s");
    rows.push(row.limit(limits.relay, "relay").required(Bound::AtLeast(0.40 * limits.relay)));
    let row = Row::note("  CPU of the server per 1,000 events", singles.cpu, "s");
    rows.push(row.limit(limits.relay_cpu, "relay").required(Bound::AtMost(CPU)));
    rows.extend(details(&singles));

    let batches = run(bench, "batches", 1, |address| {
        Publish::batches(address, KEY, "bench", BATCH, |number| number % DESTINATIONS)
    })
    .await?;
    let row = Row::note("batches of 100, end to end", batches.deliveries, "/s");
    rows.push(row.limit(limits.plain, "plain").required(Bound::AtLeast(0.35 * limits.plain)));
    rows.push(
        Row::note("  CPU of the server per 1,000 events", batches.cpu, "s").required(Bound::AtMost(CPU)),
    );
    rows.extend(details(&batches));

    let fan_out = run(bench, "fan-out", FAN_OUT, |address| {
        Publish::singles(address, KEY, "bench", |number| number % (DESTINATIONS / FAN_OUT))
    })
    .await?;
    let row = Row::note("fan-out 1 → 10, deliveries", fan_out.deliveries, "/s");
    rows.push(row.limit(limits.plain, "plain").required(Bound::AtLeast(0.35 * limits.plain)));
    rows.push(Row::note("  CPU of the server per 1,000 deliveries", fan_out.cpu / FAN_OUT as f64, "s"));
    rows.extend(details(&fan_out));
    Ok(rows)
}

fn details(run: &Run) -> Vec<Row> {
    let mut rows = vec![Row::note("  accepted", run.accepted, "/s")];
    rows.extend(run.per_commit.map(|events| Row::note("  events per fsync", events, "")));
    rows.push(Row::note("  deliveries received twice", run.repeated as f64, ""));
    rows
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
        per_commit: commits.map(|commits| sent.accepted as f64 / commits.max(1.0)),
        repeated: stats.received - stats.distinct,
    })
}
