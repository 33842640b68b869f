//! The driver: runs the machine. It carries what happens to the dispatcher, and does what the dispatcher says.
//!
//! ```text
//!   writer thread ── Commit ──►┐                          ┌──► attempt: message, sender, answer ──┐
//!   attempts ──────── Landed ─►│ inbox ► step ► effects ──┼──► record: results, lanes, holds ──► store
//!   store ───────── Refilled ─►│   ▲                      └──► refill ────────────────────────────┤
//!   people ──────── Order ────►┘   └──────────────────────────────────────────────────────────────┘
//! ```
//!
//! One task, one batch at a time: everything that has arrived is taken in, then what is to be written goes to the store as
//! one record. Nothing in here waits for the network or the disk.

mod effects;
mod inbox;
mod lanes;
mod messages;
mod recorder;
mod tenancy;
mod view;

pub use lanes::{NewLane, Past, restore};
pub use view::View;

pub(crate) use inbox::{Arrival, Asked, Done, Landing, Order, Wishes};

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tidegate_core::delivery::{Delivery, Withdrawn};
use tidegate_core::id::DeliveryId;
use tidegate_core::lane::{LastStop, Report};
use tidegate_core::outcome::Outcome;
use tidegate_core::sequence::Share;
use tidegate_core::slots::Slot;
use tidegate_core::time::{Millis, Now, Timestamp};
use tidegate_store::event::{NewEvent, NewReplay};
use tidegate_store::record::Commit;
use tidegate_store::{DestinationNo, Store};
use tokio::sync::{Notify, broadcast, mpsc, oneshot};
use tokio::time::Instant;

use crate::chance::Chance;
use crate::clock::Clock;
use crate::deathwatch::Deathwatch;
use crate::dispatcher::{AccountNo, Command, Dispatcher, Effect, Input, LaneId, Presence, Sending};
use crate::metrics::Metrics;
use crate::notice::Notice;
use crate::pulse::Pulse;
use crate::sender::{Answer, Sender};
use crate::tenancy::Tenancy;
use crate::wish::Wish;
use lanes::{Lanes, Record};
use messages::Messages;
use recorder::Recorder;

/// Arrivals taken in before their results go to the store as one record, and lease and store are looked at again.
const BATCH: usize = 1_024;
/// While more results than this wait for their commit, nothing new starts: a crash would send all of them again.
const MOST_UNSAVED: usize = 20_000;
/// The tick that makes up for a lost wake-up, and looks at the store's health.
const TICK: Duration = Duration::from_secs(1);

/// What the driver works with, shared with the handle.
pub(crate) struct Parts {
    pub(crate) clock: Clock,
    pub(crate) chance: Chance,
    pub(crate) store: Store,
    pub(crate) sender: Sender,
    pub(crate) deathwatch: Deathwatch,
    pub(crate) metrics: Metrics,
    pub(crate) notices: broadcast::Sender<Arc<Notice>>,
    /// The last number that was given to an event or a delivery.
    pub(crate) sequence: AtomicU64,
    /// Which numbers this node may give.
    pub(crate) share: Share,
    /// When this node must stop unless its lease is renewed, in milliseconds of its monotonic clock. Where it is alone: never,
    /// `i64::MAX`.
    pub(crate) lease_until: AtomicI64,
    /// Told when another node has changed what owners asked for.
    pub(crate) catalogue_changed: Notify,
}

/// The driver. See the module's description.
pub(crate) struct Driver {
    parts: Arc<Parts>,
    dispatcher: Dispatcher,
    lanes: Lanes,
    messages: Messages,
    recorder: Recorder,
    /// What happened lately, for people who look.
    pulse: Pulse,
    effects: Vec<Effect>,
    inbox: mpsc::UnboundedReceiver<Arrival>,
    /// For the tasks that the driver starts.
    outbox: mpsc::UnboundedSender<Arrival>,
    last_stop: LastStop,
    started: bool,
    leaving: Option<Leaving>,
    /// Which destinations this node works; `None`: all, it is alone.
    tenancy: Option<Tenancy>,
    /// Deliveries that are suspected of a death of the process and have already waited to be sent apart from others.
    waited_apart: HashSet<DeliveryId>,
    /// Who is told of slots that are empty.
    passed: Option<mpsc::UnboundedSender<Slot>>,
}

/// The node is to stop.
struct Leaving {
    until: Instant,
    done: Vec<Done>,
}

impl Driver {
    pub(crate) fn new(
        parts: Arc<Parts>,
        slots: u32,
        last_stop: LastStop,
        inbox: mpsc::UnboundedReceiver<Arrival>,
        outbox: mpsc::UnboundedSender<Arrival>,
    ) -> Self {
        let mut dispatcher = Dispatcher::new(slots);
        dispatcher.hold_starts(true);
        let tenancy = parts.store.cluster().map(|_| Tenancy::default());
        Self {
            tenancy,
            passed: None,
            waited_apart: HashSet::new(),
            parts,
            dispatcher,
            lanes: Lanes::default(),
            messages: Messages::default(),
            recorder: Recorder::default(),
            pulse: Pulse::default(),
            effects: Vec::new(),
            inbox,
            outbox,
            last_stop,
            started: false,
            leaving: None,
        }
    }

    /// Runs until the node leaves.
    pub(crate) async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let alarm = tokio::time::sleep(TICK);
        tokio::pin!(alarm);
        loop {
            tokio::select! {
                biased;
                count = self.inbox.recv_many(&mut batch, BATCH) => if count == 0 { return },
                () = &mut alarm => {}
                _ = tick.tick() => self.show_in_flight(),
            }
            self.mind_lease();
            self.hold_or_start();
            self.step(Input::Wake);
            for arrival in batch.drain(..) {
                self.take_in(arrival);
            }
            self.hand_over();
            self.flush(false);
            if self.has_left() {
                return;
            }
            alarm.as_mut().reset(self.next_look());
        }
    }

    fn now(&self) -> Now {
        self.parts.clock.now()
    }

    /// When the machine wants to be looked at again. The tick comes in any case.
    fn next_look(&self) -> Instant {
        let now = self.now().wall;
        let wait = self.dispatcher.next_wake().map_or(Millis::minutes(1), |at| at - now);
        let leaving = self.leaving.as_ref().map(|leaving| leaving.until);
        let mono = self.now().mono;
        let lease = self
            .tenancy
            .as_ref()
            .and_then(Tenancy::next_look)
            .map(|at| Instant::now() + Duration::from_millis(at.since(mono).get().max(0).unsigned_abs()));
        let leaving = leaving.into_iter().chain(lease).min();
        let wake = Instant::now() + Duration::from_millis(wait.get().max(0).unsigned_abs()).min(TICK * 60);
        leaving.map_or(wake, |until| until.min(wake))
    }

    /// One step of the machine, and what it asks for.
    fn step(&mut self, input: Input) {
        self.dispatcher.step(self.now(), input, &mut self.effects);
        self.carry_out(None);
    }

    /// Holds all starts before `go`, while leaving, without a valid lease, and while results could not be committed.
    fn hold_or_start(&mut self) {
        let hold = !self.started
            || self.leaving.is_some()
            || self.tenancy.as_ref().is_some_and(|tenancy| !tenancy.may_start(self.now().mono))
            || self.recorder.unsaved() > MOST_UNSAVED
            || self.parts.store.status().waits;
        self.dispatcher.hold_starts(hold);
    }

    fn take_in(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Commit(commit) => self.committed(commit),
            // What was begun in an earlier tenure was cut off, or asked for in vain.
            Arrival::Landed { lane, tenure, .. } | Arrival::Refilled { lane, tenure, .. }
                if self.lanes.get(lane).tenure != tenure => {}
            Arrival::Landed { lane, landing, .. } => self.landed(lane, landing),
            Arrival::Refilled { lane, refilled, .. } => {
                self.lanes.get_mut(lane).after_key = refilled.after_key;
                self.step(Input::Refilled { lane, refill: refilled.refill });
            }
            Arrival::Noticed => self.read_news(),
            Arrival::News(news) => self.take_news(news),
            Arrival::Overdue(overdue) => {
                for overdue in overdue {
                    if let Some(lane) = self.here(overdue.destination) {
                        self.step(Input::Overdue { lane, delivery: Box::new(overdue.delivery) });
                    }
                }
            }
            Arrival::Order(order) => self.obey(order),
        }
    }

    fn committed(&mut self, commit: Commit) {
        let metrics = &self.parts.metrics;
        Metrics::count(&metrics.commits, 1);
        metrics.commit_duration.observe_us(commit.took_micros);
        Metrics::count(&metrics.events_accepted, commit.accepted.len());
        for ticket in commit.recorded {
            for (lane, mark) in self.recorder.committed(ticket) {
                self.step(Input::Saved { lane, mark });
            }
        }
        for event in commit.accepted {
            self.accepted(event);
        }
        for NewReplay { destination, delivery, .. } in commit.replays {
            if let Some(account) = self.here(destination).map(|lane| self.lanes.get(lane).account)
                && !delivery.status.is_final()
            {
                let now = self.timestamp();
                self.tell(|| Notice::of_delivery(account, destination, now, &delivery));
            }
            self.arrive(destination, delivery);
        }
    }

    fn accepted(&mut self, event: NewEvent) {
        let now = self.timestamp();
        let NewEvent { account, message, deliveries, .. } = event;
        Metrics::count(&self.parts.metrics.deliveries_accepted, deliveries.len());
        self.pulse.accepted(account, now, deliveries.len());
        let open = |(destination, delivery): &&(DestinationNo, Delivery)| {
            !delivery.status.is_final() && self.here(*destination).is_some()
        };
        let open: Vec<_> =
            deliveries.iter().filter(open).map(|(_, delivery)| delivery.id.sequence()).collect();
        self.messages.keep(open.into_iter(), &message);
        for (destination, delivery) in deliveries {
            // One that is over already is told of as such.
            if !delivery.status.is_final() {
                self.tell(|| Notice::of_delivery(account, destination, now, &delivery));
            }
            self.arrive(destination, delivery);
        }
    }

    /// Tells those who watch, if anybody does.
    fn tell(&self, notice: impl FnOnce() -> Notice) {
        if self.parts.notices.receiver_count() > 0 {
            let _nobody = self.parts.notices.send(Arc::new(notice()));
        }
    }

    /// A delivery is in the store: into its lane. Its destination may have been deleted while it was being accepted.
    fn deliver(&mut self, destination: DestinationNo, delivery: Delivery) {
        let Some(lane) = self.here(destination) else { return };
        if self.lanes.get(lane).retired {
            let by = Withdrawn::DestinationDeleted;
            self.step(Input::Withdraw { lane, delivery: Box::new(delivery), by });
        } else {
            self.step(Input::Accepted { lane, delivery });
        }
    }

    fn landed(&mut self, lane: LaneId, landing: Landing) {
        match landing {
            Landing::Answered(sending, answer) => self.answered(lane, &sending, *answer),
            Landing::NotSent(delivery) => self.step(Input::NotSent { lane, delivery }),
            Landing::PutAside(delivery) => {
                tracing::error!(%delivery, "put aside: the process died several times while it was at work on it");
                self.step(Input::PutAside { lane, delivery });
            }
        }
    }

    fn answered(&mut self, lane: LaneId, sending: &Sending, answer: Answer) {
        let (outcome, took) = (&answer.report.outcome, answer.report.elapsed);
        self.parts.metrics.attempt(outcome, took);
        self.pulse.attempted(self.lanes.get(lane).account, self.timestamp(), outcome, took);
        let input = Input::Finished {
            lane,
            delivery: sending.delivery,
            report: answer.report,
            draw: self.parts.chance.draw(),
        };
        self.dispatcher.step(self.now(), input, &mut self.effects);
        self.carry_out(Some((sending, answer)));
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Open(lane) => self.open(&lane),
            Order::Adopt(destination, policy, endpoint) => {
                if let Some(lane) = self.lanes.find(destination) {
                    self.lanes.get_mut(lane).point_to(endpoint);
                    self.step(Input::Adopt { lane, policy });
                    self.recorder.touched.insert(lane);
                }
            }
            Order::Wishes(asked, left) => self.grant(asked, left),
            Order::Look(look) => {
                let (dispatcher, lanes, pulse) = (&self.dispatcher, &self.lanes, &self.pulse);
                let view = View { now: self.now(), dispatcher, lanes, pulse };
                // A look changes nothing: one that panics costs nobody but whoever asked.
                if catch_unwind(AssertUnwindSafe(|| look(&view))).is_err() {
                    tracing::error!("a look at the engine ended by a panic");
                }
            }
            Order::Go => {
                self.started = true;
                self.step(Input::Wake);
            }
            Order::Leave(limit, done) => self.leave(limit, done),
            Order::Take(claimed) => self.take_slots(claimed),
            Order::Pass(slots, limit, passed) => self.pass_slots(&slots, limit, &passed),
            Order::Posted(orders) => self.fulfil_posted(orders),
            Order::Lose(slots) => self.lose_slots(&slots),
            Order::Work(until) => self.work_until(until),
            Order::OutOfReach => self.tenancy.iter_mut().for_each(|tenancy| tenancy.reached(false)),
            Order::Reads(done) => {
                self.dispatcher.reads(true);
                let _gone = done.send(());
            }
            Order::HasRead => self.dispatcher.reads(false),
            Order::Show(lanes, done) => {
                self.show(lanes);
                let _gone = done.send(());
            }
        }
    }

    /// The lane of a destination, if this node works it, or has it in flight.
    fn here(&self, destination: DestinationNo) -> Option<LaneId> {
        self.lanes
            .find(destination)
            .filter(|lane| self.dispatcher.lane(*lane).presence() != Presence::Elsewhere)
    }

    /// Does what is wanted here. What it leads to and its line in the audit log go into one record.
    fn grant(&mut self, Asked { wishes, audit }: Asked, left: oneshot::Sender<Asked>) {
        let count = wishes.len();
        let wishes = self.fulfil(wishes);
        if wishes.len() == count {
            // Nothing is done yet: the line goes with the first that is.
            let _gone = left.send(Asked { wishes, audit });
            return;
        }
        self.recorder.audit.extend(audit);
        self.recorder.then(move || drop(left.send(Asked { wishes, audit: None })));
    }

    /// Does what is wanted of destinations that are worked here; gives back the rest. A destination that nobody knows has
    /// nothing that could be done.
    fn fulfil(&mut self, wishes: inbox::Wishes) -> inbox::Wishes {
        let mut elsewhere = Vec::new();
        for (destination, wish) in wishes {
            let Some(lane) = self.lanes.find(destination) else { continue };
            if self.dispatcher.lane(lane).presence() == Presence::Elsewhere {
                if let Wish::Command(Command::Retire) = wish {
                    self.lanes.get_mut(lane).retired = true;
                }
                elsewhere.push((destination, wish));
                continue;
            }
            match wish {
                Wish::Command(command) => {
                    self.lanes.get_mut(lane).retired |= command == Command::Retire;
                    self.step(Input::Command { lane, command });
                }
                Wish::Withdraw(delivery, by) => self.step(Input::Withdraw { lane, delivery, by }),
                Wish::Hasten(delivery) => self.step(Input::Hasten { lane, delivery }),
            }
        }
        elsewhere
    }

    fn open(&mut self, lane: &NewLane) {
        let now = self.now();
        // Another node may have accepted something for it before this one heard of it.
        let backlog = self.tenancy.is_some() || lane.stored.as_ref().is_some_and(|stored| stored.open > 0);
        let past = lane.stored.as_ref().map_or(Past::None, Past::Stored);
        let state = restore(past, &lane.policy, lane.disabled, now, self.last_stop);
        let forfeited = state.unsaved_starts > 0;
        let account = AccountNo(lane.account.0);
        let id = self.dispatcher.open(account, Arc::clone(&lane.policy), state, backlog);
        self.lanes.add(id, Record::new(lane, now));
        let slot = Slot::of(lane.destination.0);
        self.lanes.get_mut(id).epoch = self.tenancy.as_ref().and_then(|tenancy| tenancy.epoch(slot));
        if self.tenancy.as_ref().is_some_and(|tenancy| !tenancy.holds(slot)) {
            self.step(Input::Lose { lane: id });
        } else if lane.stored.is_some() || lane.disabled {
            self.recorder.touched.insert(id);
        }
        if forfeited {
            self.recorder.await_commit(id, self.dispatcher.lane(id).mark());
        }
    }

    fn leave(&mut self, limit: Duration, done: Done) {
        let until = Instant::now() + limit;
        let leaving = self.leaving.get_or_insert(Leaving { until, done: Vec::new() });
        leaving.until = leaving.until.min(until);
        leaving.done.push(done);
        self.dispatcher.stop_starting();
    }

    /// Hands what is to be written to the store.
    fn flush(&mut self, all: bool) {
        let now = self.now();
        let (mut saves, shared) = (Vec::new(), self.tenancy.is_some());
        for lane in std::mem::take(&mut self.recorder.touched) {
            if self.dispatcher.lane(lane).presence() == Presence::Elsewhere {
                continue;
            }
            saves.extend(self.lanes.get_mut(lane).unsaved(self.dispatcher.lane(lane), now, all, shared));
        }
        // Only where several nodes write do groups wait longer for one another than a commit takes.
        let awaited = shared && self.recorder.lanes().any(|lane| self.dispatcher.lane(lane).awaits_commit());
        self.recorder.flush(&self.parts.store, now.wall, saves, awaited);
    }

    /// Whether everything is done that had to be done before leaving. What is still out when the time is up is cut off,
    /// and goes back to its queue: it may be sent twice.
    fn has_left(&mut self) -> bool {
        let Some(leaving) = &mut self.leaving else { return false };
        let late = Instant::now() >= leaving.until;
        if self.dispatcher.in_flight() > 0 {
            if !late {
                return false;
            }
            // What has not written its first byte must not do so any more: it is to be sent again.
            self.parts.lease_until.store(i64::MIN, Relaxed);
            let busy: Vec<LaneId> = self.dispatcher.lanes().iter().map(|lane| lane.id()).collect();
            self.cut_off(&busy);
        }
        self.recorder.touched = self
            .dispatcher
            .lanes()
            .iter()
            .filter(|lane| lane.mark().starts > 0)
            .map(|lane| lane.id())
            .collect();
        self.flush(true);
        for done in self.leaving.take().map(|leaving| leaving.done).into_iter().flatten() {
            let _gone = done.send(());
        }
        true
    }

    /// What these lanes have in flight goes back to its queue: nobody knows what became of it.
    fn cut_off(&mut self, lanes: &[LaneId]) {
        let out: Vec<(LaneId, _, Now)> = (lanes.iter().map(|lane| self.dispatcher.lane(*lane)))
            .flat_map(|lane| {
                lane.in_flight().map(|(delivery, attempt)| (lane.id(), delivery.id, attempt.started))
            })
            .collect();
        Metrics::count(&self.parts.metrics.cut_off, out.len());
        tracing::warn!(attempts = out.len(), "cut off: these may be sent twice");
        for (lane, delivery, started) in out {
            let now = self.now();
            let report = Report {
                outcome: Outcome::Cancelled,
                elapsed: now.mono.since(started.mono),
                rate_hint: None,
            };
            self.step(Input::Finished { lane, delivery, report, draw: self.parts.chance.draw() });
        }
    }

    fn timestamp(&self) -> Timestamp {
        self.now().wall
    }
}
