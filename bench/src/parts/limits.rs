//! What this machine can do at most, with the same payload and the same number of connections.
//!
//! **Plain**: a client and a sink. **Relay**: a client, a relay that answers 202 at once and forwards, and a sink; nothing
//! is stored.

use std::time::Duration;

use anyhow::Result;

use super::{Bench, arrived};
use crate::api::reset_sink;
use crate::child::helper;
use crate::load::closed;
use crate::requests::Plain;
use crate::row::Row;
use crate::stack::{Stack, Target};
use crate::stopwatch::median;

/// Connections of the client, here and in `serve`.
pub(crate) const CONNECTIONS: usize = 64;
const RUN: Duration = Duration::from_secs(4);

/// The limits of this machine, in one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Exchanges per second between a client and a sink.
    pub(crate) plain: f64,
    /// Events per second through a relay.
    pub(crate) relay: f64,
    /// CPU seconds of the relay for 1,000 events.
    pub(crate) relay_cpu: f64,
}

pub(crate) async fn measure(stack: Stack) -> Result<Limits> {
    let plain = plain(stack).await?;
    let (relay, relay_cpu) = relay(stack).await?;
    Ok(Limits { plain, relay, relay_cpu })
}

/// Only these, three times.
pub(crate) async fn alone(bench: &Bench) -> Result<Vec<Row>> {
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(measure(bench.stack).await?);
    }
    Ok(rows(&runs))
}

/// What several runs came to: the median of each.
pub(crate) fn rows(runs: &[Limits]) -> Vec<Row> {
    let middle = |figure: fn(&Limits) -> f64| median(&mut runs.iter().map(figure).collect::<Vec<_>>());
    vec![
        Row::note("limit: plain exchanges", middle(|run| run.plain), "/s"),
        Row::note("limit: relay without storage", middle(|run| run.relay), "/s"),
        Row::note("limit: CPU of the relay per 1,000 events", middle(|run| run.relay_cpu), "s"),
    ]
}

/// Exchanges per second between a client and a sink.
pub(super) async fn plain(stack: Stack) -> Result<f64> {
    let (_process, sink) = helper(stack, &["sink"])?;
    let sent = closed(stack, CONNECTIONS, RUN, Plain(Target::plain(&sink))).await?.all_accepted()?;
    Ok(sent.accepted as f64 / sent.took)
}

/// Events per second through a relay, and its CPU seconds for 1,000 of them.
pub(super) async fn relay(stack: Stack) -> Result<(f64, f64)> {
    let (_sink, sink) = helper(stack, &["sink"])?;
    let (process, relay) = helper(stack, &["relay", &sink])?;
    reset_sink(&sink, 1).await?;
    let before = process.cpu_seconds();
    let sent = closed(stack, CONNECTIONS, RUN, Plain(Target::plain(&relay))).await?.all_accepted()?;
    let stats = arrived(&sink, sent.accepted).await?;
    let cpu = process.cpu_seconds() - before;
    let took = stats.last_at.saturating_sub(sent.began_at) as f64 / 1e9;
    Ok((sent.accepted as f64 / took, cpu / sent.accepted as f64 * 1_000.0))
}
