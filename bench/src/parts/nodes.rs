//! What three nodes cost beside one, at the same load: half of what one of them can do at most.
//!
//! All CPU counts, that of PostgreSQL too. With three nodes each takes a third of the requests, for all destinations.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use super::limits::CONNECTIONS;
use super::{Bench, arrived};
use crate::api::{Api, reset_sink};
use crate::child::helper;
use crate::database::Database;
use crate::load::{closed, open};
use crate::requests::Publish;
use crate::row::{Bound, Row};
use crate::service::{KEY, Service};
use crate::stopwatch::median;

const DESTINATIONS: u64 = 100;
const SATURATED: Duration = Duration::from_secs(5);
const PACED: Duration = Duration::from_secs(10);
/// Events of different publishers are numbered so far apart.
const APART: u64 = 10_000_000;
/// The most that three nodes may cost, beside one.
const MOST: f64 = 1.25;
const PAIRS: usize = 3;

pub(crate) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let (bench, database) = bench.on_postgres()?;
    let (_sink, sink) = helper(bench.stack, &["sink"])?;
    let one = start(&bench, &sink, 1).await?;
    let three = start(&bench, &sink, 3).await?;
    reset_sink(&sink, 1).await?;
    let publish = Publish::singles(&one[0].address, KEY, "bench", |number| number % DESTINATIONS);
    let sent = closed(bench.stack, CONNECTIONS, SATURATED, publish).await?.all_accepted()?;
    let stats = arrived(&sink, sent.accepted).await?;
    let most = sent.accepted as f64 / (stats.last_at.saturating_sub(sent.began_at) as f64 / 1e9);
    let (mut alone, mut together, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        let (first, second) = if pair % 2 == 0 { (&one, &three) } else { (&three, &one) };
        let first = cost(&bench, &database, first, &sink, most / 2.0).await?;
        let second = cost(&bench, &database, second, &sink, most / 2.0).await?;
        let (of_one, of_three) = if pair % 2 == 0 { (first, second) } else { (second, first) };
        alone.push(of_one);
        together.push(of_three);
        ratios.push(of_three / of_one);
    }
    Ok(vec![
        Row::note("nodes: one alone on PostgreSQL, published one by one", most, "/s"),
        Row::note("nodes: CPU of all per 1,000 events, one node at half of that", median(&mut alone), "s"),
        Row::note("nodes: CPU of all per 1,000 events, three nodes", median(&mut together), "s"),
        Row::note("nodes: three beside one", median(&mut ratios), "×").required(Bound::AtMost(MOST)),
    ])
}

/// So many nodes on one new database, with destinations; returns when each has its share of them.
async fn start(bench: &Bench, sink: &str, count: usize) -> Result<Vec<Service>> {
    let mut nodes = vec![Service::start(&bench.place, &format!("node-1-of-{count}")).await?];
    let mut api = nodes[0].api().await?;
    for index in 0..DESTINATIONS {
        let (url, event_type) = (format!("http://{sink}/ok/{index}"), format!("bench.{index:05}"));
        api.destination(&url, &event_type, &json!({})).await?;
    }
    while nodes.len() < count {
        let name = format!("node-{}-of-{count}", nodes.len() + 1);
        nodes.push(nodes[0].start_beside(&name).await?);
    }
    wait_for(&mut api, |slots| slots.iter().filter(|slots| **slots > 0).count() == count).await?;
    Ok(nodes)
}

/// Waits until the nodes have slots as wanted: how many each of them has.
pub(super) async fn wait_for(api: &mut Api, wanted: impl Fn(&[u64]) -> bool) -> Result<()> {
    loop {
        let shown = api.must("GET", "/v1/nodes", &json!(null)).await?;
        let shown = shown["items"].as_array().or(shown.as_array()).context("a list of nodes")?;
        let slots: Vec<u64> = shown.iter().filter_map(|node| node["slot_count"].as_u64()).collect();
        if wanted(&slots) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// CPU seconds of all processes for 1,000 events at a rate that is spread over the nodes.
async fn cost(bench: &Bench, database: &Database, nodes: &[Service], sink: &str, rate: f64) -> Result<f64> {
    reset_sink(sink, 1).await?;
    let cpu = || nodes.iter().map(|node| node.process.cpu_seconds()).sum::<f64>() + database.cpu_seconds();
    let before = cpu();
    let share = rate / nodes.len() as f64;
    let publishing = nodes.iter().zip(0_u64..).map(|(node, index)| {
        let publish = Publish::singles(&node.address, KEY, "bench", |number| number % DESTINATIONS);
        open(bench.stack, share, PACED, publish.numbered_from(index * APART))
    });
    let mut accepted = 0;
    for sent in futures_util::future::join_all(publishing).await {
        accepted += sent?.all_accepted()?.accepted;
    }
    arrived(sink, accepted).await?;
    Ok((cpu() - before) / accepted as f64 * 1_000.0)
}
