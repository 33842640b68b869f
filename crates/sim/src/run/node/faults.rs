//! What goes wrong on our side: the process dies, or stops cleanly, and starts again; somebody sets the clock.

use std::cmp::Reverse;

use tidegate_core::lane::{LaneState, LastStop, Report};
use tidegate_core::outcome::Outcome;
use tidegate_core::time::Millis;
use tidegate_engine::dispatcher::{Dispatcher, Input};

use super::{Commit, Event, Note, Observer, Op, Sim};
use crate::backing::Restarted;

/// By then lanes have been stored anew after the clock was set.
const CLOCK_SAVED: Millis = Millis::seconds(1);
/// How long a crashed process is down, at most.
const DOWN: f64 = 20_000.0;

impl<O: Observer> Sim<O> {
    pub(super) fn crash(&mut self) {
        if self.healed || self.down {
            return;
        }
        if self.mono - self.clock_set_at < CLOCK_SAVED.get() {
            // Nor can anyone tell if it was set in the moment before a crash and not stored.
            return self.plan_at(self.mono + CLOCK_SAVED.get(), Event::Crash);
        }
        let clean = self.faults.clean_stops > 0.0 && self.chance.happens(self.faults.clean_stops);
        self.last_stop = if clean { LastStop::Clean } else { LastStop::Crash };
        if clean {
            self.stop_cleanly();
        }
        self.life += 1;
        self.down = true;
        self.inbox.clear();
        self.unheard.clear();
        self.commit_planned = false;
        self.events.retain(|Reverse((.., event))| *event != Event::Commit);
        self.refills.iter_mut().for_each(|refill| *refill = None);
        // A publisher without an answer publishes again.
        for op in std::mem::take(&mut self.ops) {
            if let Op::Accept { publisher, .. } = op {
                self.unsent.push(publisher);
            }
        }
        for (_, _, open) in &mut self.models {
            *open = 0;
        }
        self.tell(&Note::Crashed);
        #[expect(clippy::cast_possible_truncation, reason = "at most twenty seconds")]
        let down = self.chance.between(100.0, DOWN) as i64;
        self.plan_at(self.mono + down, Event::Restart);
    }

    /// SIGTERM, with no patience for what is in flight: it is called off, and goes back to its place.
    fn stop_cleanly(&mut self) {
        self.dispatcher.stop_starting();
        for place in 0..self.flights.len() {
            if let Some(flight) = self.flights[place].take_if(|flight| flight.life == self.life) {
                let elapsed = self.now().mono.since(flight.sending.attempt.started.mono);
                let report = Report { outcome: Outcome::Cancelled, elapsed, rate_hint: None };
                let (lane, delivery, draw) = (flight.lane, flight.sending.delivery, self.chance.draw());
                self.inbox.push_back(Input::Finished { lane, delivery, report, draw });
            }
        }
        self.settle_down();
        for index in 0..self.dispatcher.lanes().len() {
            self.save_lane(self.dispatcher.lanes()[index].id(), true);
        }
        self.commit();
        self.settle_down();
    }

    pub(super) fn restart(&mut self) {
        let now = self.now();
        self.down = false;
        self.wake_planned = None;
        self.forget_kept();
        let Restarted { last_stop, sequence, lanes } = self.backing.restart(self.last_stop);
        self.sequence = sequence;
        self.dispatcher = Dispatcher::new(self.slots);
        for ((account, policy), lane) in self.policies.clone().into_iter().zip(lanes) {
            let saved = lane.saved.unwrap_or_else(|| LaneState::new(&policy, now).save(&policy, now));
            let state = saved.restore(&policy, now, last_stop);
            let id = self.dispatcher.open(account, policy, state, lane.backlog);
            self.save_lane(id, false);
        }
        self.tell(&Note::Restarted);
        for publisher in std::mem::take(&mut self.unsent) {
            self.publish(publisher);
        }
        self.inbox.push_back(Input::Wake);
        if !self.healed && self.faults.storms > 0.0 && self.chance.happens(self.faults.storms) {
            // Within the time that the first commit takes.
            let soon = match self.commit {
                Commit::Instant => 0,
                Commit::Grouped(latency) => self.chance.below(latency.get().max(1).unsigned_abs()),
            };
            self.plan_at(self.mono + soon.cast_signed(), Event::Crash);
        } else {
            self.plan_fault(self.faults.crash_every, Event::Crash);
        }
    }

    pub(super) fn set_clock(&mut self) {
        let Some((every, most)) = self.faults.clock_steps.filter(|_| !self.healed) else { return };
        if self.down {
            // A clock that is set while nobody looks is time that has passed, as far as anyone can tell.
            return self.plan_fault(Some(every), Event::SetClock);
        }
        #[expect(clippy::cast_possible_truncation, reason = "bounded by the set-up")]
        let step = self.chance.between(-(most.get() as f64), most.get() as f64) as i64;
        self.offset += Millis::new(step);
        self.tell(&Note::ClockSet);
        self.inbox.push_back(Input::Wake);
        self.wake_planned = None;
        self.clock_set_at = self.mono;
        self.plan_fault(Some(every), Event::SetClock);
    }
}
