//! What people want of a lane and of single deliveries.

use tidegate_core::delivery::{Delivery, End, Status, Withdrawn};
use tidegate_core::id::DeliveryId;
use tidegate_core::lane::LaneState;
use tidegate_core::order::{Line, Ordering};
use tidegate_core::time::Now;

use super::super::queue::Queue;
use super::super::{Command, Effect};
use super::{Lane, Presence, RETIRED};

impl Lane {
    /// This node works it from now on, from the state that the store has. What waits is in the store.
    pub(in crate::dispatcher) fn take(&mut self, state: LaneState) {
        self.leave();
        self.presence = Presence::Here;
        self.state = state;
        self.queue = Queue::new(true);
        self.halt_lines();
    }

    /// Nothing starts any more; what is in flight ends here.
    pub(in crate::dispatcher) fn pass(&mut self) {
        if self.presence == Presence::Here {
            self.presence = Presence::Passing;
            self.queue = Queue::new(false);
        }
    }

    /// Another node works it: nothing of it is this node's business any more.
    pub(in crate::dispatcher) fn leave(&mut self) {
        self.presence = Presence::Elsewhere;
        self.queue = Queue::new(false);
        self.flights.clear();
        self.unsaved.clear();
        (self.saved, self.crowded, self.stalled) = (self.mark.settles, false, false);
        self.read_again = None;
        (self.state.in_flight, self.state.unsaved_starts) = (0, 0);
    }

    /// What is here may not be all: ask the store.
    pub(in crate::dispatcher) fn look_again(&mut self) {
        self.queue.look_again();
    }

    /// What another node has stored of it.
    pub(in crate::dispatcher) fn show(&mut self, state: LaneState) {
        if self.presence == Presence::Elsewhere {
            self.state = state;
        }
    }

    pub(in crate::dispatcher) fn command(&mut self, now: Now, command: Command, effects: &mut Vec<Effect>) {
        let since = now.wall;
        match command {
            Command::Pause => {
                self.state.standing.paused.get_or_insert(since);
            }
            Command::Disable(cause) => {
                self.state.standing.disabled.get_or_insert((since, cause));
            }
            Command::Enable => {
                self.state.standing.disabled = None;
                self.state.rested(now.wall);
                self.state.health.forget();
            }
            Command::Resume { skip_head } => self.resume(now, skip_head, effects),
            Command::RetryNow => {
                self.state.retry_now(now.wall);
                if let Some(first) = self.queue.first_retry() {
                    self.hasten(now, first, effects);
                }
            }
            Command::Retire => return self.retire(now, effects),
        }
        effects.push(Effect::SaveLane { lane: self.id });
    }

    fn resume(&mut self, now: Now, skip_head: bool, effects: &mut Vec<Effect>) {
        self.state.standing.paused = None;
        self.state.rested(now.wall);
        let halted = std::mem::take(&mut self.state.halted);
        let skips = skip_head && halted.is_empty() && self.policy.ordering == Ordering::Fifo;
        for stood in halted {
            self.queue.resume(&stood.line);
        }
        if let Some(head) = self.queue.head(&Line::Whole).filter(|_| skips) {
            self.skip(now, head, effects);
        }
    }

    /// Withdraws the head of the line if it has failed. One that was never tried, or told to come later, blocks nobody by its
    /// own fault.
    fn skip(&mut self, now: Now, head: DeliveryId, effects: &mut Vec<Effect>) {
        let end = End::Cancelled(Withdrawn::ByRequest);
        let has_failed = |delivery: &Delivery| delivery.attempts_used > 0;
        if let Some(flight) = self.flights.iter_mut().find(|flight| flight.delivery.id == head) {
            if has_failed(&flight.delivery) {
                flight.cancelled.get_or_insert(end);
            }
        } else if self.queue.iter().any(|delivery| delivery.id == head && has_failed(delivery))
            && let Some(delivery) = self.queue.remove(head)
        {
            self.end(now, delivery, end, None, effects);
        }
    }

    /// The destination is gone: nothing is asked for, nothing starts, and what was held is held no longer.
    fn retire(&mut self, now: Now, effects: &mut Vec<Effect>) {
        self.note_hold(now, None, effects);
        self.retired = true;
        self.queue = Queue::new(false);
        self.state.halted.clear();
        for flight in &mut self.flights {
            flight.cancelled.get_or_insert(RETIRED);
        }
    }

    /// Withdraws a delivery, wherever it is. The lane ends it, like everything of its own: so a refill that was read a
    /// moment ago cannot bring it back.
    pub(in crate::dispatcher) fn withdraw(
        &mut self,
        now: Now,
        stored: Delivery,
        by: Withdrawn,
        effects: &mut Vec<Effect>,
    ) {
        let end = End::Cancelled(by);
        if let Some(flight) = self.flights.iter_mut().find(|flight| flight.delivery.id == stored.id) {
            flight.cancelled.get_or_insert(end);
        } else if let Some(delivery) = self.find(stored) {
            self.end(now, delivery, end, None, effects);
        }
    }

    /// A delivery need not wait for its own time.
    pub(in crate::dispatcher) fn hasten(&mut self, now: Now, stored: Delivery, effects: &mut Vec<Effect>) {
        if self.retired || self.is_in_flight(stored.id) {
            return;
        }
        let Some(mut delivery) = self.find(stored) else { return };
        if delivery.status != Status::Queued {
            delivery.status = Status::Queued;
            self.store(delivery.clone(), None, effects);
            self.unsaved.iter_mut().last().expect("just stored").hastened = true;
        }
        self.queue.insert(delivery, &self.policy, now.wall);
    }

    /// Takes a delivery that is not in flight out of the queue. If it is not there, it is the one that the store has,
    /// with what the store does not know yet; `None` if it is over.
    fn find(&mut self, stored: Delivery) -> Option<Delivery> {
        if let Some(here) = self.queue.remove(stored.id) {
            return Some(here);
        }
        let newest = self.unsaved.iter().rev().find(|unsaved| unsaved.place == stored.place);
        if stored.status.is_final() || newest.is_some_and(|unsaved| unsaved.ended) {
            return None;
        }
        let made = newest.map_or(0, |unsaved| unsaved.attempts_made);
        let used = newest.map_or(0, |unsaved| unsaved.attempts_used);
        Some(Delivery {
            attempts_made: stored.attempts_made.max(made),
            attempts_used: stored.attempts_used.max(used),
            ..stored
        })
    }
}
