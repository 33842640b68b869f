//! The token bucket: how fast.
//!
//! In any interval of `T` at most `burst + rate · T` attempts start. "Never more than N in any minute" is therefore
//! `burst_capacity: 1`, not `burst_capacity: N`.
//!
//! The arithmetic is exact. A level is counted in *drops*: with a quota of `tokens` per `period` milliseconds, one token is
//! `period` drops, and each millisecond adds `tokens` drops. So 7 per minute never drifts, over years. Elapsed time is
//! read from the monotonic clock: the wall clock may jump as it likes. Only the stored form, [`Bucket::full_at`], is a
//! wall time, rounded so that a stop never adds anything.

use crate::invalid::{Invalid, check_range};
use crate::lane::bytes::{Reader, Writer};
use crate::limits;
use crate::time::{Millis, Mono, Now, Timestamp};

/// The period that a rate is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// One second.
    Second,
    /// Sixty seconds.
    Minute,
    /// Sixty minutes.
    Hour,
    /// Twenty-four hours.
    Day,
}

impl Per {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Second, Self::Minute, Self::Hour, Self::Day];

    /// Its length.
    pub const fn length(self) -> Millis {
        match self {
            Self::Second => Millis::seconds(1),
            Self::Minute => Millis::minutes(1),
            Self::Hour => Millis::hours(1),
            Self::Day => Millis::days(1),
        }
    }
    /// The period that `word` names.
    pub fn parse(word: &str) -> Result<Self, Invalid> {
        match word {
            "second" => Ok(Self::Second),
            "minute" => Ok(Self::Minute),
            "hour" => Ok(Self::Hour),
            "day" => Ok(Self::Day),
            other => Err(Invalid::new("per", format_args!("\"{other}\""), "second, minute, hour or day")),
        }
    }
}

/// A destination's `rate_limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The bucket that may never be exceeded.
    pub quota: Quota,
    /// Whether to pace below it by what the destination answers.
    pub mode: RateMode,
}

/// How the rate is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RateMode {
    /// As written.
    #[default]
    Fixed,
    /// Learned from their 429s and headers, up to what is written.
    Adaptive,
}

/// A rate and a burst: what a [`Bucket`] is filled by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    tokens: i64,
    period: i64,
    burst: i64,
}

impl Quota {
    /// `max` attempts per period, with a bucket of `burst` (by default `max`).
    pub fn new(max: u64, per: Per, burst: Option<u64>) -> Result<Self, Invalid> {
        let field = if per == Per::Minute { "max_per_minute" } else { "max" };
        let most = limits::MAX_PER_MINUTE * per.length().get().unsigned_abs() / 60_000;
        let max = check_range(field, max, 1, most)?;
        let most_burst = u64::from(limits::MAX_BURST);
        let burst = check_range("burst_capacity", burst.unwrap_or(max.min(most_burst)), 1, most_burst)?;
        Ok(Self { tokens: signed(max), period: per.length().get(), burst: signed(burst) })
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        [self.tokens, self.period, self.burst].into_iter().for_each(|part| out.signed(part));
    }
    pub(crate) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let (tokens, period, burst) = (from.signed()?, from.signed()?, from.signed()?);
        let per = Per::ALL.into_iter().find(|per| per.length().get() == period)?;
        Self::new(u64::try_from(tokens).ok()?, per, Some(u64::try_from(burst).ok()?)).ok()
    }

    /// How many tokens the bucket holds at most.
    pub const fn burst(&self) -> u64 {
        self.burst.unsigned_abs()
    }
    /// Attempts per minute, for display.
    pub fn per_minute(&self) -> f64 {
        self.tokens as f64 * 60_000.0 / self.period as f64
    }
    /// A full bucket, in drops. At most 10⁶ tokens of 8.64·10⁷ drops: far from overflow.
    const fn full(&self) -> i64 {
        self.burst * self.period
    }
    /// How long until `drops` more have come, rounded up. `drops` is positive.
    fn time_for(&self, drops: i128) -> Millis {
        let tokens = i128::from(self.tokens);
        Millis::new(i64::try_from((drops + tokens - 1) / tokens).unwrap_or(i64::MAX))
    }
}

/// How full a destination's bucket is. One timestamp when stored ([`Bucket::full_at`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Drops at `at`. Below zero only after a crash, when starts that may have happened were taken off.
    level: i64,
    at: Mono,
}

impl Bucket {
    /// As it is at first.
    pub const fn full(quota: &Quota, now: Mono) -> Self {
        Self { level: quota.full(), at: now }
    }

    /// How long until a token is there; `None` if one is there now.
    pub fn wait(&self, quota: &Quota, now: Mono) -> Option<Millis> {
        let lacking = quota.period - self.level_at(quota, now);
        (lacking > 0).then(|| quota.time_for(i128::from(lacking)))
    }

    /// How long until this many tokens will have come, those that are there included.
    pub fn wait_for(&self, quota: &Quota, now: Mono, tokens: u64) -> Millis {
        let lacking = i128::from(tokens) * i128::from(quota.period) - i128::from(self.level_at(quota, now));
        if lacking <= 0 { Millis::ZERO } else { quota.time_for(lacking) }
    }

    /// Takes a token. The caller has seen that [`wait`](Self::wait) is `None`, or takes it all the same (a test event).
    pub fn take(&mut self, quota: &Quota, now: Mono) {
        self.level = self.level_at(quota, now).saturating_sub(quota.period);
        self.at = self.at.max(now);
    }

    /// Whole tokens that are there now.
    pub fn tokens(&self, quota: &Quota, now: Mono) -> u64 {
        (self.level_at(quota, now) / quota.period).max(0).unsigned_abs()
    }

    /// The same bucket under another quota: it keeps its tokens as far as they fit, and gains none.
    #[must_use]
    pub fn under(self, old: &Quota, new: &Quota, now: Mono) -> Self {
        if old == new {
            return self;
        }
        let level = i128::from(self.level_at(old, now)) * i128::from(new.period);
        let level = level.div_euclid(i128::from(old.period)).min(i128::from(new.full()));
        Self { level: i64::try_from(level).unwrap_or(i64::MIN), at: self.at.max(now) }
    }

    /// When it will be full again, if nothing is taken: the form in which it is stored. Rounded up.
    pub fn full_at(&self, quota: &Quota, now: Now) -> Timestamp {
        let lacking = i128::from(quota.full()) - i128::from(self.level_at(quota, now.mono));
        if lacking <= 0 { now.wall } else { now.wall + quota.time_for(lacking) }
    }

    /// A stored bucket, read back. A wall clock that was set back meanwhile cannot empty it by more than a crash can,
    /// which forfeits `most` tokens.
    pub fn restore(quota: &Quota, full_at: Timestamp, now: Now, most: u32) -> Self {
        let missing = i128::from((full_at - now.wall).get().max(0)) * i128::from(quota.tokens);
        let least = -i128::from(most) * i128::from(quota.period);
        let level = (i128::from(quota.full()) - missing).max(least);
        Self { level: i64::try_from(level).expect("between the least and a full bucket"), at: now.mono }
    }

    /// After a crash: takes off the starts that may have happened since the bucket was stored. Each took a token that was
    /// there, so they cannot have left less than none.
    pub fn forfeit(&mut self, quota: &Quota, starts: u32) {
        let left = self.level.saturating_sub(i64::from(starts) * quota.period);
        self.level = left.max(self.level.min(0));
    }

    fn level_at(&self, quota: &Quota, now: Mono) -> i64 {
        let gained = i128::from(now.since(self.at).get()) * i128::from(quota.tokens);
        let level = (i128::from(self.level) + gained).min(i128::from(quota.full()));
        i64::try_from(level).expect("at most a full bucket, at least what it was")
    }
}

/// A validated count fits: the ranges of `limits` are far below 2⁶³.
fn signed(count: u64) -> i64 {
    i64::try_from(count).expect("bounded by limits")
}

#[cfg(test)]
#[path = "rate/tests.rs"]
mod tests;
