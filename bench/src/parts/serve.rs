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
    for _ in 0..bench.pairs {
        let (relay, relay_cpu) = limits::relay(bench.stack).await?;
        let single = |address: &str| Publish::singles(address, KEY, "bench", |number| number % DESTINATIONS);
        singles.push(Pair { run: run(bench, "singles", 1, single).await?, limit: relay });
        let plain = limits::plain(bench.stack).await?;
        batches.push(Pair { run: in_batches(bench).await?, limit: plain });
        limits.push(Limits { plain, relay, relay_cpu });
        let plain = limits::plain(bench.stack).await?;
        let fan_out = |address: &str| {
            Publish::singles(address, KEY, "bench", |number| number % (DESTINATIONS / FAN_OUT))
        };
        fan_outs.push(Pair { run: run(bench, "fan-out", FAN_OUT, fan_out).await?, limit: plain });
    }
    let mut rows = limits::rows(&limits);
    let kinds = [
        ("published one by one", &singles, 1, "relay", 40.0),
        ("batches of 100", &batches, 1, "plain", 35.0),
        ("fan-out 1 → 10, deliveries", &fan_outs, FAN_OUT, "plain", 35.0),
    ];
    for (what, pairs, fan_out, limit, share) in kinds {
        let of = |figure: fn(&Pair) -> f64| median(&mut pairs.iter().map(figure).collect::<Vec<_>>());
        let row = Row::note(format!("{what}, end to end"), of(|pair| pair.run.deliveries), "/s");
        rows.push(row.limit(of(|pair| pair.limit), limit));
        let row = Row::note(format!("{what}: share of {limit}"), of(Pair::share), "%");
        rows.push(row.required(Bound::AtLeast(share)));
        let cpu = of(|pair| pair.run.cpu) / fan_out as f64;
        rows.push(Row::note(format!("{what}: CPU per 1,000"), cpu, "s").required(Bound::AtMost(CPU)));
        rows.push(Row::note("  accepted", of(|pair| pair.run.accepted), "/s"));
        rows.push(Row::note("  events per fsync", of(|pair| pair.run.per_commit), ""));
        let repeated = pairs.iter().map(|pair| pair.run.repeated).sum();
        rows.push(Row::note("  deliveries received twice", repeated, ""));
    }
    Ok(rows)
}

/// A run, and the limit that was measured just before it: a shared machine is not the same from one minute to the next.
struct Pair {
    run: Run,
    limit: f64,
}

impl Pair {
    /// In percent.
    fn share(&self) -> f64 {
        100.0 * self.run.deliveries / self.limit
    }
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
