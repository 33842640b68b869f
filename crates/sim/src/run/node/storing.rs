//! What goes to the store and what comes from it: groups, refills, and what went stale there.
//!
//! As the engine's driver does it: results and lanes in one record, a lane only where its bytes have changed, and what its
//! timeouts have learned once a minute.

use tidegate_core::delivery::Delivery;
use tidegate_core::id::AttemptId;
use tidegate_core::lane::{Attempt, Report};
use tidegate_core::time::{Millis, Mono};
use tidegate_engine::dispatcher::{Input, LaneId, Mark};

use super::{Commit, Event, Note, Observer, Op, SWEEP_AFTER, Sim, salt};

/// What timeouts have learned is large and changes slowly: a crash may cost this much of it.
const TIMEOUTS_EVERY: Millis = Millis::minutes(1);

/// The machine hears of a commit within so many milliseconds; a refill that is read meanwhile may be here first.
const HEARD_WITHIN: u64 = 4;

/// What was handed to the store of a lane, so that nothing is written twice.
#[derive(Debug, Default)]
pub(super) struct Kept {
    state: Vec<u8>,
    timeouts_at: Mono,
}

impl<O: Observer> Sim<O> {
    pub(super) fn settle(
        &mut self,
        lane: LaneId,
        delivery: Box<Delivery>,
        attempt: Option<(Attempt, Report)>,
        mark: Mark,
    ) {
        let attempt = attempt.map(|(attempt, report)| {
            let number = self.number(1);
            (AttemptId::numbered(number, salt(number)), attempt, report)
        });
        self.write(Op::Settle { lane, delivery, attempt, mark, changed: false });
        self.save_lane(lane, false);
    }

    /// Stores what the store does not have of a lane. With `all`, also what its timeouts have learned lately. Where nothing
    /// ever fails, nobody reads it.
    pub(super) fn save_lane(&mut self, lane: LaneId, all: bool) {
        if self.commit == Commit::Instant {
            return;
        }
        let now = self.now();
        let machine = self.dispatcher.lane(lane);
        let kept = &mut self.kept[lane.index()];
        let state = machine.encode_state(now);
        let due = all || now.mono.since(kept.timeouts_at) >= TIMEOUTS_EVERY;
        if state != kept.state || due {
            let timeouts = due.then(|| machine.encode_timeouts());
            if due {
                kept.timeouts_at = now.mono;
            }
            kept.state.clone_from(&state);
            let mark = machine.mark();
            self.write(Op::Save { lane, state, timeouts, mark });
        }
    }

    /// What was handed to the store and is not in it is lost with the process.
    pub(super) fn forget_kept(&mut self) {
        self.kept.fill_with(Kept::default);
    }

    pub(super) fn write(&mut self, op: Op) {
        self.ops.push(op);
        match self.commit {
            Commit::Instant => self.commit(),
            Commit::Grouped(latency) if !self.commit_planned => {
                self.commit_planned = true;
                self.plan_at(self.mono + latency.get(), Event::Commit);
            }
            Commit::Grouped(_) => {}
        }
    }

    /// The group is durable, and readers see it: whoever waited for that hears of it, after a moment.
    pub(super) fn commit(&mut self) {
        self.commit_planned = false;
        let mut group = std::mem::take(&mut self.ops);
        self.backing.commit(self.now().wall, &mut group);
        let mut news = Vec::new();
        for op in group.drain(..) {
            match op {
                Op::Accept { lane, delivery, .. } => {
                    self.tell(&Note::Accepted(lane, &delivery));
                    news.push(Input::Accepted { lane, delivery: *delivery });
                }
                Op::Settle { lane, delivery, mark, changed, .. } => {
                    if changed {
                        self.tell(&Note::Settled(lane, &delivery));
                    }
                    news.push(Input::Saved { lane, mark });
                }
                Op::Save { lane, mark, .. } => news.push(Input::Saved { lane, mark }),
            }
        }
        // Its room is for the next group.
        self.ops = group;
        match self.commit {
            Commit::Instant => self.inbox.extend(news),
            Commit::Grouped(_) => {
                self.unheard.push_back(news);
                let wait = self.chance.below(HEARD_WITHIN).cast_signed();
                self.plan_at(self.mono + wait, Event::Hear(self.life));
            }
        }
    }

    /// The machine hears of the next commit: in their order, whichever of them took longer.
    pub(super) fn hear(&mut self, life: u32) {
        if life == self.life {
            self.inbox.extend(self.unheard.pop_front().into_iter().flatten());
        }
    }

    pub(super) fn refill(&mut self, lane: LaneId) {
        self.work.refills += 1;
        match self.commit {
            Commit::Instant => {
                let refill = self.backing.refill(self.dispatcher.lane(lane), self.now().wall);
                self.inbox.push_back(Input::Refilled { lane, refill });
            }
            // Reading takes a moment, and what was read is a moment old when it comes.
            Commit::Grouped(latency) => {
                self.plan_at(self.mono + latency.get(), Event::ReadRefill(lane, self.life));
            }
        }
    }

    pub(super) fn read_refill(&mut self, lane: LaneId, life: u32) {
        if life != self.life || self.down {
            return;
        }
        let refill = self.backing.refill(self.dispatcher.lane(lane), self.now().wall);
        self.refills.push(Some(refill));
        let place = u32::try_from(self.refills.len() - 1).expect("few refills");
        self.plan_at(self.mono + 1, Event::HandRefill(lane, place));
    }

    pub(super) fn hand_refill(&mut self, lane: LaneId, place: u32) {
        if let Some(refill) = self.refills.get_mut(place as usize).and_then(Option::take) {
            self.inbox.push_back(Input::Refilled { lane, refill });
        }
        if self.refills.iter().all(Option::is_none) {
            self.refills.clear();
        }
    }

    /// Hands what went stale to its lane, which may not have it in memory.
    pub(super) fn sweep(&mut self) {
        self.sweep_planned = None;
        if self.down {
            return;
        }
        for (index, delivery) in self.backing.stale(self.now().wall - SWEEP_AFTER) {
            let lane = self.dispatcher.lanes()[index].id();
            self.inbox.push_back(Input::Overdue { lane, delivery: Box::new(delivery) });
        }
    }
}
