//! Which destinations this node works, where there are several: slots come, are passed on, and may be lost.
//!
//! ```text
//!   Take    the lanes of a slot get the state that the store has, and ask for what waits
//!   Pass    they start nothing more; when their last attempt has ended and is committed, the slot is given back
//!   Lose    what they have in flight is cut off and counts no more
//!   Work    the lease holds until then. If it is not renewed by that time, everything in flight is cut off and goes back to its
//!           queue; while the database is out of reach, nothing starts
//!   News    what other nodes have accepted for lanes of this one
//!   Posted  what people want of lanes of this one, from other nodes (`orders`)
//! ```

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tidegate_core::delivery::Delivery;
use tidegate_core::lane::LastStop;
use tidegate_core::order::Ordering;
use tidegate_core::slots::Slot;
use tidegate_core::time::{Millis, Mono};
use tidegate_store::cluster::{Brought, Claimed, News, Posted};
use tidegate_store::lane::StoredLane;
use tidegate_store::record::OrderDone;
use tidegate_store::{DestinationNo, StoreError};
use tokio::sync::mpsc;

use super::inbox::{Arrival, Order};
use super::{Driver, Past, restore};
use crate::dispatcher::{Input, Lane, LaneId, Presence};
use crate::orders::{self, OrdersOf, Read, Step};
use crate::tenancy::{Passed, Tenancy};

/// A destination that another node has made is known here soon after.
const HEARD_OF: Duration = Duration::from_millis(500);
/// One that nobody here has heard of by then never comes: the catalogue is read again many times meanwhile.
const UNHEARD_OF: Duration = Duration::from_mins(10);

impl Driver {
    pub(super) fn work_until(&mut self, until: Mono) {
        if let Some(tenancy) = &mut self.tenancy {
            tenancy.work_until(until);
            self.parts.lease_until.store(until.as_millis(), Relaxed);
        }
    }

    /// The lease may end without anybody saying so: then nothing must be in flight any more.
    pub(super) fn mind_lease(&mut self) {
        let now = self.now().mono;
        let ended = self.tenancy.as_mut().is_some_and(|tenancy| tenancy.has_ended(now));
        if ended && self.dispatcher.in_flight() > 0 {
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
        for Claimed { slot, epoch, last_stop, lanes } in claimed {
            let stored: HashMap<_, StoredLane> =
                lanes.into_iter().map(|lane| (lane.destination, lane)).collect();
            if let Some(tenancy) = &mut self.tenancy {
                tenancy.take(slot, epoch, now.wall);
            }
            for lane in self.lanes.of(slot) {
                let stored = stored.get(&self.lanes.get(lane).destination);
                let record = self.lanes.get_mut(lane);
                record.change_hands(stored, now);
                (record.as_of, record.epoch) = (None, Some(epoch));
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
        let limit = Millis::new(i64::try_from(limit.as_millis()).unwrap_or(i64::MAX));
        let until = self.now().mono + limit;
        self.passed = Some(passed.clone());
        for slot in slots {
            let lanes = self.lanes.of(*slot);
            for lane in &lanes {
                self.step(Input::Pass { lane: *lane });
            }
            if let Some(tenancy) = &mut self.tenancy {
                tenancy.pass(*slot, lanes, until);
            }
        }
    }

    /// Tells of slots whose last attempt has ended, when that is committed.
    pub(super) fn hand_over(&mut self) {
        let now = self.now().mono;
        let Some(tenancy) = self.tenancy.as_mut().filter(|tenancy| tenancy.passes()) else { return };
        let Passed { late, empty } =
            tenancy.passed(now, |lane| self.dispatcher.lane(lane).in_flight_count() > 0);
        if !late.is_empty() {
            late.iter().for_each(|lane| self.lanes.get_mut(*lane).cut());
            self.cut_off(&late);
        }
        if empty.is_empty() {
            return;
        }
        let lanes: Vec<LaneId> = empty.iter().flat_map(|slot| self.lanes.of(*slot)).collect();
        self.recorder
            .touched
            .extend(lanes.iter().filter(|lane| self.dispatcher.lane(**lane).mark().starts > 0));
        self.flush(true);
        for lane in lanes {
            self.step(Input::Lose { lane });
            let now = self.now();
            self.lanes.get_mut(lane).change_hands(None, now);
        }
        if let Some(passed) = self.passed.clone() {
            self.recorder.then(move || {
                for slot in empty {
                    let _left = passed.send(slot);
                }
            });
        }
    }

    pub(super) fn lose_slots(&mut self, slots: &[Slot]) {
        let now = self.now();
        for slot in slots {
            if let Some(tenancy) = &mut self.tenancy {
                tenancy.lose(*slot);
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

    /// What others have posted, one step further.
    pub(super) fn fulfil_posted(&mut self, step: Step) {
        match step {
            Step::Told(posted, waited) => self.told_of_orders(posted, waited),
            Step::Read(of, read) => self.carry_out_orders(of, read),
            Step::Committed(of, more) => {
                let record = self.lanes.get_mut(of.lane);
                if record.tenure == of.tenure && record.orders.committed(more) {
                    self.read_orders(of.lane);
                }
            }
        }
    }

    /// There is something for these. A destination that this node has not heard of yet comes with the catalogue; one that does
    /// not was deleted, and has nothing that could be done.
    fn told_of_orders(&mut self, posted: Vec<Posted>, waited: Duration) {
        let mut unknown = Vec::new();
        for order in posted {
            let Some(lane) = self.lanes.find(order.destination) else {
                unknown.push(order);
                continue;
            };
            // What is worked elsewhere is read when it comes.
            if self.here(order.destination).is_some() && self.lanes.get_mut(lane).orders.told() {
                self.read_orders(lane);
            }
        }
        let epoch = |order: &Posted| self.tenancy.as_ref()?.epoch(Slot::of(order.destination.0));
        unknown.retain(|order| epoch(order).is_some());
        if unknown.is_empty() {
            return;
        }
        if waited >= UNHEARD_OF {
            tracing::warn!(orders = unknown.len(), "nobody knows the destinations of what people wanted");
            let ends = unknown.iter().map(|order| {
                let Posted { no, destination, .. } = *order;
                OrderDone { no, destination, epoch: epoch(order) }
            });
            self.recorder.orders.extend(ends);
        } else {
            let (outbox, pause) = (self.outbox.clone(), HEARD_OF.max(waited));
            tokio::spawn(async move {
                tokio::time::sleep(pause).await;
                let _left = outbox.send(Arrival::Order(Order::Posted(Step::Told(unknown, waited + pause))));
            });
        }
    }

    fn read_orders(&self, lane: LaneId) {
        let record = self.lanes.get(lane);
        let (tenure, account, destination) = (record.tenure, record.account, record.destination);
        orders::read(&self.parts, &self.outbox, OrdersOf { lane, tenure, account, destination });
    }

    /// One after the other, and what they lead to in one record with their ends: if that is not committed, they are still open.
    fn carry_out_orders(&mut self, of: OrdersOf, read: Read) {
        let (destination, epoch) = (of.destination, self.lanes.get(of.lane).epoch);
        if self.lanes.get(of.lane).tenure != of.tenure {
            return;
        }
        for (no, wishes) in read.orders {
            if !self.fulfil(wishes).is_empty() {
                return;
            }
            self.recorder.orders.push(OrderDone { no, destination, epoch });
        }
        let outbox = self.outbox.clone();
        self.recorder.then(move || {
            let _left = outbox.send(Arrival::Order(Order::Posted(Step::Committed(of, read.more))));
        });
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

    /// This node has accepted a delivery. It goes to its lane; but in a cluster, and if the lane keeps an order, only with the
    /// next news, since another node may have accepted an earlier one. If this node took the slot after the acceptance, the
    /// former node may have sent it already: then the lane reads the store again.
    pub(super) fn arrive(&mut self, destination: DestinationNo, delivery: Delivery) {
        let lane = self.here(destination);
        let slot = Slot::of(destination.0);
        if let (Some(lane), Some(tenancy)) = (lane, &self.tenancy)
            && tenancy.took_after(slot, delivery.accepted_at)
        {
            return self.step(Input::Behind { lane });
        }
        let ordered = |lane: LaneId| self.dispatcher.lane(lane).policy().ordering != Ordering::None;
        match &mut self.tenancy {
            Some(tenancy) if lane.is_some_and(ordered) => {
                tenancy.await_news(destination, delivery);
                self.read_news();
            }
            _ => self.deliver(destination, delivery),
        }
    }

    /// Tells lanes to remember what they have settled, as long as news may bring the same delivery again.
    fn watch_settled(&mut self) {
        if let Some(begins) = self.tenancy.as_mut().and_then(Tenancy::watches) {
            self.dispatcher.reads(begins);
        }
    }

    /// Reads what others have accepted for this node, once at a time.
    pub(super) fn read_news(&mut self) {
        let now = self.now().mono;
        let Some(at) = self.tenancy.as_mut().and_then(|tenancy| tenancy.read_news(now)) else { return };
        let Some(cluster) = self.parts.store.cluster().cloned() else { return };
        self.watch_settled();
        let outbox = self.outbox.clone();
        let pause = Duration::from_millis(at.since(now).get().unsigned_abs());
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
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
        let arrived = self.tenancy.as_mut().map(|tenancy| tenancy.arrived(here, more));
        for (destination, delivery) in arrived.into_iter().flatten() {
            self.deliver(destination, delivery);
        }
    }

    pub(super) fn take_news(&mut self, news: Result<News, StoreError>) {
        self.tenancy.iter_mut().for_each(|tenancy| tenancy.reached(news.is_ok()));
        match news {
            Ok(News { brought, behind, orders, catalogue, missed, more }) => {
                if missed {
                    let slots: Vec<Slot> = self.tenancy.iter().flat_map(Tenancy::slots).collect();
                    let lanes: Vec<LaneId> = slots.into_iter().flat_map(|slot| self.lanes.of(slot)).collect();
                    lanes.into_iter().for_each(|lane| self.step(Input::Behind { lane }));
                    orders::look_for(
                        &self.parts,
                        &self.outbox,
                        self.tenancy.iter().flat_map(Tenancy::slots).collect(),
                    );
                }
                for lane in behind.into_iter().filter_map(|no| self.here(no)).collect::<Vec<_>>() {
                    self.step(Input::Behind { lane });
                }
                self.take_brought(brought, more);
                self.told_of_orders(orders, Duration::ZERO);
                if catalogue || missed {
                    self.parts.catalogue_changed.notify_one();
                }
            }
            Err(StoreError::Closed) => return,
            Err(error) => tracing::warn!(%error, "cannot read what other nodes have accepted"),
        }
        let again = self.tenancy.as_mut().is_some_and(Tenancy::done_reading);
        self.watch_settled();
        if again {
            self.read_news();
        }
    }
}
