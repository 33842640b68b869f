//! How long an attempt at a destination is waited for: learned from how long its answers took, never from outages.
//!
//! [`Timeouts`] is what one destination has taught so far. The dispatcher asks it before an attempt
//! ([`in_force`](Timeouts::in_force), or [`for_probe`](Timeouts::for_probe) for the breaker's probe), and tells it
//! afterwards what came of it ([`observe`](Timeouts::observe)). It decides nothing about breakers, retries or
//! storage: the caller says when the breaker opens, and stores [`Learned`] and the days' sketches.
//!
//! **The value.** The 99th percentile of the last seven days · 1.5 + 500 ms, within 1 s and 30 s. Timeouts count as
//! answers that would have taken at least that long; see [`sketch`](crate::sketch).
//!
//! **Longer** is applied at once: when the computed value is longer; when the percentile lies among timeouts (then
//! ·1.5, once for each computation, and only if they happened at the value in force or above: those of a shorter one
//! are already answered by the growth since); when more than 5% of the most recent attempts timed out (·1.5, whatever
//! the week before looked like); when the breaker's probe needed longer than the value in force.
//!
//! **Shorter** is one step a week, to 0.75 of the value in force but not below the computed one. Each step is on trial
//! for a week: if the share of timeouts rises, it is taken back. For a week after that, or after any growth, nothing
//! is shortened. The share has risen when there were at least three timeouts and they are more than three standard
//! deviations above what the share before the step lets one expect ([`Tally::rose_since`]): one stray timeout never
//! does that, and three among the first hundreds do if there were hardly any before.
//!
//! **Outages teach nothing.** Failures are held back until a good answer shows that the breaker will not open on them,
//! and dropped if it opens. What an answer releases is one incident, however many attempts it hit: its timeouts count
//! as *one* sample, the longest. Chance timeouts come one at a time, so little is lost; without this, an outage of two
//! minutes between the retries of a quiet destination would pass for a slow percentile.
//!
//! **The clock** may jump. Times of the future are taken for the present, so that a jump costs at most some samples
//! and a week of waiting.

mod incident;
mod latencies;
mod learned;
mod params;
mod recent;
mod recompute;
mod sampling;
mod stored;
#[cfg(test)]
mod tests;

use crate::sketch::{BadSketch, Quantile};
use crate::time::{Millis, Timestamp};
use incident::Watch;
use latencies::Latencies;
pub use learned::{Estimate, Learned, Rollout};
pub use params::{TimeoutMode, TimeoutParams};
use recent::Recent;
pub use recent::Tally;

/// What came of an attempt, as far as it says how long the destination takes.
///
/// Not passed in at all: network errors, blocked and cancelled attempts, tests, and those cut short because their
/// event expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sample {
    /// Complete headers in time, and no failure to the breaker: any status that is good or neutral to it; every
    /// status where the breaker is switched off.
    Answered {
        /// How long they took.
        elapsed: Millis,
        /// Whether it was the breaker's probe.
        probe: bool,
    },
    /// Complete headers in time, with a status that the breaker counts as a failure.
    Failed {
        /// How long they took.
        elapsed: Millis,
        /// Whether it was the breaker's probe.
        probe: bool,
    },
    /// No complete headers within `timeout`.
    TimedOut {
        /// The timeout of that attempt.
        timeout: Millis,
        /// Whether it was the breaker's probe.
        probe: bool,
    },
    /// The same where the breaker is switched off: nothing will tell whether it is an outage, so it counts at once.
    TimedOutUnguarded {
        /// The timeout of that attempt.
        timeout: Millis,
    },
}

/// The timeout that ordinary attempts get has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutChange {
    /// What it was.
    pub from: Millis,
    /// What it is now.
    pub to: Millis,
    /// Why.
    pub reason: ChangeReason,
}

/// Why a timeout changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeReason {
    /// The computed value is longer than the one in force.
    Slower,
    /// The percentile lies among attempts that timed out.
    PercentileTimedOut,
    /// Too many of the most recent attempts timed out.
    Spike,
    /// The breaker's probe succeeded, but needed longer than the timeout in force.
    SlowProbe,
    /// A step towards the shorter computed value.
    Step,
    /// The share of timeouts rose after a step.
    StepTakenBack,
    /// There were no samples for so long that what was learned no longer counts.
    Stale,
}

/// The `timeout` of a destination, as the API shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeoutReport {
    /// The policy.
    pub mode: TimeoutMode,
    /// What an ordinary attempt gets now.
    pub ms: Millis,
    /// The percentile when it was last computed; none before that, and where it lies among timeouts.
    pub p99_ms: Option<Millis>,
    /// Samples kept now.
    pub sample_count: u64,
    /// When the percentile was last computed.
    pub computed_at: Option<Timestamp>,
    /// The computed value, which the timeout is moving to; none unless adaptive.
    pub target_ms: Option<Millis>,
    /// The next step towards a shorter one; none where there is nothing to shorten, or too little is known for it.
    pub next_step: Option<NextStep>,
}

/// A step of a roll-out that is still to come, as long as its destination answers as it does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextStep {
    /// When it is taken.
    pub at: Timestamp,
    /// What an attempt gets from then on.
    pub to: Millis,
}

/// All that one destination has taught. Small; a quiet destination's takes no memory beyond its own fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// None until the first sample, and again when the samples went stale.
    learned: Option<Learned>,
    latencies: Latencies,
    recent: Recent,
    watch: Watch,
}

/// The moment and the policy that a call comes with.
#[derive(Clone, Copy)]
struct Call<'a> {
    now: Timestamp,
    mode: TimeoutMode,
    params: &'a TimeoutParams,
}

impl Timeouts {
    /// A destination of which nothing is known yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was stored: the figures, and each day's encoded sketch by its number (see [`days`](Self::days)). If the
    /// breaker is open, say so with [`breaker_opened`](Self::breaker_opened).
    pub fn restore<'a>(
        learned: Option<Learned>,
        days: impl IntoIterator<Item = (i32, &'a [u8])>,
    ) -> Result<Self, BadSketch> {
        Ok(Self { learned, latencies: Latencies::restore(days)?, ..Self::default() })
    }

    /// The figures to store.
    pub fn learned(&self) -> Option<&Learned> {
        self.learned.as_ref()
    }

    /// The samples to store, one encoded sketch for each day, oldest first. Days are counted in UTC from 1970-01-01;
    /// only the last can still change.
    pub fn days(&self) -> impl Iterator<Item = (i32, Vec<u8>)> + '_ {
        self.latencies.days()
    }

    /// What an ordinary attempt gets now.
    pub fn in_force(&self, mode: &TimeoutMode, params: &TimeoutParams) -> Millis {
        match mode {
            TimeoutMode::Manual(pinned) => *pinned,
            TimeoutMode::Default => params.default,
            TimeoutMode::Adaptive => {
                params.bounded(self.learned.as_ref().and_then(|l| l.timeout).unwrap_or(params.default))
            }
        }
    }

    /// What the breaker's probe gets: when adaptive, the longest there is, so that a destination that became slow for
    /// good is not locked out.
    pub fn for_probe(&self, mode: &TimeoutMode, params: &TimeoutParams) -> Millis {
        match mode {
            TimeoutMode::Adaptive => params.max,
            TimeoutMode::Manual(_) | TimeoutMode::Default => self.in_force(mode, params),
        }
    }

    /// Learns from an attempt that ended now, and computes anew if that is due.
    pub fn observe(
        &mut self,
        now: Timestamp,
        mode: &TimeoutMode,
        params: &TimeoutParams,
        sample: Sample,
    ) -> Option<TimeoutChange> {
        let call = Call { now, mode: *mode, params };
        let from = self.in_force(mode, params);
        let due = self.run_if_due(call);
        let taken = self.take(call, sample);
        self.changed(call, from, taken.or(due))
    }

    /// The breaker has opened: the failures that led to it are no samples, nor are those that come in until it closes
    /// or a probe is answered well.
    pub fn breaker_opened(&mut self) {
        self.watch = Watch::Outage;
    }

    /// The breaker has closed, or was closed by hand.
    pub fn breaker_closed(&mut self) {
        self.watch.close();
    }

    /// Computes anew if that is due, as [`observe`](Self::observe) does; else costs nothing. To be called at
    /// [`next_recompute_at`](Self::next_recompute_at), so that a destination without traffic falls back in time.
    pub fn recompute(
        &mut self,
        now: Timestamp,
        mode: &TimeoutMode,
        params: &TimeoutParams,
    ) -> Option<TimeoutChange> {
        let call = Call { now, mode: *mode, params };
        let from = self.in_force(mode, params);
        let due = self.run_if_due(call);
        self.changed(call, from, due)
    }

    /// When the next computation is due; none while there are no samples. Daily, or earlier where a rule falls due.
    pub fn next_recompute_at(&self) -> Option<Timestamp> {
        self.learned.as_ref().map(|l| l.recompute_at)
    }

    /// Starts again from the default, with no samples: for a destination that was unpinned or got another URL.
    pub fn reset(&mut self) {
        let outage = matches!(self.watch, Watch::Outage);
        *self = Self::default();
        if outage {
            self.breaker_opened();
        }
    }

    /// For the API and the dashboard.
    pub fn report(&self, mode: &TimeoutMode, params: &TimeoutParams) -> TimeoutReport {
        let estimate = self.learned.as_ref().and_then(|l| l.estimate);
        let p99 = match estimate {
            Some(Estimate { percentile: Quantile::At(p99), .. }) => Some(p99),
            _ => None,
        };
        let in_force = self.in_force(mode, params);
        let target = p99.filter(|_| *mode == TimeoutMode::Adaptive).map(|p99| params.computed(p99));
        TimeoutReport {
            mode: *mode,
            ms: in_force,
            p99_ms: p99,
            sample_count: self.latencies.samples(),
            computed_at: estimate.map(|e| e.at),
            target_ms: target,
            next_step: target.and_then(|target| self.next_step(in_force, target, params)),
        }
    }

    fn next_step(&self, in_force: Millis, target: Millis, params: &TimeoutParams) -> Option<NextStep> {
        let learned = self.learned.as_ref()?;
        let to = params.shrunk(in_force).max(target);
        if to >= in_force || self.latencies.samples() < params.min_samples {
            return None;
        }
        let grown_up_at = learned.first_sample_at + params.min_age;
        let due_at = learned.rollout.step_due(params).unwrap_or(grown_up_at);
        // It is taken when the timeout is computed anew, which also happens as soon as one of these falls due.
        Some(NextStep { at: learned.recompute_at.max(grown_up_at).max(due_at), to })
    }

    fn current(&self, call: Call<'_>) -> Millis {
        self.in_force(&call.mode, call.params)
    }

    fn changed(&self, call: Call<'_>, from: Millis, reason: Option<ChangeReason>) -> Option<TimeoutChange> {
        let to = self.current(call);
        reason.filter(|_| from != to).map(|reason| TimeoutChange { from, to, reason })
    }
}
