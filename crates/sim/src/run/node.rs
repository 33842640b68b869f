//! One simulated node: the heap of what is to happen, and what happens then. What is written and
//! read is in [`storing`], what goes wrong in [`faults`].

mod faults;
mod storing;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use tidegate_core::draw::Draw;
use tidegate_core::id::{DeliveryId, EventId};
use tidegate_core::lane::{LaneState, LastStop};
use tidegate_core::policy::Policy;
use tidegate_core::refill::Refill;
use tidegate_core::sequence::{Sequence, Share};
use tidegate_core::settle::{Incoming, accept};
use tidegate_core::time::{Millis, Mono, Now, Timestamp};
use tidegate_engine::dispatcher::{AccountNo, Dispatcher, Effect, Input, LaneId, Sending};

use storing::Kept;

use super::{Commit, Faults, Note, Observer, Setup, View};
use crate::backing::{Backing, Op};
use crate::chance::Chance;
use crate::traffic::Source;
use crate::world::{Answer, Model};

/// The tick that makes up for a lost wake-up.
const TICK: Millis = Millis::seconds(1);
/// How long after an expiry the sweeper looks for what no lane has in memory.
const SWEEP_AFTER: Millis = Millis::seconds(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrive(u32),
    Answer(u32),
    Commit,
    Hear(u32),
    Wake,
    ReadRefill(LaneId, u32),
    HandRefill(LaneId, u32),
    Sweep,
    Crash,
    Restart,
    SetClock,
}

/// What the machine was made to do besides sending: while everything is held, next to nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Timers that went off.
    pub wakes: u64,
    /// Looks into the store.
    pub refills: u64,
}

/// A request on its way.
#[derive(Debug)]
struct Flight {
    lane: LaneId,
    sending: Sending,
    answer: Answer,
    life: u32,
}

/// A publisher, and how far it has got.
#[derive(Debug)]
struct Publisher {
    source: Source,
    made: u32,
    chance: Chance,
}

/// A simulated node with its world.
pub struct Sim<O> {
    mono: i64,
    offset: Millis,
    events: BinaryHeap<Reverse<(i64, u64, Event)>>,
    planned: u64,
    dispatcher: Dispatcher,
    backing: Backing,
    kept: Vec<Kept>,
    inbox: VecDeque<Input>,
    effects: Vec<Effect>,
    ops: Vec<Op>,
    commit_planned: bool,
    /// Commits that readers see, and the machine has not heard of.
    unheard: VecDeque<Vec<Input>>,
    flights: Vec<Option<Flight>>,
    free: Vec<u32>,
    refills: Vec<Option<Refill>>,
    publishers: Vec<Publisher>,
    unsent: Vec<u32>,
    arrivals_planned: usize,
    policies: Vec<(AccountNo, Arc<Policy>)>,
    models: Vec<(Model, Chance, u32)>,
    chance: Chance,
    faults: Faults,
    commit: Commit,
    slots: u32,
    life: u32,
    last_stop: LastStop,
    down: bool,
    healed: bool,
    wake_planned: Option<i64>,
    clock_set_at: i64,
    sweep_planned: Option<Timestamp>,
    sequence: Sequence,
    work: Work,
    trace: u64,
    /// The watcher, for its results.
    pub observer: O,
}

impl<O: Observer> Sim<O> {
    /// The world of `setup`, at its start.
    pub fn new(setup: Setup, observer: O) -> Self {
        let mut chance = Chance::new(setup.seed);
        let mut models = Vec::with_capacity(setup.destinations.len());
        let mut policies = Vec::with_capacity(setup.destinations.len());
        for (label, destination) in (1_u64..).zip(setup.destinations) {
            models.push((destination.model, chance.fork(label), 0));
            policies.push((AccountNo(destination.account), Arc::new(destination.policy)));
        }
        let backing = Backing::new(setup.storage, setup.start, &policies);
        let kept = policies.iter().map(|_| Kept::default()).collect();
        let publishers = (1_u64..).zip(setup.sources);
        let publishers = publishers
            .map(|(label, source)| Publisher { source, made: 0, chance: chance.fork(label) })
            .collect();
        let mut sim = Self {
            mono: 0,
            offset: setup.start - Timestamp::from_millis(0),
            events: BinaryHeap::new(),
            planned: 0,
            dispatcher: Dispatcher::new(setup.slots),
            backing,
            kept,
            inbox: VecDeque::new(),
            effects: Vec::new(),
            ops: Vec::new(),
            commit_planned: false,
            unheard: VecDeque::new(),
            flights: Vec::new(),
            free: Vec::new(),
            refills: Vec::new(),
            publishers,
            unsent: Vec::new(),
            arrivals_planned: 0,
            policies,
            models,
            chance,
            faults: setup.faults,
            commit: setup.commit,
            slots: setup.slots,
            life: 0,
            last_stop: LastStop::Clean,
            down: false,
            healed: false,
            wake_planned: None,
            clock_set_at: i64::MIN / 2,
            sweep_planned: None,
            sequence: Sequence::default(),
            work: Work::default(),
            trace: 0xcbf2_9ce4_8422_2325,
            observer,
        };
        sim.begin();
        sim
    }

    fn begin(&mut self) {
        let now = self.now();
        for (account, policy) in self.policies.clone() {
            let state = LaneState::new(&policy, now);
            self.dispatcher.open(account, policy, state, false);
        }
        for publisher in 0..self.publishers.len() {
            self.plan_arrival(u32::try_from(publisher).expect("few publishers"), None);
        }
        self.plan_fault(self.faults.crash_every, Event::Crash);
        self.plan_fault(self.faults.clock_steps.map(|(every, _)| every), Event::SetClock);
    }

    /// The time.
    pub fn now(&self) -> Now {
        Now { wall: Timestamp::from_millis(self.mono) + self.offset, mono: Mono::from_millis(self.mono) }
    }
    /// A number that differs as soon as anything that was sent or answered differs.
    pub const fn trace(&self) -> u64 {
        self.trace
    }
    /// What the machine was made to do besides sending.
    pub const fn work(&self) -> Work {
        self.work
    }
    /// The machine, to look at.
    pub const fn dispatcher(&self) -> &Dispatcher {
        &self.dispatcher
    }
    /// The store, to look at.
    pub const fn backing(&self) -> &Backing {
        &self.backing
    }
    /// A destination's model, to look at.
    pub fn model(&self, destination: usize) -> &Model {
        &self.models[destination].0
    }

    /// From now on nothing goes wrong on our side.
    pub fn heal(&mut self) {
        self.healed = true;
    }

    /// Runs for so long.
    pub fn run_for(&mut self, length: Millis) {
        let end = self.mono + length.get();
        while self.events.peek().is_some_and(|Reverse((at, ..))| *at <= end) {
            self.happen();
        }
        self.pass(end);
    }

    /// Runs until nothing is left to happen, but for so long at most. Says whether it came to rest.
    pub fn run_until_quiet(&mut self, limit: Millis) -> bool {
        let end = self.mono + limit.get();
        while let Some(Reverse((at, ..))) = self.events.peek() {
            if *at > end {
                return self.open_deliveries() == 0;
            }
            self.happen();
            if self.arrivals_planned == 0
                && self.unsent.is_empty()
                && self.open_deliveries() == 0
                && !self.down
            {
                return true;
            }
        }
        true
    }

    /// Deliveries that are not final, and results that are not committed.
    pub fn open_deliveries(&self) -> usize {
        self.backing.open_total() + self.ops.len()
    }

    fn happen(&mut self) {
        let Some(Reverse((at, _, event))) = self.events.pop() else { return };
        self.pass(at);
        match event {
            Event::Arrive(publisher) => self.arrive(publisher),
            Event::Answer(flight) => self.answered(flight),
            Event::Commit => self.commit(),
            Event::Hear(life) => self.hear(life),
            Event::Wake => self.wake(at),
            Event::ReadRefill(lane, life) => self.read_refill(lane, life),
            Event::HandRefill(lane, refill) => self.hand_refill(lane, refill),
            Event::Sweep => self.sweep(),
            Event::Crash => self.crash(),
            Event::Restart => self.restart(),
            Event::SetClock => self.set_clock(),
        }
        self.settle_down();
    }

    fn pass(&mut self, to: i64) {
        if to > self.mono {
            self.tell(&Note::Passes { to: Timestamp::from_millis(to) + self.offset });
            self.mono = to;
        }
    }

    /// Steps until nothing is left to tell the machine, then plans its next wake-up.
    fn settle_down(&mut self) {
        while let Some(input) = self.inbox.pop_front() {
            self.dispatcher.step(self.now(), input, &mut self.effects);
            self.carry_out();
        }
        self.tell(&Note::Stepped);
        if self.down {
            return;
        }
        if let Some(at) = self.dispatcher.next_wake() {
            let at = (at - self.offset).as_millis().max(self.mono);
            if self.wake_planned.is_none_or(|planned| at < planned) {
                self.wake_planned = Some(at);
                self.plan_at(at, Event::Wake);
            }
        }
        if let Some(expiry) =
            self.backing.next_expiry().filter(|expiry| self.sweep_planned.is_none_or(|at| *expiry < at))
        {
            self.sweep_planned = Some(expiry);
            self.plan_at(
                (expiry + SWEEP_AFTER - self.offset).as_millis().max(self.mono + TICK.get()),
                Event::Sweep,
            );
        }
    }

    fn carry_out(&mut self) {
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { lane, sending } => self.send(lane, sending),
                Effect::Settle { lane, delivery, attempt, mark } => {
                    self.settle(lane, delivery, attempt, mark);
                }
                Effect::SaveLane { lane } => self.save_lane(lane, false),
                Effect::Refill { lane } => self.refill(lane),
                Effect::Held { lane, reason, since, until } => {
                    self.tell(&Note::Held(lane, reason, since, until));
                }
                Effect::Changed { lane, aftermath } => self.tell(&Note::Changed(lane, &aftermath)),
            }
        }
        self.effects = effects;
    }

    fn tell(&mut self, note: &Note<'_>) {
        let view = View { now: self.now(), dispatcher: &self.dispatcher, backing: &self.backing };
        self.observer.note(&view, note);
    }

    fn plan_at(&mut self, at: i64, event: Event) {
        self.planned += 1;
        self.events.push(Reverse((at, self.planned, event)));
    }

    fn plan_fault(&mut self, mean: Option<Millis>, event: Event) {
        if let Some(mean) = mean.filter(|_| !self.healed) {
            #[expect(clippy::cast_possible_truncation, reason = "a float as large as this saturates")]
            let wait = self.chance.exponential(mean.get() as f64) as i64;
            self.plan_at(self.mono + wait.max(1), event);
        }
    }

    fn record(&mut self, words: [u64; 4]) {
        for word in words {
            self.trace = (self.trace ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn plan_arrival(&mut self, index: u32, last: Option<Timestamp>) {
        let publisher = &mut self.publishers[index as usize];
        if let Some(at) = publisher.source.arrivals.next(publisher.made, last, &mut publisher.chance) {
            publisher.made += 1;
            self.arrivals_planned += 1;
            let at = (at - self.offset).as_millis().max(self.mono);
            self.plan_at(at, Event::Arrive(index));
        }
    }

    fn arrive(&mut self, index: u32) {
        self.arrivals_planned -= 1;
        if self.down {
            self.unsent.push(index);
        } else {
            self.publish(index);
        }
        self.plan_arrival(index, Some(self.now().wall));
    }

    fn publish(&mut self, index: u32) {
        let now = self.now().wall;
        let first = self.number(2);
        let number = Sequence::from_stored(first.get() + 1);
        let publisher = &mut self.publishers[index as usize];
        let template = &publisher.source.template;
        let key = template.keys.map(|keys| Arc::from(format!("key-{}", publisher.chance.below(keys))));
        let late = template.told_after.map(|most| publisher.chance.below(most.get().unsigned_abs()));
        let destination = publisher.source.destination;
        let incoming = Incoming {
            id: DeliveryId::numbered(number, salt(number)),
            sequence: number.get(),
            event_type: template.event_type.clone(),
            occurred_at: late.map(|late| now - Millis::new(late.cast_signed())),
            expires_at: None,
            ttl: template.ttl,
            deliver_at: template.deliver_after.map(|wait| now + wait),
            ordering_key: key,
            priority: template.priority,
        };
        let delivery = accept(now, incoming, &self.policies[destination].1, &template.terms);
        let lane = self.dispatcher.lanes()[destination].id();
        let event = EventId::numbered(first, salt(first));
        self.write(Op::Accept { lane, event, delivery: Box::new(delivery), publisher: index });
    }

    /// The first of `count` numbers in a row.
    fn number(&mut self, count: u64) -> Sequence {
        let (first, last) = self.sequence.next(self.now().wall, count, Share::All);
        self.sequence = last;
        first
    }

    fn send(&mut self, lane: LaneId, sending: Sending) {
        let now = self.now();
        self.record([
            1,
            now.mono.as_millis().unsigned_abs(),
            u64::from(sending.number),
            sending.place.sequence,
        ]);
        self.tell(&Note::Sent(lane, &sending));
        let (model, chance, open) = &mut self.models[lane.index()];
        let answer = model.answer(now.wall, *open, sending.attempt.timeout, chance);
        *open += 1;
        let at = self.mono + answer.report.elapsed.get();
        let flight = Flight { lane, sending, answer, life: self.life };
        let place = self.free.pop().unwrap_or_else(|| {
            self.flights.push(None);
            u32::try_from(self.flights.len() - 1).expect("bounded by the node's slots")
        });
        self.flights[place as usize] = Some(flight);
        self.plan_at(at, Event::Answer(place));
    }

    fn answered(&mut self, place: u32) {
        self.free.push(place);
        let Some(flight) = self.flights[place as usize].take() else { return };
        if flight.life != self.life {
            return;
        }
        self.models[flight.lane.index()].2 -= 1;
        let report = flight.answer.report;
        self.record([
            2,
            self.mono.unsigned_abs(),
            report.elapsed.get().unsigned_abs(),
            flight.sending.place.sequence,
        ]);
        self.tell(&Note::Answered(flight.lane, &flight.sending, &flight.answer));
        let draw = self.chance.draw();
        self.inbox.push_back(Input::Finished {
            lane: flight.lane,
            delivery: flight.sending.delivery,
            report,
            draw,
        });
    }

    fn wake(&mut self, at: i64) {
        if self.wake_planned != Some(at) || self.down {
            return;
        }
        self.wake_planned = None;
        if !self.healed && self.faults.lost_wakes > 0.0 && self.chance.happens(self.faults.lost_wakes) {
            let again = self.mono + TICK.get();
            self.wake_planned = Some(again);
            self.plan_at(again, Event::Wake);
            return;
        }
        self.work.wakes += 1;
        self.inbox.push_back(Input::Wake);
    }
}

/// The part of an id that nobody need guess here: it follows from the number, so that no chance is used up for it.
const fn salt(number: Sequence) -> Draw {
    Draw(number.get().wrapping_mul(0x9E37_79B9_7F4A_7C15))
}
