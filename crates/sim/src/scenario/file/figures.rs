//! What a run came to, in figures: for each destination, and for all of them.

use std::collections::BTreeMap;

use serde::Serialize;
use tidegate_core::delivery::End;
use tidegate_core::sketch::{Quantile, Sketch};
use tidegate_core::time::{Millis, Timestamp};

/// How deliveries ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ends {
    /// They have it.
    pub delivered: u64,
    /// Given up although still valid.
    pub dead_letter: u64,
    /// Went stale.
    pub expired: u64,
    /// Withdrawn.
    pub cancelled: u64,
}

/// What a run did to one destination.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// The destination.
    pub name: String,
    /// Its account.
    pub account: String,
    /// Deliveries accepted for it.
    pub accepted: u64,
    /// How they ended.
    #[serde(flatten)]
    pub ends: Ends,
    /// Those that had not ended when the run did.
    pub still_open: u64,
    /// Requests made.
    pub requests: u64,
    /// Those that ended, by outcome; a crash cuts some off.
    pub attempts: BTreeMap<&'static str, u64>,
    /// From acceptance (or the time asked for) to delivery: half of them within this many milliseconds.
    pub p50_ms: Option<i64>,
    /// 99 of 100 within this many milliseconds.
    pub p99_ms: Option<i64>,
    /// The delivery that took longest to come to an end, in milliseconds.
    pub longest_wait_ms: Option<i64>,
    /// What it waited for most of that time: a hold reason, or `queue` where it was its turn.
    pub longest_wait_reason: Option<&'static str>,
    /// How long work was held, in seconds by reason.
    pub held_seconds: BTreeMap<&'static str, f64>,
    /// Requests in flight at most.
    pub peak_in_flight: u32,
    /// Requests in the busiest minute of the clock.
    pub busiest_minute: u64,
    /// How often the breaker opened.
    pub breaker_opened: u64,
    /// Throttle episodes: how often a 429 closed the destination.
    pub throttle_episodes: u64,
    /// When it was disabled, if it was.
    pub disabled_at: Option<String>,
}

/// The same over all destinations.
#[derive(Clone, Debug, Default)]
pub(super) struct Total {
    pub(super) accepted: u64,
    pub(super) ends: Ends,
    pub(super) still_open: u64,
    pub(super) requests: u64,
    pub(super) attempts: BTreeMap<&'static str, u64>,
    pub(super) latency: Sketch,
    /// The destination's name, how long, and why.
    pub(super) longest: Option<(String, Longest)>,
    pub(super) peak_in_flight: u32,
    pub(super) backlog: Backlog,
}

/// The largest number of deliveries that waited at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Backlog {
    pub(super) most: usize,
    /// When it was so large.
    pub(super) at: Option<Timestamp>,
    /// When, after that, nothing waited for the first time.
    pub(super) drained_at: Option<Timestamp>,
}

/// The longest wait, and what it was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Longest {
    pub(super) wait: Millis,
    pub(super) reason: &'static str,
}

impl Ends {
    pub(super) fn add(&mut self, end: End) {
        *match end {
            End::Delivered => &mut self.delivered,
            End::DeadLetter(_) => &mut self.dead_letter,
            End::Expired(_) => &mut self.expired,
            End::Cancelled(_) => &mut self.cancelled,
        } += 1;
    }
    /// All of them.
    pub const fn sum(&self) -> u64 {
        self.delivered + self.dead_letter + self.expired + self.cancelled
    }
}

impl Total {
    pub(super) fn answers(&self, word: &str) -> u64 {
        self.attempts.get(word).copied().unwrap_or(0)
    }
    pub(super) fn delivered_share(&self) -> f64 {
        if self.accepted == 0 { 1.0 } else { self.ends.delivered as f64 / self.accepted as f64 }
    }
    pub(super) fn p50(&self) -> Option<Millis> {
        percentile(&self.latency, 5_000)
    }
    pub(super) fn p99(&self) -> Option<Millis> {
        percentile(&self.latency, 9_900)
    }
}

/// Where a percentile of what was delivered lies.
pub(super) fn percentile(latency: &Sketch, permyriad: u32) -> Option<Millis> {
    match latency.quantile(permyriad) {
        Quantile::At(at) => Some(at),
        Quantile::Empty | Quantile::AmongCensored { .. } => None,
    }
}
