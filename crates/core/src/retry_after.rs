//! How long a destination asks us to wait: the `Retry-After` of its 429 or 503.
//!
//! The value comes from a stranger, so everything that is not plainly a wait counts as absent, and a wait is held
//! within [`MIN_RETRY_AFTER`] and [`MAX_RETRY_AFTER`]. What happens when there is none, and what the wait closes, is
//! decided elsewhere.

use std::borrow::Cow;
use std::time::UNIX_EPOCH;

use crate::limits::{MAX_RETRY_AFTER, MIN_RETRY_AFTER};
use crate::time::{Millis, Timestamp};

/// 2,000 years: the calendar repeats itself every 400, which are whole weeks.
const SAME_CALENDAR: Millis = Millis::days(5 * 146_097);

/// Reads one `Retry-After`: digits only, or one of the three HTTP dates; surrounding white space does not count.
///
/// A date is a reading of *their* clock, so it is taken relative to the response's own `Date`. Where that is missing
/// or unreadable, ours stands in. A false `Date` can do no more than any other value: the result is clamped.
/// More digits than we can count mean the most, a date in the past the least. A date with the wrong weekday, a zone
/// other than GMT or a leap second (`23:59:60`, which no clock here shows) is not an HTTP date.
pub fn parse(value: &[u8], date: Option<&[u8]>, now: Timestamp) -> Option<Millis> {
    let asked = match whole_number(value) {
        Some(seconds) => Millis::seconds(seconds),
        None => http_date(value)? - their_now(date, now),
    };
    Some(asked.clamp(MIN_RETRY_AFTER, MAX_RETRY_AFTER))
}

/// Reads every `Retry-After` line of a response. There should be one; where a proxy adds its own, the longest readable
/// one counts, since only that sends too early for none of them.
pub fn longest<'a>(
    values: impl IntoIterator<Item = &'a [u8]>,
    date: Option<&[u8]>,
    now: Timestamp,
) -> Option<Millis> {
    values.into_iter().filter_map(|value| parse(value, date, now)).max()
}

/// What their clock says: the `Date` of the response if it can be read, else what ours says.
pub(crate) fn their_now(date: Option<&[u8]>, now: Timestamp) -> Timestamp {
    date.and_then(http_date).unwrap_or(now)
}

/// Digits and nothing else, surrounding white space aside. Too large a number is the largest.
pub(crate) fn whole_number(text: &[u8]) -> Option<i64> {
    let digits = text.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(digits.iter().fold(0, |n: i64, digit| n.saturating_mul(10).saturating_add(i64::from(digit - b'0'))))
}

fn http_date(text: &[u8]) -> Option<Timestamp> {
    let text = str::from_utf8(text.trim_ascii()).ok()?;
    // The parser takes whatever Unicode calls a blank off the ends; an HTTP date has none of that.
    if !text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        return None;
    }
    let (text, earlier) = match before_1970(text) {
        Some(later) => (Cow::Owned(later), SAME_CALENDAR),
        None => (Cow::Borrowed(text), Millis::ZERO),
    };
    let date = httpdate::parse_http_date(&text).ok()?;
    let ms = date.duration_since(UNIX_EPOCH).ok()?.as_millis();
    Some(Timestamp::from_millis(i64::try_from(ms).ok()?) - earlier)
}

/// The parser refuses years before 1970, and they are dates like any other. This is the same date 2,000 years later, if
/// `text` can be one: with the same weekday, and the same leap day if it has one.
fn before_1970(text: &str) -> Option<String> {
    // In the first form the year is followed by the time and the zone, in the last by nothing; the one in the middle has two
    // digits, which mean a year from 1970 on.
    let place = match text.len() {
        29 => 12..16,
        24 => 20..24,
        _ => return None,
    };
    let year = text.get(place.clone()).filter(|year| year.bytes().all(|byte| byte.is_ascii_digit()))?;
    let year: u16 = year.parse().ok().filter(|year| *year < 1970)?;
    Some(format!("{}{}{}", &text[..place.start], year + 2_000, &text[place.end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    const NOW: Timestamp = Timestamp::from_millis(784_111_777_000); // Sun, 06 Nov 1994 08:49:37 GMT

    fn check(value: &str, expected: Option<Millis>) {
        assert_eq!(parse(value.as_bytes(), None, NOW), expected, "Retry-After: {value:.60}");
    }

    #[test]
    fn digits_are_seconds_within_the_limits() {
        let day = 86_400;
        for (value, seconds) in [
            ("0", 1),
            ("1", 1),
            ("120", 120),
            (" 120 ", 120),
            ("\t120\t", 120),
            ("0000000000000000000000120", 120),
            ("86400", day),
            ("86401", day),
            ("99999999999", day),
            ("9223372036854775807", day),
            ("9223372036854775808", day),
            (&"9".repeat(10_000), day),
        ] {
            check(value, Some(Millis::seconds(seconds)));
        }
    }

    #[test]
    fn all_three_http_dates_are_read() {
        let minute = Some(Millis::minutes(1));
        check("Sun, 06 Nov 1994 08:50:37 GMT", minute);
        check("Sunday, 06-Nov-94 08:50:37 GMT", minute);
        check("Sun Nov  6 08:50:37 1994", minute);
        check("  Sun, 06 Nov 1994 08:50:37 GMT ", minute);
    }

    #[test]
    fn a_past_date_is_the_least_and_a_far_one_the_most() {
        check("Sun, 06 Nov 1994 08:49:37 GMT", Some(MIN_RETRY_AFTER));
        check("Thu, 01 Jan 1970 00:00:00 GMT", Some(MIN_RETRY_AFTER));
        check("Wed, 31 Dec 1969 23:59:59 GMT", Some(MIN_RETRY_AFTER));
        check("Sun, 06 Nov 1904 08:49:37 GMT", Some(MIN_RETRY_AFTER));
        check("Sun Nov  6 08:49:37 1904", Some(MIN_RETRY_AFTER));
        check("Mon, 29 Feb 1904 00:00:00 GMT", Some(MIN_RETRY_AFTER));
        check("Sat, 01 Jan 0000 00:00:00 GMT", Some(MIN_RETRY_AFTER));
        check("Tue, 08 Nov 1994 08:49:37 GMT", Some(MAX_RETRY_AFTER));
        check("Fri, 31 Dec 9999 23:59:59 GMT", Some(MAX_RETRY_AFTER));
    }

    #[test]
    fn anything_else_counts_as_absent() {
        for value in [
            "",
            " ",
            "-5",
            "+120",
            "120.5",
            "1e30",
            "inf",
            "NaN",
            "0x10",
            "12 0",
            "120s",
            "120, 60",
            "１２０",
            "soon",
            "Sun, 06 Nov 1994 08:50:37 +0500",
            "Sun, 06 Nov 1994 08:50:37",
            "Mon, 06 Nov 1994 08:50:37 GMT",
            "Sat, 31 Dec 2016 23:59:60 GMT",
            "Thu, 31 Feb 1994 08:50:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Mon, 06 Nov 1904 08:49:37 GMT",
            "Mon Nov  6 08:49:37 1904",
            "Thu, 29 Feb 1900 00:00:00 GMT",
            "Sun, 06 Nov 1904 08:49:37 UTC",
            "Sun, 06 Nov 1904 08:49:60 GMT",
            "Sun, 06 Nov -904 08:49:37 GMT",
            "Sun, 06 Nov +904 08:49:37 GMT",
            "1994-11-06T08:50:37Z",
            "\u{b}Sun, 06 Nov 1994 08:50:37 GMT",
            "\u{2003}Sun, 06 Nov 1994 08:50:37 GMT",
            "Sun, 06 Nov 1994 08:50:37 GMT\u{a0}",
            &"x".repeat(10_000),
        ] {
            check(value, None);
        }
        assert_eq!(parse(b"\xff\xfe", None, NOW), None);
    }

    #[test]
    fn a_date_is_taken_by_their_clock() {
        let at = |date: Option<&[u8]>| parse(b"Sun, 06 Nov 1994 08:50:37 GMT", date, NOW);
        assert_eq!(at(Some(b"Sun, 06 Nov 1994 08:50:27 GMT")), Some(Millis::seconds(10)));
        assert_eq!(at(Some(b"Thu, 01 Jan 1970 00:00:00 GMT")), Some(MAX_RETRY_AFTER));
        assert_eq!(at(Some(b"Fri, 31 Dec 9999 23:59:59 GMT")), Some(MIN_RETRY_AFTER));
        let long_ago = parse(b"Fri, 01 Jan 1904 00:01:00 GMT", Some(b"Fri, 01 Jan 1904 00:00:00 GMT"), NOW);
        assert_eq!(long_ago, Some(Millis::minutes(1)), "a clock that was never set is a clock, too");
        for unreadable in ["", "yesterday", "\u{0}", "784111777"] {
            assert_eq!(at(Some(unreadable.as_bytes())), Some(Millis::minutes(1)), "{unreadable}");
        }
        assert_eq!(
            parse(b"120", Some(b"Thu, 01 Jan 1970 00:00:00 GMT"), NOW),
            Some(Millis::minutes(2)),
            "seconds need no clock"
        );
    }

    #[test]
    fn of_several_lines_the_longest_counts() {
        let of = |lines: &[&'static [u8]]| longest(lines.iter().copied(), None, NOW);
        assert_eq!(of(&[b"60", b"120"]), Some(Millis::minutes(2)));
        assert_eq!(of(&[b"120", b"60"]), Some(Millis::minutes(2)));
        assert_eq!(of(&[b"-1", b"60"]), Some(Millis::minutes(1)));
        assert_eq!(of(&[b"inf"]), None);
        assert_eq!(of(&[]), None);
    }

    /// Text that comes near to what is allowed, and bytes that do not.
    fn hostile() -> impl Strategy<Value = Vec<u8>> {
        let near = "[0-9]{0,40}|[-+]?[0-9.e]{0,30}|[ \t]*[0-9]*[ \t]*\
            |(Sun|Mon|Tue), [0-9]{2} (Jan|Feb|Nov) [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT\
            |(Sun|Mon|Tues)day, [0-9]{2}-(Jan|Feb|Nov)-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT\
            |(Sun|Mon|Tue) (Jan|Feb|Nov) [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2} [0-9]{4}|.{0,40}";
        prop_oneof![near.prop_map(String::into_bytes), prop::collection::vec(any::<u8>(), 0..64)]
    }

    proptest! {
        #[test]
        fn no_value_breaks_the_limits(value in hostile(), date in prop::option::of(hostile()), now: i64) {
            if let Some(wait) = parse(&value, date.as_deref(), Timestamp::from_millis(now)) {
                prop_assert!((MIN_RETRY_AFTER..=MAX_RETRY_AFTER).contains(&wait));
            }
        }

        #[test]
        fn retry_after_never_sends_early(
            asked in 0..=86_400u64, their in 0..4_000_000_000u64, skew in -100_000..100_000i64, ms in 0..1000i64,
        ) {
            let asked_for = Millis::seconds(i64::try_from(asked).unwrap());
            let ours = Timestamp::from_millis(i64::try_from(their).unwrap() * 1000 + skew * 1000 + ms);
            let until = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(their + asked));
            let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(their));

            let by_digits = parse(asked.to_string().as_bytes(), Some(date.as_bytes()), ours).unwrap();
            prop_assert_eq!(by_digits, asked_for.max(MIN_RETRY_AFTER));
            let by_date = parse(until.as_bytes(), Some(date.as_bytes()), ours).unwrap();
            prop_assert_eq!(by_date, asked_for.max(MIN_RETRY_AFTER));
            let by_our_clock = parse(until.as_bytes(), None, ours).unwrap();
            let until = Timestamp::from_millis(i64::try_from(their + asked).unwrap() * 1000);
            prop_assert!(ours + by_our_clock >= until || by_our_clock == MAX_RETRY_AFTER);
        }
    }
}
