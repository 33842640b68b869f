//! The sequence of acceptance: a number for each event and delivery, growing, and unique in the store.
//!
//! It is the millisecond of acceptance and one of a million numbers within it. So it grows with the clock, goes on growing
//! after the clock is set back, and does not show how much others send; an event's id contains it. Where several nodes
//! accept, each has its own share of every millisecond's numbers.

use crate::slots::Seat;
use crate::time::Timestamp;

/// Numbers within one millisecond.
const WITHIN_BITS: u32 = 20;
/// Numbers of a millisecond that one seat has.
const SHARE_BITS: u32 = WITHIN_BITS - Seat::BITS;

/// A number in the sequence of acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sequence(u64);

/// Which numbers of a millisecond one may give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Who accepts alone: all of them, and on into the next millisecond.
    All,
    /// One node of several.
    Of(Seat),
}

impl Share {
    /// How many numbers can be given in a row.
    pub const fn in_a_row(self) -> u64 {
        match self {
            Self::All => u64::MAX >> WITHIN_BITS,
            Self::Of(_) => 1 << SHARE_BITS,
        }
    }
}

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
    /// The millisecond that it belongs to.
    pub fn made_at(self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(self.0 >> WITHIN_BITS).unwrap_or(i64::MAX))
    }
    /// Whose share it belongs to, where several nodes give numbers.
    pub fn seat(self) -> Option<Seat> {
        let within = (self.0 >> SHARE_BITS) & u64::from(Seat::COUNT - 1);
        u8::try_from(within).ok().and_then(Seat::new)
    }
    /// The first of `count` numbers in a row, after `self`, for an acceptance at `now`; and the last of them. `count` is at
    /// most what the share has in a row.
    #[must_use]
    pub fn next(self, now: Timestamp, count: u64, share: Share) -> (Self, Self) {
        let count = count.clamp(1, share.in_a_row());
        let first = match share {
            Share::All => Self::at(now).0.max(self.0 + 1),
            Share::Of(seat) => {
                let begin =
                    |millisecond: u64| (millisecond << WITHIN_BITS) + (u64::from(seat.get()) << SHARE_BITS);
                let this = begin((self.0 >> WITHIN_BITS).max(Self::at(now).0 >> WITHIN_BITS));
                let first = this.max(self.0 + 1);
                if first + count <= this + (1 << SHARE_BITS) {
                    first
                } else {
                    begin((this >> WITHIN_BITS) + 1)
                }
            }
        };
        (Self(first), Self(first + count - 1))
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
                let (first, end) = last.next(now, count, Share::All);
                prop_assert!(first > last && end.get() - first.get() == count - 1);
                last = end;
            }
        }

        #[test]
        fn nodes_never_give_the_same_number(
            clock in prop::collection::vec((0..40_u64, 0..4_u8, 1..40_000_u64), 1..60),
        ) {
            let mut last = [Sequence::default(); 4];
            let mut given: Vec<(u64, u64)> = Vec::new();
            for (ms, seat, count) in clock {
                let share = Share::Of(Seat::new(seat).unwrap());
                let now = Timestamp::from_millis(1_790_000_000_000 + i64::try_from(ms).unwrap());
                let (first, end) = last[usize::from(seat)].next(now, count, share);
                prop_assert!(first > last[usize::from(seat)] && first.made_at() == end.made_at());
                prop_assert_eq!((first.seat(), end.seat()), (Seat::new(seat), Seat::new(seat)));
                prop_assert_eq!(end.get() - first.get() + 1, count.min(share.in_a_row()));
                prop_assert!(given.iter().all(|(a, b)| end.get() < *a || first.get() > *b));
                given.push((first.get(), end.get()));
                last[usize::from(seat)] = end;
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
        let id = EventId::numbered(Sequence::default().next(at, 1, Share::All).0, Draw(7));
        assert_eq!(id.made_at(), at);
    }
}
