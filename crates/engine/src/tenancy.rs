//! Which slots a node works, until when, and what it waits for: the part of the driver that needs neither sockets nor a
//! runtime, so that the simulator's nodes have the very same.
//!
//! ```text
//!   work until ──► lease ended: cut everything off, once
//!   pass a slot ──► its last attempt has ended, or its time is up ──► it is empty
//!   what was accepted here for lanes that keep an order ──► with the next news, by its number
//! ```

use std::collections::{BTreeMap, HashMap};

use tidegate_core::delivery::Delivery;
use tidegate_core::slots::{Epoch, Slot};
use tidegate_core::time::Mono;
use tidegate_store::DestinationNo;

use crate::dispatcher::LaneId;

/// What this node has of the cluster.
#[derive(Debug, Default)]
pub struct Tenancy {
    slots: BTreeMap<Slot, Epoch>,
    /// When it must stop, by its own clock.
    until: Option<Mono>,
    /// It has stopped.
    stopped: bool,
    passing: Vec<Passing>,
    /// News is being read.
    reading: bool,
    /// Something came meanwhile.
    again: bool,
    /// What was accepted here for lanes that keep an order: it waits for the next news, since what another node accepted before it
    /// may not be known yet.
    accepted: Vec<(DestinationNo, Delivery)>,
    /// The same, of before the news that is being read; and what this news has brought so far.
    told: Vec<(DestinationNo, Delivery)>,
}

/// A slot that goes to another node.
#[derive(Debug)]
struct Passing {
    slot: Slot,
    /// Lanes that may have something in flight.
    busy: Vec<LaneId>,
    until: Mono,
}

/// What has become of slots that are passed on.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// What these lanes still have in flight is to be cut off: the time of their slot is up.
    pub late: Vec<LaneId>,
    /// Nothing of these is in flight any more, once that is done.
    pub empty: Vec<Slot>,
}

impl Tenancy {
    /// Whether it works a slot; one that is passed on is not worked any more.
    pub fn holds(&self, slot: Slot) -> bool {
        self.slots.contains_key(&slot)
    }
    /// The epoch under which it works a slot.
    pub fn epoch(&self, slot: Slot) -> Option<Epoch> {
        self.slots.get(&slot).copied()
    }
    /// The slots that it works.
    pub fn slots(&self) -> impl Iterator<Item = Slot> {
        self.slots.keys().copied()
    }
    /// Whether it may start an attempt, and let those in flight go on.
    pub fn may_work(&self, now: Mono) -> bool {
        self.until.is_some_and(|until| now < until)
    }
    /// When it must be looked at again.
    pub fn next_look(&self) -> Option<Mono> {
        let lease = self.until.filter(|_| !self.stopped);
        self.passing.iter().map(|passing| passing.until).chain(lease).min()
    }

    /// The lease holds: it may work until then.
    pub fn work_until(&mut self, until: Mono) {
        (self.until, self.stopped) = (Some(until), false);
    }
    /// The lease may end without anybody saying so. Says once that it has: then nothing must be in flight any more.
    pub fn has_ended(&mut self, now: Mono) -> bool {
        let ended = !self.stopped && self.until.is_some() && !self.may_work(now);
        self.stopped |= ended;
        ended
    }

    /// A slot is this node's from now on, under this epoch.
    pub fn take(&mut self, slot: Slot, epoch: Epoch) {
        self.slots.insert(slot, epoch);
    }
    /// A slot is somebody else's.
    pub fn lose(&mut self, slot: Slot) {
        self.slots.remove(&slot);
        self.passing.retain(|passing| passing.slot != slot);
    }
    /// A slot goes to another node when these lanes have nothing in flight any more, at the latest then.
    pub fn pass(&mut self, slot: Slot, lanes: Vec<LaneId>, until: Mono) {
        self.slots.remove(&slot);
        self.passing.push(Passing { slot, busy: lanes, until });
    }
    /// Whether any slot is being passed on.
    pub const fn passes(&self) -> bool {
        !self.passing.is_empty()
    }
    /// Which of the slots that are passed on are empty by now.
    pub fn passed(&mut self, now: Mono, is_busy: impl Fn(LaneId) -> bool) -> Passed {
        let mut passed = Passed::default();
        self.passing.retain_mut(|passing| {
            passing.busy.retain(|lane| is_busy(*lane));
            if now >= passing.until {
                passed.late.append(&mut passing.busy);
            }
            if passing.busy.is_empty() {
                passed.empty.push(passing.slot);
            }
            !passing.busy.is_empty()
        });
        passed
    }

    /// This node has accepted a delivery for a lane that keeps an order: it comes in with the next news.
    pub fn await_news(&mut self, destination: DestinationNo, delivery: Delivery) {
        self.accepted.push((destination, delivery));
    }
    /// Whether to read news now; if it is being read, that is done again afterwards.
    pub fn read_news(&mut self) -> bool {
        if std::mem::replace(&mut self.reading, true) {
            self.again = true;
            return false;
        }
        self.again = false;
        self.told.append(&mut self.accepted);
        true
    }
    /// News has come: what goes to its lanes now, in the order of numbers. If there is `more`, it comes with the next news, and
    /// something of that may belong before this.
    pub fn arrived(
        &mut self,
        brought: Vec<(DestinationNo, Delivery)>,
        more: bool,
    ) -> Vec<(DestinationNo, Delivery)> {
        self.told.extend(brought);
        self.again |= more;
        if more { Vec::new() } else { self.complete() }
    }
    /// Everything that was told of, now that the news has been read to its end. What was accepted here since the reading began
    /// waits for the next, but for what comes before something that was read: whoever got an answer here may have published
    /// the next event elsewhere in the meantime.
    fn complete(&mut self) -> Vec<(DestinationNo, Delivery)> {
        let mut all = std::mem::take(&mut self.told);
        if !self.accepted.is_empty() {
            let mut last = HashMap::new();
            for (destination, delivery) in &all {
                let number = last.entry(*destination).or_insert(delivery.id.sequence());
                *number = delivery.id.sequence().max(*number);
            }
            let is_before = |(destination, delivery): &mut (DestinationNo, Delivery)| {
                last.get(destination).is_some_and(|last| delivery.id.sequence() < *last)
            };
            all.extend(self.accepted.extract_if(.., is_before));
        }
        all.sort_by_key(|(_, delivery)| delivery.id.sequence());
        all
    }
    /// The news was taken in, or could not be read. Says whether to read again at once.
    pub fn done_reading(&mut self) -> bool {
        self.reading = false;
        self.again
    }
}
