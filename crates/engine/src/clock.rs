//! The one place that reads the clocks.
//!
//! The nodes of a cluster go by the database's clock. A look at it says where it stood at some moment between question and
//! answer, so a node knows the time only within bounds: each look narrows them, and time widens them, as clocks drift.
//! A node numbers what it accepts by the latest time that it may be, and answers when even the earliest is past that. So over
//! all nodes numbers are in the order of acceptance, however wrong their own clocks are.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime};

use tidegate_core::time::{Mono, Now, Timestamp};
use tidegate_store::cluster::ClockLook;

/// Two clocks drift apart by at most one part in this many.
const DRIFT: i64 = 2_000;

/// The wall clock of this machine, or that of the database, and a monotonic one that starts with the process.
#[derive(Debug)]
pub struct Clock {
    start: Instant,
    /// The database's clock is followed.
    follows: AtomicBool,
    /// Where it was when the monotonic one began, most likely, in microseconds.
    base: AtomicI64,
    bounds: Mutex<Option<Bounds>>,
}

/// Between which times the database's clock was when the monotonic one began, as far as was known at a moment; all in
/// microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    earliest: i64,
    latest: i64,
    at: i64,
}

impl Bounds {
    /// What a look says: the database's clock stood at `micros` at some moment between `sent` and `received`.
    pub const fn seen(micros: i64, sent: i64, received: i64) -> Self {
        Self { earliest: micros - received, latest: micros + 1 - sent, at: received }
    }
    /// Where it was, most likely.
    pub const fn middle(self) -> i64 {
        i64::midpoint(self.earliest, self.latest)
    }
    /// The earliest and the latest time that it may be at a moment.
    pub fn between(self, at: i64) -> (Timestamp, Timestamp) {
        let Self { earliest, latest, .. } = self.at(at);
        let wall = |base: i64| Timestamp::from_millis(base.saturating_add(at).div_euclid(1_000));
        (wall(earliest), wall(latest))
    }
    /// The same at a later moment.
    fn at(self, at: i64) -> Self {
        let apart = at.saturating_sub(self.at).max(0) / DRIFT + 1;
        Self { earliest: self.earliest - apart, latest: self.latest + apart, at }
    }

    /// What both say. If they disagree, the clock was set, and the new one is right.
    #[must_use]
    pub fn narrowed(self, new: Self) -> Self {
        let old = self.at(new.at);
        let (earliest, latest) = (old.earliest.max(new.earliest), old.latest.min(new.latest));
        if earliest <= latest { Self { earliest, latest, at: new.at } } else { new }
    }
}

impl Clock {
    /// A clock whose monotonic part begins now.
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            follows: AtomicBool::new(false),
            base: AtomicI64::new(0),
            bounds: Mutex::new(None),
        }
    }

    /// Both clocks, read one after the other.
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    pub fn now(&self) -> Now {
        let elapsed = self.elapsed(Instant::now());
        let wall = if self.follows.load(Relaxed) {
            self.base.load(Relaxed).saturating_add(elapsed).div_euclid(1_000)
        } else {
            match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
                Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
                Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
            }
        };
        Now { wall: Timestamp::from_millis(wall), mono: Mono::from_millis(elapsed / 1_000) }
    }
    /// The monotonic clock alone.
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    pub fn mono(&self) -> Mono {
        Mono::from_millis(self.elapsed(Instant::now()) / 1_000)
    }

    /// The earliest and the latest time that it may be. The same where no other clock is followed.
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    pub fn between(&self) -> (Timestamp, Timestamp) {
        let known = || *self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bounds) = self.follows.load(Relaxed).then(known).flatten() else {
            let now = self.now().wall;
            return (now, now);
        };
        bounds.between(self.elapsed(Instant::now()))
    }

    /// From now on the database's clock is the wall clock, as all nodes of a cluster have it.
    pub fn follow(&self, look: &ClockLook) {
        let (sent, received) = (self.elapsed(look.sent), self.elapsed(look.received));
        let seen = Bounds::seen(look.micros, sent, received);
        let mut bounds = self.bounds.lock().unwrap_or_else(PoisonError::into_inner);
        let known = bounds.map_or(seen, |known| known.narrowed(seen));
        *bounds = Some(known);
        self.base.store(known.middle(), Relaxed);
        self.follows.store(true, Relaxed);
    }

    fn elapsed(&self, at: Instant) -> i64 {
        i64::try_from(at.saturating_duration_since(self.start).as_micros()).unwrap_or(i64::MAX)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    #[test]
    fn a_clock_that_was_set_is_believed() {
        let clock = Clock::new();
        let look = |micros: i64, sent: u64, received: u64| ClockLook {
            micros,
            sent: clock.start + Duration::from_micros(sent),
            received: clock.start + Duration::from_micros(received),
        };
        clock.follow(&look(1_000_000_000_000, 0, 10));
        clock.follow(&look(1_003_600_000_000, 20, 30));
        let bounds = clock.bounds.lock().unwrap().unwrap();
        assert_eq!((bounds.earliest, bounds.latest), (1_003_599_999_970, 1_003_599_999_981));
    }

    proptest! {
        /// Whatever looks come, slow or quick, the true time is between the two, and no look makes it less certain than it
        /// is by itself.
        #[test]
        fn the_true_time_is_always_between(
            looks in prop::collection::vec((1..3_000_000_i64, 0..400_000_i64, 0..400_000_i64), 1..40),
            per_million in -499..499_i64,
        ) {
            let true_base = 1_790_000_000_000_000;
            let database = |elapsed: i64| true_base + elapsed + elapsed * per_million / 1_000_000;
            let (mut known, mut elapsed) = (None::<Bounds>, 0);
            for (pause, there, back) in looks {
                let sent = elapsed + pause;
                let received = sent + there + back;
                let micros = database(sent + there);
                let seen = Bounds::seen(micros, sent, received);
                let now = known.map_or(seen, |known| known.narrowed(seen));
                let truth = database(received) - received;
                prop_assert!(now.earliest <= truth + 1_000 && truth <= now.latest + 1_000);
                prop_assert!(now.latest - now.earliest <= seen.latest - seen.earliest);
                let later = now.at(received + 1_000_000);
                let truth = database(received + 1_000_000) - received - 1_000_000;
                prop_assert!(later.earliest <= truth + 1_000 && truth <= later.latest + 1_000);
                (known, elapsed) = (Some(now), received);
            }
        }
    }
}
