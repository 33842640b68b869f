//! The clocks of a run: one that all recorders share, and the one on the wall.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds on the monotonic clock of this machine, which producers, receivers and faults share.
pub(crate) fn nanos() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// What is to be added to [`nanos`] for the nanoseconds of the wall clock. Of several readings the one that was least interrupted.
pub(crate) fn nanos_to_wall() -> i128 {
    let read = |_| {
        let (before, at, after) = (nanos(), wall().as_nanosecond(), nanos());
        (after - before, at - i128::from(before.midpoint(after)))
    };
    (0..9).map(read).min().map_or(0, |(_, offset)| offset)
}

/// Unix milliseconds.
pub(crate) fn wall_ms() -> i64 {
    wall().as_millisecond()
}

/// The time by which a server measures, unless its clock is faked.
#[expect(clippy::disallowed_methods, reason = "what is broken here runs on the real clock")]
pub(crate) fn wall() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// The time by which bounds are measured.
#[expect(clippy::disallowed_methods, reason = "what is broken here runs on the real clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// So many seconds.
pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// So many milliseconds.
pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Lets some time pass: a part of a fault, or the pause between two looks.
pub(crate) async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Looks again and again until a condition holds. Says whether it came true within the bound.
pub(crate) async fn until(bound: Duration, mut condition: impl AsyncFnMut() -> bool) -> bool {
    let began = now();
    loop {
        if condition().await {
            return true;
        }
        if began.elapsed() > bound {
            return false;
        }
        pass(millis(10)).await;
    }
}
