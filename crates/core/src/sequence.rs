//! The sequence of acceptance: a number for each event and delivery, growing, and unique in the store.
//!
//! It is the millisecond of acceptance with room for a million numbers within it. So it grows with the clock, keeps
//! growing while the clock is set back, says nothing about how much others send, and the id of an event holds it.

use crate::time::Timestamp;

/// Numbers within one millisecond.
const WITHIN_BITS: u32 = 20;

/// A number in the sequence of acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sequence(u64);

impl Sequence {
    /// A number that was stored. Those above what fits into a signed column are never given out.
    pub const fn from_stored(number: u64) -> Self {
        Self(number)
    }
    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The first number of a millisecond: everything accepted before it has a lower one.
    pub fn at(time: Timestamp) -> Self {
        Self(u64::try_from(time.as_millis()).unwrap_or(0) << WITHIN_BITS)
    }
    /// The first of `count` numbers in a row, after `self`, for an acceptance at `now`; and the last of them.
    #[must_use]
    pub fn next(self, now: Timestamp, count: u64) -> (Self, Self) {
        let first = Self::at(now).0.max(self.0 + 1);
        (Self(first), Self(first + count.max(1) - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Draw;
    use crate::id::EventId;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_grow_whatever_the_clock_does(clock in prop::collection::vec((0..1_u64 << 42, 1..2_000_u64), 1..50)) {
            let mut last = Sequence::default();
            for (ms, count) in clock {
                let now = Timestamp::from_millis(i64::try_from(ms).unwrap());
                let (first, end) = last.next(now, count);
                prop_assert!(first > last && end.get() - first.get() == count - 1);
                last = end;
            }
        }

        #[test]
        fn an_id_holds_its_number(number in 0..1_u64 << 63, chance: u64) {
            let sequence = Sequence::from_stored(number);
            let id = EventId::numbered(sequence, Draw(chance));
            prop_assert_eq!(id.sequence(), sequence);
            prop_assert_eq!(EventId::from_parts(id.sequence(), id.salt()), id);
            prop_assert_eq!(EventId::parse(&id.to_string()), Ok(id));
        }
    }

    #[test]
    fn an_id_shows_when_it_was_made() {
        let at = Timestamp::from_millis(1_790_000_000_123);
        let id = EventId::numbered(Sequence::default().next(at, 1).0, Draw(7));
        assert_eq!(id.made_at(), at);
    }
}
