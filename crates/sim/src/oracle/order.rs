//! Order: in a `fifo` destination, and within an ordering key, one request at a time, and a delivery goes only when every
//! earlier one that was there before it and due is final.
//!
//! What is final shows in the store only at the next commit, and the next of the line may rightly go before that. So one
//! that was answered counts as final for the moment; should its commit then say that it is to be tried again, whatever
//! overtook it meanwhile was too early. A crash undoes what was not committed: what was in flight or answered waits again,
//! and goes first again. One that has been tried keeps its turn before those that come in later with an earlier
//! `occurred_at`; so does one that was sent when they came in.

use std::collections::{BTreeMap, HashMap};

use tidegate_core::delivery::{Delivery, Place, Status};
use tidegate_core::limits::MIN_TIME_TO_SEND;
use tidegate_core::order::{Line, Ordering};
use tidegate_core::time::{Millis, Mono, Now, Timestamp};

use super::Violations;
use crate::run::{Note, Observer, Setup, View};

/// One that comes in late, or due, goes before others only once the lane has it: that may take a look into the store.
const NOTICED_WITHIN: Millis = Millis::seconds(1);

/// Watches the order of every line.
#[derive(Clone, Debug)]
pub struct Order {
    lanes: Vec<Lane>,
    /// The latest that the wall clock ever showed: what ended by it stays ended, though the clock may be set back.
    latest: Timestamp,
    violations: Violations,
}

#[derive(Clone, Debug)]
struct Lane {
    ordering: Ordering,
    lines: HashMap<Line, Queue>,
    line_of: HashMap<u64, Line>,
}

/// The open deliveries of a line.
#[derive(Clone, Debug, Default)]
struct Queue {
    standings: BTreeMap<Place, Standing>,
    in_flight: Option<Place>,
}

/// How a delivery stands in its line.
#[derive(Clone, Debug)]
struct Standing {
    phase: Phase,
    accepted: Mono,
    /// Waits for its own time until then.
    due_at: Option<Timestamp>,
    /// Ends by itself then.
    ends_at: Timestamp,
    /// Whether it was tried, as far as the lane knows, and as far as the store does.
    tried: bool,
    stored_as_tried: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    InFlight,
    /// Answered, but the result is not in the store; the place of one that has overtaken it since.
    Answered {
        overtaken_by: Option<Place>,
    },
}

impl Order {
    /// For the destinations of `setup`.
    pub fn new(setup: &Setup) -> Self {
        let lane = |ordering| Lane { ordering, lines: HashMap::new(), line_of: HashMap::new() };
        let lanes = setup.destinations.iter().map(|destination| lane(destination.policy.ordering)).collect();
        Self { lanes, latest: setup.start, violations: Violations::default() }
    }
    /// What was wrong, if anything: the first few.
    pub fn violations(&self) -> &[String] {
        self.violations.kept()
    }
    /// How often.
    pub const fn count(&self) -> u64 {
        self.violations.count()
    }
}

impl Standing {
    fn of(delivery: &Delivery, accepted: Mono) -> Self {
        let expires = delivery.expires_at.map_or(Timestamp::MAX, |at| at - MIN_TIME_TO_SEND);
        let tried = delivery.attempts_made > 0;
        Self {
            phase: Phase::Waiting,
            accepted,
            due_at: own_time(delivery),
            ends_at: expires.min(delivery.too_old_at),
            tried,
            stored_as_tried: tried,
        }
    }

    /// Whether `later`, sent now, should have waited for this one, which stands at `place`.
    fn goes_before(&self, place: Place, later: Place, now: Now, latest: Timestamp) -> bool {
        let noticed = place.sequence < later.sequence || now.mono.since(self.accepted) >= NOTICED_WITHIN;
        // A retry keeps its turn while it waits for its time; one that was scheduled joins when due.
        let joined = self.tried || self.due_at.is_none_or(|at| now.wall >= at + NOTICED_WITHIN);
        self.phase == Phase::Waiting && self.ends_at > latest && noticed && joined
    }
}

fn own_time(delivery: &Delivery) -> Option<Timestamp> {
    match delivery.status {
        Status::RetryScheduled { at, .. } => Some(at),
        _ => None,
    }
}

impl Lane {
    fn accepted(&mut self, delivery: &Delivery, now: Mono) {
        let Some(line) = self.ordering.line(delivery).filter(|_| !delivery.status.is_final()) else { return };
        self.line_of.insert(delivery.place.sequence, line.clone());
        let line = self.lines.entry(line).or_default();
        line.standings.insert(delivery.place, Standing::of(delivery, now));
    }

    fn line(&mut self, place: Place) -> Option<&mut Queue> {
        self.lines.get_mut(self.line_of.get(&place.sequence)?)
    }

    /// A request for the delivery at `place` begins: what is wrong with that?
    fn sent(&mut self, place: Place, now: Now, latest: Timestamp) -> Option<String> {
        let line = self.line(place)?;
        let (sequence, at) = (place.sequence, now.wall);
        let other = line.in_flight.replace(place).map(|other| {
            let other = other.sequence;
            format!("sequence {sequence} sent at {at} while {other} is in flight")
        });
        let tried = line.standings.get(&place).is_none_or(|standing| standing.tried);
        let mut overtaken = None;
        for (before, earlier) in line.standings.range_mut(..place) {
            if let Phase::Answered { overtaken_by } = &mut earlier.phase {
                overtaken_by.get_or_insert(place);
            } else if !tried && earlier.goes_before(*before, place, now, latest) {
                overtaken.get_or_insert(before.sequence);
            }
        }
        if let Some(standing) = line.standings.get_mut(&place) {
            (standing.phase, standing.tried) = (Phase::InFlight, true);
        }
        let early = |before| format!("sequence {sequence} sent at {at} before {before}, which is not final");
        other.or_else(|| overtaken.map(early))
    }

    fn answered(&mut self, place: Place) {
        let Some(line) = self.line(place) else { return };
        line.in_flight.take_if(|other| *other == place);
        if let Some(standing) = line.standings.get_mut(&place) {
            standing.phase = Phase::Answered { overtaken_by: None };
        }
    }

    /// A delivery's new state is in the store: what does that show to have been wrong?
    fn settled(&mut self, delivery: &Delivery) -> Option<String> {
        let place = delivery.place;
        let line = self.line(place)?;
        if delivery.status.is_final() {
            line.standings.remove(&place);
            let empty = line.standings.is_empty();
            let name = self.line_of.remove(&place.sequence)?;
            if empty {
                self.lines.remove(&name);
            }
            return None;
        }
        let standing = line.standings.get_mut(&place)?;
        standing.stored_as_tried = delivery.attempts_made > 0;
        standing.tried |= standing.stored_as_tried;
        let Phase::Answered { overtaken_by } = standing.phase else { return None };
        (standing.phase, standing.due_at) = (Phase::Waiting, own_time(delivery));
        let later = overtaken_by?.sequence;
        Some(format!("sequence {later} was sent before {}, which is to be tried again", place.sequence))
    }

    fn crashed(&mut self) {
        for line in self.lines.values_mut() {
            line.in_flight = None;
            for standing in line.standings.values_mut() {
                (standing.phase, standing.tried) = (Phase::Waiting, standing.stored_as_tried);
            }
        }
    }
}

impl Observer for Order {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        self.latest = self.latest.max(view.now.wall);
        let (id, wrong) = match note {
            Note::Accepted(id, delivery) => {
                self.lanes[id.index()].accepted(delivery, view.now.mono);
                return;
            }
            Note::Sent(id, sending) => {
                (id, self.lanes[id.index()].sent(sending.place, view.now, self.latest))
            }
            Note::Answered(id, sending, _) => {
                self.lanes[id.index()].answered(sending.place);
                return;
            }
            Note::Settled(id, delivery) => (id, self.lanes[id.index()].settled(delivery)),
            Note::Crashed => return self.lanes.iter_mut().for_each(Lane::crashed),
            _ => return,
        };
        if let Some(wrong) = wrong {
            self.violations.add(|| format!("destination {}: {wrong}", id.index()));
        }
    }
}
