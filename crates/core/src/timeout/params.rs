//! The policy for a destination's timeout, and the numbers behind the adaptive one.

use crate::invalid::{Invalid, check_range};
use crate::time::Millis;

/// Which timeout a destination gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeoutMode {
    /// Learned from its answers; starts from the default.
    #[default]
    Adaptive,
    /// Always the default. Samples are still collected, for the report.
    Default,
    /// Pinned by a person: nothing ever touches it.
    Manual(Millis),
}

impl TimeoutMode {
    /// Pins the timeout: `timeout_seconds` of the API, 1 to 120.
    pub fn pinned(timeout_seconds: i64) -> Result<Self, Invalid> {
        check_range("timeout_seconds", timeout_seconds, 1, 120).map(|s| Self::Manual(Millis::seconds(s)))
    }
}

/// The numbers of the adaptive timeout. Every one is configurable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeoutParams {
    /// The timeout of a destination that has taught nothing yet: 10 s.
    pub default: Millis,
    /// The shortest timeout that is ever learned: 1 s.
    pub min: Millis,
    /// The longest timeout that is ever learned, and what the breaker's probe gets: 30 s.
    pub max: Millis,
    /// The percentile that the timeout is made from, in ten-thousandths: 9,900.
    pub percentile_permyriad: u32,
    /// What the percentile is multiplied with, in thousandths: 1,500.
    pub multiplier_permille: u32,
    /// What is added to that: 500 ms.
    pub buffer: Millis,
    /// The percentile covers this many whole days and the current one: 7.
    pub window_days: u16,
    /// How often the timeout is computed: every 24 h.
    pub recompute_every: Millis,
    /// Without a sample for this long, what was learned is forgotten: 7 days.
    pub stale_after: Millis,
    /// Fewer samples than this shorten nothing: 100.
    pub min_samples: u64,
    /// Nothing is shortened before the first sample is this old: 24 h.
    pub min_age: Millis,
    /// What a step leaves of the timeout at least, in thousandths: 750.
    pub shrink_permille: u32,
    /// From one step to the next, and from a growth to the next step: 7 days.
    pub step_every: Millis,
    /// What the timeout is multiplied with when too many attempts time out, in thousandths: 1,500.
    pub growth_permille: u32,
    /// More timeouts than this among the most recent attempts are a spike, in thousandths: 50.
    pub spike_permille: u32,
    /// How many attempts it takes to see a spike: 20. At most 64 are looked at.
    pub spike_min_attempts: u32,
    /// Fewer timeouts than this prove neither that a step went wrong nor that the percentile timed out: 3.
    pub min_timeouts: u32,
    /// By how many standard deviations the share of timeouts must rise for a step to be taken back: 3.
    pub rise_deviations: u32,
    /// How many failures in a row are held back until the breaker has judged them: 64. More count one by one.
    pub incident_limit: u32,
}

impl Default for TimeoutParams {
    fn default() -> Self {
        Self {
            default: Millis::seconds(10),
            min: Millis::seconds(1),
            max: Millis::seconds(30),
            percentile_permyriad: 9_900,
            multiplier_permille: 1_500,
            buffer: Millis::new(500),
            window_days: 7,
            recompute_every: Millis::hours(24),
            stale_after: Millis::days(7),
            min_samples: 100,
            min_age: Millis::hours(24),
            shrink_permille: 750,
            step_every: Millis::days(7),
            growth_permille: 1_500,
            spike_permille: 50,
            spike_min_attempts: 20,
            min_timeouts: 3,
            rise_deviations: 3,
            incident_limit: 64,
        }
    }
}

impl TimeoutParams {
    /// All that is wrong with these numbers. With wrong ones the timeout is useless, but nothing breaks.
    pub fn faults(&self) -> Vec<Invalid> {
        let time = |field: &str, value: Millis, least: Millis, most: Millis| {
            let allowed = || format!("{least} to {most}");
            (value < least || value > most).then(|| Invalid::new(field, value, allowed()))
        };
        let number =
            |field: &str, value: u32, least: u32, most: u32| check_range(field, value, least, most).err();
        let (ms, minute, hour, year) =
            (Millis::new(1), Millis::minutes(1), Millis::hours(1), Millis::days(365));
        [
            time("min", self.min, ms, Millis::minutes(2)),
            time("max", self.max, self.min.max(ms), Millis::minutes(2)),
            time("default", self.default, self.min, self.max),
            number("percentile_permyriad", self.percentile_permyriad, 5_000, 9_999),
            number("multiplier_permille", self.multiplier_permille, 1_000, 10_000),
            time("buffer", self.buffer, Millis::ZERO, minute),
            number("window_days", self.window_days.into(), 1, 30),
            time("recompute_every", self.recompute_every, hour, Millis::days(7)),
            time("stale_after", self.stale_after, hour, year),
            check_range("min_samples", self.min_samples, 1, 1_000_000).err(),
            time("min_age", self.min_age, Millis::ZERO, year),
            number("shrink_permille", self.shrink_permille, 100, 999),
            time("step_every", self.step_every, hour, year),
            number("growth_permille", self.growth_permille, 1_001, 10_000),
            number("spike_permille", self.spike_permille, 1, 1_000),
            number("spike_min_attempts", self.spike_min_attempts, 1, 64),
            number("min_timeouts", self.min_timeouts, 1, 1_000),
            number("rise_deviations", self.rise_deviations, 1, 100),
            number("incident_limit", self.incident_limit, 1, 1_000),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// `timeout`, held within [`min`](Self::min) and [`max`](Self::max).
    pub(super) fn bounded(&self, timeout: Millis) -> Millis {
        timeout.max(self.min).min(self.max)
    }
    /// The timeout for a destination that answers within `percentile`.
    pub(super) fn computed(&self, percentile: Millis) -> Millis {
        self.bounded(percentile.scaled(self.multiplier_permille.into(), 1_000) + self.buffer)
    }
    /// The next longer timeout.
    pub(super) fn grown(&self, timeout: Millis) -> Millis {
        self.bounded(timeout.scaled(self.growth_permille.into(), 1_000))
    }
    /// The shortest timeout that one step may lead to.
    pub(super) fn shrunk(&self, timeout: Millis) -> Millis {
        self.bounded(timeout.scaled(self.shrink_permille.into(), 1_000))
    }
}
