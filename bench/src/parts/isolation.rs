//! What one destination in trouble costs the others: 20 destinations, 200 events a second, half of them for one that hangs
//! for ten seconds on each request, or answers 429. The other 19 are compared with a run in which that one gets nothing.
//!
//! Every run has a fresh server, since a breaker or a throttle outlives a run.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::{Bench, arrived};
use crate::child::helper;
use crate::load::open;
use crate::requests::Publish;
use crate::row::{Bound, Row};
use crate::service::{KEY, Service};
use crate::stopwatch::{median, quantile};

const TIME: Duration = Duration::from_secs(10);
const DESTINATIONS: u64 = 20;
/// Of all destinations together; the healthy ones get half of it in every run.
const PER_SECOND: f64 = 200.0;

/// What the first destination does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    GetsNothing,
    Hangs,
    Throttles,
}

pub(crate) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let (mut alone, mut hanging, mut throttling) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.pairs {
        alone.push(p99(bench, First::GetsNothing).await?);
        hanging.push(p99(bench, First::Hangs).await?);
        throttling.push(p99(bench, First::Throttles).await?);
    }
    let alone = median(&mut alone);
    let most = Bound::AtMost((1.25 * alone).max(alone + 2.0));
    let row = |what: &str, p99| Row::note(what, p99, "ms").limit(alone, "without it").required(most);
    Ok(vec![
        Row::note("isolation: p99 of 19 without the one in trouble", alone, "ms"),
        row("isolation: p99 of 19 beside one that hangs", median(&mut hanging)),
        row("isolation: p99 of 19 beside one that answers 429", median(&mut throttling)),
    ])
}

/// The 99th percentile from publishing to receipt at the healthy destinations.
async fn p99(bench: &Bench, first: First) -> Result<f64> {
    let (_sink, sink) = helper(bench.stack, &["sink"])?;
    let service = Service::start(&bench.place, "isolation").await?;
    let mut api = service.api().await?;
    for index in 0..DESTINATIONS {
        let behaviour = match (index, first) {
            (0, First::Hangs) => "hang",
            (0, First::Throttles) => "throttle",
            _ => "ok",
        };
        let url = format!("http://{sink}/{behaviour}/{index}");
        api.destination(&url, &format!("bench.{index:05}"), &json!({"max_concurrency": 5})).await?;
    }
    let address = &service.address;
    let healthy = |number: u64| 1 + number % (DESTINATIONS - 1);
    let mixed = |number: u64| if number.is_multiple_of(2) { 0 } else { 1 + number / 2 % (DESTINATIONS - 1) };
    let (per_second, publish) = match first {
        First::GetsNothing => (PER_SECOND / 2.0, Publish::singles(address, KEY, "bench", healthy)),
        First::Hangs | First::Throttles => (PER_SECOND, Publish::singles(address, KEY, "bench", mixed)),
    };
    let sent = open(bench.stack, per_second, TIME, publish).await?.all_accepted()?;
    let expected = if first == First::GetsNothing { sent.accepted } else { sent.accepted / 2 };
    Ok(quantile(&mut arrived(&sink, expected).await?.millis(), 0.99))
}
