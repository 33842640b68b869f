//! One destination: its queue, the state behind its gates, its attempts in flight.

mod choose;
mod look;
mod orders;
mod waits;

pub use waits::Waits;

use std::sync::Arc;

use tidegate_core::delivery::{Dead, Delivery, End, HoldReason, Place, Status, Withdrawn};
use tidegate_core::draw::Draw;
use tidegate_core::gate::{self, Decision, Hold};
use tidegate_core::id::DeliveryId;
use tidegate_core::lane::{Aftermath, Attempt, HaltedLine, LaneState, Report};
use tidegate_core::limits;
use tidegate_core::order::{Line, OnExhausted, Ordering, Turn};
use tidegate_core::outcome::{Bearing, Outcome};
use tidegate_core::policy::Policy;
use tidegate_core::refill::Refill;
use tidegate_core::settle::settle;
use tidegate_core::time::{Millis, Mono, Now, Timestamp};

use super::capacity::{HUNG_AFTER, Trust};
use super::queue::Queue;
use super::{AccountNo, Effect, LaneId};

/// A wait for a slot or a token that is shorter than this is no row in the hold log: under load they come and go with every
/// start.
const LOGGED_PASSING: Millis = Millis::new(100);
/// What is learned from an attempt that was not made: nothing.
const NOT_MADE: Report = Report { outcome: Outcome::Cancelled, elapsed: Millis::ZERO, rate_hint: None };
/// How a delivery ends whose destination is gone.
const RETIRED: End = End::Cancelled(Withdrawn::DestinationDeleted);

/// How far a lane has got: the starts it has made, and the results it has handed to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Mark {
    /// Starts.
    pub starts: u64,
    /// Results.
    pub settles: u64,
}

/// One destination in memory.
#[derive(Debug)]
pub struct Lane {
    id: LaneId,
    account: AccountNo,
    policy: Arc<Policy>,
    state: LaneState,
    queue: Queue,
    flights: Vec<Flight>,
    /// What a refill may still show as waiting although it was settled here.
    unsaved: Vec<Unsaved>,
    saved: u64,
    /// Once the store has committed this settle, read the backlog again: the last refill had to skip a delivery.
    read_again: Option<u64>,
    mark: Mark,
    /// Ordering was switched on while several deliveries of one line were in flight; until they land, each line must be checked
    /// for that.
    crowded: bool,
    /// When an attempt last ended, or the first of several started.
    progress_at: Mono,
    /// Attempts are in flight, and none has ended for longer than is usual here.
    stalled: bool,
    slots_denied: u64,
    presence: Presence,
    /// The destination was deleted.
    retired: bool,
    /// Stands in line for its turn.
    pub(super) in_turn: bool,
    /// The timer that counts.
    pub(super) wake_at: Option<Timestamp>,
}

/// Who works a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// This node.
    Here,
    /// This node, until what is in flight has ended: nothing starts any more.
    Passing,
    /// Another node. Its state here is what was last read of it.
    Elsewhere,
}

#[derive(Debug)]
struct Flight {
    delivery: Delivery,
    attempt: Attempt,
    cancelled: Option<End>,
}

/// A state change handed to the store whose commit is not confirmed yet, or was confirmed while a refill was under way that
/// may have been read before it.
#[derive(Debug)]
struct Unsaved {
    settle: u64,
    place: Place,
    ended: bool,
    /// An attempt led to it: neither a person nor the time.
    answered: bool,
    attempts_made: u32,
    attempts_used: u32,
    /// From waiting for its own time to being ready.
    hastened: bool,
}

/// What looking at a lane led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Poll {
    /// A delivery is on its way; there may be more.
    Started,
    /// Nothing may go before then, or before something happens.
    Sleep(Option<Timestamp>),
}

impl Lane {
    pub(super) fn new(
        id: LaneId,
        account: AccountNo,
        policy: Arc<Policy>,
        state: LaneState,
        backlog: bool,
    ) -> Self {
        let mut lane = Self {
            id,
            account,
            policy,
            state,
            queue: Queue::new(backlog),
            flights: Vec::new(),
            unsaved: Vec::new(),
            saved: 0,
            read_again: None,
            mark: Mark::default(),
            crowded: false,
            progress_at: Mono::default(),
            stalled: false,
            slots_denied: 0,
            presence: Presence::Here,
            retired: false,
            in_turn: false,
            wake_at: None,
        };
        lane.halt_lines();
        lane
    }

    pub(super) fn trust(&self) -> Trust {
        match self.state.last {
            _ if self.stalled => Trust::Suspect,
            Some(Bearing::Success) => Trust::Proven,
            None => Trust::Unproven,
            _ => Trust::Suspect,
        }
    }
    /// Marks the lane as stalled if attempts are in flight and none has ended for a second and for longer than 99 of 100 take
    /// here: it may hang now, however well it did before.
    pub(super) fn notice_stall(&mut self, now: Now) {
        let silent = now.mono.since(self.progress_at);
        if self.stalled || self.flights.is_empty() || silent < HUNG_AFTER {
            return;
        }
        let usual = self.state.timeouts.report(&self.policy.timeout, &self.policy.timeout_params).p99_ms;
        self.stalled = usual.is_none_or(|usual| silent >= usual);
    }

    /// The store has a new delivery. Readers see a commit before the lane hears of it, so a refill may have brought it
    /// already, and it may be on its way or even over.
    pub(super) fn accepted(&mut self, now: Now, delivery: Delivery, effects: &mut Vec<Effect>) {
        match delivery.status {
            Status::Final(_) => {}
            // Whoever works it next finds it in the store.
            _ if self.presence != Presence::Here => {}
            // A refill may see a commit before the writer has told of it, and may have brought this one.
            _ if self.has(&delivery) => {}
            _ if self.retired => self.end(now, delivery, RETIRED, None, effects),
            _ => self.queue.insert(delivery, &self.policy, now.wall),
        }
    }

    pub(super) fn refilled(&mut self, now: Now, refill: Refill, reading: bool) {
        if self.retired || self.presence != Presence::Here {
            return;
        }
        // What has come due meanwhile lies where the store has it, too.
        self.queue.promote(now.wall, &self.policy);
        self.read_again = self.read_again.max(self.left_unsaved(&refill));
        let (flights, unsaved) = (&self.flights, &self.unsaved);
        let known = |delivery: &Delivery| is_under_way(flights, unsaved, delivery);
        self.queue.refilled(refill, &self.policy, now.wall, known);
        self.forget_saved(reading);
        self.look_for_left();
    }

    /// A refill may show an outdated row for a delivery that we settled but no longer hold in memory. Such rows are skipped;
    /// this returns the last settle to wait for before the store is read again, so that none is lost.
    fn left_unsaved(&self, refill: &Refill) -> Option<u64> {
        let left = |delivery: &Delivery| {
            let newest = self.unsaved.iter().rev().find(|unsaved| unsaved.place == delivery.place)?;
            self.is_nowhere(newest).then_some(newest.settle)
        };
        // What was hastened a moment ago may not be shown at all: the store had it among what waits for its own time.
        let hastened = self.unsaved.iter().filter(|unsaved| unsaved.hastened && self.is_nowhere(unsaved));
        refill.deliveries.iter().filter_map(left).chain(hastened.map(|unsaved| unsaved.settle)).max()
    }

    /// Whether it is neither in flight nor waits here.
    fn is_nowhere(&self, unsaved: &Unsaved) -> bool {
        let place = unsaved.place;
        !unsaved.ended
            && !self.queue.holds(place)
            && !self.flights.iter().any(|flight| flight.delivery.place == place)
    }

    /// Reads the backlog again if a refill had to skip a delivery and its settle is committed by now.
    fn look_for_left(&mut self) {
        if self.read_again.is_some_and(|settle| settle <= self.saved) {
            self.read_again = None;
            self.queue.look_again();
        }
    }

    /// Whether it waits here, is in flight, or was settled a moment ago.
    fn has(&self, delivery: &Delivery) -> bool {
        is_under_way(&self.flights, &self.unsaved, delivery) || self.queue.has(delivery, &self.policy)
    }

    /// Forgets settles that are committed. Not while a refill or news is on its way: it may have been read before the commit.
    fn forget_saved(&mut self, reading: bool) {
        if !reading && !self.queue.awaits_refill() {
            self.unsaved.retain(|unsaved| unsaved.settle > self.saved);
        }
    }

    /// The store has everything up to `mark`. Says whether the lane waited for that.
    pub(super) fn saved(&mut self, mark: Mark, reading: bool) -> bool {
        self.saved = self.saved.max(mark.settles);
        self.forget_saved(reading);
        let reads = self.read_again.is_some();
        self.look_for_left();
        let waited = self.state.unsaved_starts >= self.policy.max_concurrency.get() || reads;
        self.state.unsaved_starts =
            u32::try_from(self.mark.starts.saturating_sub(mark.starts)).unwrap_or(u32::MAX);
        waited
    }

    /// The wall clock was set by `by`. Says whether the lane waits for the destination: a throttle, a breaker, a `Retry-After`.
    pub(super) fn clock_set(&mut self, by: Millis) -> bool {
        self.state.clock_set(by)
    }

    pub(super) fn adopt(&mut self, now: Now, policy: Arc<Policy>) {
        self.state.adopt(&self.policy, &policy, now);
        let before = std::mem::replace(&mut self.policy, policy);
        if self.policy.sorts_like(&before) {
            return;
        }
        let waiting = self.queue.take_all();
        self.halt_lines();
        self.crowded = self.policy.ordering != Ordering::None;
        for flight in &self.flights {
            if let Some(line) = self.policy.ordering.line(&flight.delivery) {
                self.queue.expose(line, &flight.delivery);
            }
        }
        for delivery in waiting {
            self.queue.insert(delivery, &self.policy, now.wall);
        }
    }

    fn halt_lines(&mut self) {
        let applies = |line: &Line| match (line, self.policy.ordering) {
            (Line::Whole, ordering) => ordering == Ordering::Fifo,
            (Line::Key(_), ordering) => ordering == Ordering::Key,
        };
        if self.policy.on_exhausted == OnExhausted::Skip {
            self.state.halted.clear();
        }
        self.state.halted.retain(|halted| applies(&halted.line));
        for halted in &self.state.halted {
            self.queue.halt(halted.line.clone(), halted.head);
        }
    }

    pub(super) fn finished(
        &mut self,
        now: Now,
        id: DeliveryId,
        report: &Report,
        draw: Draw,
        effects: &mut Vec<Effect>,
    ) {
        let Some(flight) = self.land(now, id, report, effects) else { return };
        let Flight { mut delivery, attempt, cancelled } = flight;
        settle(now.wall, &mut delivery, &self.policy, report.outcome, draw);
        if let (Some(end), false) = (cancelled, delivery.status == Status::Final(End::Delivered)) {
            delivery.status = Status::Final(end);
        }
        match delivery.status {
            Status::Final(end) => self.end(now, delivery, end, Some((attempt, *report)), effects),
            _ => {
                self.store(delivery.clone(), Some((attempt, *report)), effects);
                self.queue.insert(delivery, &self.policy, now.wall);
            }
        }
    }

    /// The attempt of a delivery was not made: it goes back to its place, and only the token that it took is written.
    pub(super) fn not_sent(&mut self, now: Now, id: DeliveryId, effects: &mut Vec<Effect>) {
        let Some(flight) = self.land(now, id, &NOT_MADE, effects) else { return };
        match flight.cancelled {
            Some(end) => self.end(now, flight.delivery, end, None, effects),
            None => {
                self.queue.insert(flight.delivery, &self.policy, now.wall);
                effects.push(Effect::SaveLane { lane: self.id });
            }
        }
    }

    /// The attempt of a delivery was not made, and none will be.
    pub(super) fn put_aside(&mut self, now: Now, id: DeliveryId, effects: &mut Vec<Effect>) {
        if let Some(flight) = self.land(now, id, &NOT_MADE, effects) {
            let end = flight.cancelled.unwrap_or(End::DeadLetter(Dead::PutAside));
            self.end(now, flight.delivery, end, None, effects);
        }
    }

    /// Takes a delivery out of what is in flight; the lane learns from how that went.
    fn land(
        &mut self,
        now: Now,
        id: DeliveryId,
        report: &Report,
        effects: &mut Vec<Effect>,
    ) -> Option<Flight> {
        let index = self.flights.iter().position(|flight| flight.delivery.id == id)?;
        let flight = self.flights.swap_remove(index);
        (self.progress_at, self.stalled) = (now.mono, false);
        self.crowded &= !self.flights.is_empty();
        let aftermath = self.state.finish(now, &self.policy, id, &flight.attempt, report);
        if aftermath != Aftermath::default() {
            effects.push(Effect::Changed { lane: self.id, aftermath });
        }
        Some(flight)
    }

    /// A delivery is over: its line goes on, or stands.
    fn end(
        &mut self,
        now: Now,
        mut delivery: Delivery,
        end: End,
        attempt: Option<(Attempt, Report)>,
        effects: &mut Vec<Effect>,
    ) {
        delivery.status = Status::Final(end);
        if let Some(line) = self.policy.ordering.line(&delivery) {
            let was_head = self.queue.turn(Some(&line), delivery.id) == Turn::Its;
            let halts = matches!(end, End::DeadLetter(_)) && self.policy.on_exhausted == OnExhausted::Halt;
            if halts && was_head {
                let since = Some(now.wall);
                self.state.halted.push(HaltedLine { line: line.clone(), head: delivery.id, since });
                if self.state.halted.len() >= limits::MAX_HALTED_LINES {
                    self.state.standing.paused.get_or_insert(now.wall);
                }
                self.queue.halt(line, delivery.id);
                let aftermath = Aftermath { halted: Some(delivery.id), ..Aftermath::default() };
                effects.push(Effect::Changed { lane: self.id, aftermath });
            } else {
                self.queue.done(&line, delivery.id, &self.policy);
            }
        }
        self.store(delivery, attempt, effects);
    }

    fn store(&mut self, delivery: Delivery, attempt: Option<(Attempt, Report)>, effects: &mut Vec<Effect>) {
        self.mark.settles += 1;
        self.unsaved.push(Unsaved {
            settle: self.mark.settles,
            place: delivery.place,
            ended: delivery.status.is_final(),
            answered: attempt.is_some(),
            attempts_made: delivery.attempts_made,
            attempts_used: delivery.attempts_used,
            hastened: false,
        });
        effects.push(Effect::Settle {
            lane: self.id,
            delivery: Box::new(delivery),
            attempt,
            mark: self.mark,
        });
    }

    /// Looks at the lane: starts one delivery if one may go, else says when to look again.
    pub(super) fn poll(&mut self, now: Now, effects: &mut Vec<Effect>) -> Poll {
        if self.retired || self.presence != Presence::Here {
            return Poll::Sleep(None);
        }
        if let Some(change) = self.state.refresh(now.wall, &self.policy) {
            let aftermath = Aftermath { timeout: Some(change), ..Aftermath::default() };
            effects.push(Effect::Changed { lane: self.id, aftermath });
        }
        self.queue.promote(now.wall, &self.policy);
        self.end_overdue(now, effects);
        if self.queue.ask_for_more(now.wall) {
            effects.push(Effect::Refill { lane: self.id });
        }
        match self.choose(now) {
            Ok(candidate) => {
                self.start(now, &candidate, effects);
                Poll::Started
            }
            Err(blocked) => {
                let halted = || gate::halted(&self.policy, &self.state).filter(|_| !self.queue.is_empty());
                let hold = blocked.hold.or_else(halted);
                // While the store is asked what waits, nobody knows whether anything does.
                if hold.is_some() || !self.queue.awaits_refill() {
                    self.note_hold(now, hold, effects);
                }
                Poll::Sleep(blocked.until.into_iter().chain(self.queue.next_event()).min())
            }
        }
    }

    /// The sweeper found a delivery that should be over. The lane ends it, like everything of its own: so a refill that
    /// was read a moment ago cannot bring it back.
    pub(super) fn overdue(&mut self, now: Now, stored: Delivery, effects: &mut Vec<Effect>) {
        if is_under_way(&self.flights, &self.unsaved, &stored) {
            return;
        }
        let here = self.queue.remove(stored.id);
        let decision = self.explain(now, here.as_ref().unwrap_or(&stored)).decision;
        match (decision, here) {
            (Decision::Finish(end), here) => self.end(now, here.unwrap_or(stored), end, None, effects),
            (_, Some(here)) => self.queue.insert(here, &self.policy, now.wall),
            (_, None) => {}
        }
    }

    /// Ends what is stale or too old, and what has too little time left to be sent now that it could be. The verdict is the
    /// gates' own.
    fn end_overdue(&mut self, now: Now, effects: &mut Vec<Effect>) {
        let soon = now.wall + limits::MIN_TIME_TO_SEND;
        let may_end = |delivery: &Delivery| {
            delivery.expires_at.is_some_and(|expiry| expiry < soon) || delivery.too_old_at <= now.wall
        };
        for id in self.queue.overdue(soon, may_end) {
            let Some(delivery) = self.queue.remove(id) else { continue };
            match self.explain(now, &delivery).decision {
                Decision::Finish(end) => self.end(now, delivery, end, None, effects),
                _ => self.queue.insert(delivery, &self.policy, now.wall),
            }
        }
    }

    /// Keeps the hold log: one row per interval in which work waited for one reason.
    fn note_hold(&mut self, now: Now, hold: Option<Hold>, effects: &mut Vec<Effect>) {
        if let Some(
            Hold::AccountPaused { .. }
            | Hold::Paused { .. }
            | Hold::Throttled { .. }
            | Hold::QuietHours { .. },
        ) = hold
        {
            self.state.rested(hold.and_then(|hold| hold.until()).unwrap_or(now.wall));
        }
        let reason = hold.map(|hold| hold.reason());
        if self.state.held.map(|(reason, _)| reason) == reason {
            return;
        }
        let passes = |reason: HoldReason| matches!(reason, HoldReason::RateLimited | HoldReason::AtCapacity);
        if let Some((reason, since)) = self.state.held
            && now.wall - since >= if passes(reason) { LOGGED_PASSING } else { Millis::new(1) }
        {
            effects.push(Effect::Held { lane: self.id, reason, since, until: now.wall });
        }
        if reason.is_some_and(|reason| reason != HoldReason::AtCapacity) {
            self.queue.shrink();
        }
        let before = self.state.held.take().map(|(reason, _)| reason);
        self.state.held = reason.map(|reason| (reason, now.wall));
        // Those that come and go with each start are stored with it.
        if before.into_iter().chain(reason).any(|reason| !passes(reason)) {
            effects.push(Effect::SaveLane { lane: self.id });
        }
    }
}

/// Whether a delivery is in flight, or settled, but not known to be stored so.
fn is_under_way(flights: &[Flight], unsaved: &[Unsaved], delivery: &Delivery) -> bool {
    flights.iter().any(|flight| flight.delivery.id == delivery.id)
        || unsaved.iter().any(|unsaved| unsaved.place == delivery.place)
}
