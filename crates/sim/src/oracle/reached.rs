//! Rare states that runs with faults are to have come through: a run says nothing about one that it never saw.
//!
//! No oracle: it finds nothing wrong. Whoever runs many seeds adds up and looks whether a state is missing.

use std::collections::{BTreeMap, HashMap, HashSet};

use tidegate_core::delivery::{Dead, End, HoldReason, Late, Status};
use tidegate_core::order::Ordering;
use tidegate_core::outcome::Outcome;
use tidegate_core::time::{Millis, Mono};
use tidegate_engine::dispatcher::LaneId;

use crate::run::{Note, Observer, View};

/// A process that dies so soon after its start dies in its recovery, or right after it.
const SOON: Millis = Millis::seconds(1);

/// Every state that is counted.
pub const STATES: [&str; 22] = [
    "a crash with requests in flight",
    "a crash with a probe in flight",
    "a crash between an answer and its commit",
    "a crash within a second of a start",
    "a crash while a breaker was open",
    "a crash while a destination was throttled",
    "a request sent again after a crash",
    "a retry after a crash",
    "a clock that was set while something waited for a retry",
    "a clock that was set with requests in flight",
    "a probe that failed",
    "a probe that succeeded",
    "a success after three failures",
    "dead after its last attempt",
    "expired before it was sent",
    "expired because its retry would come too late",
    "held back by quiet hours",
    "held back by its own rate",
    "held back by a throttle",
    "held back by a breaker",
    "held back by a 503",
    "the head of a line tried again",
];

/// How often each state was reached.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    counts: BTreeMap<&'static str, u64>,
    /// What is in flight, and whether it is a probe.
    flying: HashMap<(LaneId, u64), bool>,
    /// Answered, and not yet in the store.
    answered: HashSet<u64>,
    /// Cut off by a crash.
    cut: HashSet<u64>,
    /// Waiting for a retry.
    retrying: HashSet<u64>,
    /// Failures of what is open.
    failures: HashMap<u64, u32>,
    started: Option<Mono>,
}

impl Reached {
    /// How often it was.
    pub fn count(&self, state: &str) -> u64 {
        self.counts.get(state).copied().unwrap_or(0)
    }

    fn saw(&mut self, state: &'static str) {
        debug_assert!(STATES.contains(&state), "{state} is not in the list");
        *self.counts.entry(state).or_default() += 1;
    }

    fn saw_if(&mut self, state: &'static str, reached: bool) {
        if reached {
            self.saw(state);
        }
    }

    fn crashed(&mut self, view: &View<'_>) {
        self.saw_if("a crash with requests in flight", !self.flying.is_empty());
        self.saw_if("a crash with a probe in flight", self.flying.values().any(|probe| *probe));
        self.saw_if("a crash between an answer and its commit", !self.answered.is_empty());
        let soon = self.started.is_some_and(|started| view.now.mono.since(started) < SOON);
        self.saw_if("a crash within a second of a start", soon);
        let lanes = view.dispatcher.lanes();
        let broken = lanes.iter().any(|lane| lane.state().breaker.open().is_some());
        let throttled = lanes.iter().any(|lane| lane.state().throttle.shut().is_some());
        self.saw_if("a crash while a breaker was open", broken);
        self.saw_if("a crash while a destination was throttled", throttled);
        self.cut.extend(self.flying.drain().map(|((_, sequence), _)| sequence));
        self.cut.extend(self.answered.drain());
    }

    fn ended(&mut self, end: End) {
        match end {
            End::DeadLetter(Dead::AttemptsUsedUp(_)) => self.saw("dead after its last attempt"),
            End::Expired(Late::Behind(_)) => self.saw("expired before it was sent"),
            End::Expired(Late::RetryTooLate(_)) => self.saw("expired because its retry would come too late"),
            _ => {}
        }
    }
}

impl Observer for Reached {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        match note {
            Note::Sent(lane, sending) => {
                let sequence = sending.place.sequence;
                let again = self.cut.remove(&sequence);
                self.saw_if("a request sent again after a crash", again);
                self.saw_if("a retry after a crash", again && sending.number > 2);
                let ordered = view.dispatcher.lane(*lane).policy().ordering != Ordering::None;
                self.saw_if("the head of a line tried again", ordered && sending.number > 1);
                self.retrying.remove(&sequence);
                self.flying.insert((*lane, sequence), sending.attempt.probe.is_some());
            }
            Note::Answered(lane, sending, answer) => {
                let sequence = sending.place.sequence;
                self.flying.remove(&(*lane, sequence));
                self.answered.insert(sequence);
                let success = matches!(answer.report.outcome, Outcome::Success { .. });
                if sending.attempt.probe.is_some() {
                    self.saw(if success { "a probe that succeeded" } else { "a probe that failed" });
                }
                let failures = self.failures.entry(sequence).or_default();
                if success {
                    let failures = *failures;
                    self.saw_if("a success after three failures", failures >= 3);
                } else {
                    *failures += 1;
                }
            }
            Note::Settled(_, delivery) => {
                let sequence = delivery.place.sequence;
                self.answered.remove(&sequence);
                match delivery.status {
                    Status::Final(end) => {
                        self.failures.remove(&sequence);
                        self.retrying.remove(&sequence);
                        self.ended(end);
                    }
                    Status::RetryScheduled { .. } => {
                        self.retrying.insert(sequence);
                    }
                    _ => {}
                }
            }
            Note::Held(_, reason, ..) => match reason {
                HoldReason::QuietHours => self.saw("held back by quiet hours"),
                HoldReason::RateLimited => self.saw("held back by its own rate"),
                HoldReason::Throttled => self.saw("held back by a throttle"),
                HoldReason::CircuitOpen => self.saw("held back by a breaker"),
                HoldReason::Unavailable => self.saw("held back by a 503"),
                _ => {}
            },
            Note::Crashed => self.crashed(view),
            Note::Restarted => self.started = Some(view.now.mono),
            Note::ClockSet => {
                self.saw_if(
                    "a clock that was set while something waited for a retry",
                    !self.retrying.is_empty(),
                );
                self.saw_if("a clock that was set with requests in flight", !self.flying.is_empty());
            }
            _ => {}
        }
    }
}
