//! Watches one throttled destination from outside: what it answered, and when it was asked again.

use std::collections::BTreeSet;

use tidegate_core::delivery::{Dead, End, Status};
use tidegate_core::outcome::Outcome;
use tidegate_core::time::{Millis, Timestamp};
use tidegate_engine::dispatcher::Sending;

use crate::run::{Note, Observer, View};

/// How long a destination that does not say is to be left alone, by the number of throttles in a row. Written out once
/// more: what is judged here is that the rules have the same.
pub(super) const WINDOWS: [Millis; 5] =
    [Millis::seconds(60), Millis::minutes(5), Millis::minutes(15), Millis::hours(1), Millis::hours(6)];

/// What one destination shows of its throttles.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    lane: usize,
    now: State,
    /// 429s in a row, each to an attempt that started after the one before.
    in_a_row: usize,
    last_probe: Option<u64>,
    /// Throttles, however many 429s each had.
    pub(super) episodes: u64,
    /// Requests that went first after a throttle.
    pub(super) probes: u64,
    /// Requests while it was to be left alone, or while the probe was out.
    pub(super) intrusions: u64,
    /// Probes of the same delivery as the probe before.
    pub(super) repeated: u64,
    /// Deliveries that were a probe.
    pub(super) probed: BTreeSet<u64>,
    /// For how long it was left alone, in whole seconds.
    pub(super) windows: BTreeSet<Millis>,
    /// The longest that a probe came after the time it asked for or, if it did not, after its window.
    pub(super) late: Millis,
    pub(super) sent: u64,
    pub(super) delivered: u64,
    pub(super) refused: u64,
    /// Answers that came when nothing else waited.
    pub(super) starved: u64,
    pub(super) ended: u64,
    /// Dead letters, but for those that were too old.
    pub(super) dead: u64,
    /// The most attempts that a delivery had used up when it went back to the queue.
    pub(super) used_up: u32,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Clear,
    LeftAlone { since: Timestamp, until: Timestamp },
    ProbeOut { sequence: u64 },
}

impl Watch {
    pub(super) const fn new(lane: usize) -> Self {
        Self {
            lane,
            now: State::Clear,
            in_a_row: 0,
            last_probe: None,
            episodes: 0,
            probes: 0,
            intrusions: 0,
            repeated: 0,
            probed: BTreeSet::new(),
            windows: BTreeSet::new(),
            late: Millis::ZERO,
            sent: 0,
            delivered: 0,
            refused: 0,
            starved: 0,
            ended: 0,
            dead: 0,
            used_up: 0,
        }
    }

    fn sent(&mut self, now: Timestamp, sequence: u64) {
        self.sent += 1;
        match self.now {
            State::Clear => {}
            State::LeftAlone { since, until } => {
                self.intrusions += u64::from(now < until);
                self.late = self.late.max(now - until);
                self.windows.insert(Millis::seconds((now - since).get() / 1_000));
                self.probes += 1;
                self.repeated += u64::from(self.last_probe.replace(sequence) == Some(sequence));
                self.probed.insert(sequence);
                self.now = State::ProbeOut { sequence };
            }
            State::ProbeOut { .. } => self.intrusions += 1,
        }
    }

    fn answered(&mut self, now: Timestamp, sending: &Sending, outcome: Outcome) {
        let was_probe =
            matches!(self.now, State::ProbeOut { sequence } if sequence == sending.place.sequence);
        match (outcome, self.now) {
            (Outcome::RateLimited { retry_after }, State::LeftAlone { since, until }) => {
                // Sent before the throttle began: a longer word counts, but it is the same throttle.
                let asked = retry_after.map_or(until, |wait| now + wait);
                self.now = State::LeftAlone { since, until: until.max(asked) };
                self.refused += 1;
            }
            (Outcome::RateLimited { retry_after }, _) => {
                self.refused += 1;
                self.episodes += 1;
                self.in_a_row += 1;
                let rung = WINDOWS[self.in_a_row.min(WINDOWS.len()) - 1];
                self.now = State::LeftAlone { since: now, until: now + retry_after.unwrap_or(rung) };
            }
            (Outcome::Success { .. }, _) => {
                self.delivered += 1;
                if was_probe {
                    self.now = State::Clear;
                    self.in_a_row = 0;
                }
            }
            _ => {}
        }
    }
}

impl Observer for Watch {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        let now = view.now.wall;
        match note {
            Note::Sent(lane, sending) if lane.index() == self.lane => self.sent(now, sending.place.sequence),
            Note::Answered(lane, sending, answer) if lane.index() == self.lane => {
                self.starved += u64::from(view.backing.open_count(*lane) <= 1);
                self.answered(now, sending, answer.report.outcome);
            }
            Note::Settled(lane, delivery) if lane.index() == self.lane => match delivery.status {
                Status::Final(end) => {
                    self.ended += 1;
                    self.dead +=
                        u64::from(matches!(end, End::DeadLetter(dead) if !matches!(dead, Dead::TooOld(_))));
                }
                _ => self.used_up = self.used_up.max(delivery.attempts_used),
            },
            _ => {}
        }
    }
}
