//! Words and figures as people read them.

use tidegate_core::time::{Millis, Timestamp};

/// What a state means for the person who looks: the shape beside the word says it without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    /// As it should be.
    Good,
    /// It goes on by itself.
    Wait,
    /// Somebody should look.
    Warn,
    /// Something is lost or stands still.
    Bad,
    /// Over, or nothing to say.
    Idle,
}

impl Tone {
    /// Its class in the style sheet.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Wait => "wait",
            Self::Warn => "warn",
            Self::Bad => "bad",
            Self::Idle => "idle",
        }
    }
}

/// A word of the API as people read it, with its shape and what it means.
pub(super) fn state(word: &str) -> (&'static str, Tone, String) {
    let (shape, tone) = match word {
        "delivered" | "success" | "active" | "done" => ("✓", Tone::Good),
        "queued" => ("○", Tone::Wait),
        "retry_scheduled" | "retry_backoff" => ("↻", Tone::Wait),
        "delivering" | "running" => ("→", Tone::Wait),
        "scheduled" => ("◷", Tone::Wait),
        "quiet_hours" => ("☾", Tone::Wait),
        "rate_limited" => ("◔", Tone::Wait),
        "at_capacity" => ("◉", Tone::Wait),
        "order_blocked" => ("⋮", Tone::Wait),
        "throttled" | "unavailable" => ("▲", Tone::Warn),
        "paused" | "stopped" | "leaving" | "order_halted" => ("‖", Tone::Warn),
        "expired" | "timeout" | "timeout_changed" => ("◷", Tone::Warn),
        "circuit_open" | "circuit_opened" => ("✕", Tone::Bad),
        "disabled" | "gone" | "blocked" => ("⊘", Tone::Bad),
        "dead_letter" | "http_error" | "network_error" | "redirect" => ("✕", Tone::Bad),
        "circuit_closed" | "resumed" | "enabled" => ("✓", Tone::Good),
        _ => ("–", Tone::Idle),
    };
    (shape, tone, word.replace('_', " "))
}

/// `12,345`.
pub(super) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number for an axis: `1.5k`, `2M`.
pub(super) fn short(number: f64) -> String {
    let (size, unit) = match number {
        ..1e3 => (1.0, ""),
        ..1e6 => (1e3, "k"),
        _ => (1e6, "M"),
    };
    let text = format!("{:.1}", number / size);
    format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}

/// `1 delivery`, `2 deliveries`.
pub(super) fn plural(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

/// A length in its two largest units: `2 h 5 min`.
pub(super) fn span(length: Millis) -> String {
    let ms = length.get().max(0);
    if ms < 1_000 {
        return format!("{ms} ms");
    }
    if ms < 10_000 {
        let tenths = ms / 100;
        return if tenths % 10 == 0 {
            format!("{} s", tenths / 10)
        } else {
            format!("{}.{} s", tenths / 10, tenths % 10)
        };
    }
    let seconds = ms / 1_000;
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let first = units.iter().position(|(size, _)| seconds >= *size).unwrap_or(3);
    let (size, unit) = units[first];
    let rest = seconds % size;
    match units.get(first + 1) {
        Some((next, next_unit)) if rest >= *next => {
            format!("{} {unit} {} {next_unit}", seconds / size, rest / next)
        }
        _ => format!("{} {unit}", seconds / size),
    }
}

/// The same for so many milliseconds of an axis.
#[expect(clippy::cast_possible_truncation, reason = "a float as large as this saturates")]
pub(super) fn span_of(ms: f64) -> String {
    span(Millis::new(ms.round() as i64))
}

/// `in 5 min`, `12 s ago`.
pub(super) fn from_now(now: Timestamp, at: Timestamp) -> String {
    let whole = |length: Millis| Millis::seconds((length.get() + 500) / 1_000);
    match at > now {
        true => format!("in {}", span(whole(at - now))),
        false => format!("{} ago", span(whole(now - at))),
    }
}

/// `99.2%`; more digits where it is close to all. What is less than all is never told as all.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 99.9 && percent < 100.0 {
        format!("{:.2}%", percent.min(99.99))
    } else if percent.fract() == 0.0 {
        format!("{percent:.0}%")
    } else {
        format!("{percent:.1}%")
    }
}

/// A rate in the unit in which it is at least one: `600/min`, `4/h`.
pub(super) fn rate(per_minute: f64) -> String {
    let units = [(1.0, "min"), (60.0, "h"), (1_440.0, "day")];
    let fits = |(minutes, _): &&(f64, &str)| per_minute * minutes >= 0.95;
    let (minutes, unit) = units.iter().find(fits).unwrap_or(&units[2]);
    let number = per_minute * minutes;
    if number < 9.95 && (number - number.round()).abs() > 0.05 {
        return format!("{number:.1}/{unit}");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate is small and not negative"
    )]
    let whole = number.round() as u64;
    format!("{}/{unit}", count(whole))
}

/// `1.2 MB`.
pub(super) fn bytes(size: u64) -> String {
    match size {
        0..1_000 => format!("{size} B"),
        1_000..1_000_000 => format!("{:.1} kB", size as f64 / 1e3),
        _ => format!("{:.1} MB", size as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_as_a_person_writes_them() {
        assert_eq!([count(7), count(1_234), count(1_234_567)], ["7", "1,234", "1,234,567"]);
        let spans = [0, 999, 1_500, 9_000, 65_000, 3_600_000, 7_500_000, 90_000_000];
        let spans = spans.map(|ms| span(Millis::new(ms)));
        assert_eq!(spans, ["0 ms", "999 ms", "1.5 s", "9 s", "1 min 5 s", "1 h", "2 h 5 min", "1 d 1 h"]);
        assert_eq!([percent(1.0), percent(0.995), percent(0.99995)], ["100%", "99.5%", "99.99%"]);
        assert_eq!([short(0.5), short(7.0), short(1_500.0), short(2e6)], ["0.5", "7", "1.5k", "2M"]);
        let rates = [10_000.0, 6.0, 1.5, 0.5, 10.0 / 1_440.0, 0.0];
        let rates = rates.map(rate);
        assert_eq!(rates, ["10,000/min", "6/min", "1.5/min", "30/h", "10/day", "0/day"]);
        let now = Timestamp::from_millis(1_000_000);
        assert_eq!(from_now(now, now + Millis::minutes(5)), "in 5 min");
        assert_eq!(from_now(now, now - Millis::new(12_100)), "12 s ago");
    }
}
