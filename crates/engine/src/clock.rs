//! The one place that reads the clocks.

use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Instant, SystemTime};

use tidegate_core::time::{Millis, Mono, Now, Timestamp};

/// No other clock is followed.
const OWN: i64 = i64::MIN;
/// A look at the database's clock that takes longer says too little.
const LONGEST_LOOK: Millis = Millis::new(500);

/// The wall clock of this machine, or that of the database, and a monotonic one that starts with the process.
#[derive(Debug)]
pub struct Clock {
    start: Instant,
    /// Where the database's clock was when the monotonic one began, in microseconds.
    base: AtomicI64,
}

impl Clock {
    /// A clock whose monotonic part begins now.
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    pub fn new() -> Self {
        Self { start: Instant::now(), base: AtomicI64::new(OWN) }
    }

    /// Both clocks, read one after the other.
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    pub fn now(&self) -> Now {
        let elapsed = i64::try_from(self.start.elapsed().as_micros()).unwrap_or(i64::MAX);
        let wall = match self.base.load(Relaxed) {
            OWN => match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
                Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
                Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
            },
            base => base.saturating_add(elapsed).div_euclid(1_000),
        };
        Now { wall: Timestamp::from_millis(wall), mono: Mono::from_millis(elapsed / 1_000) }
    }

    /// The database's clock stood at `micros` at some moment between `sent` and `received`: from now on, that is the wall
    /// clock, as all nodes of a cluster have it.
    /// Who was frozen between the two would be wrong by half of that time, so such a measurement is used only if there is none
    /// yet.
    pub fn follow(&self, micros: i64, sent: Mono, received: Mono) {
        if received.since(sent) > LONGEST_LOOK && self.base.load(Relaxed) != OWN {
            return;
        }
        let middle = (sent.as_millis() + received.as_millis()).saturating_mul(500);
        self.base.store(micros.saturating_sub(middle), Relaxed);
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
