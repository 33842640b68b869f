//! Latency of a system with nothing else to do: 50 events a second, from just before they are published to their receipt.
//!
//! What an fsync costs is measured at the same time, on the same disk and at the same pace, on a file that is written over
//! and over as a write-ahead log is, half a period after each event.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use super::{Bench, arrived};
use crate::api::reset_sink;
use crate::child::helper;
use crate::load::open;
use crate::requests::Publish;
use crate::row::{Bound, Row};
use crate::service::{KEY, Service};
use crate::stopwatch::{now, quantile};

const PER_SECOND: f64 = 50.0;
const TIME: Duration = Duration::from_secs(20);
const DESTINATIONS: u64 = 10;

/// How long fsyncs and events took, in milliseconds.
pub(super) struct Idle {
    fsyncs: Vec<f64>,
    latencies: Vec<f64>,
}

impl Idle {
    pub(super) fn fsync(&mut self, share: f64) -> f64 {
        quantile(&mut self.fsyncs, share)
    }
    pub(super) fn latency(&mut self, share: f64) -> f64 {
        quantile(&mut self.latencies, share)
    }
}

pub(crate) async fn measure(bench: &Bench) -> Result<Vec<Row>> {
    let mut idle = run(bench).await?;
    let (fsync_p50, fsync_p99) = (idle.fsync(0.5), idle.fsync(0.99));
    let (p50, p99) = (idle.latency(0.5), idle.latency(0.99));
    let (most_p50, most_p99) = (2.0 * fsync_p50 + 1.0, 2.0 * fsync_p99 + 4.0);
    Ok(vec![
        Row::note("fsync of 4 KiB, p50", fsync_p50, "ms"),
        Row::note("fsync of 4 KiB, p99", fsync_p99, "ms"),
        Row::note("idle: publish → received, p50", p50, "ms")
            .limit(fsync_p50, "fsync")
            .required(Bound::AtMost(most_p50)),
        Row::note("idle: publish → received, p99", p99, "ms")
            .limit(fsync_p99, "fsync")
            .required(Bound::AtMost(most_p99)),
    ])
}

pub(super) async fn run(bench: &Bench) -> Result<Idle> {
    let (_sink, sink) = helper(bench.stack, &["sink"])?;
    let service = Service::start(&bench.place, "idle").await?;
    let mut api = service.api().await?;
    for index in 0..DESTINATIONS {
        api.destination(&format!("http://{sink}/ok/{index}"), &format!("bench.{index:05}"), &json!({}))
            .await?;
    }
    let publish = || Publish::singles(&service.address, KEY, "bench", |number| number % DESTINATIONS);
    // Connections are made and pages are read before it counts.
    let warm = open(bench.stack, PER_SECOND, Duration::from_secs(2), publish()).await?.all_accepted()?;
    arrived(&sink, warm.accepted).await?;
    reset_sink(&sink, 1).await?;

    let file = service.home.join("fsync");
    let syncing = tokio::task::spawn_blocking(move || fsyncs(&file));
    let sent = open(bench.stack, PER_SECOND, TIME, publish()).await?.all_accepted()?;
    let latencies = arrived(&sink, sent.accepted).await?.millis();
    let fsyncs = syncing.await?.context("cannot measure fsync")?;
    Ok(Idle { fsyncs, latencies })
}

/// The time of each fsync, in milliseconds.
fn fsyncs(path: &Path) -> Result<Vec<f64>> {
    const BLOCK: [u8; 4_096] = [7; 4_096];
    const BLOCKS: u64 = 1_000;
    let file = File::create(path)?;
    for block in 0..BLOCKS {
        file.write_all_at(&BLOCK, block * 4_096)?;
    }
    file.sync_all()?;
    let (began, period) = (now(), Duration::from_secs_f64(1.0 / PER_SECOND));
    let mut taken = Vec::new();
    let mut due = period / 2;
    while due < TIME {
        pause(due.saturating_sub(began.elapsed()));
        let at = now();
        file.write_all_at(&BLOCK, taken.len() as u64 % BLOCKS * 4_096)?;
        file.sync_all()?;
        taken.push(at.elapsed().as_secs_f64() * 1_000.0);
        due += period;
    }
    Ok(taken)
}

#[expect(clippy::disallowed_methods, reason = "it keeps a pace in real time")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
