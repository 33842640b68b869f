//! One window: how it is written, and which seconds it covers.
//!
//! What a window covers depends on nothing but the date and time that the wall clock in its zone shows. It begins at
//! `start` on each of its days and lasts a fixed span of clock time, past midnight if need be. So the hours after
//! midnight belong to the date before, as the calendar has it, even where that date never was (Samoa left out
//! 30 December 2011: a window of Fridays still covers the early hours of the Saturday). A date that a change of the
//! clocks at midnight repeats or cuts short counts as far as the clock shows it.

use std::sync::Arc;

use jiff::tz::TimeZone;

use super::instant;
use crate::invalid::Invalid;
use crate::pattern::{EventType, Pattern, Patterns};

const DAY: i64 = 86_400;
const DAY_NAMES: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// A window as it is written and stored, not yet checked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WindowSpec {
    /// An IANA name: `Europe/Berlin`. Case does not matter.
    pub timezone: String,
    /// `HH:MM` or `HH:MM:SS`, the first quiet second.
    pub quiet_start: String,
    /// Likewise, the first second that is open again; `24:00` is the end of the day. If before `quiet_start`, it is on
    /// the next day.
    pub quiet_end: String,
    /// The days on which the window starts, `mon` to `sun`; none means every day.
    pub days: Vec<String>,
    /// Patterns of the event types that the window holds; none means all.
    pub applies_to: Vec<String>,
    /// Patterns of the event types that it does not hold, whatever `applies_to` says.
    pub bypass_event_types: Vec<String>,
}

/// One time of the day, on some days of the week, in one time zone, at which some event types are held.
#[derive(Clone, PartialEq, Debug)]
pub struct Window {
    /// As written, for those who show or store it again.
    spec: Arc<WindowSpec>,
    zone: Zone,
    hours: Hours,
    applies_to: Patterns,
    bypass: Patterns,
}

#[derive(Clone, PartialEq, Debug)]
enum Zone {
    Known(TimeZone),
    /// Was known when the window was written. The window covers nothing.
    Vanished,
}

impl Window {
    /// Checks a window. Faults name the field within the window: `quiet_end`, `days[2]`.
    pub fn parse(spec: WindowSpec) -> Result<Self, Invalid> {
        const ALLOWED: &str =
            "a name of the IANA time zone database, such as Europe/Berlin or America/New_York";
        let rules = find_zone(&spec.timezone).ok_or_else(|| fault("timezone", &spec.timezone, ALLOWED))?;
        Self::in_zone(Zone::Known(rules), spec)
    }
    /// Reads a window that was stored. A zone that the time zone data no longer knows is let pass, and the window then
    /// covers nothing: better to deliver than to hold for ever.
    pub fn restore(spec: WindowSpec) -> Result<Self, Invalid> {
        let zone = find_zone(&spec.timezone).map_or(Zone::Vanished, Zone::Known);
        Self::in_zone(zone, spec)
    }
    fn in_zone(zone: Zone, spec: WindowSpec) -> Result<Self, Invalid> {
        Ok(Self {
            zone,
            hours: Hours::parse(&spec)?,
            applies_to: Patterns::parse(&spec.applies_to).map_err(|e| e.under("applies_to"))?,
            bypass: Patterns::parse(&spec.bypass_event_types).map_err(|e| e.under("bypass_event_types"))?,
            spec: Arc::new(spec),
        })
    }

    /// The window as it was written.
    pub fn spec(&self) -> &WindowSpec {
        &self.spec
    }
    /// Whether the time zone data knows its zone. If not, it covers nothing.
    pub const fn is_zone_known(&self) -> bool {
        matches!(self.zone, Zone::Known(_))
    }
    /// The event types that it holds; empty: all.
    pub fn applies_to(&self) -> &Patterns {
        &self.applies_to
    }
    /// Whether it may hold events of this type. Bypass wins over `applies_to`.
    pub fn concerns(&self, event_type: &EventType) -> bool {
        self.is_zone_known()
            && (self.applies_to.is_empty() || self.applies_to.any_match(event_type))
            && !self.bypass.any_match(event_type)
    }
    /// Whether it may hold a type that is only known to match `pattern`.
    pub(super) fn concerns_all_of(&self, pattern: &Pattern) -> bool {
        let includes = |list: &Patterns| list.iter().any(|p| p.includes(pattern));
        self.is_zone_known()
            && (self.applies_to.is_empty() || includes(&self.applies_to))
            && !includes(&self.bypass)
    }

    /// Whether the window covers the second.
    pub(super) fn covers(&self, second: i64) -> bool {
        self.rules().is_some_and(|rules| self.hours.since_start(local(rules, second)).is_some())
    }
    /// If it covers the second that `clock` shows, in this window's zone: up to where it surely goes on.
    pub(super) fn covers_until(&self, clock: &mut ZoneClock<'_>) -> Option<i64> {
        let since = self.hours.since_start(clock.local)?;
        Some(clock.next_shift().min(clock.second + self.hours.length - since))
    }
    /// What the clock of its zone shows at `second`; `before` again, if that is of the same zone.
    pub(super) fn clock<'a>(&'a self, second: i64, before: Option<ZoneClock<'a>>) -> Option<ZoneClock<'a>> {
        let rules = self.rules()?;
        let zone = self.spec.timezone.as_str();
        let same = before.filter(|clock| clock.zone == zone);
        Some(same.unwrap_or_else(|| ZoneClock {
            zone,
            rules,
            second,
            local: local(rules, second),
            next_shift: None,
        }))
    }
    /// If it covers the second: from where on it surely does. No later than `second`.
    pub(super) fn covers_since(&self, second: i64) -> Option<i64> {
        let rules = self.rules()?;
        let since = self.hours.since_start(local(rules, second))?;
        Some(last_shift(rules, second).max(second - since))
    }
    /// Up to where it surely goes on as it is, covering or not. Later than `second`.
    pub(super) fn keeps_until(&self, second: i64) -> i64 {
        let Some(rules) = self.rules() else { return i64::MAX };
        let local = local(rules, second);
        let wait = match self.hours.since_start(local) {
            Some(since) => self.hours.length - since,
            None => self.hours.until_start(local),
        };
        next_shift(rules, second).min(second + wait)
    }
    fn rules(&self) -> Option<&TimeZone> {
        match &self.zone {
            Zone::Known(rules) => Some(rules),
            Zone::Vanished => None,
        }
    }
}

/// The clock on the wall in one zone at one instant: looked up once for all the windows there.
pub(super) struct ZoneClock<'a> {
    zone: &'a str,
    rules: &'a TimeZone,
    second: i64,
    local: i64,
    next_shift: Option<i64>,
}

impl ZoneClock<'_> {
    fn next_shift(&mut self) -> i64 {
        *self.next_shift.get_or_insert_with(|| next_shift(self.rules, self.second))
    }
}

/// Days and clock time, in seconds of the local calendar.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Hours {
    /// Seconds after midnight, less than a day.
    start: i64,
    /// Seconds of clock time, 1 up to a whole day.
    length: i64,
    days: Days,
}

impl Hours {
    fn parse(spec: &WindowSpec) -> Result<Self, Invalid> {
        let start = parse_clock(&spec.quiet_start).filter(|&start| start < DAY).ok_or_else(|| {
            fault("quiet_start", &spec.quiet_start, "HH:MM or HH:MM:SS, from 00:00 to 23:59:59")
        })?;
        let end = parse_clock(&spec.quiet_end)
            .ok_or_else(|| fault("quiet_end", &spec.quiet_end, "HH:MM or HH:MM:SS, from 00:00 to 24:00"))?;
        if start == end {
            let same = format_args!("{}, the same as `quiet_start`", spec.quiet_end);
            return Err(Invalid::new("quiet_end", same, "another time; a whole day is 00:00 to 24:00"));
        }
        let length = if end > start { end - start } else { end + DAY - start };
        Ok(Self { start, length, days: Days::parse(&spec.days)? })
    }
    /// If the window covers this local second: how long ago, on the clock, it began.
    fn since_start(&self, local: i64) -> Option<i64> {
        let (date, clock) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        let began = |date: i64, since: i64| {
            ((0..self.length).contains(&since) && self.days.contain(date)).then_some(since)
        };
        began(date, clock - self.start).or_else(|| began(date - 1, clock + DAY - self.start))
    }
    /// How long until it begins next, on the clock; at least a second, at most a week.
    fn until_start(&self, local: i64) -> i64 {
        let (date, clock) = (local.div_euclid(DAY), local.rem_euclid(DAY));
        (0..7)
            .filter(|&ahead| self.days.contain(date + ahead))
            .map(|ahead| ahead * DAY + self.start - clock)
            .find(|&wait| wait > 0)
            .unwrap_or(7 * DAY + self.start - clock)
    }
}

/// Days of the week, Monday in the lowest bit; at least one.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Days(u8);

impl Days {
    const EVERY: Self = Self(0b111_1111);

    fn parse(names: &[String]) -> Result<Self, Invalid> {
        let mut days = 0;
        for (i, name) in names.iter().enumerate() {
            let refused = |allowed| fault(&format!("days[{i}]"), name, allowed);
            let place = DAY_NAMES.iter().position(|known| known == name);
            let day = 1 << place.ok_or_else(|| refused("mon, tue, wed, thu, fri, sat, sun"))?;
            if days & day != 0 {
                return Err(refused("each day once"));
            }
            days |= day;
        }
        Ok(if days == 0 { Self::EVERY } else { Self(days) })
    }
    /// Whether this date, counted from 1 January 1970, a Thursday, is on one of them.
    const fn contain(self, date: i64) -> bool {
        self.0 & (1 << (date + 3).rem_euclid(7)) != 0
    }
}

fn fault(field: &str, text: &str, allowed: &str) -> Invalid {
    if text.is_empty() { Invalid::missing(field, allowed) } else { Invalid::new(field, text, allowed) }
}

/// Names are looked up without regard to case. `Etc/Unknown` says by its name that it is none.
fn find_zone(name: &str) -> Option<TimeZone> {
    TimeZone::get(name).ok().filter(|rules| !rules.is_unknown())
}

/// The second that a wall clock in the zone shows, counted as if 1970 had begun there.
fn local(rules: &TimeZone, second: i64) -> i64 {
    second + i64::from(rules.to_offset(instant(second).to_jiff()).seconds())
}

/// The next second at which the zone may change its offset.
fn next_shift(rules: &TimeZone, second: i64) -> i64 {
    let shift = rules.following(instant(second).to_jiff()).next();
    shift.map_or(i64::MAX, |shift| shift.timestamp().as_second())
}

/// The last second, up to and with this one, at which the zone may have changed its offset.
fn last_shift(rules: &TimeZone, second: i64) -> i64 {
    let shift = rules.preceding(instant(second + 1).to_jiff()).next();
    shift.map_or(i64::MIN, |shift| shift.timestamp().as_second())
}

/// Seconds after midnight of a strict `HH:MM` or `HH:MM:SS` up to `24:00`.
fn parse_clock(text: &str) -> Option<i64> {
    let two_digits = |part: &str| match part.as_bytes() {
        &[tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            Some(i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
        }
        _ => None,
    };
    let (hours, rest) = text.split_once(':')?;
    let (minutes, seconds) = rest.split_once(':').unwrap_or((rest, "00"));
    let (hours, minutes, seconds) = (two_digits(hours)?, two_digits(minutes)?, two_digits(seconds)?);
    let total = hours * 3_600 + minutes * 60 + seconds;
    (minutes < 60 && seconds < 60 && total <= DAY).then_some(total)
}

#[cfg(test)]
mod tests;
