//! Which destinations this node works, where there are several: slots come, are passed on, and may be lost.
//!
//! ```text
//!   Take    the lanes of a slot get the state that the store has, and ask for what waits
//!   Pass    they start nothing more; when their last attempt has ended and is committed, the slot is told of
//!   Lose    what they have in flight is cut off and counts no more
//!   Work    until then: if nobody says otherwise before, everything is cut off, and goes back to its queue
//!   News    what other nodes have accepted for lanes of this one
//! ```

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tidegate_core::delivery::Delivery;
use tidegate_core::lane::LastStop;
use tidegate_core::order::Ordering;
use tidegate_core::slots::Slot;
use tidegate_core::time::Mono;
use tidegate_store::cluster::{Brought, Claimed, News, Posted};
use tidegate_store::lane::StoredLane;
use tidegate_store::{DestinationNo, StoreError};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::inbox::{Arrival, Order};
use super::{Driver, Past, restore};
use crate::dispatcher::{Input, Lane, LaneId, Presence};
use crate::orders;

/// A destination that another node has made is known here soon after.
const HEARD_OF: Duration = Duration::from_millis(500);

/// What this node has of the cluster.
#[derive(Default)]
pub(super) struct Tenancy {
    slots: HashMap<Slot, LastStop>,
    /// When it must stop, by its own clock.
    until: Option<Mono>,
    /// It has stopped.
    stopped: bool,
    passing: Vec<Passing>,
    /// News is being read.
    reading: bool,
    /// What was accepted here for lanes that keep an order: it waits for the next news, since what another node accepted before it
    /// may not be known yet.
    accepted: Vec<(DestinationNo, Delivery)>,
    /// The same, of before the news that is being read; and what this news has brought so far.
    told: Vec<(DestinationNo, Delivery)>,
    /// Something came meanwhile.
    again: bool,
}

/// A slot that goes to another node.
struct Passing {
    slot: Slot,
    /// Lanes that may have something in flight.
    busy: Vec<LaneId>,
    until: Instant,
    passed: mpsc::UnboundedSender<Slot>,
}

impl Tenancy {
    pub(super) fn holds(&self, slot: Slot) -> bool {
        self.slots.contains_key(&slot)
    }
    pub(super) fn may_work(&self, now: Mono) -> bool {
        self.until.is_some_and(|until| now < until)
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
    /// When it must be looked at again.
    pub(super) fn next_look(&self, now: Mono) -> Option<Instant> {
        let lease = self.until.filter(|_| !self.stopped).map(|until| {
            Instant::now() + Duration::from_millis(until.since(now).get().max(0).unsigned_abs())
        });
        self.passing.iter().map(|passing| passing.until).chain(lease).min()
    }
}

impl Driver {
    pub(super) fn work_until(&mut self, until: Mono) {
        if let Some(tenancy) = &mut self.tenancy {
            tenancy.until = Some(until);
            tenancy.stopped = false;
            self.parts.lease_until.store(until.as_millis(), Relaxed);
        }
    }

    /// The lease may end without anybody saying so: then nothing must be in flight any more.
    pub(super) fn mind_lease(&mut self) {
        let now = self.now().mono;
        let Some(tenancy) = &mut self.tenancy else { return };
        if tenancy.stopped || tenancy.until.is_none() || tenancy.may_work(now) {
            return;
        }
        tenancy.stopped = true;
        if self.dispatcher.in_flight() > 0 {
            let busy: Vec<LaneId> = self
                .dispatcher
                .lanes()
                .iter()
                .filter(|lane| lane.in_flight_count() > 0)
                .map(|lane| lane.id())
                .collect();
            for lane in &busy {
                self.lanes.get_mut(*lane).cut();
            }
            tracing::warn!("the lease could not be renewed: everything is cut off, and nothing starts");
            self.cut_off(&busy);
        }
    }

    pub(super) fn take_slots(&mut self, claimed: Vec<Claimed>) {
        let now = self.now();
        for Claimed { slot, last_stop, lanes, .. } in claimed {
            let stored: HashMap<_, StoredLane> =
                lanes.into_iter().map(|lane| (lane.destination, lane)).collect();
            if let Some(tenancy) = &mut self.tenancy {
                tenancy.slots.insert(slot, last_stop);
            }
            for lane in self.lanes.of(slot) {
                let stored = stored.get(&self.lanes.get(lane).destination);
                let record = self.lanes.get_mut(lane);
                record.change_hands(stored, now);
                record.as_of = None;
                let policy = self.dispatcher.lane(lane).shared_policy();
                let past = stored.map_or(Past::Unknown, Past::Stored);
                let state = restore(past, &policy, self.lanes.get(lane).disabled, now, last_stop);
                let forfeited = state.unsaved_starts > 0;
                self.step(Input::Take { lane, state: Box::new(state) });
                if forfeited {
                    self.recorder.await_commit(lane, self.dispatcher.lane(lane).mark());
                }
                if self.lanes.get(lane).retired {
                    self.step(Input::Command { lane, command: crate::dispatcher::Command::Retire });
                } else {
                    self.recorder.touched.insert(lane);
                }
            }
        }
    }

    pub(super) fn pass_slots(
        &mut self,
        slots: &[Slot],
        limit: Duration,
        passed: &mpsc::UnboundedSender<Slot>,
    ) {
        for slot in slots {
            let busy = self.lanes.of(*slot);
            for lane in &busy {
                self.step(Input::Pass { lane: *lane });
            }
            let passing =
                Passing { slot: *slot, busy, until: Instant::now() + limit, passed: passed.clone() };
            if let Some(tenancy) = &mut self.tenancy {
                tenancy.slots.remove(slot);
                tenancy.passing.push(passing);
            }
        }
    }

    /// Tells of slots whose last attempt has ended, when that is committed.
    pub(super) fn hand_over(&mut self) {
        let Some(tenancy) = &mut self.tenancy else { return };
        if tenancy.passing.is_empty() {
            return;
        }
        let mut passing = std::mem::take(&mut tenancy.passing);
        let now = Instant::now();
        for slot in &mut passing {
            slot.busy.retain(|lane| self.dispatcher.lane(*lane).in_flight_count() > 0);
            if !slot.busy.is_empty() && now >= slot.until {
                for lane in &slot.busy {
                    self.lanes.get_mut(*lane).cut();
                }
                let busy = std::mem::take(&mut slot.busy);
                self.cut_off(&busy);
            }
        }
        let (empty, busy): (Vec<_>, Vec<_>) = passing.into_iter().partition(|slot| slot.busy.is_empty());
        if let Some(tenancy) = &mut self.tenancy {
            tenancy.passing = busy;
        }
        if empty.is_empty() {
            return;
        }
        let lanes: Vec<LaneId> = empty.iter().flat_map(|passing| self.lanes.of(passing.slot)).collect();
        self.recorder
            .touched
            .extend(lanes.iter().filter(|lane| self.dispatcher.lane(**lane).mark().starts > 0));
        self.flush(true);
        for lane in lanes {
            self.step(Input::Lose { lane });
            let now = self.now();
            self.lanes.get_mut(lane).change_hands(None, now);
        }
        for Passing { slot, passed, .. } in empty {
            self.recorder.then(move || {
                let _left = passed.send(slot);
            });
        }
    }

    pub(super) fn lose_slots(&mut self, slots: &[Slot]) {
        let now = self.now();
        for slot in slots {
            if let Some(tenancy) = &mut self.tenancy {
                tenancy.slots.remove(slot);
                tenancy.passing.retain(|passing| passing.slot != *slot);
            }
            for lane in self.lanes.of(*slot) {
                self.step(Input::Lose { lane });
                self.lanes.get_mut(lane).change_hands(None, now);
            }
        }
    }

    /// Once a second: what is in flight, for those who look from other nodes.
    pub(super) fn show_in_flight(&mut self) {
        if self.tenancy.is_some() {
            let changed = |lane: &&Lane| {
                lane.presence() != Presence::Elsewhere
                    && lane.state().in_flight != self.lanes.get(lane.id()).shown_in_flight
            };
            let changed: Vec<LaneId> = self.dispatcher.lanes().iter().filter(changed).map(Lane::id).collect();
            self.recorder.touched.extend(changed);
        }
    }

    /// What others have posted. A destination that this node has not heard of yet comes with the catalogue.
    pub(super) fn fulfil_posted(&self, posted: Vec<Posted>) {
        let mut unknown = Vec::new();
        for order in posted {
            match self.lanes.find(order.destination).map(|lane| self.lanes.get(lane).account) {
                Some(account) => orders::fulfil(&self.parts, &self.outbox, account, order),
                None => unknown.push(order),
            }
        }
        if !unknown.is_empty() {
            let outbox = self.outbox.clone();
            tokio::spawn(async move {
                tokio::time::sleep(HEARD_OF).await;
                let _left = outbox.send(Arrival::Order(Order::Posted(unknown)));
            });
        }
    }

    /// What others have stored of lanes that they work.
    pub(super) fn show(&mut self, lanes: Vec<StoredLane>) {
        let now = self.now();
        for stored in lanes {
            let Some(lane) = self.lanes.find(stored.destination) else { continue };
            if self.dispatcher.lane(lane).presence() == Presence::Elsewhere {
                let policy = self.dispatcher.lane(lane).shared_policy();
                let disabled = self.lanes.get(lane).disabled;
                let state = restore(Past::Stored(&stored), &policy, disabled, now, LastStop::Clean);
                self.step(Input::Shown { lane, state: Box::new(state) });
                let record = self.lanes.get_mut(lane);
                record.as_of = Some(now.wall);
                record.shown_in_flight = stored.in_flight;
            }
        }
    }

    /// This node has accepted a delivery. Where it keeps an order and others accept, too, it comes in with the next news.
    pub(super) fn arrive(&mut self, destination: DestinationNo, delivery: Delivery) {
        let lane = self.here(destination);
        let ordered = |lane: LaneId| self.dispatcher.lane(lane).policy().ordering != Ordering::None;
        match &mut self.tenancy {
            Some(tenancy) if lane.is_some_and(ordered) => {
                tenancy.accepted.push((destination, delivery));
                self.read_news();
            }
            _ => self.deliver(destination, delivery),
        }
    }

    /// Reads what others have accepted for this node, once at a time.
    pub(super) fn read_news(&mut self) {
        let Some(tenancy) = &mut self.tenancy else { return };
        if std::mem::replace(&mut tenancy.reading, true) {
            tenancy.again = true;
            return;
        }
        tenancy.again = false;
        tenancy.told.append(&mut tenancy.accepted);
        let Some(cluster) = self.parts.store.cluster().cloned() else { return };
        self.dispatcher.reads(true);
        let outbox = self.outbox.clone();
        tokio::spawn(async move {
            let _left = outbox.send(Arrival::News(cluster.news().await));
        });
    }

    /// What others have accepted, and what was accepted here before it, in the order of numbers. `more`: the rest comes with
    /// the next news, and something of it may belong before this.
    fn take_brought(&mut self, brought: Vec<Brought>, more: bool) {
        let mut here = Vec::with_capacity(brought.len());
        for Brought { destination, delivery, message } in brought {
            if self.here(destination).is_some() {
                self.messages.keep(std::iter::once(delivery.id.sequence()), &message);
                here.push((destination, delivery));
            }
        }
        let Some(tenancy) = &mut self.tenancy else { return };
        tenancy.told.append(&mut here);
        if more {
            return;
        }
        for (destination, delivery) in tenancy.complete() {
            self.deliver(destination, delivery);
        }
    }

    pub(super) fn take_news(&mut self, news: Result<News, StoreError>) {
        match news {
            Ok(News { brought, behind, orders, catalogue, missed, more }) => {
                if missed {
                    let slots: Vec<Slot> =
                        self.tenancy.iter().flat_map(|tenancy| tenancy.slots.keys().copied()).collect();
                    let lanes: Vec<LaneId> = slots.into_iter().flat_map(|slot| self.lanes.of(slot)).collect();
                    lanes.into_iter().for_each(|lane| self.step(Input::Behind { lane }));
                }
                for lane in behind.into_iter().filter_map(|no| self.here(no)).collect::<Vec<_>>() {
                    self.step(Input::Behind { lane });
                }
                self.take_brought(brought, more);
                self.fulfil_posted(orders);
                if catalogue || missed {
                    self.parts.catalogue_changed.notify_one();
                }
                if let Some(tenancy) = &mut self.tenancy {
                    tenancy.again |= more;
                }
            }
            Err(StoreError::Closed) => return,
            Err(error) => tracing::warn!(%error, "cannot read what other nodes have accepted"),
        }
        self.dispatcher.reads(false);
        if let Some(tenancy) = &mut self.tenancy {
            tenancy.reading = false;
            if tenancy.again {
                self.read_news();
            }
        }
    }
}
