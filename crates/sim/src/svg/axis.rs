//! Ticks: round numbers, and times that people would choose.

use tidegate_core::time::Timestamp;

/// Lines across a panel at most, the base not counted.
const LINES: u64 = 4;
/// Marks along the time at most.
const MARKS: i64 = 10;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Round numbers from 0 to one that is not below `most`.
pub(super) fn numbers(most: u64) -> Vec<u64> {
    let most = most.max(1);
    let mut power = 1_u64;
    let step = loop {
        let step = [1, 2, 5]
            .map(|digit| power.saturating_mul(digit))
            .into_iter()
            .find(|step| most.div_ceil(*step) <= LINES);
        match step {
            Some(step) => break step,
            None => power = power.saturating_mul(10),
        }
    };
    (0..=most.div_ceil(step)).map(|index| step.saturating_mul(index)).collect()
}

/// A mark on the axis of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// When, in milliseconds since 1970.
    pub(super) at_ms: i64,
    /// The time of day; none where marks are days apart.
    pub(super) clock: Option<String>,
    /// The date, where a day begins or the axis does.
    pub(super) date: Option<String>,
}

/// Marks from `from_ms` to `to_ms`, in UTC.
pub(super) fn times(from_ms: i64, to_ms: i64) -> Vec<Mark> {
    let length = to_ms.saturating_sub(from_ms).max(1);
    let steps = [1, 2, 5, 10, 15, 30].map(|count| count * SECOND).into_iter();
    let steps = steps.chain([1, 2, 5, 10, 15, 30].map(|count| count * MINUTE));
    let steps = steps.chain([1, 2, 3, 6, 12].map(|count| count * HOUR));
    let mut steps = steps.chain([1, 2, 5, 10, 15, 30, 60].map(|count| count * DAY));
    let step = steps.find(|step| length / step <= MARKS).unwrap_or(length);
    // Days are counted from the first midnight, so that no date depends on 1970.
    let origin = if step > DAY { round_up(from_ms, DAY) } else { 0 };
    let first = origin.saturating_add(round_up(from_ms.saturating_sub(origin), step));
    let all = (0..=MARKS + 1).map(|index| first.saturating_add(step.saturating_mul(index)));
    let mut marks: Vec<Mark> =
        all.take_while(|at_ms| *at_ms <= to_ms).map(|at_ms| mark(at_ms, step)).collect();
    if let Some(mark) = marks.first_mut() {
        mark.date = Some(shown(mark.at_ms, "%-d %b %Y"));
    }
    marks
}

fn mark(at_ms: i64, step: i64) -> Mark {
    let clock = match step {
        DAY.. => None,
        MINUTE.. => Some(shown(at_ms, "%H:%M")),
        _ => Some(shown(at_ms, "%H:%M:%S")),
    };
    let date = (at_ms.rem_euclid(DAY) == 0).then(|| shown(at_ms, "%-d %b"));
    Mark { at_ms, clock, date }
}

fn round_up(ms: i64, step: i64) -> i64 {
    let rest = ms.rem_euclid(step);
    if rest == 0 { ms } else { ms.saturating_add(step - rest) }
}

fn shown(at_ms: i64, format: &str) -> String {
    Timestamp::from_millis(at_ms).to_jiff().to_zoned(jiff::tz::TimeZone::UTC).strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_round_and_reach_the_most() {
        assert_eq!(numbers(0), [0, 1]);
        assert_eq!(numbers(3), [0, 1, 2, 3]);
        assert_eq!(numbers(17), [0, 5, 10, 15, 20]);
        assert_eq!(numbers(3_000), [0, 1_000, 2_000, 3_000]);
        assert!(numbers(u64::MAX).last().is_some_and(|last| *last == u64::MAX));
    }

    #[test]
    fn marks_stand_at_times_that_people_choose() {
        let at = |text: &str| Timestamp::parse(text).unwrap().as_millis();
        let marks = times(at("2026-03-07T18:00:00Z"), at("2026-03-08T18:00:00Z"));
        let clocks: Vec<&str> = marks.iter().filter_map(|mark| mark.clock.as_deref()).collect();
        assert_eq!(clocks, ["18:00", "21:00", "00:00", "03:00", "06:00", "09:00", "12:00", "15:00", "18:00"]);
        let dates: Vec<&str> = marks.iter().filter_map(|mark| mark.date.as_deref()).collect();
        assert_eq!(dates, ["7 Mar 2026", "8 Mar"]);
        let marks = times(at("2026-05-01T00:00:00Z"), at("2026-06-30T00:00:00Z"));
        let dates: Vec<&str> = marks.iter().filter_map(|mark| mark.date.as_deref()).collect();
        assert_eq!(dates[..3], ["1 May 2026", "11 May", "21 May"]);
        assert!(marks.iter().all(|mark| mark.clock.is_none()));
        assert!(times(5, 5).len() <= 1 && times(i64::MIN, i64::MAX).len() < 15);
    }
}
