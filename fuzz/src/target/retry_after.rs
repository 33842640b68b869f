//! `Retry-After`, as strangers write it.
//!
//! Laws: whatever it says, a wait lies within 1 s and 24 h; digits are seconds; what is neither digits
//! nor plain text that begins with a letter is none; of several the longest counts.

use tidegate_core::retry_after::{longest, parse};
use tidegate_core::time::{Millis, Timestamp};

use super::lines;

/// Input: three lines: our clock in milliseconds, their `Date`, and the value, which may hold anything.
pub fn run(data: &[u8]) {
    let [now, date, value] = lines(data);
    let now = str::from_utf8(now).ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default();
    let now = Timestamp::from_millis(now);
    let dates = [None, Some(date)];
    for date in dates {
        let wait = parse(value, date, now);
        assert_eq!(parse(&[b" \t", value, b" "].concat(), date, now), wait, "blanks around it do not count");
        if let Some(wait) = wait {
            assert!((Millis::seconds(1)..=Millis::days(1)).contains(&wait), "{wait}");
        }
        assert_eq!(wait.is_some() && is_digits(value), is_digits(value), "digits are always a wait");
        if is_digits(value) {
            assert_eq!(wait, Some(seconds(value)));
        } else if !is_like_a_date(value) {
            assert_eq!(wait, None, "neither digits nor a date");
        }
        let others: [&[u8]; 3] = [b"7", value, b"soon"];
        assert_eq!(longest(others, date, now), wait.max(Some(Millis::seconds(7))));
    }
}

fn is_digits(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    !value.is_empty() && value.iter().all(u8::is_ascii_digit)
}

/// Begins with the name of a day, and is plain text.
fn is_like_a_date(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    value.first().is_some_and(u8::is_ascii_alphabetic) && value.iter().all(|byte| (b' '..0x7f).contains(byte))
}

/// By the number of digits first: no arithmetic on what a stranger wrote.
fn seconds(value: &[u8]) -> Millis {
    let text = str::from_utf8(value.trim_ascii()).expect("digits").trim_start_matches('0');
    match text.len() {
        0 => Millis::seconds(1),
        1..=5 => Millis::seconds(text.parse::<i64>().expect("few digits").min(86_400)),
        _ => Millis::days(1),
    }
}
