//! While a destination is shut, nothing goes; then one probe at a time, until it is well.
//!
//! Judged from the answers that receivers gave (429 and 503 with `Retry-After`) and from the recorded openings of the
//! breaker. A crash takes with it what was learned in the last moment before, and setting the clock moves every end.

use tidegate_core::breaker::BreakerChange;
use tidegate_core::outcome::Outcome;
use tidegate_core::throttle::LADDER;
use tidegate_core::time::{Millis, Mono, Now, Timestamp};
use tidegate_engine::dispatcher::Sending;

use super::Violations;
use crate::run::{Commit, Note, Observer, Setup, View};

/// From the decision to send to the first byte, where that takes a while: what is learned in between comes too late.
const DEPARTS_WITHIN: Millis = Millis::new(2);

/// Watches destinations that are shut.
#[derive(Clone, Debug)]
pub struct Shut {
    lanes: Vec<Lane>,
    commit: Millis,
    slack: Millis,
    probes: u64,
    violations: Violations,
}

#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    throttled: Option<Closed>,
    broken: Option<Closed>,
    unavailable: Option<Closed>,
    throttled_at: Option<Mono>,
    /// When what is stored of it was so.
    kept_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug)]
struct Closed {
    learned_at: Timestamp,
    until: Timestamp,
    /// The probe that is out, by its sequence.
    probe: Option<u64>,
}

impl Shut {
    /// For the destinations of `setup`.
    pub fn new(setup: &Setup) -> Self {
        let commit = match setup.commit {
            Commit::Instant => Millis::ZERO,
            Commit::Grouped(latency) => latency,
        };
        let lanes = vec![Lane::default(); setup.destinations.len()];
        Self { lanes, commit, slack: Millis::ZERO, probes: 0, violations: Violations::default() }
    }
    /// The same where clocks differ by so much.
    #[must_use]
    pub fn within(mut self, slack: Millis) -> Self {
        self.slack = slack;
        self
    }
    /// Probes seen.
    pub const fn probes(&self) -> u64 {
        self.probes
    }
    /// What was wrong, if anything.
    pub fn violations(&self) -> &[String] {
        self.violations.kept()
    }

    fn sent(&mut self, now: Timestamp, index: usize, sequence: u64) {
        let lane = &mut self.lanes[index];
        for (what, closed, single) in [
            ("throttled", &mut lane.throttled, true),
            ("broken", &mut lane.broken, true),
            ("unavailable", &mut lane.unavailable, false),
        ] {
            let Some(closed) = closed else { continue };
            let departing = self.slack > Millis::ZERO && now - closed.learned_at <= DEPARTS_WITHIN;
            if departing {
                continue;
            }
            if now + self.slack < closed.until {
                let until = closed.until;
                self.violations
                    .add(|| format!("destination {index} at {now}: sent although {what} until {until}"));
            } else if single {
                if let Some(out) = closed.probe {
                    self.violations.add(|| {
                        format!("destination {index} at {now}: sent although the probe {out} is out ({what})")
                    });
                }
                closed.probe = Some(sequence);
                self.probes += 1;
            }
        }
        if lane.unavailable.is_some_and(|closed| now >= closed.until) {
            lane.unavailable = None;
        }
    }

    fn answered(&mut self, now: Now, index: usize, sending: &Sending, outcome: Outcome) {
        let lane = &mut self.lanes[index];
        let sequence = sending.place.sequence;
        let was_probe = |closed: &Option<Closed>| closed.is_some_and(|closed| closed.probe == Some(sequence));
        if was_probe(&lane.throttled) {
            lane.throttled = None;
        }
        if let Some(broken) = lane.broken.as_mut().filter(|broken| broken.probe == Some(sequence)) {
            broken.probe = None;
        }
        // Told to slow down before the last time we were: only a longer word counts.
        let stale = lane.throttled_at.is_some_and(|began| sending.attempt.started.mono < began);
        let (shut, wait) = match outcome {
            Outcome::RateLimited { retry_after: None } if stale => return,
            Outcome::RateLimited { retry_after } => {
                if !stale {
                    lane.throttled_at = Some(now.mono);
                }
                (&mut lane.throttled, retry_after.unwrap_or(LADDER[0]))
            }
            Outcome::Unavailable { retry_after } => (&mut lane.unavailable, retry_after),
            _ => return,
        };
        let until = now.wall + wait;
        if shut.is_none_or(|closed| until > closed.until) {
            *shut = Some(Closed { learned_at: now.wall, until, probe: shut.and_then(|closed| closed.probe) });
        }
    }

    fn changed(&mut self, now: Timestamp, index: usize, change: BreakerChange) {
        self.lanes[index].broken = match change {
            BreakerChange::Opened { until } => Some(Closed { learned_at: now, until, probe: None }),
            BreakerChange::Closed => None,
        };
    }

    fn crashed(&mut self, now: Timestamp) {
        for lane in &mut self.lanes {
            for closed in [&mut lane.throttled, &mut lane.broken, &mut lane.unavailable] {
                let lost = closed.is_some_and(|closed| now - closed.learned_at <= self.commit);
                *closed = closed.filter(|_| !lost).map(|closed| Closed { probe: None, ..closed });
            }
        }
    }
}

impl Lane {
    /// What was learned after the lane was last stored is lost.
    fn lost(&mut self) {
        let kept = |closed: &Closed| self.kept_at.is_some_and(|at| closed.learned_at <= at);
        for closed in [&mut self.throttled, &mut self.broken, &mut self.unavailable] {
            *closed = closed.filter(kept).map(|closed| Closed { probe: None, ..closed });
        }
        self.throttled_at = self.throttled_at.filter(|_| self.throttled.is_some());
    }
}

impl Observer for Shut {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        let now = view.now.wall;
        match note {
            Note::Sent(lane, sending) => self.sent(now, lane.index(), sending.place.sequence),
            Note::Answered(lane, sending, answer) => {
                self.answered(view.now, lane.index(), sending, answer.report.outcome);
            }
            Note::Changed(lane, aftermath) => {
                if let Some(change) = aftermath.breaker {
                    self.changed(now, lane.index(), change);
                }
            }
            Note::Crashed => self.crashed(now),
            Note::Lost(lane) => self.lanes[lane.index()].lost(),
            Note::Kept(lane, at) => self.lanes[lane.index()].kept_at = Some(*at),
            Note::ClockSet => self.lanes.iter_mut().for_each(|lane| *lane = Lane::default()),
            _ => {}
        }
    }
}
