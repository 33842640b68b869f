//! Fresh events beside millions of deliveries that wait, compared with an empty store.
//!
//! Two servers, one filled and one empty, are measured in turn; the other has nothing to do meanwhile. Then the filled one
//! is killed and started again.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::limits::CONNECTIONS;
use super::{Bench, arrived};
use crate::api::reset_sink;
use crate::child::{Process, helper};
use crate::fill::{Fill, GROUP, Why};
use crate::load::{closed, open};
use crate::requests::Publish;
use crate::row::{Bound, Row};
use crate::service::{KEY, Service};
use crate::stopwatch::{median, now, quantile};

/// Destinations of fresh events.
const FRESH: u64 = 20;
/// Groups of held destinations: 20,000 of them.
const GROUPS: u64 = 80;
const SATURATED: Duration = Duration::from_secs(5);
const PACED: Duration = Duration::from_secs(10);
const PER_SECOND: f64 = 100.0;
/// The most that may be lost to the filled store.
const SHARE: f64 = 0.15;

/// Rate in events per second, latency in milliseconds.
struct Fresh {
    rate: f64,
    p50: f64,
    p99: f64,
}

/// A server with deliveries that wait, after it was measured.
pub(super) struct Filled {
    pub(super) service: Service,
    pub(super) sink: String,
    /// What it came to beside an empty one.
    pub(super) rows: Vec<Row>,
    pub(super) receiver: Process,
}

pub(crate) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let Filled { service: mut filled, sink, mut rows, receiver: _receiver } = beside_empty(bench).await?;
    rows.push(
        Row::note("scale: memory", filled.process.mebibytes("VmRSS"), "MiB").required(Bound::AtMost(500.0)),
    );
    rows.push(Row::note("scale: memory at most", filled.process.mebibytes("VmHWM"), "MiB"));
    rows.extend(start_up(bench, &mut filled, &sink).await?);
    rows.push(
        Row::note("scale: memory after the start", filled.process.mebibytes("VmRSS"), "MiB")
            .required(Bound::AtMost(500.0)),
    );
    Ok(rows)
}

/// Fills one server, leaves another empty, and measures both in turn.
pub(super) async fn beside_empty(bench: &Bench) -> Result<Filled> {
    let (receiver, sink) = helper(bench.stack, &["sink"])?;
    let empty = Service::start(&bench.place, "empty").await?;
    let filled = Service::start(&bench.place, "filled").await?;
    let why = &[Why::Paused, Why::QuietHours, Why::Scheduled, Why::Throttled];
    let fill = Fill { groups: GROUPS, events: (bench.scale / GROUPS / GROUP).max(1), why };
    let began = now();
    fill.apply(&filled, &sink).await?;
    let filling = began.elapsed().as_secs_f64();
    let waiting = (fill.groups * fill.events * GROUP) as f64;
    for service in [&empty, &filled] {
        fresh_destinations(service, &sink).await?;
    }
    let mut ratios: [Vec<f64>; 3] = Default::default();
    let mut last = None;
    for pair in 0..bench.pairs {
        // Whichever goes second may find the disk busier, so they take turns at it.
        let (without, with) = if pair % 2 == 0 {
            let without = fresh(bench, &empty, &sink).await?;
            (without, fresh(bench, &filled, &sink).await?)
        } else {
            let with = fresh(bench, &filled, &sink).await?;
            (fresh(bench, &empty, &sink).await?, with)
        };
        for (ratios, ratio) in
            ratios.iter_mut().zip([with.rate / without.rate, with.p50 / without.p50, with.p99 / without.p99])
        {
            ratios.push(ratio);
        }
        last = Some((without, with));
    }
    let mut rows = vec![
        Row::note("scale: deliveries waiting", waiting, ""),
        Row::note("scale: deliveries made to wait", waiting / filling, "/s"),
    ];
    if let Some((without, with)) = last {
        rows.push(
            Row::note("scale: fresh events, last pair", with.rate, "/s").limit(without.rate, "empty store"),
        );
        rows.push(
            Row::note("scale: p50 of fresh events, last pair", with.p50, "ms")
                .limit(without.p50, "empty store"),
        );
    }
    let [mut rate, mut p50, mut p99] = ratios;
    rows.push(
        Row::note("scale: rate beside an empty store", median(&mut rate), "×")
            .required(Bound::AtLeast(1.0 - SHARE)),
    );
    rows.push(
        Row::note("scale: p50 beside an empty store", median(&mut p50), "×")
            .required(Bound::AtMost(1.0 + SHARE)),
    );
    rows.push(
        Row::note("scale: p99 beside an empty store", median(&mut p99), "×")
            .required(Bound::AtMost(1.0 + SHARE)),
    );
    Ok(Filled { service: filled, sink, rows, receiver })
}

async fn fresh_destinations(service: &Service, sink: &str) -> Result<()> {
    let mut api = service.api().await?;
    for index in 0..FRESH {
        let url = format!("http://{sink}/ok/{index}");
        api.destination(&url, &format!("fresh.{index:05}"), &json!({})).await?;
    }
    Ok(())
}

/// Rate in saturation, then latency at a modest pace.
async fn fresh(bench: &Bench, service: &Service, sink: &str) -> Result<Fresh> {
    let publish = || Publish::singles(&service.address, KEY, "fresh", |number| number % FRESH);
    reset_sink(sink, 1).await?;
    let sent = closed(bench.stack, CONNECTIONS, SATURATED, publish()).await?.all_accepted()?;
    let stats = arrived(sink, sent.accepted).await?;
    let took = stats.last_at.saturating_sub(sent.began_at) as f64 / 1e9;
    reset_sink(sink, 1).await?;
    let paced = open(bench.stack, PER_SECOND, PACED, publish()).await?.all_accepted()?;
    let mut latencies = arrived(sink, paced.accepted).await?.millis();
    Ok(Fresh {
        rate: sent.accepted as f64 / took,
        p50: quantile(&mut latencies, 0.5),
        p99: quantile(&mut latencies, 0.99),
    })
}

/// Publishes one fresh event, and waits until it is received.
pub(super) async fn one_arrives(bench: &Bench, service: &Service, sink: &str) -> Result<()> {
    let publish = Publish::singles(&service.address, KEY, "fresh", |number| number % FRESH);
    open(bench.stack, 100.0, Duration::from_millis(10), publish).await?.all_accepted()?;
    arrived(sink, 1).await?;
    Ok(())
}

/// Killed and started again: until it is ready, and until a fresh event is received.
async fn start_up(bench: &Bench, service: &mut Service, sink: &str) -> Result<Vec<Row>> {
    reset_sink(sink, 1).await?;
    let began = now();
    let ready = service.restart().await?;
    one_arrives(bench, service, sink).await?;
    let delivered = began.elapsed().as_secs_f64();
    Ok(vec![
        Row::note("scale: start after kill -9, until ready", ready, "s").required(Bound::AtMost(5.0)),
        Row::note("scale: … until a fresh event is received", delivered, "s").required(Bound::AtMost(5.0)),
    ])
}
