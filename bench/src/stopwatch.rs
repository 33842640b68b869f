//! The one place in the benchmarks that reads a clock.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// How often `act` can be done in a second: the best of five stretches, since others use this machine too.
pub(crate) fn per_second(mut act: impl FnMut()) -> f64 {
    const STRETCH: Duration = Duration::from_millis(300);
    const BATCH: u32 = 1_000;
    (0..5)
        .map(|_| {
            let began = now();
            let mut done = 0_u32;
            while began.elapsed() < STRETCH {
                (0..BATCH).for_each(|_| act());
                done += BATCH;
            }
            f64::from(done) / began.elapsed().as_secs_f64()
        })
        .fold(0.0, f64::max)
}

/// How long `act` takes, in seconds, and what it returns.
pub(crate) fn seconds<T>(act: impl FnOnce() -> T) -> (f64, T) {
    let began = now();
    let result = act();
    (began.elapsed().as_secs_f64(), result)
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Nanoseconds on a clock that all processes of this machine share and nobody sets.
pub(crate) fn shared_nanos() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u64::try_from(time.tv_nsec));
    seconds.unwrap_or(0) * 1_000_000_000 + nanos.unwrap_or(0)
}

/// Wall time, for what is told to the server as a date.
#[expect(clippy::disallowed_methods, reason = "the server under test lives in real time")]
pub(crate) fn wall() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// The value below which this share of the samples lies. They need not be sorted.
pub(crate) fn quantile(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    if samples.is_empty() {
        return f64::NAN;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an index between 0 and the length"
    )]
    let index = (share * samples.len() as f64).ceil() as usize;
    samples[index.clamp(1, samples.len()) - 1]
}

/// The middle one.
pub(crate) fn median(samples: &mut [f64]) -> f64 {
    quantile(samples, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_samples() {
        let mut samples: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(quantile(&mut samples, 0.99), 99.0);
        assert_eq!(median(&mut samples), 50.0);
        assert_eq!(median(&mut [5.0, 1.0, 3.0]), 3.0);
        assert!(median(&mut []).is_nan());
    }
}
