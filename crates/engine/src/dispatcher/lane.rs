//! One destination: its queue, the state behind its gates, its attempts in flight.

use std::sync::Arc;

use tidegate_core::delivery::{Delivery, End, HoldReason, Late, Place, Status};
use tidegate_core::draw::Draw;
use tidegate_core::gate::{self, Decision, Explanation, Go, Hold, Question};
use tidegate_core::id::DeliveryId;
use tidegate_core::lane::{Aftermath, Attempt, LaneState, Report, SavedLane, Standing};
use tidegate_core::limits;
use tidegate_core::order::{Line, OnExhausted, Ordering, Turn};
use tidegate_core::outcome::Bearing;
use tidegate_core::policy::Policy;
use tidegate_core::refill::{Group, Refill, Wanted};
use tidegate_core::settle::settle;
use tidegate_core::time::{Millis, Mono, Now, Timestamp};

use super::capacity::{HUNG_AFTER, Trust};
use super::queue::Queue;
use super::{AccountNo, Command, Effect, LaneId, Sending};

/// A wait shorter than this is no row in the hold log.
const LOGGED_HOLD: Millis = Millis::seconds(1);

/// How far a lane has got: so many starts made, so many results handed to the store.
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
    /// Settled, but not known to be stored when the last refill was read: it may still show them as waiting.
    unsaved: Vec<(u64, Place)>,
    saved: u64,
    mark: Mark,
    /// Several of one line may be in flight: they were when the destination began to keep an order.
    crowded: bool,
    /// When an attempt last ended, or the first of several started.
    progress_at: Mono,
    /// Attempts are in flight, and none has ended for longer than is usual here.
    stalled: bool,
    slots_denied: u64,
    /// Stands in line for its turn.
    pub(super) in_turn: bool,
    /// The timer that counts.
    pub(super) wake_at: Option<Timestamp>,
}

#[derive(Debug)]
struct Flight {
    delivery: Delivery,
    attempt: Attempt,
    cancelled: Option<End>,
}

/// What looking at a lane led to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Poll {
    /// A delivery is on its way; there may be more.
    Started,
    /// Nothing may go before then, or before something happens.
    Sleep(Option<Timestamp>),
}

/// A delivery that may go, and where it lies.
struct Candidate {
    group: Group,
    place: Place,
    go: Go,
}

/// What keeps a lane from sending: the first hold met, and the earliest time at which any of its deliveries may go.
#[derive(Default)]
struct Blocked {
    hold: Option<Hold>,
    until: Option<Timestamp>,
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
            mark: Mark::default(),
            crowded: false,
            progress_at: Mono::default(),
            stalled: false,
            slots_denied: 0,
            in_turn: false,
            wake_at: None,
        };
        lane.halt_lines();
        lane
    }

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
    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
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
    /// What has kept it from sending since when, if something does.
    pub const fn held(&self) -> Option<(HoldReason, Timestamp)> {
        self.state.held
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
        Queue::wanted(self.flights.len() + self.unsaved.len())
    }
    /// The lines that stand: a refill need not bring anything of them.
    pub fn halted(&self) -> &[(Line, DeliveryId)] {
        &self.state.halted
    }

    /// Every gate, as this lane sees it for `delivery`.
    pub fn explain(&self, now: Now, delivery: &Delivery) -> Explanation {
        let line = self.policy.ordering.line(delivery);
        let quiet = self.policy.quiet.mask_for(&delivery.event_type);
        let mut explanation = gate::explain(&Question {
            now,
            delivery,
            turn: self.queue.turn(line.as_ref(), delivery.id),
            quiet,
            policy: &self.policy,
            lane: &self.state,
        });
        // A hold that has only just ended is what made it late, though every gate is open by now.
        if let (Decision::Finish(End::Expired(late @ Late::InQueue)), Some((reason, _))) =
            (&mut explanation.decision, self.state.held)
            && (reason != HoldReason::QuietHours || !quiet.is_empty())
        {
            *late = Late::Behind(reason);
        }
        explanation
    }

    pub(super) fn trust(&self) -> Trust {
        match self.state.last {
            _ if self.stalled => Trust::Suspect,
            Some(Bearing::Success) => Trust::Proven,
            None => Trust::Unproven,
            _ => Trust::Suspect,
        }
    }
    /// Whether attempts are in flight and none has ended for a second, or for as long as nearly all of them take here:
    /// however well it did before, it may hang now.
    pub(super) fn notice_stall(&mut self, now: Now) {
        let silent = now.mono.since(self.progress_at);
        if self.stalled || self.flights.is_empty() || silent < HUNG_AFTER {
            return;
        }
        let usual = self.state.timeouts.report(&self.policy.timeout, &self.policy.timeout_params).p99_ms;
        self.stalled = usual.is_none_or(|usual| silent >= usual);
    }

    pub(super) fn accepted(&mut self, now: Now, delivery: Delivery) {
        if !delivery.status.is_final() {
            self.queue.insert(delivery, &self.policy, now.wall);
        }
    }

    pub(super) fn refilled(&mut self, now: Now, refill: Refill) {
        let (flights, unsaved) = (&self.flights, &self.unsaved);
        let known = |delivery: &Delivery| {
            flights.iter().any(|flight| flight.delivery.id == delivery.id)
                || unsaved.iter().any(|(_, place)| *place == delivery.place)
        };
        self.queue.refilled(refill, &self.policy, now.wall, known);
        self.forget_saved();
    }

    /// A refill that is on its way may have been read before the last commit: until it is here, nothing is forgotten.
    fn forget_saved(&mut self) {
        if !self.queue.awaits_refill() {
            self.unsaved.retain(|(settle, _)| *settle > self.saved);
        }
    }

    /// The store has everything up to `mark`. Says whether the lane waited for that.
    pub(super) fn saved(&mut self, mark: Mark) -> bool {
        self.saved = self.saved.max(mark.settles);
        self.forget_saved();
        let waited = self.state.unsaved_starts >= self.policy.max_concurrency.get();
        self.state.unsaved_starts =
            u32::try_from(self.mark.starts.saturating_sub(mark.starts)).unwrap_or(u32::MAX);
        waited
    }

    pub(super) fn adopt(&mut self, now: Now, policy: Arc<Policy>) {
        self.state.adopt(&self.policy, &policy, now);
        self.policy = policy;
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
        self.state.halted.retain(|(line, _)| applies(line));
        for (line, id) in &self.state.halted {
            self.queue.halt(line.clone(), *id);
        }
    }

    pub(super) fn command(&mut self, now: Now, command: Command, effects: &mut Vec<Effect>) {
        let since = now.wall;
        match command {
            Command::Pause => self.state.standing = Standing::Paused { since },
            Command::Disable(cause) => self.state.standing = Standing::Disabled { since, cause },
            Command::Resume => {
                self.state.standing = Standing::Active;
                self.state.rested(now.wall);
                self.state.health.forget();
                for (line, _) in std::mem::take(&mut self.state.halted) {
                    self.queue.resume(&line);
                }
            }
            Command::RetryNow => self.state.retry_now(now.wall),
            Command::RetryDelivery(id) => {
                if let Some(mut delivery) = self.queue.remove(id) {
                    delivery.status = Status::Queued;
                    self.store(delivery.clone(), None, effects);
                    self.queue.insert(delivery, &self.policy, now.wall);
                }
            }
            Command::Cancel(id, by) => self.cancel(now, id, End::Cancelled(by), effects),
        }
        effects.push(Effect::SaveLane { lane: self.id });
    }

    /// One that is in flight cannot be called back: if it succeeds it is delivered, else it is cancelled then.
    fn cancel(&mut self, now: Now, id: DeliveryId, end: End, effects: &mut Vec<Effect>) {
        if let Some(flight) = self.flights.iter_mut().find(|flight| flight.delivery.id == id) {
            flight.cancelled = Some(end);
        } else if let Some(delivery) = self.queue.remove(id) {
            self.end(now, delivery, end, None, effects);
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
        let Some(index) = self.flights.iter().position(|flight| flight.delivery.id == id) else { return };
        let Flight { mut delivery, attempt, cancelled } = self.flights.swap_remove(index);
        (self.progress_at, self.stalled) = (now.mono, false);
        self.crowded &= !self.flights.is_empty();
        let aftermath = self.state.finish(now, &self.policy, id, &attempt, report);
        if aftermath != Aftermath::default() {
            effects.push(Effect::Changed { lane: self.id, aftermath });
        }
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
                self.state.halted.push((line.clone(), delivery.id));
                if self.state.halted.len() >= limits::MAX_HALTED_LINES {
                    self.state.standing = Standing::Paused { since: now.wall };
                }
                self.queue.halt(line, delivery.id);
            } else {
                self.queue.done(&line, delivery.id, &self.policy);
            }
        }
        self.store(delivery, attempt, effects);
    }

    fn store(&mut self, delivery: Delivery, attempt: Option<(Attempt, Report)>, effects: &mut Vec<Effect>) {
        self.mark.settles += 1;
        self.unsaved.push((self.mark.settles, delivery.place));
        effects.push(Effect::Settle {
            lane: self.id,
            delivery: Box::new(delivery),
            attempt,
            mark: self.mark,
        });
    }

    /// Looks at the lane: starts one delivery if one may go, else says when to look again.
    pub(super) fn poll(&mut self, now: Now, effects: &mut Vec<Effect>) -> Poll {
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
                self.note_hold(now, blocked.hold, effects);
                Poll::Sleep(blocked.until.into_iter().chain(self.queue.next_event()).min())
            }
        }
    }

    /// The sweeper found a delivery that should be over. The lane ends it, like everything of its own: so a refill that
    /// was read a moment ago cannot bring it back.
    pub(super) fn overdue(&mut self, now: Now, stored: Delivery, effects: &mut Vec<Effect>) {
        let under_way = self.flights.iter().any(|flight| flight.delivery.id == stored.id);
        if under_way || self.unsaved.iter().any(|(_, place)| *place == stored.place) {
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

    /// Ends what is stale or too old. The verdict is the gates' own.
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

    /// The delivery that goes next: the most urgent, then the earliest; now and then the longest waiting; for a probe
    /// the longest waiting that was not the last probe.
    fn choose(&mut self, now: Now) -> Result<Candidate, Blocked> {
        let mut best: Option<(Candidate, Place, u8)> = None;
        let mut blocked = Blocked::default();
        let oldest_turn = self.mark.starts % u64::from(limits::STARTS_PER_OLDEST)
            == u64::from(limits::STARTS_PER_OLDEST) - 1;
        for (group, delivery) in self.queue.firsts(None) {
            if self.crowded && self.line_is_out(delivery) {
                continue;
            }
            match self.decide(now, group, delivery) {
                Decision::Go(go) => {
                    let urgency = if oldest_turn || go.probe.is_some() { 0 } else { group.priority.get() };
                    if best
                        .as_ref()
                        .is_none_or(|(_, place, level)| (urgency, delivery.place) < (*level, *place))
                    {
                        best =
                            Some((Candidate { group, place: delivery.place, go }, delivery.place, urgency));
                    }
                }
                Decision::Wait(wait) => {
                    if let Hold::AtCapacity { .. } = wait.hold {
                        self.slots_denied += u64::from(blocked.hold.is_none());
                    }
                    blocked.hold.get_or_insert(wait.hold);
                    blocked.until = [blocked.until, wait.until].into_iter().flatten().min();
                }
                // Ended by the clock between two looks: the next look takes it away.
                Decision::Finish(_) | Decision::Nothing => blocked.until = Some(now.wall),
            }
        }
        match best {
            Some((candidate, ..)) if candidate.go.probe.is_some() => {
                Ok(self.another_probe(now).unwrap_or(candidate))
            }
            Some((candidate, ..)) => Ok(candidate),
            None => Err(blocked),
        }
    }

    /// Whether another delivery of its line is in flight, though the line's head is not.
    fn line_is_out(&self, delivery: &Delivery) -> bool {
        let line = self.policy.ordering.line(delivery);
        line.is_some()
            && self.flights.iter().any(|flight| self.policy.ordering.line(&flight.delivery) == line)
    }

    /// The longest waiting delivery that may go and was not the last probe: one poisonous delivery must not decide alone
    /// about its destination. Lines keep their heads.
    fn another_probe(&self, now: Now) -> Option<Candidate> {
        let last = self.state.last_probe?;
        (self.queue.firsts(Some(last)))
            .filter_map(|(group, delivery)| match self.decide(now, group, delivery) {
                Decision::Go(go) => Some(Candidate { group, place: delivery.place, go }),
                _ => None,
            })
            .min_by_key(|candidate| candidate.place)
    }

    /// What lies on a shelf has its turn: the queue exposes only heads.
    fn decide(&self, now: Now, group: Group, delivery: &Delivery) -> Decision {
        gate::decide(&Question {
            now,
            delivery,
            turn: Turn::Its,
            quiet: group.quiet,
            policy: &self.policy,
            lane: &self.state,
        })
    }

    fn start(&mut self, now: Now, candidate: &Candidate, effects: &mut Vec<Effect>) {
        let mut delivery =
            self.queue.take(candidate.group, candidate.place).expect("the candidate lies there");
        delivery.status = Status::Delivering;
        let attempt = self.state.start(now, delivery.id, candidate.go);
        self.mark.starts += 1;
        if let Some(line) = self.policy.ordering.line(&delivery) {
            self.queue.head_started(&line);
        }
        let sending = Sending {
            delivery: delivery.id,
            place: delivery.place,
            event_type: delivery.event_type.clone(),
            expires_at: delivery.expires_at,
            number: delivery.attempts_made + 1,
            attempt,
        };
        effects.push(Effect::Send { lane: self.id, sending });
        if self.flights.is_empty() {
            self.progress_at = now.mono;
        }
        self.flights.push(Flight { delivery, attempt, cancelled: None });
    }

    /// Keeps the hold log: one row per interval in which work waited for one reason.
    fn note_hold(&mut self, now: Now, hold: Option<Hold>, effects: &mut Vec<Effect>) {
        if let Some(Hold::Paused { .. } | Hold::Throttled { .. } | Hold::QuietHours { .. }) = hold {
            self.state.rested(hold.and_then(|hold| hold.until()).unwrap_or(now.wall));
        }
        let reason = hold.map(|hold| hold.reason());
        if self.state.held.map(|(reason, _)| reason) == reason {
            return;
        }
        if let Some((reason, since)) = self.state.held.take()
            && now.wall - since >= LOGGED_HOLD
        {
            effects.push(Effect::Held { lane: self.id, reason, since, until: now.wall });
        }
        self.state.held = reason.map(|reason| (reason, now.wall));
    }
}
