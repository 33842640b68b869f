//! Lengths of time as people write them: `30s`, `5 min`, `1h 30min`, `2 days`.

use tidegate_core::time::Millis;

/// What a length of time looks like, in the words of an error.
pub(super) const LENGTH_RULE: &str =
    "a length of time such as \"30s\", \"5 min\", \"1h 30min\" or \"2 days\"";

/// The length that `text` names. Nothing but whole numbers, each with its unit.
pub(super) fn length(text: &str) -> Option<Millis> {
    let mut rest = text.trim();
    let mut total = Millis::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (digits, after) = split_where(rest, |c| !c.is_ascii_digit());
        let (unit, after) = split_where(after.trim_start(), |c| !c.is_ascii_alphabetic());
        let count: i64 = digits.parse().ok()?;
        total += Millis::new(count.checked_mul(unit_ms(unit)?)?);
        rest = after.trim_start();
    }
    Some(total)
}

fn split_where(text: &str, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(ends).unwrap_or(text.len()))
}

fn unit_ms(word: &str) -> Option<i64> {
    Some(match word {
        "ms" => 1,
        "s" | "sec" | "second" | "seconds" => 1_000,
        "m" | "min" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        "w" | "week" | "weeks" => 604_800_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_people_write_them() {
        for (text, ms) in [
            ("250ms", 250),
            ("30s", 30_000),
            ("5 min", 300_000),
            ("1h 30min", 5_400_000),
            ("1h30m", 5_400_000),
            (" 2 days ", 172_800_000),
            ("1 week", 604_800_000),
            ("0s", 0),
        ] {
            assert_eq!(length(text), Some(Millis::new(ms)), "{text}");
        }
    }

    #[test]
    fn what_is_no_length_is_refused() {
        for text in ["", " ", "5", "min", "5 parsecs", "-5s", "1.5h", "5 min -", "99999999999999 days", "５s"]
        {
            assert_eq!(length(text), None, "{text}");
        }
    }
}
