//! `mode: "adaptive"`: learn how fast a destination really lets us go, and stay just under it.
//!
//! The rate climbs by doubling until the first 429. From then on every throttle teaches two numbers: the **floor**, what
//! was in fact accepted per minute over the whole cycle, waiting included, and the **ceiling**, the rate at which the
//! 429 came. The rate starts again a little under the floor, rises quickly at first, then ever more slowly towards the
//! ceiling, and only well after that probes beyond it. So it spends nearly all its time just under the true limit, and
//! the cost of finding out is one 429 in a long while. Where the destination states its limits in headers, these count.
//!
//! Time is counted only while the lane had work: an idle night teaches nothing.

use crate::limits;
use crate::rate_headers::RateHint;
use crate::time::{Millis, Mono};

/// Where an unknown destination starts, per minute.
const START: f64 = 60.0;
/// What each success adds to the rate while nothing is known: it doubles with every 35.
const SEARCH_GROWTH: f64 = 1.02;
/// How far below the accepted rate to resume.
const MARGIN: f64 = 0.98;
/// In how many of the destination's own periods the rate comes back to where the 429 came.
const STRETCH: i64 = 40;
/// The shortest period to reckon with.
const MIN_PERIOD: Millis = Millis::minutes(1);
/// The slowest pace, per minute: one an hour. Below that the throttle's own ladder is slower still.
const SLOWEST: f64 = 1.0 / 60.0;
/// What a stated limit is used to: the last of it is left to whoever else sends there.
const STATED_MARGIN: f64 = 0.99;

/// The learned pace of one destination.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    curve: Curve,
    cycle: Cycle,
    /// The destination's own period, as far as its waits have shown it.
    period: Millis,
    stated: Option<Stated>,
    /// The next start, in microseconds of the monotonic clock: finer than a millisecond, so that 700 per second work.
    next_us: i64,
    last_take: Option<Mono>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Curve {
    Searching { rate: f64 },
    Cruising { floor: f64, ceiling: f64 },
}

/// From the end of one throttle to the end of the next.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
struct Cycle {
    accepted: u32,
    busy: Millis,
    shut: Option<Shut>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Shut {
    at: Mono,
    rate: f64,
}

/// What the destination's headers said last, and until when that holds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stated {
    rate: f64,
    until: Mono,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            curve: Curve::Searching { rate: START },
            cycle: Cycle::default(),
            period: MIN_PERIOD,
            stated: None,
            next_us: i64::MIN,
            last_take: None,
        }
    }
}

impl Pace {
    /// Attempts per minute, now.
    pub fn per_minute(&self, now: Mono) -> f64 {
        let rate = match self.stated {
            Some(stated) if now < stated.until => stated.rate,
            _ => self.learned(),
        };
        rate.clamp(SLOWEST, limits::MAX_PER_MINUTE as f64)
    }

    fn learned(&self) -> f64 {
        match self.curve {
            Curve::Searching { rate } => rate,
            Curve::Cruising { floor, ceiling } => {
                let stretch = self.period.scaled(STRETCH, 1).get() as f64;
                let left = 1.0 - self.cycle.busy.get() as f64 / stretch;
                ceiling - (ceiling - floor) * left * left * left
            }
        }
    }

    /// How long until the next start; `None` if one may be made now.
    pub fn wait(&self, now: Mono) -> Option<Millis> {
        let lacking = self.next_us.saturating_sub(micros(now));
        (lacking > 0).then(|| Millis::new(lacking / 1_000 + i64::from(lacking % 1_000 > 0)))
    }

    /// An attempt starts. A lane that is a little late may catch up by one.
    pub fn take(&mut self, now: Mono) {
        let interval = self.interval_us(now);
        let base = self.next_us.max(micros(now).saturating_sub(interval));
        self.next_us = base.saturating_add(interval);
        if let Some(last) = self.last_take.replace(now) {
            let idle_after = Millis::new(interval / 500);
            self.cycle.busy += now.since(last).min(idle_after);
        }
    }

    /// An attempt was accepted.
    pub fn succeeded(&mut self, now: Mono) {
        self.cycle.accepted = self.cycle.accepted.saturating_add(1);
        if let Some(shut) = self.cycle.shut {
            self.learn(shut, now);
        } else if let Curve::Searching { rate } = &mut self.curve {
            *rate = (*rate * SEARCH_GROWTH).min(limits::MAX_PER_MINUTE as f64);
        }
    }

    /// A throttle has begun, or gone on: the first 429 of it shows where the ceiling was met.
    pub fn rate_limited(&mut self, now: Mono) {
        let rate = self.per_minute(now);
        self.stated = None;
        self.cycle.shut.get_or_insert(Shut { at: now, rate });
    }

    /// The throttle is over: what did the cycle show?
    fn learn(&mut self, shut: Shut, now: Mono) {
        let waited = now.since(shut.at);
        let minutes = (self.cycle.busy + waited).get().max(1) as f64 / 60_000.0;
        let accepted = f64::from(self.cycle.accepted) / minutes;
        let floor = (accepted.min(shut.rate) * MARGIN).max(SLOWEST);
        self.curve = Curve::Cruising { floor, ceiling: shut.rate.max(floor / MARGIN) };
        self.period = waited.max(self.period.scaled(1, 2)).max(MIN_PERIOD);
        self.cycle = Cycle { accepted: 1, ..Cycle::default() };
        self.last_take = Some(now);
        self.next_us = micros(now).saturating_add(self.interval_us(now));
    }

    /// The headers of an answer. What is left, spread over the time until it is renewed, is the rate.
    pub fn stated(&mut self, now: Mono, hint: &RateHint) {
        let (Some(remaining), Some(reset)) = (hint.remaining, hint.reset) else { return };
        let until = Mono::from_millis(now.as_millis().saturating_add(reset.get()));
        let rate = remaining as f64 * 60_000.0 / reset.get().max(1) as f64 * STATED_MARGIN;
        self.stated = Some(Stated { rate, until });
        if remaining == 0 {
            self.next_us = self.next_us.max(micros(until));
        }
    }

    /// The same knowledge in a process whose monotonic clock reads `now`.
    pub fn rebase(&mut self, now: Mono) {
        self.next_us = micros(now).saturating_add(self.interval_us(now));
        self.stated = None;
        self.last_take = None;
        if let Some(shut) = &mut self.cycle.shut {
            shut.at = now;
        }
    }

    fn interval_us(&self, now: Mono) -> i64 {
        #[expect(clippy::cast_possible_truncation, reason = "at most 3.6·10⁹ for the slowest pace")]
        let interval = (60_000_000.0 / self.per_minute(now)) as i64;
        interval
    }
}

const fn micros(at: Mono) -> i64 {
    at.as_millis().saturating_mul(1_000)
}
