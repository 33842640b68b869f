//! A node's part in the cluster, as the engine's `membership` does it: one thing after the other, all decided by `core::slots`.

use tidegate_core::slots::{DRAIN, Membership, RENEW_EVERY, Roll, Slot, Tenure};
use tidegate_core::time::{Millis, Mono};

use super::Cluster;
use super::node::{Doing, Input, State};
use super::work::{Arrival, Ask, Claimed};

/// After a renewal that failed.
const AGAIN_AFTER: Millis = Millis::new(250);
/// A look at a lease that ends comes a moment after its end.
const AFTER_END: Millis = Millis::new(20);
/// How long an answer may take, in microseconds.
const PATIENCE: i64 = 1_500_000;
/// How long a node that leaves waits for what is in flight.
const LEAVE_WITHIN: Millis = Millis::seconds(12);

impl Cluster {
    /// Asks, and waits for the answer, but not for long.
    fn ask_as_member(&mut self, n: usize, doing: Doing, ask: impl FnOnce(u64) -> Ask) {
        let token = self.token();
        (self.nodes[n].task.token, self.nodes[n].task.doing) = (token, doing);
        self.ask_desk(n, token, ask(token));
    }

    pub(super) fn ask_desk(&mut self, n: usize, token: u64, ask: Ask) {
        self.nodes[n].desk.asks.push_back((token, ask));
        self.serve_desk(n);
    }

    /// The answer to a question is here, or does not come any more: on to the next.
    pub(super) fn desk_done(&mut self, n: usize, token: u64) {
        if self.nodes[n].desk.token.take_if(|asked| *asked == token).is_some() {
            self.serve_desk(n);
        }
    }

    fn serve_desk(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        if node.desk.token.is_some() {
            return;
        }
        let Some((token, mut ask)) = node.desk.asks.pop_front() else { return };
        node.desk.token = Some(token);
        if let Ask::News { cursors, held, .. } = &mut ask {
            (*cursors, *held) = (node.cursors.clone(), node.epochs.keys().copied().collect());
        }
        self.ask(n, ask);
        self.plan_at_node(n, self.us + PATIENCE, Arrival::Failed(token));
    }

    pub(super) fn round(&mut self, n: usize) {
        let (sent, leaving) = (self.now_at(n).mono, self.nodes[n].leaving);
        let task = &mut self.nodes[n].task;
        (task.freed, task.sent, task.next) = (false, sent, RENEW_EVERY);
        self.ask_as_member(n, Doing::Renewing, |token| Ask::Renew { token, sent, leaving });
    }

    pub(super) fn renewed(&mut self, n: usize, sent: Mono, roll: &Roll) {
        let node = &mut self.nodes[n];
        if node.state == State::Starting {
            return self.go(n, sent);
        }
        let Some(membership) = &mut node.membership else { return };
        let plan = membership.renewed(sent, roll);
        if std::mem::take(&mut node.just_woke) && membership.held().next().is_none() && !plan.lost.is_empty()
        {
            self.watch.counts.woke_with_nothing += 1;
        }
        if !plan.lost.is_empty() {
            node.epochs.retain(|slot, _| !plan.lost.contains(slot));
            node.inbox.push_back(Input::Lose(plan.lost));
        }
        let until = membership.stops_at();
        node.inbox.push_back(Input::Work(until));
        if !plan.pass.is_empty() {
            let limit = if node.leaving { LEAVE_WITHIN } else { DRAIN };
            node.inbox.push_back(Input::Pass(plan.pass, limit));
        }
        if let Some(left) = plan.look_after {
            node.task.next = node.task.next.min(left + AFTER_END);
        }
        if plan.claim.is_empty() {
            return self.rest(n);
        }
        let slots = plan.claim;
        self.ask_as_member(n, Doing::Claiming, |token| Ask::Claim { token, slots, asked_at: 0 });
    }

    pub(super) fn claimed(&mut self, n: usize, claimed: Vec<Claimed>) {
        let node = &mut self.nodes[n];
        for Claimed { slot, epoch, .. } in &claimed {
            node.epochs.insert(*slot, *epoch);
            node.membership.iter_mut().for_each(|membership| membership.granted(*slot, *epoch));
        }
        if !claimed.is_empty() {
            node.inbox.push_back(Input::Take(claimed));
        }
        self.rest(n);
    }

    /// Slots are empty, and everything of them is committed.
    fn give_back(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        let Some(membership) = &mut node.membership else { return };
        let mut slots = std::mem::take(&mut node.task.emptied);
        slots.retain(|slot| matches!(membership.tenure(*slot), Tenure::Passing(..)));
        for slot in &slots {
            membership.given_back(*slot);
            node.epochs.remove(slot);
        }
        self.ask_as_member(n, Doing::GivingBack, |token| Ask::GiveBack { token, slots, asked_at: 0 });
    }

    /// What could not be asked is left; the next round shows what came of it.
    pub(super) fn member_failed(&mut self, n: usize) {
        if self.nodes[n].task.doing == Doing::Renewing {
            let sent = self.now_at(n).mono;
            let task = &mut self.nodes[n].task;
            (task.sent, task.next) = (sent, AGAIN_AFTER);
            self.nodes[n].inbox.push_back(Input::OutOfReach);
        }
        self.rest(n);
    }

    /// Nothing is under way: does what waits, or sleeps until the next round.
    pub(super) fn rest(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        node.task.doing = Doing::Waiting;
        if node.state == State::Starting {
            return self.ask_first(n);
        }
        let empty = node.membership.as_ref().is_none_or(|membership| membership.held().next().is_none());
        if node.leaving && empty {
            return self.close(n);
        }
        if !node.task.emptied.is_empty() {
            return self.give_back(n);
        }
        if std::mem::take(&mut node.task.leave) {
            node.leaving = true;
            node.membership.iter_mut().for_each(Membership::leave);
            return self.round(n);
        }
        if node.task.freed {
            return self.round(n);
        }
        let at = node.clock.at_mono(node.task.sent + node.task.next);
        let token = self.token();
        self.nodes[n].task.token = token;
        self.plan_at_node(n, at, Arrival::Round(token));
    }

    /// Something happened that the task may wait for.
    pub(super) fn nudge(&mut self, n: usize) {
        if self.nodes[n].task.doing == Doing::Waiting && self.nodes[n].state == State::Up {
            self.rest(n);
        }
    }

    /// The first question of a node: what time is it? It takes part when it knows.
    pub(super) fn ask_first(&mut self, n: usize) {
        self.look_at_clock(n);
        let sent = self.now_at(n).mono;
        self.ask_as_member(n, Doing::Renewing, |token| Ask::Renew { token, sent, leaving: false });
    }

    pub(super) fn look_at_clock(&mut self, n: usize) {
        let sent = self.nodes[n].clock.elapsed(self.us);
        self.ask(n, Ask::Clock { sent });
    }

    fn go(&mut self, n: usize, sent: Mono) {
        if !self.nodes[n].clock.is_known() {
            return self.rest(n);
        }
        let node = &mut self.nodes[n];
        node.state = State::Up;
        node.membership = Some(Membership::new(node.no, sent));
        self.plan_at_node(n, self.us, Arrival::Poll);
        self.plan_at_node(n, self.us, Arrival::LookAtClock);
        self.plan_at_node(n, self.us, Arrival::Second);
        self.round(n);
    }

    /// Everything is passed on: what is left is written, and then the node is gone.
    fn close(&mut self, n: usize) {
        let node = &mut self.nodes[n];
        node.state = State::Closing;
        node.task.token = 0;
        self.finish_closing(n);
    }

    pub(super) fn finish_closing(&mut self, n: usize) {
        let node = &self.nodes[n];
        if node.state == State::Closing && node.writer.is_idle() && node.asking.is_empty() {
            self.ask(n, Ask::Leave);
        }
    }

    /// These were emptied.
    pub(super) fn emptied(&mut self, n: usize, slots: Vec<Slot>) {
        self.nodes[n].task.emptied.extend(slots);
        self.nudge(n);
    }
}
