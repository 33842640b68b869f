//! What became of the latest attempts: a window for spikes, and a tally to judge a step by.

use super::params::TimeoutParams;

/// The most recent attempts, newest in the lowest bit, a timeout being a one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Recent {
    timed_out: u64,
    attempts: u32,
}

impl Recent {
    pub(super) fn push(&mut self, timed_out: bool) {
        self.timed_out = self.timed_out << 1 | u64::from(timed_out);
        self.attempts = (self.attempts + 1).min(u64::BITS);
    }

    /// Whether too large a share of them timed out.
    pub(super) fn spikes(self, params: &TimeoutParams) -> bool {
        let timeouts = u64::from(self.timed_out.count_ones());
        self.attempts >= params.spike_min_attempts
            && timeouts * 1_000 > u64::from(params.spike_permille) * u64::from(self.attempts)
    }
}

/// How many attempts there were under one timeout, and how many of them it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All attempts.
    pub attempts: u32,
    /// Those that timed out.
    pub timeouts: u32,
}

impl Tally {
    pub(super) fn count(&mut self, timed_out: bool) {
        // Both stop together, so that the share stays what it was.
        if self.attempts < u32::MAX {
            self.attempts += 1;
            self.timeouts = self.timeouts.saturating_add(timed_out.into());
        }
    }

    /// Whether the share of timeouts is higher than `before`, by more than chance explains.
    ///
    /// If nothing had changed, each of all the timeouts would have fallen into this tally with the probability
    /// `n / (n + n₀)`. Their number here is compared with that binomial's mean and deviation; brought to one
    /// denominator, `k` of `n` now against `k₀` of `n₀` before is a rise when `(k·n₀ − k₀·n)² > z²·(k + k₀)·n·n₀`.
    /// For tiny numbers the comparison is too eager, hence the least number of timeouts.
    ///
    /// It is asked with each timeout of a step's week, so chance gets many tries: on a busy destination with timeouts
    /// all along, up to seven in a hundred harmless steps are taken back; on one without, hardly any. That costs a
    /// week of a longer timeout; a stricter test would cost deliveries.
    pub fn rose_since(self, before: Self, params: &TimeoutParams) -> bool {
        let [k, n, k0, n0] = [self.timeouts, self.attempts, before.timeouts, before.attempts].map(u128::from);
        let (now, then) = (k * n0, k0 * n);
        let deviations = u128::from(params.rise_deviations.min(1_000));
        self.timeouts >= params.min_timeouts
            && now > then
            && (now - then).pow(2) > deviations.pow(2) * (k + k0) * n * n0
    }
}
