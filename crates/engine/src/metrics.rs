//! Counters of what happened, cheap enough to be kept on the path of every delivery.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tidegate_core::delivery::End;
use tidegate_core::outcome::Outcome;
use tidegate_core::time::Millis;

/// Outcomes by their words, in the order of [`Metrics::attempts`].
pub const OUTCOMES: [&str; 10] = [
    "success",
    "rate_limited",
    "unavailable",
    "gone",
    "http_error",
    "redirect",
    "timeout",
    "network_error",
    "blocked",
    "cancelled",
];

/// Ends by their words, in the order of [`Metrics::finals`].
pub const ENDS: [&str; 4] = ["delivered", "dead_letter", "expired", "cancelled"];

/// Upper bounds of the histograms' buckets, in microseconds: from half a millisecond to two minutes.
pub const BOUNDS_US: [u64; 18] = [
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    u64::MAX,
];

/// How many took how long.
#[derive(Debug, Default)]
pub struct Histogram {
    counts: [AtomicU64; BOUNDS_US.len()],
    sum_us: AtomicU64,
}

impl Histogram {
    /// One more.
    pub fn observe_us(&self, us: u64) {
        let bucket = BOUNDS_US.partition_point(|bound| *bound < us);
        self.counts[bucket].fetch_add(1, Relaxed);
        self.sum_us.fetch_add(us, Relaxed);
    }
    /// One more.
    pub fn observe(&self, time: Millis) {
        self.observe_us(time.get().max(0).unsigned_abs().saturating_mul(1_000));
    }
    /// Counts by bucket, not cumulated, and the sum of all in microseconds.
    pub fn read(&self) -> ([u64; BOUNDS_US.len()], u64) {
        (std::array::from_fn(|place| self.counts[place].load(Relaxed)), self.sum_us.load(Relaxed))
    }
}

/// What happened on this node since it started.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Events accepted.
    pub events_accepted: AtomicU64,
    /// Deliveries accepted.
    pub deliveries_accepted: AtomicU64,
    /// Attempts that ended, by outcome: see [`OUTCOMES`].
    pub attempts: [AtomicU64; OUTCOMES.len()],
    /// Deliveries that ended: see [`ENDS`].
    pub finals: [AtomicU64; ENDS.len()],
    /// From the start of an attempt to its answer.
    pub attempt_duration: Histogram,
    /// From acceptance to success.
    pub delivery_latency: Histogram,
    /// How long a commit took.
    pub commit_duration: Histogram,
    /// Attempts that were cut off when their slot went to another node, or the lease ended: they may be made twice.
    pub cut_off: AtomicU64,
    /// Commits made.
    pub commits: AtomicU64,
    /// Deliveries sent from the store because their message was not in memory any more.
    pub messages_read: AtomicU64,
    /// Times that a lane looked into the store.
    pub refills: AtomicU64,
    /// Events deleted by the retention.
    pub events_forgotten: AtomicU64,
}

impl Metrics {
    pub(crate) fn attempt(&self, outcome: &Outcome, took: Millis) {
        if let Some(place) = OUTCOMES.iter().position(|word| *word == outcome.word()) {
            self.attempts[place].fetch_add(1, Relaxed);
        }
        self.attempt_duration.observe(took);
    }
    pub(crate) fn end(&self, end: &End) {
        if let Some(place) = ENDS.iter().position(|word| *word == end.word()) {
            self.finals[place].fetch_add(1, Relaxed);
        }
    }
    pub(crate) fn count(counter: &AtomicU64, more: usize) {
        counter.fetch_add(more as u64, Relaxed);
    }
}
