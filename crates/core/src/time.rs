//! Time as the rules see it: whole milliseconds, handed in by the caller.
//!
//! Two clocks matter. The **wall** clock says what day it is: quiet hours, expiry, retries and everything that is
//! stored. It may jump. The **monotonic** clock only ever goes forward at its own pace: the token bucket lives on it,
//! so that no jump of the wall clock adds or takes tokens. [`Now`] carries one reading of both.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A length of time in whole milliseconds. Arithmetic saturates: a hostile number ends at the limit, never in a panic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(i64);

impl Millis {
    /// No time at all.
    pub const ZERO: Self = Self(0);
    /// Longer than anything that can be waited for.
    pub const MAX: Self = Self(i64::MAX);

    /// So many milliseconds.
    pub const fn new(ms: i64) -> Self {
        Self(ms)
    }
    /// So many seconds.
    pub const fn seconds(s: i64) -> Self {
        Self(s.saturating_mul(1_000))
    }
    /// So many minutes.
    pub const fn minutes(m: i64) -> Self {
        Self::seconds(m.saturating_mul(60))
    }
    /// So many hours.
    pub const fn hours(h: i64) -> Self {
        Self::minutes(h.saturating_mul(60))
    }
    /// So many times 24 hours (not calendar days: those belong to a time zone).
    pub const fn days(d: i64) -> Self {
        Self::hours(d.saturating_mul(24))
    }
    /// The number of milliseconds.
    pub const fn get(self) -> i64 {
        self.0
    }
    /// As seconds, for display and statistics; never for decisions.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1_000.0
    }
    /// This length times `num / den`, rounded down, computed without overflow.
    pub fn scaled(self, num: i64, den: i64) -> Self {
        let wide = i128::from(self.0) * i128::from(num) / i128::from(den);
        Self(i64::try_from(wide).unwrap_or(if wide < 0 { i64::MIN } else { i64::MAX }))
    }
}

impl Add for Millis {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}
impl Sub for Millis {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}
impl AddAssign for Millis {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// The largest unit that divides it evenly, as a person would write it: `250 ms`, `30 s`, `10 min`, `6 h`, `7 days`.
impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0;
        match ms {
            0 => write!(f, "0 s"),
            _ if ms % 86_400_000 == 0 && ms.abs() > 86_400_000 => write!(f, "{} days", ms / 86_400_000),
            _ if ms % 3_600_000 == 0 => write!(f, "{} h", ms / 3_600_000),
            _ if ms % 60_000 == 0 => write!(f, "{} min", ms / 60_000),
            _ if ms % 1_000 == 0 => write!(f, "{} s", ms / 1_000),
            _ => write!(f, "{ms} ms"),
        }
    }
}
impl fmt::Debug for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// An instant on the wall clock: milliseconds since 1970 in UTC, shown as RFC 3339 with milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The earliest instant that can be shown: the year -9999.
    pub const MIN: Self = Self(-377_705_023_201_000);
    /// The latest instant that can be shown: the year 9999.
    pub const MAX: Self = Self(253_402_207_200_000);

    /// The instant so many milliseconds after 1970 began in UTC, held within [`MIN`](Self::MIN) and [`MAX`](Self::MAX).
    pub const fn from_millis(ms: i64) -> Self {
        if ms < Self::MIN.0 {
            Self::MIN
        } else if ms > Self::MAX.0 {
            Self::MAX
        } else {
            Self(ms)
        }
    }
    /// Milliseconds since 1970 began in UTC.
    pub const fn as_millis(self) -> i64 {
        self.0
    }
    /// Reads an RFC 3339 time, rounding down to the millisecond. The last hours of the year 9999, which the library does not
    /// know as an instant, are its [`MAX`](Self::MAX).
    pub fn parse(text: &str) -> Option<Self> {
        let (seconds, zone) = rfc_3339_parts(text)?;
        let (wall, offset) = (seconds.parse::<jiff::civil::DateTime>().ok()?, jiff::tz::Offset::UTC);
        let Ok(wall) = offset.to_timestamp(wall) else { return Some(Self::MAX) };
        Some(Self::from_millis(wall.as_millisecond()) - zone)
    }
    /// The same instant for the time zone library.
    pub fn to_jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0).expect("MIN and MAX lie within jiff's range")
    }
}

/// What a text in the shape of RFC 3339 says: the local time, to the millisecond, and how far its zone is ahead of UTC. The
/// library reads more than that shape: shorter forms, and zones in brackets that it then does not look at; and no fraction of
/// more than nine digits.
fn rfc_3339_parts(text: &str) -> Option<(&str, Millis)> {
    let fits = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text.bytes().zip(shape.bytes()).all(|(byte, shape)| match shape {
                b'0' => byte.is_ascii_digit(),
                b'T' => matches!(byte, b'T' | b't' | b' '),
                b'+' => matches!(byte, b'+' | b'-'),
                other => byte == other,
            })
    };
    let zoned = || {
        let (local, zone) = text.split_at_checked(text.len().checked_sub("+00:00".len())?)?;
        let number = |range: std::ops::Range<usize>| zone.get(range)?.parse::<i64>().ok();
        let (hours, minutes) = (number(1..3)?, number(4..6)?);
        let ahead = Millis::hours(hours) + Millis::minutes(minutes);
        let ahead = if zone.starts_with('-') { Millis::ZERO - ahead } else { ahead };
        (fits(zone, "+00:00") && hours < 24 && minutes < 60).then_some((local, ahead))
    };
    let utc = text.strip_suffix(['Z', 'z']).map(|local| (local, Millis::ZERO));
    let (local, zone) = utc.or_else(zoned)?;
    let (seconds, fraction) = local.split_once('.').unwrap_or((local, "0"));
    let digits = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let known = local.len().min("0000-00-00T00:00:00.000".len());
    (fits(seconds, "0000-00-00T00:00:00") && digits).then_some((&local[..known], zone))
}

impl Add<Millis> for Timestamp {
    type Output = Self;
    fn add(self, span: Millis) -> Self {
        Self::from_millis(self.0.saturating_add(span.0))
    }
}
impl Sub<Millis> for Timestamp {
    type Output = Self;
    fn sub(self, span: Millis) -> Self {
        Self::from_millis(self.0.saturating_sub(span.0))
    }
}
impl Sub for Timestamp {
    type Output = Millis;
    fn sub(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0))
    }
}
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.to_jiff())
    }
}
impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A reading of the monotonic clock: milliseconds since a moment that only this process knows. Never stored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Mono(i64);

impl Mono {
    /// So many milliseconds after the process's own zero.
    pub const fn from_millis(ms: i64) -> Self {
        Self(ms)
    }
    /// Milliseconds since the process's own zero.
    pub const fn as_millis(self) -> i64 {
        self.0
    }
    /// Time passed since `earlier`; zero if that lies in the future, since this clock has no past to go back to.
    pub fn since(self, earlier: Self) -> Millis {
        Millis(self.0.saturating_sub(earlier.0).max(0))
    }
}

impl Add<Millis> for Mono {
    type Output = Self;
    fn add(self, span: Millis) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

/// One reading of both clocks, taken together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    /// What day it is.
    pub wall: Timestamp,
    /// How much time has passed.
    pub mono: Mono,
}

impl Now {
    /// Both clocks at the same count: for tables and tests in which no clock jumps.
    pub const fn at(ms: i64) -> Self {
        Self { wall: Timestamp::from_millis(ms), mono: Mono(ms) }
    }
    /// How far the wall clock is ahead of the monotonic one. It changes only when the wall clock is set.
    pub const fn offset(self) -> Millis {
        Millis(self.wall.0.saturating_sub(self.mono.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_with_milliseconds() {
        let at = Timestamp::parse("2026-04-23T14:32:00.5Z").unwrap();
        assert_eq!(at.to_string(), "2026-04-23T14:32:00.500Z");
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-30T22:00:00.000Z");
        assert_eq!(Timestamp::from_millis(i64::MIN), Timestamp::MIN);
        let _ = Timestamp::MIN.to_string();
    }

    #[test]
    fn times_are_read_as_rfc_3339_writes_them() {
        let noon = Timestamp::parse("2026-04-23T12:00:00Z");
        assert!(noon.is_some());
        for same in [
            "2026-04-23t12:00:00z",
            "2026-04-23 12:00:00.000999999Z",
            "2026-04-23T14:00:00.0+02:00",
            "2026-04-23T07:30:00-04:30",
            "2026-04-23T12:00:00.000999999999999Z",
            "2026-04-24T11:59:00+23:59",
        ] {
            assert_eq!(Timestamp::parse(same), noon, "{same}");
        }
        for other in [
            "2026-04-23T12Z",
            "2026-04-23T12:00Z",
            "20260423T120000Z",
            "2026-04-23T12:00:00Z[Asia/Tokyo]",
            "2026-04-23T12:00:00",
            "2026-04-23T12:00:00.Z",
            "2026-04-23T12:00:00+0200",
            "+002026-04-23T12:00:00Z",
            "2026-04-23T25:00:00Z",
            "2026-02-29T12:00:00Z",
            "2026-04-24T12:00:00+24:00",
            "2026-04-23T13:00:00+00:60",
            "2026-04-23T13:00:00++1:00",
            "é",
            "",
        ] {
            assert_eq!(Timestamp::parse(other), None, "{other}");
        }
        for last in ["9999-12-31T23:59:59Z", "9999-12-31T23:59:59.999-12:00", "9999-12-31T00:00:00+01:00"] {
            assert_eq!(Timestamp::parse(last), Some(Timestamp::MAX), "{last}");
        }
    }

    #[test]
    fn arithmetic_ends_at_the_limit() {
        assert_eq!(Timestamp::MAX + Millis::MAX, Timestamp::MAX);
        assert_eq!(Millis::MAX + Millis::MAX, Millis::MAX);
        assert_eq!(Millis::MAX.scaled(3, 2), Millis::MAX);
        assert_eq!(Mono::from_millis(5).since(Mono::from_millis(9)), Millis::ZERO);
    }

    #[test]
    fn lengths_read_as_a_person_writes_them() {
        let shown = [250, 30_000, 600_000, 21_600_000, 86_400_000, 604_800_000, 90_500]
            .map(|ms| Millis(ms).to_string());
        assert_eq!(shown, ["250 ms", "30 s", "10 min", "6 h", "24 h", "7 days", "90500 ms"]);
    }
}
