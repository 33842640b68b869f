//! I6: nothing begins in quiet hours, unless its type bypasses them; and when they are over, what waited for that goes. The
//! time zones are those of chrono-tz: another implementation, and other data, than the server's.

mod ends;

use chrono::{DateTime, Datelike, Timelike, Weekday};
use chrono_tz::Tz;

use crate::history::Policy;
use crate::history::policy::Window;
use crate::pattern::any_matches;
use crate::run::{MILLI, Run};
use crate::verdict::Verdict;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I6", "quiet hours");
    let jitter = i64::try_from(run.jitter / MILLI).unwrap_or(0);
    let (mut unknown_zone, mut bypassed, mut over) = (0, 0, 0);
    for (place, destination) in run.places() {
        let phases = destination.timeline.phases();
        if phases.iter().all(|phase| phase.policy.delivery_schedules.is_empty()) {
            continue;
        }
        let hours: Vec<(&Policy, Option<Vec<Hours<'_>>>)> =
            phases.iter().map(|phase| (&phase.policy, Hours::of(&phase.policy))).collect();
        unknown_zone += hours.iter().filter(|(_, hours)| hours.is_none()).count() as u64;
        for receipt in run.requests_at(place) {
            let Some(true_ms) = receipt.wall_ms else { continue };
            let event_type = run.text(receipt.event_type);
            // What no window ever concerns may come at any time: it says nothing about quiet hours.
            let mut windows = hours.iter().filter_map(|(_, hours)| hours.as_deref()).flatten();
            if windows.any(|window| window.concerns(event_type)) {
                verdict.judge();
            }
            let is_quiet = |policy: &Policy, wall: i64, any_type: bool| {
                let found = hours.iter().find(|(other, _)| std::ptr::eq(*other, policy));
                let windows = found.and_then(|(_, hours)| hours.as_deref()).unwrap_or_default();
                windows.iter().any(|one| (any_type || one.concerns(event_type)) && one.covers(wall))
            };
            let walls = run.walls(receipt.t, true_ms);
            let always = |any_type: bool| {
                run.policies(place, receipt).all(|policy| {
                    let at = |wall: i64| is_quiet(policy, wall, any_type);
                    walls.iter().all(|wall| at(*wall) && at(*wall - jitter) && at(*wall + jitter))
                })
            };
            if always(false) {
                verdict.wrong(|| {
                    format!("{} ({event_type}) began in quiet hours, at {true_ms} ms", run.show(receipt))
                });
            } else if always(true) {
                bypassed += 1;
            }
        }
        over += ends::judge(run, place, &mut verdict);
    }
    verdict.note(bypassed, "in quiet hours that do not concern their type");
    verdict.note(over, "ends of quiet hours that something waited for");
    verdict.note(unknown_zone, "schedules name a zone that is not known here: not judged");
    verdict
}

/// A window, read.
struct Hours<'a> {
    window: &'a Window,
    zone: Tz,
    start: u32,
    end: u32,
}

impl<'a> Hours<'a> {
    /// The windows of a policy; none if one of them cannot be read.
    fn of(policy: &'a Policy) -> Option<Vec<Self>> {
        let read = |window: &'a Window| {
            let (start, end) = (second_of_day(&window.quiet_start)?, second_of_day(&window.quiet_end)?);
            Some(Self { window, zone: zone(&window.timezone)?, start, end })
        };
        policy.delivery_schedules.iter().map(read).collect()
    }

    fn concerns(&self, event_type: &str) -> bool {
        let applies = self.window.applies_to.is_empty() || any_matches(&self.window.applies_to, event_type);
        applies && !any_matches(&self.window.bypass_event_types, event_type)
    }

    /// Whether the clock on the wall there shows a quiet time: in a repeated hour, each time it does.
    fn covers(&self, wall_ms: i64) -> bool {
        let Some(utc) = DateTime::from_timestamp_millis(wall_ms) else { return false };
        let local = utc.with_timezone(&self.zone);
        let (second, today) = (local.num_seconds_from_midnight(), local.weekday());
        if self.start < self.end {
            self.on(today) && (self.start..self.end).contains(&second)
        } else {
            (self.on(today) && second >= self.start) || (self.on(today.pred()) && second < self.end)
        }
    }

    fn on(&self, day: Weekday) -> bool {
        let name = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"][day.num_days_from_monday() as usize];
        self.window.days.is_empty() || self.window.days.iter().any(|other| other == name)
    }
}

/// The zone of a name, whose case does not matter.
fn zone(name: &str) -> Option<Tz> {
    chrono_tz::TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(name)).copied()
}

/// `HH:MM` or `HH:MM:SS`, up to `24:00`.
fn second_of_day(text: &str) -> Option<u32> {
    let parts = text.split(':').zip([3_600, 60, 1]);
    let seconds = parts.map(|(part, unit)| Some(part.parse::<u32>().ok()? * unit)).sum::<Option<u32>>();
    seconds.filter(|second| *second <= 86_400)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(timezone: &str, start: &str, end: &str, days: &[&str]) -> Policy {
        let window = Window {
            timezone: timezone.into(),
            quiet_start: start.into(),
            quiet_end: end.into(),
            days: days.iter().map(|&day| day.into()).collect(),
            applies_to: vec![],
            bypass_event_types: vec![],
        };
        Policy { delivery_schedules: vec![window], ..Policy::default() }
    }

    #[test]
    fn an_instant_is_quiet_if_the_clock_on_the_wall_says_so() {
        for (zone, start, end, days, instant, expected) in [
            // The repeated hour is quiet both times.
            ("America/Chicago", "01:00", "02:00", &[][..], "2026-11-01T06:30:00Z", true),
            ("America/Chicago", "01:00", "02:00", &[], "2026-11-01T07:30:00Z", true),
            ("America/Chicago", "01:00", "02:00", &[], "2026-11-01T08:00:00Z", false),
            // The skipped hour is no time at all.
            ("America/Chicago", "02:00", "03:00", &[], "2026-03-08T08:00:00Z", false),
            ("America/Chicago", "22:00", "06:00", &["fri"], "2026-11-14T11:59:59Z", true),
            ("America/Chicago", "22:00", "06:00", &["fri"], "2026-11-14T12:00:00Z", false),
            ("America/Chicago", "22:00", "06:00", &["fri"], "2026-11-15T05:00:00Z", false),
            ("Asia/Kathmandu", "00:00", "24:00", &["mon"], "2026-11-15T18:15:00Z", true),
            ("Australia/Lord_Howe", "01:45", "01:50", &[], "2026-04-04T14:47:00Z", true),
            ("Australia/Lord_Howe", "01:45", "01:50", &[], "2026-04-04T15:17:00Z", true),
        ] {
            let policy = window(zone, start, end, days);
            let hours = Hours::of(&policy).unwrap();
            let at = DateTime::parse_from_rfc3339(instant).unwrap().timestamp_millis();
            assert_eq!(hours[0].covers(at), expected, "{zone} {start} {end} {days:?} {instant}");
        }
    }
}
