//! `mode: "adaptive"`: learn how fast a destination really lets us go, and stay just under it.
//!
//! ```text
//!   rate
//!            ╱ 429                              ╱ 429
//!  ceiling  ╱   :                 ____________╱   :     searching  each start adds 1%, until the first 429
//!          ╱    :         ___-----                :     shut       from a 429 until something is let through
//!    floor╱     :........╱                        :...  cruising   from the floor to the ceiling, ever more slowly,
//!        ╱                                                         then past it, ever faster
//!        searching  shut         cruising          shut
//! ```
//!
//! A throttle shows two rates: the **ceiling**, at which the 429 came, and the **floor**, at which attempts were in fact
//! let through, counting the wait. The true limit lies between them. So nearly all the time is spent just under it; a
//! 429 comes once in a long while, and the more rarely the more it costs; and a limit that was raised is found. This is
//! additive increase and multiplicative decrease, with the curve of TCP CUBIC.
//!
//! What the destination states in headers can only slow us down further: a 429 outranks a promise. Only starts that had
//! to wait for their turn raise the rate: an idle night proves nothing. The wait after a 429 and the quota that the
//! destination's owner wrote are kept elsewhere ([`throttle`](crate::throttle), [`rate`](crate::rate)), whatever is
//! learned here.

mod stored;

use crate::limits;
use crate::rate_headers::RateHint;
use crate::time::{Millis, Mono};

/// Where an unknown destination starts, per minute.
const START: f64 = 60.0;
/// What each start makes of the rate while nothing is known: 70 of them double it.
const SEARCH_GROWTH: f64 = 1.01;
/// How far below what was let through to go on.
const MARGIN: f64 = 0.98;
/// What a stated limit is used to: the last of it is left to whoever else sends there.
const STATED_MARGIN: f64 = 0.99;
/// The way up to the ceiling takes this many times the wait that a 429 costs: so about a sixtieth of all time is spent waiting.
const STRETCH: i64 = 60;
/// The shortest wait to reckon with: what a 429 costs where the destination does not say.
const SHORTEST_WAIT: Millis = Millis::minutes(1);
/// The longest way up: a raised limit must be found some day.
const LONGEST_STRETCH: Millis = Millis::days(7);
/// A wait is learned from only up to this many times the usual one: a longer one is no limit but a bad weekend.
const OUTLIER: i64 = 4;
/// The slowest pace, per minute: one an hour. Below that the throttle's own ladder is slower still.
const SLOWEST: f64 = 1.0 / 60.0;
/// The fastest.
const FASTEST: f64 = limits::MAX_PER_MINUTE as f64;
/// A start that is late by less than this does not delay the next one: timers are coarse, and the pace must not suffer.
const CATCH_UP_US: i64 = 20_000;

/// The learned pace of one destination.
#[derive(Clone, Debug, PartialEq)]
pub struct Pace {
    phase: Phase,
    /// Time in which starts had to wait for their turn, since the last throttle ended. It stands still while shut.
    busy_us: i64,
    /// Attempts that were let through since then.
    passed: u32,
    /// What a 429 has cost lately: the wait until attempts were let through again. `None`: there was none yet.
    usual_wait: Option<Millis>,
    stated: Option<Stated>,
    /// The rate at which the last attempt started.
    driven: f64,
    /// The earliest next start, in microseconds of the monotonic clock: so that 700 per second come out right.
    next_us: i64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// No 429 yet.
    Searching { rate: f64 },
    /// Between two throttles.
    Cruising { floor: f64, ceiling: f64 },
    /// From the 429 that came at `rate` until something is let through: not before `until`.
    Shut { at: Mono, until: Mono, rate: f64 },
}

/// What the destination's headers said last, and how long that holds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stated {
    rate: f64,
    until: Mono,
}

impl Pace {
    /// Nothing is known yet.
    pub const fn new(now: Mono) -> Self {
        Self {
            phase: Phase::Searching { rate: START },
            busy_us: 0,
            passed: 0,
            usual_wait: None,
            stated: None,
            driven: START,
            next_us: micros(now),
        }
    }

    /// Attempts per minute, now.
    pub fn per_minute(&self, now: Mono) -> f64 {
        self.learned().min(self.stated_rate(now)).clamp(SLOWEST, FASTEST)
    }

    fn learned(&self) -> f64 {
        match self.phase {
            Phase::Searching { rate } => rate,
            Phase::Cruising { floor, ceiling } => {
                let left = 1.0 - self.busy_us as f64 / (self.stretch().get() as f64 * 1_000.0);
                ceiling - (ceiling - floor) * left * left * left
            }
            Phase::Shut { at, until, rate } => {
                let minutes = self.busy_us as f64 / 60e6 + self.telling(at, until).get() as f64 / 60e3;
                (MARGIN * (f64::from(self.passed) / minutes).min(rate)).max(SLOWEST)
            }
        }
    }

    fn stated_rate(&self, now: Mono) -> f64 {
        self.stated.filter(|stated| now < stated.until).map_or(FASTEST, |stated| stated.rate)
    }

    /// How long the way from the floor to the ceiling is.
    fn stretch(&self) -> Millis {
        self.usual_wait.unwrap_or(SHORTEST_WAIT).scaled(STRETCH, 1).min(LONGEST_STRETCH)
    }

    /// As much of a wait as tells something about the limit.
    fn telling(&self, at: Mono, until: Mono) -> Millis {
        let most = self.usual_wait.map_or(Millis::MAX, |usual| usual.scaled(OUTLIER, 1));
        until.since(at).min(most)
    }

    /// How long until the next start; `None` if one may be made now.
    pub fn wait(&self, now: Mono) -> Option<Millis> {
        let lacking = self.next_us.saturating_sub(micros(now));
        (lacking > 0).then(|| Millis::new(lacking / 1_000 + i64::from(lacking % 1_000 > 0)))
    }

    /// An attempt starts.
    pub fn take(&mut self, now: Mono) {
        let interval = self.interval_us(now);
        let late = micros(now).saturating_sub(self.next_us);
        let waited_its_turn = late <= interval.max(CATCH_UP_US) && self.learned() <= self.stated_rate(now);
        self.driven = self.per_minute(now);
        if waited_its_turn {
            self.climb(interval);
        }
        let from = if late <= CATCH_UP_US { self.next_us } else { micros(now) };
        self.next_us = from.saturating_add(interval);
    }

    /// A start waited its turn, which took `interval`.
    fn climb(&mut self, interval: i64) {
        match &mut self.phase {
            Phase::Searching { rate } => *rate = (*rate * SEARCH_GROWTH).min(FASTEST),
            Phase::Cruising { .. } => {}
            Phase::Shut { .. } => return,
        }
        self.busy_us = self.busy_us.saturating_add(interval);
    }

    /// An attempt was let through. The first one after a 429 ends the throttle.
    pub fn passed(&mut self) {
        if let Phase::Shut { at, until, rate } = self.phase {
            let floor = self.learned();
            let half = self.usual_wait.map_or(SHORTEST_WAIT, |usual| usual.scaled(1, 2).max(SHORTEST_WAIT));
            self.usual_wait = Some(self.telling(at, until).max(half));
            // A ceiling at the floor would be the end of all rising.
            self.phase = Phase::Cruising { floor, ceiling: rate.max(floor / MARGIN) };
            (self.busy_us, self.passed) = (0, 0);
        }
        self.passed = self.passed.saturating_add(1);
    }

    /// A 429 came, and nothing else will start for `wait`. Only the first of several shows where the ceiling was met.
    pub fn rate_limited(&mut self, now: Mono, wait: Millis) {
        let until = later(now, wait);
        self.phase = match self.phase {
            Phase::Shut { at, until: before, rate } => Phase::Shut { at, until: before.max(until), rate },
            _ => Phase::Shut { at: now, until, rate: self.driven.min(self.learned()) },
        };
    }

    /// The headers of an answer. What is left, spread over the time until there is more, is the rate.
    pub fn stated(&mut self, now: Mono, hint: &RateHint) {
        let (count, span) = match *hint {
            RateHint { remaining: Some(left), reset: Some(reset), .. } => (left, reset),
            RateHint { remaining: None, limit: Some(limit), window: Some(window), .. } => (limit, window),
            _ => return,
        };
        let until = later(now, span.min(limits::MAX_RETRY_AFTER));
        if count == 0 {
            self.next_us = self.next_us.max(micros(until));
            self.stated = None;
        } else {
            let rate = count as f64 * 60e3 / span.get().max(1) as f64 * STATED_MARGIN;
            self.stated = Some(Stated { rate, until });
        }
    }

    /// The same knowledge in a process whose monotonic clock reads `now`.
    pub fn rebase(&mut self, now: Mono) {
        self.stated = None;
        if let Phase::Shut { at, until, .. } = &mut self.phase {
            (*at, *until) = (now, later(now, until.since(*at)));
        }
        self.next_us = micros(now).saturating_add(self.interval_us(now));
    }

    fn interval_us(&self, now: Mono) -> i64 {
        #[expect(clippy::cast_possible_truncation, reason = "at most 3.6·10⁹ for the slowest pace")]
        let interval = (60e6 / self.per_minute(now)) as i64;
        interval
    }
}

const fn micros(at: Mono) -> i64 {
    at.as_millis().saturating_mul(1_000)
}

fn later(at: Mono, wait: Millis) -> Mono {
    Mono::from_millis(at.as_millis().saturating_add(wait.get().max(0)))
}

#[cfg(test)]
mod tests;
