//! The one place in the benchmarks that reads a clock.

use std::time::{Duration, Instant};

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
fn now() -> Instant {
    Instant::now()
}
