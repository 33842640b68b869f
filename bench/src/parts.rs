//! What can be measured, in the order in which it is.

mod backlog;
mod crash;
mod idle;
mod isolation;
mod limits;
mod nodes;
mod postgres;
mod quiet;
mod scale;
mod serve;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::api::sink_stats;
use crate::database::Database;
use crate::row::Row;
use crate::service::Place;
use crate::sink::Stats;
use crate::stack::Stack;
use crate::stopwatch::now;
use crate::{gates, simulation};

/// One part of the benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Simulated deliveries per second, and memory. First, while the process has no memory left over from others.
    Simulation,
    /// Gate decisions per second.
    Gates,
    /// What this machine can do at most: plain exchanges, and a relay without storage.
    Limits,
    /// End to end, in saturation.
    Serve,
    /// Latency of an idle system.
    Idle,
    /// What a hanging or throttling destination costs the others.
    Isolation,
    /// Millions of deliveries waiting.
    Scale,
    /// CPU while everything is held.
    Quiet,
    /// Killed at random moments under load.
    Crash,
    /// One node on PostgreSQL: end to end in saturation, and latency when idle.
    Postgres,
    /// What three nodes cost beside one.
    Nodes,
    /// Millions of deliveries waiting in PostgreSQL, and a node that takes all of them over.
    Backlog,
}

/// What the parts share.
#[derive(Clone)]
pub(crate) struct Bench {
    pub(crate) place: Place,
    /// What client, relay and sink are made of.
    pub(crate) stack: Stack,
    /// Deliveries that wait in `scale`.
    pub(crate) scale: u64,
    /// The same in `backlog`.
    pub(crate) backlog: u64,
    /// How long `serve` publishes.
    pub(crate) publish: Duration,
    /// Pairs of runs, one with and one without.
    pub(crate) pairs: usize,
}

impl Bench {
    /// The same with servers on a PostgreSQL that is started for it.
    fn on_postgres(&self) -> Result<(Self, Arc<Database>)> {
        let database = Arc::new(Database::start(&self.place.directory)?);
        let place = Place { database: Some(Arc::clone(&database)), ..self.place.clone() };
        Ok((Self { place, ..self.clone() }, database))
    }
}

impl Part {
    /// Those that were asked for, or all.
    pub(crate) fn in_order(only: &[Self]) -> Vec<Self> {
        Self::value_variants().iter().copied().filter(|part| only.is_empty() || only.contains(part)).collect()
    }

    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    pub(crate) async fn measure(self, bench: &mut Bench) -> Result<Vec<Row>> {
        match self {
            Self::Simulation => Ok(simulation::measure()),
            Self::Gates => Ok(gates::measure()),
            Self::Limits => limits::alone(bench).await,
            Self::Serve => serve::measure(bench).await,
            Self::Idle => idle::measure(bench).await,
            Self::Isolation => isolation::measure(bench).await,
            Self::Scale => scale::measure(bench).await,
            Self::Quiet => quiet::measure(bench).await,
            Self::Crash => crash::measure(bench),
            Self::Postgres => postgres::measure(bench).await,
            Self::Nodes => nodes::measure(bench).await,
            Self::Backlog => backlog::measure(bench).await,
        }
    }
}

/// Waits until the sink has received so many different deliveries, and fails if it does not come to it while nothing new
/// arrives for a while.
async fn arrived(sink: &str, expected: u64) -> Result<Stats> {
    const LONGEST_STANDSTILL: Duration = Duration::from_secs(20);
    let (mut before, mut moved) = (0, now());
    loop {
        let stats = sink_stats(sink).await?;
        if stats.distinct >= expected {
            return Ok(stats);
        }
        if stats.received > before {
            (before, moved) = (stats.received, now());
        }
        if moved.elapsed() > LONGEST_STANDSTILL {
            bail!("{} of {expected} deliveries were received, then nothing more", stats.distinct);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
