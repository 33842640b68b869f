//! A lane's state as bytes: how it lies in the store.
//!
//! In two parts. The state behind the gates is small, and for a healthy lane the same after each success; what the
//! timeouts have learned is larger, grows with each sample and is missed least. Each begins with a version. Reading never
//! panics, whatever the bytes: what cannot be read is `None`, and the lane starts anew.

use std::sync::Arc;

use super::saved::{Lasting, SavedLane, SavedWait};
use super::{HaltedLine, LaneState, RateState, Standing};
use crate::breaker::Breaker;
use crate::delivery::HoldReason;
use crate::health::{DisabledCause, Health};
use crate::lane::bytes::{Reader, Writer};
use crate::order::Line;
use crate::outcome::Bearing;
use crate::pace::Pace;
use crate::policy::Policy;
use crate::ramp::Ramp;
use crate::rate::{Bucket, Quota, RateLimit, RateMode};
use crate::throttle::Throttle;
use crate::time::{Mono, Now, Timestamp};
use crate::timeout::Timeouts;

const VERSION: u8 = 1;

impl LaneState {
    /// The bytes of [`save`](Self::save)'s state part, without a copy of the state: for every commit.
    pub fn encode_state(&self, policy: &Policy, now: Now) -> Vec<u8> {
        encode(self, &self.lasting(policy, now))
    }

    /// The bytes of what the timeouts have learned.
    pub fn encode_timeouts(&self) -> Vec<u8> {
        self.timeouts.encode()
    }
}

impl SavedLane {
    /// The state behind the gates.
    pub fn encode_state(&self) -> Vec<u8> {
        encode(&self.state, &self.lasting)
    }

    /// What the timeouts have learned.
    pub fn encode_timeouts(&self) -> Vec<u8> {
        self.state.encode_timeouts()
    }

    /// Reads both parts; without the second, nothing is learned yet. `None`: written by a newer release, or damaged.
    pub fn decode(state: &[u8], timeouts: Option<&[u8]>) -> Option<Self> {
        let mut from = Reader::new(state, VERSION)?;
        let saved = read(&mut from, timeouts.map_or_else(|| Some(Timeouts::new()), Timeouts::decode)?)?;
        from.end().map(|()| saved)
    }
}

fn encode(state: &LaneState, lasting: &Lasting) -> Vec<u8> {
    let mut out = Writer::new(VERSION);
    write_standing(&mut out, state.standing);
    state.breaker.write(&mut out);
    state.throttle.write(&mut out);
    write_wait(&mut out, lasting.unavailable);
    out.option(state.rate.as_ref().zip(lasting.full_at), write_rate);
    state.health.write(&mut out);
    out.byte(match state.last {
        None => 0,
        Some(Bearing::Success) => 1,
        Some(Bearing::Failure) => 2,
        Some(Bearing::Neutral) => 3,
    });
    out.option(state.last_probe, Writer::id);
    out.option(lasting.rested_until, Writer::time);
    out.option(lasting.held, |out, (reason, since)| {
        out.block(reason.word().as_bytes());
        out.time(since);
    });
    out.number(lasting.max_concurrency.into());
    state.halted.iter().for_each(|line| write_halted(&mut out, line));
    out.into_bytes()
}

fn read(from: &mut Reader<'_>, timeouts: Timeouts) -> Option<SavedLane> {
    let standing = read_standing(from)?;
    let (breaker, throttle) = (Breaker::read(from)?, Throttle::read(from)?);
    let unavailable = read_wait(from)?;
    let (rate, full_at) = from.option(read_rate)?.unzip();
    let health = Health::read(from)?;
    let last = match from.byte()? {
        0 => None,
        1 => Some(Bearing::Success),
        2 => Some(Bearing::Failure),
        3 => Some(Bearing::Neutral),
        _ => return None,
    };
    let last_probe = from.option(Reader::id)?;
    let rested_until = from.option(Reader::time)?;
    let held = from.option(read_held)?;
    let max_concurrency = from.number_u32()?;
    let mut halted = Vec::new();
    while from.end().is_none() {
        halted.push(read_halted(from)?);
    }
    let state = LaneState {
        standing,
        breaker,
        throttle,
        // Its beginning, and the time of the last start, are fitted in when the lane is restored.
        unavailable: None,
        ramp: Ramp::START,
        in_flight: 0,
        last_start: Timestamp::MIN,
        awake_since: Timestamp::MIN,
        rate,
        timeouts,
        health,
        last,
        last_probe,
        rested_until,
        halted,
        held,
        unsaved_starts: 0,
    };
    Some(SavedLane { state, lasting: Lasting { unavailable, rested_until, held, full_at, max_concurrency } })
}

/// Without its beginning where that is not known: as all were written once.
fn write_wait(out: &mut Writer, wait: Option<SavedWait>) {
    match wait {
        None => out.byte(0),
        Some(SavedWait { since: None, until }) => {
            out.byte(1);
            out.time(until);
        }
        Some(SavedWait { since: Some(since), until }) => {
            out.byte(2);
            out.time(until);
            out.time(since);
        }
    }
}

fn read_wait(from: &mut Reader<'_>) -> Option<Option<SavedWait>> {
    Some(match from.byte()? {
        0 => None,
        1 => Some(SavedWait { until: from.time()?, since: None }),
        2 => Some(SavedWait { until: from.time()?, since: Some(from.time()?) }),
        _ => return None,
    })
}

fn write_standing(out: &mut Writer, standing: Standing) {
    let Standing { disabled, paused } = standing;
    out.byte(match disabled {
        None => 0,
        Some((_, DisabledCause::ByRequest)) => 1,
        Some((_, DisabledCause::Gone)) => 2,
        Some((_, DisabledCause::Failing)) => 3,
    });
    if let Some((since, _)) = disabled {
        out.time(since);
    }
    out.option(paused, Writer::time);
}

fn read_standing(from: &mut Reader<'_>) -> Option<Standing> {
    let cause = match from.byte()? {
        0 => None,
        1 => Some(DisabledCause::ByRequest),
        2 => Some(DisabledCause::Gone),
        3 => Some(DisabledCause::Failing),
        _ => return None,
    };
    let disabled = match cause {
        Some(cause) => Some((from.time()?, cause)),
        None => None,
    };
    Some(Standing { disabled, paused: from.option(Reader::time)? })
}

fn write_rate(out: &mut Writer, (rate, full_at): (&RateState, Timestamp)) {
    rate.limit.quota.write(out);
    out.time(full_at);
    out.flag(rate.limit.mode == RateMode::Adaptive);
    out.option(rate.pace.as_ref(), |out, pace| pace.write(out));
}

/// The bucket is filled when the lane is restored: only then is the time known.
fn read_rate(from: &mut Reader<'_>) -> Option<(RateState, Timestamp)> {
    let quota = Quota::read(from)?;
    let full_at = from.time()?;
    let mode = if from.flag()? { RateMode::Adaptive } else { RateMode::Fixed };
    let pace = from.option(Pace::read)?;
    let bucket = Bucket::full(&quota, Mono::default());
    // Whether it is in force is for the policy of then to say.
    Some((RateState { limit: RateLimit { quota, mode }, bucket, pace, in_force: true }, full_at))
}

fn read_held(from: &mut Reader<'_>) -> Option<(HoldReason, Timestamp)> {
    let word = std::str::from_utf8(from.block()?).ok()?;
    Some((HoldReason::from_word(word)?, from.time()?))
}

/// Without its time where that is not known: as all were written once.
fn write_halted(out: &mut Writer, HaltedLine { line, head, since }: &HaltedLine) {
    let dated = if since.is_some() { 2 } else { 0 };
    match line {
        Line::Whole => out.byte(dated),
        Line::Key(key) => {
            out.byte(dated + 1);
            out.block(key.as_bytes());
        }
    }
    out.id(*head);
    if let Some(since) = since {
        out.time(*since);
    }
}

fn read_halted(from: &mut Reader<'_>) -> Option<HaltedLine> {
    let kind = from.byte()?;
    let line = match kind {
        0 | 2 => Line::Whole,
        1 | 3 => Line::Key(Arc::from(std::str::from_utf8(from.block()?).ok()?)),
        _ => return None,
    };
    let head = from.id()?;
    let since = if kind >= 2 { Some(from.time()?) } else { None };
    Some(HaltedLine { line, head, since })
}

#[cfg(test)]
mod tests;
