//! The one place that reads the clocks.

use std::time::{Instant, SystemTime};

use tidegate_core::time::{Mono, Now, Timestamp};

/// The wall clock of this machine, and a monotonic one that starts with the process.
#[derive(Clone, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock whose monotonic part begins now.
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }

    /// Both clocks, read one after the other.
    #[expect(clippy::disallowed_methods, reason = "this is the file that reads the clock")]
    pub fn now(&self) -> Now {
        let wall = match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        };
        let mono = i64::try_from(self.start.elapsed().as_millis()).unwrap_or(i64::MAX);
        Now { wall: Timestamp::from_millis(wall), mono: Mono::from_millis(mono) }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}
