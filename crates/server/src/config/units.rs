//! Durations and sizes as people write them: `30s`, `10 min`, `7d`; `1 MiB`, `500 KB`.

use tidegate_core::time::Millis;

/// Reads a duration. A bare number has no meaning, except 0.
pub(super) fn duration(text: &str) -> Option<Millis> {
    let (number, unit) = split(text)?;
    let unit = match unit.to_ascii_lowercase().as_str() {
        "ms" => 1,
        "s" | "sec" | "second" | "seconds" => 1_000,
        "m" | "min" | "minute" | "minutes" => 60_000,
        "h" | "hour" | "hours" => 3_600_000,
        "d" | "day" | "days" => 86_400_000,
        "" if number == 0.0 => 1,
        _ => return None,
    };
    whole(number * f64::from(unit)).and_then(|ms| i64::try_from(ms).ok()).map(Millis::new)
}

/// Reads a size in bytes.
pub(super) fn size(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let unit: u32 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "kib" => 1 << 10,
        "mb" => 1_000_000,
        "mib" => 1 << 20,
        "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        _ => return None,
    };
    whole(number * f64::from(unit))
}

fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim()))
}

fn whole(number: f64) -> Option<u64> {
    // Above this a float no longer counts one by one.
    const MOST: f64 = 9_007_199_254_740_992.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked: whole and in range"
    )]
    let exact = (number.fract() == 0.0 && (0.0..=MOST).contains(&number)).then_some(number as u64);
    exact
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_have_units() {
        for (text, ms) in [
            ("250ms", 250),
            ("30s", 30_000),
            ("10 min", 600_000),
            ("1.5h", 5_400_000),
            ("7 days", 604_800_000),
            ("0", 0),
        ] {
            assert_eq!(duration(text), Some(Millis::new(ms)), "{text}");
        }
        for (text, bytes) in [("1 MiB", 1 << 20), ("512KiB", 1 << 19), ("5MB", 5_000_000), ("77", 77)] {
            assert_eq!(size(text), Some(bytes), "{text}");
        }
        for text in ["", "30", "s", "-1s", "1e3s", "1 fortnight", "0.3ms"] {
            assert_eq!(duration(text), None, "{text}");
        }
        assert_eq!(size("1 MiX"), None);
    }
}
