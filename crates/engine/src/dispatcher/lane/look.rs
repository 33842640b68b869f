//! A lane, to look at: for the driver, the API and the simulator.

use std::sync::Arc;

use tidegate_core::delivery::{Delivery, End, HoldReason, Late, Status};
use tidegate_core::gate::{Decision, DestinationStatus, Explanation, Hold, Question};
use tidegate_core::id::DeliveryId;
use tidegate_core::lane::{Attempt, HaltedLine, LaneState, SavedLane};
use tidegate_core::order::{Ordering, Turn};
use tidegate_core::policy::Policy;
use tidegate_core::quiet::WindowMask;
use tidegate_core::refill::Wanted;
use tidegate_core::sequence::Sequence;
use tidegate_core::time::{Now, Timestamp};
use tidegate_core::{gate, limits};

use super::super::{AccountNo, LaneId};
use super::{Lane, Mark, Presence, Unsaved};

impl Lane {
    /// Its number.
    pub const fn id(&self) -> LaneId {
        self.id
    }
    /// Whose it is.
    pub const fn account(&self) -> AccountNo {
        self.account
    }
    /// The state behind its gates.
    pub const fn state(&self) -> &LaneState {
        &self.state
    }
    /// The state in the form in which it is stored.
    pub fn save(&self, now: Now) -> SavedLane {
        self.state.save(&self.policy, now)
    }
    /// The state behind its gates as bytes, for the store: the same bytes as long as nothing has changed.
    pub fn encode_state(&self, now: Now) -> Vec<u8> {
        self.state.encode_state(&self.policy, now)
    }
    /// What its timeouts have learned as bytes, for the store.
    pub fn encode_timeouts(&self) -> Vec<u8> {
        self.state.encode_timeouts()
    }
    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }
    /// The policy in force, to keep.
    pub fn shared_policy(&self) -> Arc<Policy> {
        Arc::clone(&self.policy)
    }
    /// Who works it.
    pub const fn presence(&self) -> Presence {
        self.presence
    }
    /// Whether its destination was deleted.
    pub const fn is_retired(&self) -> bool {
        self.retired
    }
    /// Deliveries that wait in memory; the store may have more.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }
    /// Deliveries that wait in memory, in no order that matters.
    pub fn deliveries(&self) -> impl Iterator<Item = &Delivery> {
        self.queue.iter()
    }
    /// Deliveries in flight, with their attempts.
    pub fn in_flight(&self) -> impl Iterator<Item = (&Delivery, &Attempt)> {
        self.flights.iter().map(|flight| (&flight.delivery, &flight.attempt))
    }
    /// How many these are.
    pub fn in_flight_count(&self) -> usize {
        self.flights.len()
    }
    /// Whether nothing more starts before what has started is committed, and something waits for that.
    pub fn awaits_commit(&self) -> bool {
        self.state.unsaved_starts >= self.policy.max_concurrency.get() && !self.queue.is_empty()
    }
    /// Whether this delivery is one of them.
    pub fn is_in_flight(&self, delivery: DeliveryId) -> bool {
        self.flights.iter().any(|flight| flight.delivery.id == delivery)
    }
    /// Whether an attempt has ended this delivery, and the store does not have that yet.
    pub fn is_ending(&self, delivery: &Delivery) -> bool {
        let by_attempt = |unsaved: &Unsaved| unsaved.ended && unsaved.answered;
        self.unsaved.iter().any(|unsaved| by_attempt(unsaved) && unsaved.place == delivery.place)
    }
    /// The numbers of those on their way: in flight, or ended by an attempt that the store does not have yet.
    pub fn on_their_way(&self) -> impl Iterator<Item = Sequence> {
        let ended = self.unsaved.iter().filter(|unsaved| unsaved.ended && unsaved.answered);
        let ended = ended.map(|unsaved| Sequence::from_stored(unsaved.place.sequence));
        self.flights.iter().map(|flight| flight.delivery.id.sequence()).chain(ended)
    }
    /// How many in flight were before it when they started: in no line, the more urgent ones and the earlier ones.
    pub fn in_flight_before(&self, delivery: &Delivery) -> usize {
        let rank = |delivery: &Delivery| (delivery.priority, delivery.place);
        let before = |other: &Delivery| rank(other) < rank(delivery);
        self.in_flight().filter(|(other, _)| before(other)).count()
    }
    /// Which delivery is the next probe, if one goes first: of those that are due at `at`, the longest waiting that has its
    /// turn and was not the last probe.
    pub fn next_probe(&self, at: Timestamp) -> Option<DeliveryId> {
        let due = |delivery: &&Delivery| match delivery.status {
            Status::RetryScheduled { at: own, .. } => own <= at,
            _ => true,
        };
        let waiting = || self.queue.iter().filter(due).filter(|delivery| self.turn(delivery) == Turn::Its);
        let another = waiting().filter(|delivery| Some(delivery.id) != self.state.last_probe);
        let first = another.min_by_key(|delivery| delivery.place).or_else(|| waiting().next());
        first.map(|delivery| delivery.id)
    }
    /// Whose turn it is in this delivery's line, as far as the lane knows.
    pub fn turn(&self, delivery: &Delivery) -> Turn {
        self.queue.turn(self.policy.ordering.line(delivery).as_ref(), delivery.id)
    }
    /// What has kept it from sending since when, if something does.
    pub const fn held(&self) -> Option<(HoldReason, Timestamp)> {
        self.state.held
    }
    /// Everything that holds it now, in the order of the gates: what holds the destination, and quiet windows for some event
    /// types while something waits for them, and ordering keys that stand.
    pub fn holds(&self, now: Now) -> Vec<Hold> {
        let mut holds = gate::holds(now, &self.policy, &self.state);
        if !holds.iter().any(|hold| hold.reason() == HoldReason::QuietHours)
            && let Some(until) = self.quiet_for_some_until(now.wall)
        {
            let after = [HoldReason::OrderBlocked, HoldReason::AtCapacity, HoldReason::RateLimited];
            insert_before(&mut holds, &after, Hold::QuietForSome { until });
        }
        if let (Some(first), Ordering::Key) = (self.halted().first(), self.policy.ordering) {
            let some = Hold::HaltedForSome { head: first.head, lines: self.halted().len() };
            insert_before(&mut holds, &[HoldReason::AtCapacity, HoldReason::RateLimited], some);
        }
        holds
    }
    /// When the first may go of those that wait for a quiet window to end, if any does.
    fn quiet_for_some_until(&self, now: Timestamp) -> Option<Timestamp> {
        let quiet = &self.policy.quiet;
        if quiet.is_empty() {
            return None;
        }
        let here = self.queue.firsts(None).filter_map(|(group, _)| quiet.release(group.quiet, now)).min();
        // Of a lane that another node works, or that has just been read, this is all that is known.
        let noted = || self.held().filter(|(reason, _)| *reason == HoldReason::QuietHours);
        here.or_else(|| noted().and_then(|_| quiet.release(quiet.mask_of_all(), now)))
    }
    /// The one word for how it does: the first of its [`holds`](Self::holds).
    pub fn status(&self, now: Now) -> DestinationStatus {
        gate::status(&self.holds(now))
    }
    /// Since when one of its [`holds`](Self::holds) is there, as far as that is known. Of slots and tokens: since work waits
    /// for them, or since the last was taken.
    pub fn held_since(&self, now: Now, hold: &Hold) -> Option<Timestamp> {
        let noted = self.held().filter(|(reason, _)| *reason == hold.reason()).map(|(_, since)| since);
        match hold {
            Hold::Paused { since } | Hold::AccountPaused { since } | Hold::Disabled { since, .. } => {
                Some(*since)
            }
            Hold::CircuitOpen { .. } => self.state.breaker.open().map(|(since, _)| since),
            Hold::Throttled { .. } => self.state.throttle.shut().map(|(since, _)| since),
            Hold::Unavailable { .. } => self.state.unavailable.map(|wait| wait.since),
            // What is noted outlives a restart, so it comes first.
            Hold::AtCapacity { .. } | Hold::RateLimited { .. } => noted.or(Some(self.state.last_start)),
            Hold::QuietHours { .. } => self.quiet_since(self.policy.quiet.mask_without_type(), now.wall),
            Hold::QuietForSome { .. } => noted.or_else(|| {
                let waiting = self.queue.firsts(None).map(|(group, _)| group.quiet);
                waiting.filter_map(|mask| self.quiet_since(mask, now.wall)).min()
            }),
            Hold::OrderBlocked { .. } | Hold::HaltedForSome { .. } => {
                let stood = self.halted().first();
                stood.and_then(|halted| halted.since).or(noted)
            }
            Hold::Scheduled { .. } | Hold::RetryBackoff { .. } => noted,
        }
    }
    /// When the present quiet time began, if it is quiet now.
    fn quiet_since(&self, mask: WindowMask, now: Timestamp) -> Option<Timestamp> {
        let quiet = &self.policy.quiet;
        let interval = quiet.is_quiet(mask, now).then(|| quiet.intervals(mask, now, 1))?;
        interval.first().map(|(start, _)| *start)
    }
    /// How often a delivery that was due found no slot.
    pub const fn slots_denied(&self) -> u64 {
        self.slots_denied
    }
    /// How far it has got.
    pub const fn mark(&self) -> Mark {
        self.mark
    }
    /// How much a refill may bring.
    pub fn wanted(&self) -> Wanted {
        self.queue.wanted(self.flights.len() + self.unsaved.len())
    }
    /// The lines that stand: a refill need not bring anything of them.
    pub fn halted(&self) -> &[HaltedLine] {
        &self.state.halted
    }

    /// Every gate, as this lane sees it for `delivery`.
    pub fn explain(&self, now: Now, delivery: &Delivery) -> Explanation {
        let quiet = self.policy.quiet.mask_for(&delivery.event_type);
        let mut explanation = gate::explain(&Question {
            now,
            delivery,
            turn: self.turn(delivery),
            quiet,
            policy: &self.policy,
            lane: &self.state,
        });
        if let Decision::Finish(End::Expired(late @ Late::InQueue)) = &mut explanation.decision {
            *late = self.late(delivery, quiet);
        }
        explanation
    }

    /// What made a delivery late for which every gate is open by now: that no server ran, or a hold that has only just ended.
    fn late(&self, delivery: &Delivery, quiet: WindowMask) -> Late {
        let woke = self.state.awake_since;
        let last_chance = delivery.expires_at.map(|expiry| expiry - limits::MIN_TIME_TO_SEND);
        match self.state.held {
            _ if delivery.accepted_at < woke && last_chance.is_some_and(|at| at < woke) => Late::NoServer,
            Some((reason, _)) if reason != HoldReason::QuietHours || !quiet.is_empty() => {
                Late::Behind(reason)
            }
            _ => Late::InQueue,
        }
    }
}

/// Puts a hold in its place: before the first of those that come `after` it.
fn insert_before(holds: &mut Vec<Hold>, after: &[HoldReason], hold: Hold) {
    let place = holds.iter().position(|other| after.contains(&other.reason()));
    holds.insert(place.unwrap_or(holds.len()), hold);
}
