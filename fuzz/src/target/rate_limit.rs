//! The `RateLimit` headers of an answer, in all the forms that are in use.
//!
//! Laws: every figure of a hint lies within its bounds, and a hint has at least one; what is left is never more than the
//! limit; the case of a name does not matter; other headers change nothing.

use tidegate_core::rate_headers::{LONGEST_RESET, LONGEST_WINDOW, MOST_REQUESTS, parse};
use tidegate_core::time::{Millis, Timestamp};

use super::lines;

/// Input: our clock in milliseconds on the first line, their `Date` on the second, then `name: value` on each.
pub fn run(data: &[u8]) {
    let [now, date, rest] = lines(data);
    let now = str::from_utf8(now).ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default();
    let now = Timestamp::from_millis(now);
    let headers: Vec<(&str, &[u8])> = rest.split(|byte| *byte == b'\n').filter_map(header).collect();
    let hint = parse(headers.iter().copied(), Some(date), now);
    let shouted: Vec<(String, &[u8])> =
        headers.iter().map(|(name, value)| (name.to_ascii_uppercase(), *value)).collect();
    let shouted = shouted.iter().map(|(name, value)| (name.as_str(), *value));
    let other: [(&str, &[u8]); 2] = [("server", b"limit=1"), ("retry-after", b"100")];
    assert_eq!(parse(shouted.chain(other), Some(date), now), hint);
    let Some(hint) = hint else { return };
    assert!(hint.limit.is_none_or(|limit| (1..=MOST_REQUESTS).contains(&limit)), "{hint:?}");
    assert!(hint.remaining.is_none_or(|left| left <= hint.limit.unwrap_or(MOST_REQUESTS)), "{hint:?}");
    assert!(hint.reset.is_none_or(|reset| (Millis::ZERO..=LONGEST_RESET).contains(&reset)), "{hint:?}");
    let windows = Millis::seconds(1)..=LONGEST_WINDOW;
    assert!(hint.window.is_none_or(|window| windows.contains(&window)), "{hint:?}");
    assert!(
        hint.limit.is_some() || hint.remaining.is_some() || hint.reset.is_some(),
        "{hint:?} says nothing"
    );
}

fn header(line: &[u8]) -> Option<(&str, &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    Some((str::from_utf8(&line[..colon]).ok()?, &line[colon + 1..]))
}
