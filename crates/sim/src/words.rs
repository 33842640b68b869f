//! Figures as people read them, in tables and pictures.

use tidegate_core::time::{Millis, Timestamp};

/// A number with its thousands apart: `12,345`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A length of time in at most two units: `250 ms`, `1.24 s`, `30 s`, `5 min 12 s`, `6 h 12 min`, `3 days 4 h`.
pub fn span(length: Millis) -> String {
    let ms = length.get().max(0);
    let (seconds, minutes, hours, days) = (ms / 1_000, ms / 60_000, ms / 3_600_000, ms / 86_400_000);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 if ms % 1_000 == 0 => format!("{seconds} s"),
        1_000..10_000 => format!("{}.{:02} s", seconds, ms % 1_000 / 10),
        10_000..60_000 => format!("{}.{} s", seconds, ms % 1_000 / 100),
        60_000..3_600_000 => two(minutes, "min", seconds % 60, "s"),
        3_600_000..172_800_000 => two(hours, "h", minutes % 60, "min"),
        _ => two(days, "days", hours % 24, "h"),
    }
}

/// A length of time in one unit, for narrow columns: `250 ms`, `52.2 s`, `3.5 min`, `1.9 h`, `7.0 days`.
pub fn short_span(length: Millis) -> String {
    let ms = length.get().max(0);
    let tenths = |unit: i64| format!("{}.{}", ms / unit, ms % unit * 10 / unit);
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{} s", tenths(1_000)),
        60_000..3_600_000 => format!("{} min", tenths(60_000)),
        3_600_000..172_800_000 => format!("{} h", tenths(3_600_000)),
        _ => format!("{} days", tenths(86_400_000)),
    }
}

fn two(large: i64, large_unit: &str, small: i64, small_unit: &str) -> String {
    if small == 0 {
        format!("{large} {large_unit}")
    } else {
        format!("{large} {large_unit} {small} {small_unit}")
    }
}

/// An instant to the second: `2026-03-08 12:12:05 UTC`.
pub fn moment(at: Timestamp) -> String {
    at.to_jiff().to_zoned(jiff::tz::TimeZone::UTC).strftime("%F %T UTC").to_string()
}

/// `part` of `whole` in percent: never shown as all or nothing unless it is.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    let hundredths = u128::from(part) * 10_000 / u128::from(whole);
    match hundredths {
        0 if part > 0 => "< 0.01%".to_owned(),
        _ if hundredths.is_multiple_of(100) => format!("{}%", hundredths / 100),
        _ => format!("{}.{:02}%", hundredths / 100, hundredths % 100),
    }
}

/// `one` or `many`, with the number before it.
pub fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_people_write_them() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        let shown = [0, 250, 1_240, 30_000, 312_000, 3_600_000, 22_320_000, 273_600_000];
        assert_eq!(
            shown.map(|ms| span(Millis::new(ms))),
            ["0 ms", "250 ms", "1.24 s", "30 s", "5 min 12 s", "1 h", "6 h 12 min", "3 days 4 h"]
        );
        assert_eq!(span(Millis::new(i64::MIN)), "0 ms");
        let shown = [250, 52_240, 208_000, 6_900_000, 604_800_000].map(|ms| short_span(Millis::new(ms)));
        assert_eq!(shown, ["250 ms", "52.2 s", "3.4 min", "1.9 h", "7.0 days"]);
        assert_eq!(moment(Timestamp::from_millis(999)), "1970-01-01 00:00:00 UTC");
    }

    #[test]
    fn a_share_is_shown_as_all_only_if_it_is() {
        assert_eq!(percent(999_999, 1_000_000), "99.99%");
        assert_eq!(percent(1, 1_000_000), "< 0.01%");
        assert_eq!([percent(0, 5), percent(5, 5), percent(0, 0)], ["0%", "100%", "–"]);
    }
}
