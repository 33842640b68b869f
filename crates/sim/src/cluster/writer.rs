//! A node's writer: one group at a time, in two bundles; what to do when one fails is what the store's writer does.

use std::collections::BTreeSet;
use std::rc::Rc;

use tidegate_core::slots::Slot;

use super::Cluster;
use super::node::{Input, Phase, Writer};
use super::work::{Arrival, Ask, Group, Work, slot};

/// How long an answer may take, in microseconds.
const PATIENCE: i64 = 2_000_000;
/// How long records wait before they are tried again without a database.
const PAUSE: i64 = 1_000_000;

impl Writer {
    pub(super) fn is_idle(&self) -> bool {
        self.queue.is_empty() && matches!(self.phase, Phase::Idle)
    }
}

impl Cluster {
    pub(super) fn write(&mut self, n: usize, work: Work) {
        self.nodes[n].writer.queue.push_back(work);
        self.kick(n);
    }

    /// Begins a group with all that waits. While nothing can be written, whoever asks is told so at once.
    fn kick(&mut self, n: usize) {
        match self.nodes[n].writer.phase {
            Phase::Idle if self.nodes[n].writer.queue.is_empty() => self.finish_closing(n),
            Phase::Idle => {
                let node = &mut self.nodes[n];
                let works = node.writer.queue.drain(..).collect();
                let group = Rc::new(Group { works, epochs: node.epochs.clone() });
                node.writer.phase = Phase::Beginning(Rc::clone(&group));
                self.ask_as_writer(n, |token| Ask::Begin { token, group });
            }
            Phase::Resting(_) | Phase::Recovering(_) => {
                for accepted in self.nodes[n].writer.take_accepts() {
                    self.publisher_failed(n, accepted.publisher);
                }
            }
            Phase::Beginning(_) | Phase::Committing(..) => {}
        }
    }

    fn ask_as_writer(&mut self, n: usize, ask: impl FnOnce(u64) -> Ask) {
        let token = self.token();
        self.nodes[n].writer.token = token;
        self.ask(n, ask(token));
        self.plan_at_node(n, self.us + PATIENCE, Arrival::Failed(token));
    }

    pub(super) fn begun(&mut self, n: usize, stale: BTreeSet<Slot>) {
        let writer = &mut self.nodes[n].writer;
        let Phase::Beginning(group) = std::mem::take(&mut writer.phase) else { return };
        writer.phase = Phase::Committing(Rc::clone(&group), stale);
        // The connection is the same: the database knows the group by its token.
        let token = writer.token;
        self.ask(n, Ask::Commit { token, group });
    }

    pub(super) fn committed(&mut self, n: usize) {
        if let Phase::Committing(group, stale) = std::mem::take(&mut self.nodes[n].writer.phase) {
            self.tell_commit(n, &group, &stale, true);
            self.kick(n);
        }
    }

    /// The group is durable: the driver hears of it, and whoever asked, unless they were told otherwise before.
    fn tell_commit(&mut self, n: usize, group: &Group, stale: &BTreeSet<Slot>, answer: bool) {
        let node = &mut self.nodes[n];
        node.writer.groups += 1;
        for slot in stale {
            if node.epochs.get(slot) == group.epochs.get(slot) {
                node.epochs.remove(slot);
            }
        }
        node.inbox.push_back(Input::Commit(group.works.clone()));
        let foreign = |slot: Slot| !group.epochs.contains_key(&slot) || stale.contains(&slot);
        let mut told = false;
        for work in &group.works {
            if let Work::Accept(accepted) = work {
                told |= foreign(slot(accepted.lane));
                if answer {
                    self.plan_at_node(n, self.us, Arrival::Past(accepted.clone()));
                }
            }
        }
        if told {
            self.ask(n, Ask::Announce { freed: false });
        }
    }

    pub(super) fn writer_failed(&mut self, n: usize) {
        if !self.is_cut(n) {
            self.database.close(self.nodes[n].seat);
        }
        let phase = match std::mem::take(&mut self.nodes[n].writer.phase) {
            Phase::Beginning(group) => {
                self.keep_records(n, &group, true);
                Phase::Resting(None)
            }
            // Whoever asked is told at once; the group itself is kept until it is known what became of it.
            Phase::Committing(group, stale) => {
                self.give_up(n, &group);
                Phase::Resting(Some((group, stale)))
            }
            Phase::Recovering(unknown) | Phase::Resting(unknown) => Phase::Resting(unknown),
            Phase::Idle => return,
        };
        self.nodes[n].writer.phase = phase;
        let token = self.token();
        self.nodes[n].writer.token = token;
        self.plan_at_node(n, self.us + PAUSE, Arrival::TryAgain(token));
        self.kick(n);
    }

    fn give_up(&mut self, n: usize, group: &Group) {
        for work in &group.works {
            if let Work::Accept(accepted) = work {
                self.publisher_failed(n, accepted.publisher);
            }
        }
    }

    /// Records wait in their order; whoever asked is told, unless that was done before.
    fn keep_records(&mut self, n: usize, group: &Group, tell: bool) {
        for work in group.works.iter().rev() {
            match work {
                Work::Record(_) => self.nodes[n].writer.queue.push_front(work.clone()),
                Work::Accept(accepted) if tell => self.publisher_failed(n, accepted.publisher),
                Work::Accept(_) => {}
            }
        }
    }

    pub(super) fn try_again(&mut self, n: usize) {
        if let Phase::Resting(unknown) = std::mem::take(&mut self.nodes[n].writer.phase) {
            self.nodes[n].writer.phase = Phase::Recovering(unknown);
            self.ask_as_writer(n, |token| Ask::Recover { token });
        }
    }

    pub(super) fn recovered(&mut self, n: usize, groups: u64) {
        let Phase::Recovering(unknown) = std::mem::take(&mut self.nodes[n].writer.phase) else { return };
        if let Some((group, stale)) = unknown {
            if groups == self.nodes[n].writer.groups + 1 {
                self.tell_commit(n, &group, &stale, false);
            } else {
                self.keep_records(n, &group, false);
            }
        }
        self.kick(n);
    }
}
