//! Ids: a prefix that says what they name, and 128 bits as 26 characters of Crockford base32, e.g.
//! `evt_01KPXTQ4Z0E9GZ3V8QH5X7N2RD`.
//!
//! The upper 48 bits are the millisecond at which the id was made, the lower 80 are random. So ids sort by time, as
//! bits and as text alike, and an index on them grows at its end. Within one millisecond their order is chance: what
//! must be in order has a sequence of its own. The type carries the kind, so that an event's id never stands where a
//! delivery's should.
//!
//! Events and deliveries are found by number: the upper 68 bits of their ids are their [`Sequence`], so that no index on
//! ids is needed; the lower 60 are chance, stored beside the number, so that an id cannot be guessed.
//!
//! Clock and dice are handed in. How an id is bound in SQL or written in JSON is left to those who do it.

use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;

use crate::draw::Draw;
use crate::invalid::Invalid;
use crate::sequence::Sequence;
use crate::time::Timestamp;

/// The digits in ascending ASCII order, so that text sorts as the bits do. I, L, O and U are left out.
const DIGITS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// 26 digits of 5 bits hold 130, of which the first two are always zero: the first digit is at most 7.
const LENGTH: u32 = 26;
const RANDOM_BITS: u32 = 80;
/// Below the sequence of a numbered id.
const SALT_BITS: u32 = 60;

/// What an id names.
pub trait Kind: Copy + Ord + Hash {
    /// How its ids begin, underscore included.
    const PREFIX: &'static str;
    /// What a field that holds such an id is called, for the error text.
    const FIELD: &'static str;
}

/// The name of one thing of kind `K`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id<K: Kind> {
    bits: u128,
    kind: PhantomData<K>,
}

impl<K: Kind> Id<K> {
    /// A new id. Whatever was made before 1970 sorts as if made when 1970 began.
    pub fn new(at: Timestamp, (first, second): (Draw, Draw)) -> Self {
        // `Timestamp::MAX` fits into 48 bits, so nothing is lost at the top.
        let ms = u128::try_from(at.as_millis()).unwrap_or(0);
        let chance = u128::from(first.0) << 16 | u128::from(second.0 >> 48);
        Self::from_bits(ms << RANDOM_BITS | chance)
    }
    /// The id with these bits; every value is one.
    pub const fn from_bits(bits: u128) -> Self {
        Self { bits, kind: PhantomData }
    }
    /// The id of the thing with this number; 60 bits of chance make it impossible to guess.
    pub const fn numbered(sequence: Sequence, draw: Draw) -> Self {
        Self::from_bits((sequence.get() as u128) << SALT_BITS | (draw.0 >> (64 - SALT_BITS)) as u128)
    }
    /// The number in it, where it was made with one.
    pub fn sequence(self) -> Sequence {
        Sequence::from_stored(u64::try_from(self.bits >> SALT_BITS).unwrap_or(u64::MAX))
    }
    /// The chance in it.
    pub const fn salt(self) -> u64 {
        #[expect(clippy::cast_possible_truncation, reason = "the lower 60 bits are meant")]
        let low = self.bits as u64;
        low & ((1 << SALT_BITS) - 1)
    }
    /// The id again, from its number and its chance.
    pub const fn from_parts(sequence: Sequence, salt: u64) -> Self {
        Self::from_bits((sequence.get() as u128) << SALT_BITS | (salt & ((1 << SALT_BITS) - 1)) as u128)
    }
    /// All 128 bits, in the order in which ids sort.
    pub const fn to_bits(self) -> u128 {
        self.bits
    }
    /// When it was made, as far as the id knows.
    pub fn made_at(self) -> Timestamp {
        Timestamp::from_millis(i64::try_from(self.bits >> RANDOM_BITS).unwrap_or(i64::MAX))
    }

    /// Reads exactly what [`Display`](fmt::Display) writes, in upper or lower case.
    ///
    /// Crockford's aliases (O for 0, I and L for 1) and hyphens are refused: they serve people who copy by hand, and
    /// here they would give one id several spellings in logs and searches.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        Self::decode(text.as_bytes()).map(Self::from_bits).ok_or_else(|| {
            let digits = "digits and letters without I, L, O and U, the first of them 0 to 7";
            Invalid::new(K::FIELD, text, format!("{} and 26 characters: {digits}", K::PREFIX))
        })
    }

    fn decode(text: &[u8]) -> Option<u128> {
        let (prefix, digits) = text.split_at_checked(K::PREFIX.len())?;
        if !prefix.eq_ignore_ascii_case(K::PREFIX.as_bytes())
            || digits.len() != LENGTH as usize
            || digits[0] > b'7'
        {
            return None;
        }
        digits.iter().try_fold(0, |bits: u128, digit| {
            let value = DIGITS.iter().position(|known| *known == digit.to_ascii_uppercase())?;
            Some(bits << 5 | value as u128)
        })
    }
}

impl<K: Kind> fmt::Display for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; LENGTH as usize];
        for (digit, place) in digits.iter_mut().zip((0..LENGTH).rev()) {
            *digit = DIGITS[((self.bits >> (5 * place)) & 31) as usize];
        }
        f.write_str(K::PREFIX)?;
        f.write_str(str::from_utf8(&digits).unwrap_or_default())
    }
}
impl<K: Kind> fmt::Debug for Id<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $alias:ident = $kind:ident, $prefix:literal, $field:literal;)*) => {
        /// The kinds of ids, used as type parameters only; no value of them exists.
        pub mod kind {
            $($(#[$doc])*
            #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
            pub enum $kind {}
            impl super::Kind for $kind {
                const PREFIX: &'static str = $prefix;
                const FIELD: &'static str = $field;
            })*
        }
        $($(#[$doc])* pub type $alias = Id<kind::$kind>;)*
    };
}

kinds! {
    /// An account.
    AccountId = Account, "acc_", "account_id";
    /// One attempt to send a delivery.
    AttemptId = Attempt, "att_", "attempt_id";
    /// One event on its way to one destination.
    DeliveryId = Delivery, "dlv_", "delivery_id";
    /// A place that deliveries go to.
    DestinationId = Destination, "dst_", "destination_id";
    /// A published or ingested event.
    EventId = Event, "evt_", "event_id";
    /// An API key (its name, not the secret).
    KeyId = Key, "key_", "key_id";
    /// A replay of past deliveries.
    ReplayId = Replay, "rpl_", "replay_id";
    /// A rule that joins a source to a destination.
    RouteId = Route, "rte_", "route_id";
    /// A place that inbound webhooks come from.
    SourceId = Source, "src_", "source_id";
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_id_is_its_prefix_and_a_ulid() {
        // The example of the ULID specification: its time part and its digits.
        let id = EventId::parse("evt_01ARYZ6S41TSV4RRFFQ69G5FAV").unwrap();
        assert_eq!(id.made_at().as_millis(), 1_469_918_176_385);
        assert_eq!(EventId::from_bits(0).to_string(), "evt_00000000000000000000000000");
        assert_eq!(KeyId::from_bits(u128::MAX).to_string(), "key_7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
        assert_eq!(format!("{:?}", RouteId::from_bits(31)), "rte_0000000000000000000000000Z");
    }

    #[test]
    fn every_kind_has_the_prefix_of_the_contract() {
        let prefixes = [
            EventId::from_bits(0).to_string(),
            DeliveryId::from_bits(0).to_string(),
            AttemptId::from_bits(0).to_string(),
            DestinationId::from_bits(0).to_string(),
            SourceId::from_bits(0).to_string(),
            RouteId::from_bits(0).to_string(),
            KeyId::from_bits(0).to_string(),
            AccountId::from_bits(0).to_string(),
            ReplayId::from_bits(0).to_string(),
        ]
        .map(|id| id[..4].to_owned());
        assert_eq!(prefixes, ["evt_", "dlv_", "att_", "dst_", "src_", "rte_", "key_", "acc_", "rpl_"]);
    }

    #[test]
    fn all_80_random_bits_come_from_the_draws() {
        let at = Timestamp::from_millis(5);
        let id = |first, second| EventId::new(at, (Draw(first), Draw(second))).to_bits();
        assert_eq!(id(0, 0), 5 << 80);
        assert_eq!(id(u64::MAX, u64::MAX), (6 << 80) - 1);
        assert_eq!(id(1, 0), 5 << 80 | 1 << 16);
        assert_eq!(id(0, 1 << 48), 5 << 80 | 1);
    }

    #[test]
    fn times_beyond_the_range_end_at_its_edge() {
        let none = (Draw(0), Draw(0));
        assert_eq!(EventId::new(Timestamp::MIN, none).to_bits(), 0);
        assert_eq!(EventId::new(Timestamp::MAX, none).made_at(), Timestamp::MAX);
        assert_eq!(EventId::from_bits(u128::MAX).made_at(), Timestamp::MAX);
    }

    #[test]
    fn what_we_would_not_print_is_refused() {
        for text in [
            "",
            "evt_",
            "evt",
            "01ARYZ6S41TSV4RRFFQ69G5FAV",
            "dlv_01ARYZ6S41TSV4RRFFQ69G5FAV",
            "evt-01ARYZ6S41TSV4RRFFQ69G5FAV",
            "evt_01ARYZ6S41TSV4RRFFQ69G5FA",
            "evt_01ARYZ6S41TSV4RRFFQ69G5FAVV",
            "evt_81ARYZ6S41TSV4RRFFQ69G5FAV",
            "evt_/1ARYZ6S41TSV4RRFFQ69G5FAV",
            "evt_O1ARYZ6S41TSV4RRFFQ69G5FAV",
            "evt_0IARYZ6S41TSV4RRFFQ69G5FAV",
            "evt_0lARYZ6S41TSV4RRFFQ69G5FAV",
            "evt_0UARYZ6S41TSV4RRFFQ69G5FAV",
            "evt_01ARYZ6S41-TSV4RRFFQ69G5FA",
            " evt_01ARYZ6S41TSV4RRFFQ69G5FAV",
            "evt_01ARYZ6S41TSV4RRFFQ69G5FAV ",
            "evé01ARYZ6S41TSV4RRFFQ69G5FAVXX",
            "evt_01ARYZ6S41TSV4RRFFQ69G5é2",
        ] {
            assert!(EventId::parse(text).is_err(), "{text}");
        }
        let fault = EventId::parse("dlv_1").unwrap_err().to_string();
        assert!(fault.starts_with("`event_id` is dlv_1; allowed: evt_ and 26 characters"), "{fault}");
    }

    proptest! {
        #[test]
        fn reading_gives_back_what_was_written(bits: u128) {
            let id = DeliveryId::from_bits(bits);
            let text = id.to_string();
            prop_assert_eq!(text.len(), 30);
            prop_assert_eq!(DeliveryId::parse(&text), Ok(id));
            prop_assert_eq!(DeliveryId::parse(&text.to_lowercase()), Ok(id));
        }

        #[test]
        fn text_sorts_as_the_bits_do(a: u128, b: u128, near in 0..4096u128) {
            for b in [b, a.wrapping_add(near), a ^ (1 << (near % 128))] {
                let (a, b) = (SourceId::from_bits(a), SourceId::from_bits(b));
                prop_assert_eq!(a.to_string().cmp(&b.to_string()), a.to_bits().cmp(&b.to_bits()));
                prop_assert_eq!(a.cmp(&b), a.to_bits().cmp(&b.to_bits()));
            }
        }

        #[test]
        fn a_later_id_sorts_later(ms in 0..253_402_207_200_000i64, later in 1..1_000_000i64, draws: [u64; 4]) {
            let [a, b, c, d] = draws.map(Draw);
            let at = Timestamp::from_millis(ms);
            let first = EventId::new(at, (a, b));
            let second = EventId::new(Timestamp::from_millis(ms + later), (c, d));
            prop_assert_eq!(first.made_at(), at);
            prop_assert!(ms + later > Timestamp::MAX.as_millis() || first < second);
        }

        #[test]
        fn one_id_has_one_spelling(text in "[a-z]{3}_[0-7][0-9A-Za-z]{25}|evt_[0-9][0-9A-TV-Z]{25}|.{0,40}") {
            if let Ok(id) = EventId::parse(&text) {
                prop_assert!(id.to_string().eq_ignore_ascii_case(&text));
            }
        }
    }
}
