//! One node on PostgreSQL: published batches end to end in saturation, and the latency of an idle system.

use anyhow::Result;

use super::serve::{self, middle};
use super::{Bench, idle, limits};
use crate::row::{Bound, Row};
use crate::stopwatch::median;

const ROUNDS: usize = 3;
/// The least of the plain limit.
const SHARE: f64 = 0.15;
/// The most of an idle publish → received, in milliseconds.
const P99: f64 = 15.0;

pub(crate) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let (bench, database) = bench.on_postgres()?;
    let (mut plain, mut runs, mut database_cpu, mut log) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(limits::plain(bench.stack).await?);
        let (before, log_before) = (database.cpu_seconds(), database.log_bytes()?);
        let run = serve::in_batches(&bench).await?;
        let events = run.accepted * bench.publish.as_secs_f64();
        database_cpu.push((database.cpu_seconds() - before) / events * 1_000.0);
        log.push((database.log_bytes()? - log_before) / events);
        runs.push(run);
    }
    let mut idle = idle::run(&bench).await?;
    let plain = median(&mut plain);
    Ok(vec![
        Row::note("PostgreSQL: batches of 100, end to end", middle(&runs, |run| run.deliveries), "/s")
            .limit(plain, "plain")
            .required(Bound::AtLeast(SHARE * plain)),
        Row::note("  accepted", middle(&runs, |run| run.accepted), "/s"),
        Row::note("  CPU of the server per 1,000 events", middle(&runs, |run| run.cpu), "s"),
        Row::note("  CPU of PostgreSQL per 1,000 events", median(&mut database_cpu), "s"),
        Row::note("  bytes of PostgreSQL's log per event", median(&mut log), ""),
        Row::note("  events per commit", middle(&runs, |run| run.per_commit), ""),
        Row::note("  deliveries received twice", runs.iter().map(|run| run.repeated).sum(), ""),
        Row::note("PostgreSQL: idle, publish → received, p50", idle.latency(0.5), "ms")
            .limit(idle.fsync(0.5), "fsync"),
        Row::note("PostgreSQL: idle, publish → received, p99", idle.latency(0.99), "ms")
            .limit(idle.fsync(0.99), "fsync")
            .required(Bound::AtMost(P99)),
    ])
}
