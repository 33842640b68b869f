//! What is measured in a run of the fleet. `docs/scenarios.md` defines each figure; this is where it is counted.

use tidegate_core::breaker::BreakerChange;
use tidegate_core::delivery::{Delivery, End, Status};
use tidegate_core::outcome::Outcome;
use tidegate_core::time::{Millis, Timestamp};
use tidegate_engine::dispatcher::{LaneId, Sending};

use super::figures::SlowForGood;
use super::world::Member;
use crate::run::{Note, Observer, View};
use crate::world::{Answer, Trouble, TroubleKind};

/// An attempt that began in an outage has ended this long after it, whatever its timeout.
const LAST_ANSWERS: Millis = Millis::seconds(31);

/// Counts what the figures are made of. Holds one small record per destination and outage, and nothing per delivery.
#[derive(Debug)]
pub(super) struct Gauge {
    measured: (Timestamp, Timestamp),
    lanes: Vec<LaneGauge>,
    pub(super) totals: Totals,
    pub(super) slow: SlowForGood,
}

/// Sums over the attempts that began in the measured time, and over all deliveries.
#[derive(Clone, Debug, Default)]
pub(super) struct Totals {
    /// Deliveries that came to an end, in the whole run.
    pub(super) deliveries: u64,
    /// Of these, the ones that were given up.
    pub(super) dead: u64,
    /// Requests, in the whole run.
    pub(super) attempts: u64,
    pub(super) measured_attempts: u64,
    pub(super) false_timeouts: u64,
    pub(super) busy: Millis,
    pub(super) failed: Millis,
    /// Openings of breakers with no outage to explain them.
    pub(super) false_alarms: u64,
}

#[derive(Debug)]
struct LaneGauge {
    outages: Vec<Outage>,
    /// The first outage that is not over.
    next: usize,
    slow_from: Option<Timestamp>,
    /// Slow for good, and no success since the first event that came then.
    unserved_since: Option<Timestamp>,
    /// Sum and number of the daily readings of the timeout in force.
    readings: (Millis, i64),
}

/// One outage, and when it was felt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outage {
    from: Timestamp,
    to: Timestamp,
    hangs: bool,
    first_attempt: Option<Timestamp>,
    opened: Option<Timestamp>,
}

impl Outage {
    fn of(trouble: &Trouble) -> Self {
        Self {
            from: trouble.from,
            to: trouble.to,
            hangs: trouble.kind == TroubleKind::Hangs,
            first_attempt: None,
            opened: None,
        }
    }
    /// Whether anything was sent while it lasted.
    pub(super) const fn felt(&self) -> bool {
        self.first_attempt.is_some()
    }
    /// Whether requests got no answer in it, rather than a quick error.
    pub(super) const fn hangs(&self) -> bool {
        self.hangs
    }
    /// From the first attempt in it to the breaker's opening.
    pub(super) fn detected_after(&self) -> Option<Millis> {
        Some(self.opened? - self.first_attempt?)
    }
}

impl Gauge {
    /// For a fleet, measured from the first time up to the second.
    pub(super) fn new(fleet: &[Member], measured: (Timestamp, Timestamp)) -> Self {
        let lane = |member: &Member| LaneGauge {
            outages: member.outages().map(Outage::of).collect(),
            next: 0,
            slow_from: member.slow_from(),
            unserved_since: None,
            readings: (Millis::ZERO, 0),
        };
        let lanes = fleet.iter().map(lane).collect();
        Self { measured, lanes, totals: Totals::default(), slow: SlowForGood::default() }
    }

    /// Takes down the timeout that each destination has in force: at the end of each measured day.
    pub(super) fn read_timeouts(&mut self, in_force: &[Millis]) {
        for (lane, timeout) in self.lanes.iter_mut().zip(in_force) {
            lane.readings.0 += *timeout;
            lane.readings.1 += 1;
        }
    }

    /// The mean of each destination's readings.
    pub(super) fn timeouts(&self) -> impl Iterator<Item = Millis> + '_ {
        self.lanes.iter().map(|lane| lane.readings.0.scaled(1, lane.readings.1.max(1)))
    }

    /// The outages that began in the measured time.
    pub(super) fn outages(&self) -> impl Iterator<Item = &Outage> {
        self.lanes.iter().flat_map(|lane| &lane.outages).filter(|outage| self.measures(outage.from))
    }

    fn measures(&self, at: Timestamp) -> bool {
        self.measured.0 <= at && at < self.measured.1
    }

    fn accepted(&mut self, lane: LaneId, now: Timestamp) {
        let lane = &mut self.lanes[lane.index()];
        if lane.slow_from.is_some_and(|from| from <= now) {
            lane.unserved_since.get_or_insert(now);
        }
    }

    fn answered(&mut self, lane: LaneId, now: Timestamp, sending: &Sending, answer: &Answer) {
        let (outcome, elapsed) = (answer.report.outcome, answer.report.elapsed);
        let success = matches!(outcome, Outcome::Success { .. });
        if success {
            let since = self.lanes[lane.index()].unserved_since.take();
            self.slow.locked_out = self.slow.locked_out.max(since.map_or(Millis::ZERO, |since| now - since));
        }
        self.totals.attempts += 1;
        if !self.measures(sending.attempt.started.wall) {
            return;
        }
        self.totals.measured_attempts += 1;
        self.totals.busy += elapsed;
        if !success {
            self.totals.failed += elapsed;
        }
        self.totals.false_timeouts += u64::from(outcome == Outcome::Timeout && answer.would_succeed);
    }

    fn settled(&mut self, lane: LaneId, delivery: &Delivery) {
        let Status::Final(end) = delivery.status else { return };
        let dead = u64::from(end != End::Delivered);
        self.totals.deliveries += 1;
        self.totals.dead += dead;
        let accepted = delivery.place.occurred_at;
        if self.lanes[lane.index()].slow_from.is_some_and(|from| from <= accepted) {
            self.slow.dead += dead;
            self.slow.delivered += 1 - dead;
        }
    }

    /// The run is over: whoever still waits has been locked out until now.
    pub(super) fn finish(&mut self, now: Timestamp) {
        let waits = self.lanes.iter().filter_map(|lane| lane.unserved_since).map(|since| now - since);
        self.slow.locked_out = waits.fold(self.slow.locked_out, Millis::max);
    }

    fn opened(&mut self, lane: LaneId, now: Timestamp) {
        let measured = self.measures(now);
        match self.lanes[lane.index()].outage_at(now).filter(|outage| outage.felt()) {
            Some(outage) => {
                outage.opened.get_or_insert(now);
            }
            None => self.totals.false_alarms += u64::from(measured),
        }
    }
}

impl LaneGauge {
    /// The outage that attempts which end at `now` may have met.
    fn outage_at(&mut self, now: Timestamp) -> Option<&mut Outage> {
        while self.outages.get(self.next).is_some_and(|outage| outage.to + LAST_ANSWERS < now) {
            self.next += 1;
        }
        self.outages.get_mut(self.next).filter(|outage| outage.from <= now)
    }

    fn sent(&mut self, now: Timestamp) {
        if let Some(outage) = self.outage_at(now).filter(|outage| now < outage.to) {
            outage.first_attempt.get_or_insert(now);
        }
    }
}

impl Observer for Gauge {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        let now = view.now.wall;
        match note {
            Note::Accepted(lane, _) => self.accepted(*lane, now),
            Note::Sent(lane, _) => self.lanes[lane.index()].sent(now),
            Note::Answered(lane, sending, answer) => self.answered(*lane, now, sending, answer),
            Note::Settled(lane, delivery) => self.settled(*lane, delivery),
            Note::Changed(lane, aftermath) => {
                if let Some(BreakerChange::Opened { .. }) = aftermath.breaker {
                    self.opened(*lane, now);
                }
            }
            _ => {}
        }
    }
}
