//! Nothing lost, nothing ended twice, no duplicate without a reason.
//!
//! Judged from what publishers were told, what receivers answered and what the store says. After a success that receivers
//! gave, a second request for the same delivery is explained only by a crash in between.

use std::collections::{HashMap, HashSet};

use tidegate_core::delivery::{Delivery, End, Status};
use tidegate_core::outcome::Outcome;
use tidegate_engine::dispatcher::LaneId;

use super::Violations;
use crate::run::{Note, Observer, View};

/// Every delivery from acceptance to its end.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    open: HashMap<u64, Account>,
    ended: HashMap<&'static str, u64>,
    /// Answered with a success since the last crash, end not yet stored.
    succeeded: HashMap<u64, LaneId>,
    /// Answered with a success before a crash that came before the store had it.
    forgotten: HashSet<u64>,
    duplicates: u64,
    accepted: u64,
    violations: Violations,
}

#[derive(Clone, Copy, Debug, Default)]
struct Account {
    attempts_made: u32,
}

impl Ledger {
    /// Deliveries accepted.
    pub const fn accepted(&self) -> u64 {
        self.accepted
    }
    /// Deliveries that ended with this word.
    pub fn ended(&self, word: &str) -> u64 {
        self.ended.get(word).copied().unwrap_or(0)
    }
    /// Deliveries that are not over.
    pub fn open(&self) -> usize {
        self.open.len()
    }
    /// Requests repeated although a success had been answered, because a crash came before the commit.
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }
    /// What was wrong, if anything.
    pub fn violations(&self) -> &[String] {
        self.violations.kept()
    }

    fn accept(&mut self, delivery: &Delivery) {
        self.accepted += 1;
        if let Status::Final(end) = delivery.status {
            *self.ended.entry(end.word()).or_default() += 1;
        } else if self.open.insert(delivery.place.sequence, Account::default()).is_some() {
            self.violations.add(|| format!("sequence {} was accepted twice", delivery.place.sequence));
        }
    }

    fn send(&mut self, sequence: u64) {
        if self.succeeded.contains_key(&sequence) {
            self.violations.add(|| {
                format!("sequence {sequence} was sent again after a success, without a crash between")
            });
        }
        if self.forgotten.remove(&sequence) {
            self.duplicates += 1;
        }
        if !self.open.contains_key(&sequence) {
            self.violations.add(|| format!("sequence {sequence} was sent, but is not open in the store"));
        }
    }

    fn settle(&mut self, delivery: &Delivery) {
        let sequence = delivery.place.sequence;
        let Some(account) = self.open.get_mut(&sequence) else {
            self.violations
                .add(|| format!("sequence {sequence} changed to {} after its end", delivery.status.word()));
            return;
        };
        if delivery.attempts_made < account.attempts_made {
            self.violations.add(|| format!("sequence {sequence} has fewer attempts than before"));
        }
        account.attempts_made = delivery.attempts_made;
        if let Status::Final(end) = delivery.status {
            self.open.remove(&sequence);
            *self.ended.entry(end.word()).or_default() += 1;
            if self.succeeded.remove(&sequence).is_some() && end != End::Delivered {
                self.violations.add(|| {
                    format!("sequence {sequence} was answered with a success, but ended as {}", end.word())
                });
            }
        }
    }
}

impl Observer for Ledger {
    fn note(&mut self, _: &View<'_>, note: &Note<'_>) {
        match note {
            Note::Accepted(_, delivery) => self.accept(delivery),
            Note::Sent(_, sending) => self.send(sending.place.sequence),
            Note::Answered(lane, sending, answer) => {
                if let Outcome::Success { .. } = answer.report.outcome {
                    self.succeeded.insert(sending.place.sequence, *lane);
                }
            }
            Note::Settled(_, delivery) => self.settle(delivery),
            Note::Crashed => self.forgotten.extend(self.succeeded.drain().map(|(sequence, _)| sequence)),
            Note::Lost(lost) => {
                let lost = self.succeeded.extract_if(|_, lane| lane == lost);
                self.forgotten.extend(lost.map(|(sequence, _)| sequence));
            }
            _ => {}
        }
    }
}
