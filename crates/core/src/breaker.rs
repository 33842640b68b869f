//! The circuit breaker: stop trying what does not work, and find out with one request at a time when it works again.
//!
//! Closed: everything passes. Open: nothing does, for 30 s at first, doubling to 10 minutes (and up to a tenth longer). When that is over it is
//! half-open: one probe at a time, until two in a row succeed. Answers to attempts that started before the last change
//! of state change nothing: each attempt carries the generation it belongs to.

mod stored;

use crate::id::DeliveryId;
use crate::invalid::{Invalid, check_range};
use crate::outcome::Bearing;
use crate::time::{Millis, Mono, Now, Timestamp};

/// When the breaker opens and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerPolicy {
    /// Off: it never opens.
    pub enabled: bool,
    /// Opens when at least this share of the window failed …
    pub failure_ratio: f64,
    /// … and the window has at least this many attempts.
    pub min_attempts: u32,
    /// How far back the window reaches.
    pub window: Millis,
    /// Opens after this many failures in a row, of at least two deliveries.
    pub consecutive_failures: u32,
    /// How long it stays open at first.
    pub open: Millis,
    /// How long at most, after doubling.
    pub max_open: Millis,
    /// Probes in a row that must succeed to close it.
    pub successes_to_close: u32,
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            failure_ratio: 0.5,
            min_attempts: 10,
            window: Millis::seconds(60),
            consecutive_failures: 5,
            open: Millis::seconds(30),
            max_open: Millis::minutes(10),
            successes_to_close: 2,
        }
    }
}

impl BreakerPolicy {
    /// The same policy, if every number makes sense.
    pub fn validated(self) -> Result<Self, Invalid> {
        if !(self.failure_ratio > 0.0 && self.failure_ratio <= 1.0) {
            return Err(Invalid::new("failure_ratio", self.failure_ratio, "above 0, up to 1"));
        }
        check_range("min_attempts", self.min_attempts, 1, 10_000)?;
        check_range("window_seconds", self.window.get() / 1_000, 1, 3_600)?;
        check_range("consecutive_failures", self.consecutive_failures, 1, 1_000)?;
        check_range("open_seconds", self.open.get() / 1_000, 1, 86_400)?;
        check_range("max_open_seconds", self.max_open.get() / 1_000, self.open.get() / 1_000, 86_400)?;
        check_range("successes_to_close", self.successes_to_close, 1, 100)?;
        Ok(self)
    }
}

/// The breaker of one destination.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Breaker {
    phase: Phase,
    generation: u32,
}

#[derive(Clone, Debug, PartialEq)]
enum Phase {
    Closed { window: Window, run: FailureRun },
    Open { since: Timestamp, until: Timestamp, trips: u32, successes: u32, probe_out: bool },
}

impl Default for Phase {
    fn default() -> Self {
        Self::Closed { window: Window::default(), run: FailureRun::default() }
    }
}

/// What the breaker says about a start now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerGate {
    /// Nothing: the circuit is closed.
    Closed,
    /// Half-open: only as the one probe.
    ForProbe,
    /// Open until then.
    OpenUntil(Timestamp),
    /// Half-open, and the probe is out; its answer decides.
    AwaitsProbe,
}

/// What a result did to the breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerChange {
    /// It opened, or opened again, until then.
    Opened {
        /// When the next probe may go.
        until: Timestamp,
    },
    /// It closed.
    Closed,
}

impl Breaker {
    /// May an attempt start at `now`?
    pub fn gate(&self, now: Timestamp) -> BreakerGate {
        match self.phase {
            Phase::Closed { .. } => BreakerGate::Closed,
            Phase::Open { until, .. } if now < until => BreakerGate::OpenUntil(until),
            Phase::Open { probe_out: true, .. } => BreakerGate::AwaitsProbe,
            Phase::Open { probe_out: false, .. } => BreakerGate::ForProbe,
        }
    }
    /// From when to when it is open, unless it is closed.
    pub const fn open(&self) -> Option<(Timestamp, Timestamp)> {
        match self.phase {
            Phase::Closed { .. } => None,
            Phase::Open { since, until, .. } => Some((since, until)),
        }
    }
    /// The generation that an attempt starting now belongs to.
    pub const fn generation(&self) -> u32 {
        self.generation
    }
    /// The wall clock was set by `by`: what is left of the wait stays the same.
    pub fn shift(&mut self, by: Millis) {
        if let Phase::Open { since, until, .. } = &mut self.phase {
            (*since, *until) = (*since + by, *until + by);
        }
    }
    /// The probe has started.
    pub const fn probe_started(&mut self) {
        if let Phase::Open { probe_out, .. } = &mut self.phase {
            *probe_out = true;
        }
    }
    /// A person says: try now. What was open is half-open at once.
    pub const fn retry_now(&mut self, now: Timestamp) {
        if let Phase::Open { until, probe_out, .. } = &mut self.phase {
            *until = now;
            *probe_out = false;
        }
    }
    /// It was switched off: whatever was open is closed.
    pub fn switch_off(&mut self) {
        if matches!(self.phase, Phase::Open { .. }) {
            self.phase = Phase::default();
            self.generation = self.generation.wrapping_add(1);
        }
    }
    /// The process is a new one: no attempt of the last one comes back, and the clock that the window was counted on is
    /// gone.
    pub fn restarted(&mut self) {
        self.generation = 0;
        match &mut self.phase {
            Phase::Open { probe_out, .. } => *probe_out = false,
            Phase::Closed { window, .. } => *window = Window::default(),
        }
    }

    /// An attempt of `generation` for `delivery` ended at `now` with `bearing`.
    pub fn observe(
        &mut self,
        policy: &BreakerPolicy,
        now: Now,
        generation: u32,
        delivery: DeliveryId,
        bearing: Bearing,
    ) -> Option<BreakerChange> {
        if generation != self.generation {
            return None;
        }
        let change = match &mut self.phase {
            Phase::Closed { window, run } => {
                if bearing == Bearing::Neutral || !policy.enabled {
                    return None;
                }
                window.record(policy, now.mono, bearing);
                run.record(delivery, bearing);
                let tripped = || window.tripped(policy, now.mono) || run.tripped(policy);
                (bearing == Bearing::Failure && tripped()).then(|| open(policy, now.wall, 1))
            }
            Phase::Open { trips, successes, probe_out, .. } => {
                *probe_out = false;
                match bearing {
                    Bearing::Neutral => None,
                    Bearing::Failure => Some(open(policy, now.wall, trips.saturating_add(1))),
                    Bearing::Success => {
                        *successes += 1;
                        (*successes >= policy.successes_to_close)
                            .then(|| (Phase::default(), BreakerChange::Closed))
                    }
                }
            }
        };
        change.map(|(phase, change)| {
            self.phase = phase;
            self.generation = self.generation.wrapping_add(1);
            change
        })
    }
}

/// Up to a tenth of the pause, by the moment at which it begins. A destination that comes and goes with a period that divides
/// the pauses would meet every probe in the same phase, and never be seen while it is up.
fn out_of_step(now: Timestamp, pause: Millis) -> Millis {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    let thousandths = (now.as_millis().cast_unsigned().wrapping_mul(GOLDEN) >> 32) % 101;
    pause.scaled(i64::try_from(thousandths).unwrap_or(0), 1_000)
}

/// Open for the `trips`-th time in a row.
fn open(policy: &BreakerPolicy, now: Timestamp, trips: u32) -> (Phase, BreakerChange) {
    let doubled = policy.open.scaled(1 << (trips - 1).min(30), 1);
    let pause = doubled.min(policy.max_open);
    let until = now + pause + if trips > 1 { out_of_step(now, pause) } else { Millis::ZERO };
    (
        Phase::Open { since: now, until, trips, successes: 0, probe_out: false },
        BreakerChange::Opened { until },
    )
}

/// Successes and failures of the last while, in six slices: the oldest slice leaves as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Window {
    slices: [Slice; Window::SLICES],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Slice {
    number: i64,
    successes: u32,
    failures: u32,
}

impl Window {
    const SLICES: usize = 6;

    fn number(policy: &BreakerPolicy, now: Mono) -> i64 {
        now.as_millis().div_euclid((policy.window.get() / 6).max(1))
    }
    fn record(&mut self, policy: &BreakerPolicy, now: Mono, bearing: Bearing) {
        let number = Self::number(policy, now);
        let place = usize::try_from(number.rem_euclid(6)).expect("0 to 5");
        let slice = &mut self.slices[place];
        if slice.number != number {
            *slice = Slice { number, ..Slice::default() };
        }
        let count = if bearing == Bearing::Success { &mut slice.successes } else { &mut slice.failures };
        *count = count.saturating_add(1);
    }
    fn tripped(&self, policy: &BreakerPolicy, now: Mono) -> bool {
        let newest = Self::number(policy, now);
        let (successes, failures) = (self.slices.iter())
            .filter(|slice| slice.number > newest - 6 && slice.number <= newest)
            .fold((0_u64, 0_u64), |(s, f), slice| {
                (s + u64::from(slice.successes), f + u64::from(slice.failures))
            });
        let all = successes + failures;
        all >= u64::from(policy.min_attempts) && failures as f64 >= policy.failure_ratio * all as f64
    }
}

/// Failures without a success in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct FailureRun {
    length: u32,
    first: Option<DeliveryId>,
    several: bool,
}

impl FailureRun {
    fn record(&mut self, delivery: DeliveryId, bearing: Bearing) {
        if bearing == Bearing::Success {
            *self = Self::default();
            return;
        }
        self.length = self.length.saturating_add(1);
        self.several |= *self.first.get_or_insert(delivery) != delivery;
    }
    /// One delivery that always fails may be at fault itself, so two are needed.
    const fn tripped(&self, policy: &BreakerPolicy) -> bool {
        self.several && self.length >= policy.consecutive_failures
    }
}

#[cfg(test)]
#[path = "breaker/tests.rs"]
mod tests;
