//! The state behind one destination's gates, and how each attempt changes it.
//!
//! A destination's hold lives here and nowhere else; its deliveries never carry it. [`LaneState::start`] takes what an
//! attempt consumes, [`LaneState::finish`] learns from how it ended. What becomes of the delivery itself is decided in
//! [`settle`](crate::settle).

pub(crate) mod bytes;
mod encoding;
mod saved;

pub use saved::{LastStop, SavedLane};

use crate::breaker::{Breaker, BreakerChange};
use crate::delivery::HoldReason;
use crate::gate::{Go, Probe};
use crate::health::{DisabledCause, Health};
use crate::id::DeliveryId;
use crate::limits;
use crate::order::Line;
use crate::outcome::{Bearing, Outcome};
use crate::pace::Pace;
use crate::policy::Policy;
use crate::ramp::Ramp;
use crate::rate::{Bucket, RateLimit, RateMode};
use crate::rate_headers::RateHint;
use crate::throttle::Throttle;
use crate::time::{Millis, Mono, Now, Timestamp};
use crate::timeout::{Sample, TimeoutChange, TimeoutMode, Timeouts};

/// The state behind a destination's gates.
#[derive(Clone, Debug)]
pub struct LaneState {
    /// Whether anything is to be sent at all.
    pub standing: Standing,
    /// Whether it works.
    pub breaker: Breaker,
    /// Whether it told us to slow down.
    pub throttle: Throttle,
    /// Their 503 with `Retry-After`.
    pub unavailable: Option<Unavailable>,
    /// How many at once we dare.
    pub ramp: Ramp,
    /// How many there are.
    pub in_flight: u32,
    /// When the last attempt started, in this process: it took the last slot or token, where there is none left. Before the
    /// first, when the lane was made or read.
    pub last_start: Timestamp,
    /// Tokens, where there is a limit.
    pub rate: Option<RateState>,
    /// How long to wait for an answer.
    pub timeouts: Timeouts,
    /// Whether it is gone for good.
    pub health: Health,
    /// How the last attempt that ended, ended; `None`: none has yet.
    pub last: Option<Bearing>,
    /// The delivery that was the last probe, so that the next is another one.
    pub last_probe: Option<DeliveryId>,
    /// The end of the last time it was left alone on purpose: paused, throttled or quiet.
    pub rested_until: Option<Timestamp>,
    /// Lines that stand because a delivery of theirs died: until a person resumes them.
    pub halted: Vec<HaltedLine>,
    /// What keeps its work waiting, and since when: the row of the hold log that is being written.
    pub held: Option<(HoldReason, Timestamp)>,
    /// Since when this process works it.
    pub awake_since: Timestamp,
    /// Starts whose token is not taken off in the store yet: made since, or forfeited for a crash. A crash forfeits
    /// `max_concurrency` tokens, so nothing starts under a rate limit while there are as many.
    pub unsaved_starts: u32,
}

/// Whether a destination takes part. Switched off and paused are two things: each is undone by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Standing {
    /// It is switched off: since when, and by whom or what.
    pub disabled: Option<(Timestamp, DisabledCause)>,
    /// A person paused it: since when.
    pub paused: Option<Timestamp>,
}

/// A destination asked us to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable {
    /// When it first did.
    pub since: Timestamp,
    /// Not before then.
    pub until: Timestamp,
}

/// Tokens under a limit.
#[derive(Clone, Debug, PartialEq)]
pub struct RateState {
    limit: RateLimit,
    bucket: Bucket,
    pace: Option<Pace>,
    /// Whether the limit holds. One that was taken away is remembered: set again, it has no more tokens than it would
    /// have had.
    in_force: bool,
}

/// An attempt in flight: what must be remembered until it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// When it started.
    pub started: Now,
    /// How long it may take.
    pub timeout: Millis,
    /// Whether expiry made that shorter.
    pub cut_short: bool,
    /// What it finds out, if it goes before the others for that.
    pub probe: Option<Probe>,
    breaker_generation: u32,
    throttle_generation: u32,
}

/// A line that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HaltedLine {
    /// Which line.
    pub line: Line,
    /// The delivery of it that died.
    pub head: DeliveryId,
    /// When; nothing where an earlier release has noted the line.
    pub since: Option<Timestamp>,
}

/// What came of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// How it ended.
    pub outcome: Outcome,
    /// What the timeout bounds: from the look-up of the name to the complete header block, or the error.
    pub elapsed: Millis,
    /// What they said of their limits.
    pub rate_hint: Option<RateHint>,
}

/// What changed in the lane, for log and notices: by the end of an attempt, of a delivery, or by time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Aftermath {
    /// The breaker opened or closed.
    pub breaker: Option<BreakerChange>,
    /// A new throttle episode began.
    pub throttled: bool,
    /// The destination is disabled from now on.
    pub disabled: Option<DisabledCause>,
    /// The timeout in force changed.
    pub timeout: Option<TimeoutChange>,
    /// The delivery that died and whose line stands from now on.
    pub halted: Option<DeliveryId>,
}

impl LaneState {
    /// A destination that nothing is known of.
    pub fn new(policy: &Policy, now: Now) -> Self {
        Self {
            standing: Standing::default(),
            breaker: Breaker::default(),
            throttle: Throttle::default(),
            unavailable: None,
            ramp: Ramp::START,
            in_flight: 0,
            last_start: now.wall,
            awake_since: now.wall,
            rate: policy.rate_limit.map(|limit| RateState::full(limit, now.mono)),
            timeouts: Timeouts::new(),
            health: Health::default(),
            last: None,
            last_probe: None,
            rested_until: None,
            halted: Vec::new(),
            held: None,
            unsaved_starts: 0,
        }
    }

    /// The slots there are, if all are taken.
    pub fn full(&self, policy: &Policy) -> Option<u32> {
        let max = policy.max_concurrency.get();
        let limit = self.ramp.limit(max);
        (self.in_flight >= limit || (self.limited().is_some() && self.unsaved_starts >= max)).then_some(limit)
    }

    /// Its tokens, where a limit is in force.
    fn limited(&self) -> Option<&RateState> {
        self.rate.as_ref().filter(|rate| rate.in_force)
    }

    /// How long until a token is there; `None`: now, or there is no limit.
    pub fn token_wait(&self, policy: &Policy, now: Mono) -> Option<Millis> {
        let rate = self.limited().filter(|_| policy.rate_limit.is_some())?;
        let paced = rate.pace.as_ref().and_then(|pace| pace.wait(now));
        rate.bucket.wait(&rate.limit.quota, now).max(paced)
    }

    /// How long until `count` tokens will have come, those that are there included; `None`: there is no limit.
    pub fn tokens_wait(&self, policy: &Policy, now: Mono, count: u64) -> Option<Millis> {
        let rate = self.limited().filter(|_| policy.rate_limit.is_some())?;
        let paced = rate.pace.as_ref().map_or(Millis::ZERO, |pace| {
            #[expect(clippy::cast_possible_truncation, reason = "a float as large as this saturates")]
            let ms = (count.saturating_sub(1) as f64 * 60_000.0 / pace.per_minute(now)) as i64;
            pace.wait(now).unwrap_or(Millis::ZERO) + Millis::new(ms)
        });
        Some(rate.bucket.wait_for(&rate.limit.quota, now, count).max(paced))
    }

    /// Tokens there are now, where there is a limit.
    pub fn tokens(&self, now: Mono) -> Option<u64> {
        self.limited().map(|rate| rate.bucket.tokens(&rate.limit.quota, now))
    }

    /// Attempts per minute that the lane paces itself to, where it learns that.
    pub fn paced_per_minute(&self, now: Mono) -> Option<f64> {
        self.limited()?.pace.as_ref().map(|pace| pace.per_minute(now))
    }

    /// How long an attempt may take. A breaker's probe gets the longest, so that slowness alone never locks a
    /// destination out.
    pub fn timeout(&self, policy: &Policy, probe: Option<Probe>) -> Millis {
        match probe {
            Some(Probe::Breaker) => self.timeouts.for_probe(&policy.timeout, &policy.timeout_params),
            _ => self.timeouts.in_force(&policy.timeout, &policy.timeout_params),
        }
    }

    /// An attempt starts: takes its slot and its token.
    pub fn start(&mut self, now: Now, delivery: DeliveryId, go: Go) -> Attempt {
        self.in_flight += 1;
        self.last_start = now.wall;
        self.unsaved_starts = self.unsaved_starts.saturating_add(1);
        if let Some(rate) = self.rate.as_mut().filter(|rate| rate.in_force) {
            rate.bucket.take(&rate.limit.quota, now.mono);
            if let Some(pace) = &mut rate.pace {
                pace.take(now.mono);
            }
        }
        if go.probe.is_some() {
            self.breaker.probe_started();
            self.throttle.probe_started();
            self.last_probe = Some(delivery);
        }
        Attempt {
            started: now,
            timeout: go.timeout,
            cut_short: go.cut_short,
            probe: go.probe,
            breaker_generation: self.breaker.generation(),
            throttle_generation: self.throttle.generation(),
        }
    }

    /// An attempt ended: what does that say about the destination?
    pub fn finish(
        &mut self,
        now: Now,
        policy: &Policy,
        delivery: DeliveryId,
        attempt: &Attempt,
        report: &Report,
    ) -> Aftermath {
        self.in_flight = self.in_flight.saturating_sub(1);
        let outcome = report.outcome;
        let bearing = if attempt.cut_short && outcome == Outcome::Timeout {
            Bearing::Neutral
        } else {
            outcome.bearing()
        };
        let current = attempt.breaker_generation == self.breaker.generation()
            && attempt.throttle_generation == self.throttle.generation();
        let max = policy.max_concurrency.get();
        // What was on its way when the destination asked for a pause says nothing about how it will be after it.
        let asked_to_wait = self.unavailable_at(now.wall).is_some();
        match bearing {
            Bearing::Success if current && !asked_to_wait => self.ramp.raise(max),
            Bearing::Failure if current => self.ramp.lower(max),
            _ => {}
        }
        if outcome != Outcome::Cancelled {
            self.last = Some(outcome.bearing());
        }
        let timeout = self.learn_timeout(now.wall, policy, attempt, report);
        let throttled = self.learn_pace(now, attempt, report);
        let breaker =
            self.breaker.observe(&policy.breaker, now, attempt.breaker_generation, delivery, bearing);
        match breaker {
            Some(BreakerChange::Opened { .. }) => {
                self.ramp = Ramp::START;
                self.timeouts.breaker_opened();
            }
            Some(BreakerChange::Closed) => self.timeouts.breaker_closed(),
            None => {}
        }
        let verdict = self.health.observe(now.wall, delivery, &outcome, self.rested_until);
        let disabled = verdict.filter(|_| self.standing.disabled.is_none());
        if let Some(cause) = disabled {
            self.standing.disabled = Some((now.wall, cause));
        }
        Aftermath { breaker, throttled, disabled, timeout, halted: None }
    }

    /// 429, 503 with `Retry-After`, and what their headers say. `true` if a throttle episode has begun.
    fn learn_pace(&mut self, now: Now, attempt: &Attempt, report: &Report) -> bool {
        let generation = attempt.throttle_generation;
        let mut began = false;
        match report.outcome {
            Outcome::RateLimited { retry_after } => {
                began = self.throttle.rate_limited(now.wall, generation, retry_after);
                self.ramp = Ramp::START;
            }
            Outcome::Success { .. } => self.throttle.succeeded(generation),
            Outcome::Cancelled => self.throttle.cut_off(generation),
            Outcome::Unavailable { retry_after } => {
                self.throttle.ended_otherwise(generation);
                self.wait_until(now.wall, now.wall + retry_after);
                self.ramp = Ramp::START;
            }
            _ => self.throttle.ended_otherwise(generation),
        }
        if let Some(pace) =
            self.rate.as_mut().filter(|rate| rate.in_force).and_then(|rate| rate.pace.as_mut())
        {
            match (report.outcome, self.throttle.shut()) {
                (Outcome::RateLimited { .. }, Some((_, until))) => {
                    pace.rate_limited(now.mono, until - now.wall);
                }
                (Outcome::Success { .. }, None) => pace.passed(),
                // One that started before the throttle says nothing about what comes after it.
                _ => {}
            }
            if let Some(hint) = &report.rate_hint {
                pace.stated(now.mono, hint);
            }
        }
        began
    }

    /// Their 503 with `Retry-After`, if it still counts.
    pub fn unavailable_at(&self, now: Timestamp) -> Option<Unavailable> {
        self.unavailable.filter(|wait| now < wait.until)
    }

    /// They ask us to wait until `until`; once more, perhaps, which only lengthens it.
    fn wait_until(&mut self, now: Timestamp, until: Timestamp) {
        let wait = self.unavailable_at(now).unwrap_or(Unavailable { since: now, until });
        self.unavailable = Some(Unavailable { until: wait.until.max(until), ..wait });
    }

    /// Which attempts say something about latency: those that were answered, and those that outlasted our patience; not
    /// one that expiry cut short, or that never reached them.
    fn learn_timeout(
        &mut self,
        now: Timestamp,
        policy: &Policy,
        attempt: &Attempt,
        report: &Report,
    ) -> Option<TimeoutChange> {
        let (elapsed, timeout) = (report.elapsed, attempt.timeout);
        let probe = attempt.probe == Some(Probe::Breaker);
        let guarded = policy.breaker.enabled;
        let sample = match report.outcome {
            Outcome::Timeout if attempt.cut_short => return None,
            Outcome::Timeout if guarded => Sample::TimedOut { timeout, probe },
            Outcome::Timeout => Sample::TimedOutUnguarded { timeout },
            outcome if outcome.status().is_none() => return None,
            outcome if guarded && outcome.bearing() == Bearing::Failure => Sample::Failed { elapsed, probe },
            _ => Sample::Answered { elapsed, probe },
        };
        self.timeouts.observe(now, &policy.timeout, &policy.timeout_params, sample)
    }

    /// What falls due by the calendar: the daily computation of the timeout. Costs nothing when it is not due.
    pub fn refresh(&mut self, now: Timestamp, policy: &Policy) -> Option<TimeoutChange> {
        self.timeouts.recompute(now, &policy.timeout, &policy.timeout_params)
    }

    /// The destination was left alone on purpose until `until`: that time does not count as failing.
    pub fn rested(&mut self, until: Timestamp) {
        self.rested_until = self.rested_until.max(Some(until));
    }

    /// Its owner changed the policy. Tokens are kept as far as they fit, and none are gained.
    pub fn adopt(&mut self, old: &Policy, new: &Policy, now: Now) {
        self.fit(new, now);
        if old.account_paused.is_some() && new.account_paused.is_none() {
            self.rested(now.wall);
        }
        if matches!(old.timeout, TimeoutMode::Manual(_)) && !matches!(new.timeout, TimeoutMode::Manual(_)) {
            self.timeouts.reset();
        }
    }

    /// Makes the state one of `policy`: its bucket, and no open breaker where that is switched off.
    fn fit(&mut self, policy: &Policy, now: Now) {
        self.rate = match (self.rate.take(), policy.rate_limit) {
            (None, None) => None,
            (Some(state), None) => Some(RateState { in_force: false, ..state }),
            (None, Some(limit)) => Some(RateState::full(limit, now.mono)),
            (Some(state), Some(limit)) => Some(state.under(limit, now.mono)),
        };
        if !policy.breaker.enabled {
            self.breaker.switch_off();
            self.timeouts.breaker_closed();
        }
    }

    /// The wall clock was set by `by`. Waits (breaker, throttle, `Retry-After`) are lengths of time: what is left of them stays
    /// the same. Says whether there is any.
    pub fn clock_set(&mut self, by: Millis) -> bool {
        self.breaker.shift(by);
        self.throttle.shift(by);
        self.unavailable = self.unavailable.map(|wait| wait.shifted(by));
        self.last_start = self.last_start + by;
        self.awake_since = self.awake_since + by;
        self.breaker.open().is_some() || self.throttle.shut().is_some() || self.unavailable.is_some()
    }

    /// After a start of the process: a wait that began later than `now` was noted by a clock that was ahead, and begins now. One
    /// whose beginning is not known is over if it is longer than anybody may ask for.
    pub(crate) fn fit_clock(&mut self, now: Timestamp) {
        if let Some((since, _)) = self.breaker.open().filter(|(since, _)| *since > now) {
            self.breaker.shift(now - since);
        }
        if let Some((since, _)) = self.throttle.shut().filter(|(since, _)| *since > now) {
            self.throttle.shift(now - since);
        }
        if let Some(wait) = self.unavailable.filter(|wait| wait.since > now) {
            self.unavailable = Some(wait.shifted(now - wait.since));
        }
        self.unavailable = self.unavailable.filter(|wait| wait.until <= now + limits::MAX_RETRY_AFTER);
    }

    /// A person says: try now. Clears breaker, throttle and `unavailable`; one probe goes first.
    pub fn retry_now(&mut self, now: Timestamp) {
        self.breaker.retry_now(now);
        self.throttle.retry_now(now);
        self.unavailable = None;
    }
}

impl Unavailable {
    fn shifted(self, by: Millis) -> Self {
        Self { since: self.since + by, until: self.until + by }
    }
}

impl RateState {
    fn full(limit: RateLimit, now: Mono) -> Self {
        let pace = (limit.mode == RateMode::Adaptive).then(|| Pace::new(now));
        Self { limit, bucket: Bucket::full(&limit.quota, now), pace, in_force: true }
    }
    fn under(self, limit: RateLimit, now: Mono) -> Self {
        let pace = match limit.mode {
            RateMode::Fixed => None,
            RateMode::Adaptive => self.pace.or_else(|| Some(Pace::new(now))),
        };
        let bucket = self.bucket.under(&self.limit.quota, &limit.quota, now);
        Self { limit, bucket, pace, in_force: true }
    }
}

#[cfg(test)]
mod tests;
