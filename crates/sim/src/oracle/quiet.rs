//! Quiet hours: no request begins while the clock on the destination's wall shows a time in one of its windows, unless the
//! window does not concern the event's type.
//!
//! Read from the windows as they were written, with nothing but the local time that the time zone library gives for an
//! instant: none of the rules' own search for openings.

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use tidegate_core::pattern::EventType;
use tidegate_core::quiet::Window;
use tidegate_core::time::{Millis, Timestamp};

use super::Violations;
use crate::run::{Note, Observer, Setup, View};

const DAY: u32 = 86_400;

/// Watches the quiet hours of every destination.
#[derive(Clone, Debug)]
pub struct Quiet {
    lanes: Vec<Vec<Hours>>,
    slack: Millis,
    violations: Violations,
}

#[derive(Clone, Debug)]
struct Hours {
    window: Window,
    zone: TimeZone,
    start: u32,
    end: u32,
    days: Vec<Weekday>,
}

impl Quiet {
    /// For the destinations of `setup`.
    pub fn new(setup: &Setup) -> Self {
        let hours = |window: &Window| {
            let spec = window.spec();
            Some(Hours {
                window: window.clone(),
                zone: TimeZone::get(&spec.timezone).ok()?,
                start: second_of_day(&spec.quiet_start)?,
                end: second_of_day(&spec.quiet_end)?,
                days: spec.days.iter().filter_map(|day| weekday(day)).collect(),
            })
        };
        let lanes = (setup.destinations.iter())
            .map(|destination| destination.policy.quiet.windows().iter().filter_map(hours).collect())
            .collect();
        Self { lanes, slack: Millis::ZERO, violations: Violations::default() }
    }
    /// The same where clocks differ by so much.
    #[must_use]
    pub fn within(mut self, slack: Millis) -> Self {
        self.slack = slack;
        self
    }

    /// What was wrong, if anything: the first few.
    pub fn violations(&self) -> &[String] {
        self.violations.kept()
    }
    /// How often.
    pub const fn count(&self) -> u64 {
        self.violations.count()
    }

    /// Whether events of this type may not be sent to the `destination`-th at `at`.
    pub fn is_quiet(&self, destination: usize, event_type: &EventType, at: Timestamp) -> bool {
        self.lanes[destination].iter().any(|hours| hours.window.concerns(event_type) && hours.covers(at))
    }
}

impl Hours {
    fn covers(&self, at: Timestamp) -> bool {
        let local = self.zone.to_datetime(at.to_jiff());
        let time = local.time();
        let second = u32::try_from(i32::from(time.hour()) * 3_600 + i32::from(time.minute()) * 60)
            .unwrap_or(0)
            + u32::from(time.second().unsigned_abs());
        let on = |day: Weekday| self.days.is_empty() || self.days.contains(&day);
        let (today, yesterday) = (local.weekday(), local.weekday().previous());
        if self.start < self.end {
            on(today) && (self.start..self.end).contains(&second)
        } else {
            (on(today) && second >= self.start) || (on(yesterday) && second < self.end)
        }
    }
}

/// `HH:MM` or `HH:MM:SS`, up to `24:00`.
fn second_of_day(text: &str) -> Option<u32> {
    let units = [3_600, 60, 1];
    let seconds = text.split(':').zip(units).map(|(part, unit)| Some(part.parse::<u32>().ok()? * unit));
    seconds.sum::<Option<u32>>().filter(|second| *second <= DAY)
}

fn weekday(name: &str) -> Option<Weekday> {
    let names = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    let place = names.iter().position(|known| *known == name)?;
    Weekday::from_monday_zero_offset(i8::try_from(place).ok()?).ok()
}

impl Observer for Quiet {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        let Note::Sent(lane, sending) = note else { return };
        let (now, slack) = (view.now.wall, self.slack);
        let quiet = |at| self.is_quiet(lane.index(), &sending.event_type, at);
        if quiet(now) && quiet(now - slack) && quiet(now + slack) {
            self.violations.add(|| {
                format!(
                    "destination {}, sequence {}: {} sent at {}, in its quiet hours",
                    lane.index(),
                    sending.place.sequence,
                    sending.event_type.as_str(),
                    view.now.wall
                )
            });
        }
    }
}
