//! What this machine can do at most, with the same payload and the same number of connections.
//!
//! **Plain**: a client and a sink. **Relay**: a client, a relay that answers 202 at once and forwards, and a sink; nothing
//! is stored. Each is the best of three runs: it is a limit.

use std::time::Duration;

use anyhow::Result;

use super::arrived;
use crate::api::reset_sink;
use crate::child::helper;
use crate::load::closed;
use crate::requests::Plain;
use crate::row::Row;
use crate::stack::{Stack, Target};

/// Connections of the client, here and in `serve`.
pub(crate) const CONNECTIONS: usize = 64;
const RUN: Duration = Duration::from_secs(4);
const RUNS: usize = 3;

/// The limits of this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Exchanges per second between a client and a sink.
    pub(crate) plain: f64,
    /// Events per second through a relay.
    pub(crate) relay: f64,
    /// CPU seconds of the relay for 1,000 events.
    pub(crate) relay_cpu: f64,
}

impl Limits {
    pub(crate) fn rows(self) -> Vec<Row> {
        vec![
            Row::note("limit: plain exchanges", self.plain, "/s"),
            Row::note("limit: relay without storage", self.relay, "/s"),
            Row::note("limit: CPU of the relay per 1,000 events", self.relay_cpu, "s"),
        ]
    }
}

pub(crate) async fn measure(stack: Stack) -> Result<Limits> {
    let mut limits = Limits { plain: 0.0, relay: 0.0, relay_cpu: f64::INFINITY };
    for _ in 0..RUNS {
        limits.plain = limits.plain.max(plain(stack).await?);
        let (rate, cpu) = relay(stack).await?;
        limits.relay = limits.relay.max(rate);
        limits.relay_cpu = limits.relay_cpu.min(cpu);
    }
    Ok(limits)
}

async fn plain(stack: Stack) -> Result<f64> {
    let (_process, sink) = helper(stack, &["sink"])?;
    let sent = closed(stack, CONNECTIONS, RUN, Plain(Target::plain(&sink))).await?.all_accepted()?;
    Ok(sent.accepted as f64 / sent.took)
}

async fn relay(stack: Stack) -> Result<(f64, f64)> {
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
