//! How much a destination takes in: it answers at once and works later, and there is only so much room for what waits.

use tidegate_core::time::{Millis, Timestamp};

/// A queue with room for so many requests, worked off at a steady rate. A request that finds no room is answered 503.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    per_minute: i64,
    room: i64,
    /// What waits, in [`REQUEST`]s.
    level: i64,
    at: Timestamp,
    /// How many requests it had no room for.
    pub refused: u64,
}

/// A request in the unit of the level: a minute's milliseconds, so that each millisecond works off `per_minute`.
const REQUEST: i64 = Millis::minutes(1).get();

impl Buffer {
    /// Works off `per_minute` and has room for `room`.
    pub const fn new(per_minute: u32, room: u32) -> Self {
        Self { per_minute: per_minute as i64, room: room as i64, level: 0, at: Timestamp::MIN, refused: 0 }
    }

    /// A request comes at `now`: is there room for it?
    pub(super) fn takes(&mut self, now: Timestamp) -> bool {
        let worked = (now - self.at).get().max(0).saturating_mul(self.per_minute);
        self.level = self.level.saturating_sub(worked).max(0);
        self.at = self.at.max(now);
        let fits = self.level + REQUEST <= self.room * REQUEST;
        if fits {
            self.level += REQUEST;
        } else {
            self.refused += 1;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_refused_and_room_comes_back_with_time() {
        let mut buffer = Buffer::new(60, 3);
        let mut at = |ms| buffer.takes(Timestamp::from_millis(ms));
        assert_eq!([at(0), at(0), at(0), at(0)], [true, true, true, false]);
        assert_eq!([at(999), at(1_000), at(1_000), at(3_000), at(3_000)], [false, true, false, true, true]);
        assert_eq!(buffer.refused, 3);
    }
}
