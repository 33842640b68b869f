//! Order: in a `fifo` destination, and within an ordering key, one request at a time, and a delivery goes only when every
//! earlier one that was there before it and due is final.
//!
//! What is final shows in the store only at the next commit, and the next of the line may rightly go before that. So one
//! that was answered counts as final for the moment; should its commit then say that it is to be tried again, whatever
//! overtook it meanwhile was too early. A crash undoes what was not committed: what was in flight or answered waits again,
//! and goes first again. One that has been tried keeps its turn before those that come in later with an earlier
//! `occurred_at`; so does one that was sent when they came in.
//!
//! Which one is the earlier is told by the numbers. Where several nodes give them, that is what is to be shown: there the
//! earlier one is the one whose publisher had its answer before the other was published.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use tidegate_core::delivery::{Delivery, Place, Status};
use tidegate_core::limits::MIN_TIME_TO_SEND;
use tidegate_core::order::{Line, Ordering};
use tidegate_core::time::{Millis, Mono, Now, Timestamp};

use tidegate_engine::dispatcher::{LaneId, Sending};

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
    /// Judged by answers: when deliveries that are not accepted yet were published, by their sequence, in microseconds.
    published: Option<HashMap<u64, i64>>,
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
    /// When it was published, and when its publisher was answered, in microseconds.
    published: i64,
    told: Option<i64>,
    /// Waits for its own time until then.
    due_at: Option<Timestamp>,
    /// Ends by itself then.
    ends_at: Timestamp,
    /// Whether it was tried, as far as the lane knows, and as far as the store does.
    tried: bool,
    stored_as_tried: bool,
    /// The number of its last request.
    number: u32,
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
        Self { lanes, latest: setup.start, published: None, violations: Violations::default() }
    }
    /// The same, judged by the answers that publishers got.
    #[must_use]
    pub fn by_answers(mut self) -> Self {
        self.published = Some(HashMap::new());
        self
    }
    /// A delivery that may be accepted was published then.
    pub(crate) fn published(&mut self, sequence: u64, at: i64) {
        if let Some(published) = &mut self.published {
            published.insert(sequence, at);
        }
    }
    /// Its publisher was answered then.
    pub(crate) fn told(&mut self, lane: LaneId, place: Place, at: i64) {
        let line = self.lanes[lane.index()].line(place);
        if let Some(standing) = line.and_then(|line| line.standings.get_mut(&place)) {
            standing.told = Some(at);
        }
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
            published: i64::MIN,
            told: None,
            due_at: own_time(delivery),
            ends_at: expires.min(delivery.too_old_at),
            tried,
            stored_as_tried: tried,
            number: 0,
        }
    }

    /// Whether what is sent now should have waited for this one; `earlier`: that was accepted earlier.
    fn goes_before(&self, earlier: bool, now: Now, latest: Timestamp) -> bool {
        let noticed = earlier || now.mono.since(self.accepted) >= NOTICED_WITHIN;
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
    fn accepted(&mut self, delivery: &Delivery, now: Mono, published: i64) {
        let Some(line) = self.ordering.line(delivery).filter(|_| !delivery.status.is_final()) else { return };
        self.line_of.insert(delivery.place.sequence, line.clone());
        let line = self.lines.entry(line).or_default();
        let standing = Standing { published, ..Standing::of(delivery, now) };
        line.standings.insert(delivery.place, standing);
    }

    fn line(&mut self, place: Place) -> Option<&mut Queue> {
        self.lines.get_mut(self.line_of.get(&place.sequence)?)
    }

    /// A request begins: what is wrong with that?
    fn sent(&mut self, sending: &Sending, now: Now, latest: Timestamp, by_answers: bool) -> Option<String> {
        let place = sending.place;
        let line = self.line(place)?;
        let (sequence, at) = (place.sequence, now.wall);
        let other = line.in_flight.replace(place).map(|other| {
            let other = other.sequence;
            format!("sequence {sequence} sent at {at} while {other} is in flight")
        });
        let own = line.standings.get(&place);
        let tried = own.is_none_or(|standing| standing.tried);
        let published = own.map_or(i64::MIN, |standing| standing.published);
        let is_before = |before: Place, earlier: &Standing| match by_answers {
            true => before != place && earlier.told.is_some_and(|told| told < published),
            false => true,
        };
        let end = if by_answers { Bound::Unbounded } else { Bound::Excluded(place) };
        let mut overtaken = None;
        let all = line.standings.range_mut((Bound::Unbounded, end));
        for (before, earlier) in all.filter(|(before, earlier)| is_before(**before, earlier)) {
            if let Phase::Answered { overtaken_by } = &mut earlier.phase {
                overtaken_by.get_or_insert(place);
            } else if !tried && earlier.goes_before(by_answers || before.sequence < place.sequence, now, latest) {
                overtaken.get_or_insert(before.sequence);
            }
        }
        if let Some(standing) = line.standings.get_mut(&place) {
            (standing.phase, standing.tried, standing.number) = (Phase::InFlight, true, sending.number);
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
        // Where commits are slow, this may be what came of an earlier request.
        if delivery.attempts_made < standing.number {
            return None;
        }
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
                let published = self.published.as_mut();
                let published = published.and_then(|published| published.remove(&delivery.place.sequence));
                let lane = &mut self.lanes[id.index()];
                lane.accepted(delivery, view.now.mono, published.unwrap_or(i64::MIN));
                return;
            }
            Note::Sent(id, sending) => {
                let by_answers = self.published.is_some();
                (id, self.lanes[id.index()].sent(sending, view.now, self.latest, by_answers))
            }
            Note::Answered(id, sending, _) => {
                self.lanes[id.index()].answered(sending.place);
                return;
            }
            Note::Settled(id, delivery) => (id, self.lanes[id.index()].settled(delivery)),
            Note::Crashed => return self.lanes.iter_mut().for_each(Lane::crashed),
            Note::Lost(id) => return self.lanes[id.index()].crashed(),
            _ => return,
        };
        if let Some(wrong) = wrong {
            self.violations.add(|| format!("destination {}: {wrong}", id.index()));
        }
    }
}
