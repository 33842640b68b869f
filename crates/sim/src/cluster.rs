//! A simulated cluster: several nodes on one database, each with its own clock, and everything that can come between them.
//!
//! ```text
//!   publishers ──► node ─┐ groups, renewals, claims, news          ┌─► receivers
//!                  node ─┼──────────► database (one history) ──┐   │
//!                  node ─┘ ◄──────────────── answers, notices ─┘   │
//!                    └──────────── requests ───────────────────────┘
//! ```
//!
//! Each node is the real dispatcher, the real rules of slots (`core::slots`) and the real tenancy of the engine; what stands
//! for PostgreSQL locks, fences and tells like it: a group locks its seat from its first bundle to its commit, a claim waits
//! for that, and what is written under an old epoch is refused. Every message between a node and the database takes a while
//! and may be lost; so may its answer. Time is counted in microseconds, so that clocks can differ by less than a millisecond.
//!
//! Chance is drawn in a fixed order: one seed is one trace.

mod clock;
mod database;
mod driver;
mod faults;
mod member;
mod node;
mod publish;
mod serve;
mod setup;
mod watch;
mod work;
mod writer;

use std::collections::BTreeMap;

use tidegate_core::slots::Slot;
use tidegate_core::time::{Millis, Mono, Now, Timestamp};
use tidegate_engine::dispatcher::LaneId;

use crate::chance::Chance;
use crate::world::Model;
use database::Database;
use node::{Flight, Node};
use publish::Publisher;
use work::{Arrival, Ask, Event};

pub use setup::{Faults, Setup, Stream, world};
pub use watch::{Counts, Watch};

/// The simulated cluster with its world.
pub struct Cluster {
    /// The true time, in microseconds from the start.
    us: i64,
    events: BTreeMap<(i64, u64), Event>,
    planned: u64,
    setup: Setup,
    nodes: Vec<Node>,
    database: Database,
    /// The database answers nothing until then.
    away_until: Option<i64>,
    flights: BTreeMap<u64, Flight>,
    tokens: u64,
    models: Vec<(Model, Chance, u32)>,
    publishers: Vec<Publisher>,
    /// For what goes wrong, for how long messages take, and for the rules.
    fate: Chance,
    wire: Chance,
    draws: Chance,
    healed: bool,
    trace: u64,
    /// What was seen, and what was wrong with it.
    pub watch: Watch,
}

impl Cluster {
    /// The cluster of `setup`, at its start: all nodes begin at once.
    pub fn new(setup: Setup) -> Self {
        let mut chance = Chance::new(setup.world.seed);
        let mut models = Vec::new();
        for (label, destination) in (1_u64..).zip(&setup.world.destinations) {
            models.push((destination.model.clone(), chance.fork(label), 0));
        }
        let publishers = (1_u64..).zip(&setup.streams);
        let publishers =
            publishers.map(|(label, stream)| Publisher::new(stream.clone(), chance.fork(label))).collect();
        let mut cluster = Self {
            us: 0,
            events: BTreeMap::new(),
            planned: 0,
            nodes: (0..setup.nodes).map(|_| Node::down()).collect(),
            database: Database::new(setup.world.destinations.len(), setup.world.start),
            away_until: None,
            flights: BTreeMap::new(),
            tokens: 0,
            models,
            publishers,
            fate: chance.fork(1),
            wire: chance.fork(2),
            draws: chance.fork(3),
            healed: false,
            trace: 0xcbf2_9ce4_8422_2325,
            watch: Watch::new(&setup),
            setup,
        };
        (0..cluster.nodes.len()).for_each(|n| cluster.plan(0, Event::Start(n)));
        (0..cluster.publishers.len()).for_each(|p| cluster.plan_publication(p, 0));
        cluster.plan_fault();
        cluster.plan(0, Event::Look);
        cluster
    }

    /// A number that differs as soon as anything that was sent, stored or answered differs.
    pub const fn trace(&self) -> u64 {
        self.trace
    }
    /// Deliveries that are not final in the database.
    pub fn open_deliveries(&self) -> usize {
        self.database.backing.open_total()
    }
    /// From now on nothing goes wrong.
    pub const fn heal(&mut self) {
        self.healed = true;
    }

    /// Runs for so long.
    pub fn run_for(&mut self, length: Millis) {
        let end = self.us + length.get() * 1_000;
        while self.events.first_key_value().is_some_and(|((at, _), _)| *at <= end) {
            self.happen();
        }
        self.us = end;
    }

    /// Runs until everything that was published has ended, but for so long at most. Says whether it has.
    pub fn run_until_quiet(&mut self, limit: Millis) -> bool {
        let end = self.us + limit.get() * 1_000;
        while !self.rests() && self.events.first_key_value().is_some_and(|((at, _), _)| *at <= end) {
            self.happen();
        }
        self.rests()
    }

    fn rests(&self) -> bool {
        self.open_deliveries() == 0 && self.publishers.iter().all(Publisher::is_done)
    }

    fn happen(&mut self) {
        let Some(((at, _), event)) = self.events.pop_first() else { return };
        self.us = at;
        match event {
            Event::Start(n) => self.start(n),
            Event::Publish(publisher) => self.publish(publisher),
            Event::Told { publisher, lane, place } => self.told(publisher, lane, place),
            Event::AtDatabase { node, life, ask } => self.serve(node, life, ask),
            Event::AtNode { node, life, arrival } => self.arrive(node, life, arrival),
            Event::Served(flight) => self.served(flight),
            Event::Fault => self.go_wrong(),
            Event::Crash(node, life) if self.nodes[node].is(life) => self.crash(node),
            Event::Crash(..) => {}
            Event::Wake(node, life) => self.wake_up(node, life),
            Event::Join(node, life) => self.join_again(node, life),
            Event::Revived(slots, crashed_at) => self.check_revival(&slots, crashed_at),
            Event::Look => self.look(),
        }
    }

    fn plan(&mut self, at: i64, event: Event) {
        self.planned += 1;
        self.events.insert((at.max(self.us), self.planned), event);
    }

    /// Something reaches a node then; while it is frozen, it waits.
    fn plan_at_node(&mut self, n: usize, at: i64, arrival: Arrival) {
        let life = self.nodes[n].life;
        self.plan(at, Event::AtNode { node: n, life, arrival });
    }

    fn token(&mut self) -> u64 {
        self.tokens += 1;
        self.tokens
    }

    /// The time, as nobody but the database knows it.
    fn now(&self) -> Now {
        let ms = self.us.div_euclid(1_000);
        Now { wall: self.setup.world.start + Millis::new(ms), mono: Mono::from_millis(ms) }
    }
    fn database_micros(&self) -> i64 {
        self.setup.world.start.as_millis() * 1_000 + self.us
    }
    /// The time, as a node has it.
    fn now_at(&self, n: usize) -> Now {
        self.nodes[n].clock.now(self.us, self.database_micros())
    }
    fn wall_at(&self, n: usize) -> Timestamp {
        self.now_at(n).wall
    }

    fn is_away(&self) -> bool {
        self.away_until.is_some_and(|until| self.us < until)
    }
    fn is_cut(&self, n: usize) -> bool {
        self.nodes[n].cut_until.is_some_and(|until| self.us < until)
    }

    /// How long a message takes, in microseconds.
    fn travel(&mut self) -> i64 {
        let usual = 60 + self.wire.below(240).cast_signed();
        let slow = self.wire.happens(0.03);
        let most = self.setup.faults.slow_message.get().max(0).unsigned_abs() * 1_000;
        usual + if slow && most > 0 { self.wire.below(most).cast_signed() } else { 0 }
    }

    /// A node asks the database for something: the question may be lost on the way.
    fn ask(&mut self, n: usize, ask: Ask) {
        if !self.is_cut(n) {
            let at = self.us + self.travel();
            let life = self.nodes[n].life;
            self.plan(at, Event::AtDatabase { node: n, life, ask });
        }
    }

    /// The database answers: so may be the answer.
    fn answer(&mut self, n: usize, arrival: Arrival) {
        if !self.is_cut(n) {
            let at = self.us + self.travel();
            self.plan_at_node(n, at, arrival);
        }
    }

    fn lanes_of(&self, slot: Slot) -> impl Iterator<Item = usize> + use<> {
        let lanes = self.setup.world.destinations.len();
        (usize::from(slot.get())..lanes).step_by(256)
    }

    /// The lane of a destination: the same on every node.
    fn lane_id(&self, destination: usize) -> LaneId {
        self.watch.lanes[destination]
    }

    fn record(&mut self, words: [u64; 4]) {
        for word in words {
            self.trace = (self.trace ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
