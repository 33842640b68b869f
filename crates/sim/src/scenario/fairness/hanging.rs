//! A thousand destinations, some of which hang: a hundred of them on a large node, half of them on a small one.

use std::collections::HashMap;

use tidegate_core::delivery::{End, Status};
use tidegate_core::policy::Policy;
use tidegate_core::time::{Millis, Timestamp};

use super::super::count::Count;
use crate::report::Finding;
use crate::run::{Commit, Destination, Faults, Note, Observer, Setup, Sim, Storage, View};
use crate::series::Series;
use crate::traffic::{Arrivals, Source, Template};
use crate::world::{Latency, Model, Trouble, TroubleKind};

/// Publishers are at work for so long.
const LASTS: Millis = Millis::seconds(24);
/// What goes wrong later does so after this.
pub(super) const LATER: Millis = Millis::seconds(6);

/// A node and its destinations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    /// Destinations that are well; they come first.
    pub(super) healthy: usize,
    /// Destinations that may hang.
    pub(super) doubtful: usize,
    /// Requests that the node makes at a time.
    pub(super) slots: u32,
    /// Mean time between two events of a destination.
    pub(super) every: Millis,
}

/// With answers of a third of a second the healthy ones need two thirds of the slots.
pub(super) const LARGE: Node = Node { healthy: 900, doubtful: 100, slots: 2_000, every: Millis::new(240) };
/// The healthy ones need a third of the slots; the others, one each, would need nearly all.
pub(super) const SMALL: Node = Node { healthy: 500, doubtful: 500, slots: 600, every: Millis::new(800) };

/// What becomes of the doubtful ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hang {
    /// They get no events.
    Absent,
    /// They never answer.
    Always,
    /// They are well at first and then stop answering.
    Later,
    /// They get their first events later, and never answer.
    New,
}

/// What was seen.
pub(super) struct Ran {
    p99: Millis,
    delivered: usize,
    most_in_flight: u32,
    pub(super) series: Series,
    pub(super) count: Count,
    pub(super) lasted: Millis,
}

pub(super) fn judge(name: &str, node: &Node, without: &Ran, with: &Ran) -> Finding {
    let most = without.p99.scaled(110, 100);
    let (healthy, slots) = (node.healthy, node.slots);
    Finding::check(
        format!("{name}: p99 of the {healthy} others, from acceptance to delivery"),
        format!("{} ms, up to {} of {slots} slots taken", with.p99.get(), with.most_in_flight),
        format!("≤ {} ms: within 10% of {} ms without the hanging ones", most.get(), without.p99.get()),
        with.p99 <= most && with.delivered == without.delivered,
    )
}

pub(super) fn run(seed: u64, node: &Node, hang: Hang) -> Ran {
    let start = Timestamp::parse("2026-05-01T12:00:00Z").expect("a valid time");
    let series = Series::new(start, start + LASTS, 120);
    let times = Times { healthy: node.healthy, ..Times::default() };
    let mut sim = Sim::new(world(seed, start, node, hang), (times, (series, Count::default())));
    sim.run_for(LASTS + Millis::seconds(30));
    let lasted = sim.now().wall - start;
    let (times, (series, count)) = sim.observer;
    let mut took = times.took;
    took.sort_unstable();
    let p99 = took.get(took.len() * 99 / 100).copied().unwrap_or(Millis::MAX);
    Ran { p99, delivered: took.len(), most_in_flight: times.most_in_flight, series, count, lasted }
}

fn world(seed: u64, start: Timestamp, node: &Node, hang: Hang) -> Setup {
    let (to, later) = (start + LASTS, start + LATER);
    let well = Model::healthy(Latency::LogNormal { median_ms: 300.0, sigma: 0.4 });
    let hanging = |from| {
        let trouble = Trouble { from, to: to + Millis::days(1), kind: TroubleKind::Hangs };
        well.clone().troubled(vec![trouble])
    };
    let doubtful = match hang {
        Hang::Absent => well.clone(),
        Hang::Always | Hang::New => hanging(start),
        Hang::Later => hanging(later),
    };
    let destination = |index: usize| Destination {
        name: format!("destination {index}"),
        account: u32::try_from(index % 50).expect("less than 50"),
        policy: Policy::default(),
        model: if index < node.healthy { well.clone() } else { doubtful.clone() },
    };
    let source = |destination| {
        let poisson = |from| Arrivals::Poisson { from, every: node.every, to };
        let arrivals = match hang {
            _ if destination < node.healthy => poisson(start),
            Hang::Absent => Arrivals::Recorded { at: Vec::new() },
            Hang::Always | Hang::Later => poisson(start),
            Hang::New => poisson(later),
        };
        Source { destination, template: Template::new("order.created"), arrivals }
    };
    let all = node.healthy + node.doubtful;
    Setup {
        seed,
        start,
        slots: node.slots,
        commit: Commit::Instant,
        storage: Storage::Memory,
        destinations: (0..all).map(destination).collect(),
        // The same ones in every world, some without events, so that chance treats the others alike.
        sources: (0..all).map(source).collect(),
        faults: Faults::default(),
    }
}

/// Watches the healthy ones.
#[derive(Default)]
struct Times {
    healthy: usize,
    came: HashMap<u64, Timestamp>,
    took: Vec<Millis>,
    most_in_flight: u32,
}

impl Observer for Times {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        match note {
            Note::Accepted(lane, delivery) if lane.index() < self.healthy => {
                self.came.insert(delivery.place.sequence, view.now.wall);
            }
            Note::Settled(_, delivery) if delivery.status == Status::Final(End::Delivered) => {
                if let Some(came) = self.came.remove(&delivery.place.sequence) {
                    self.took.push(view.now.wall - came);
                }
            }
            Note::Stepped => self.most_in_flight = self.most_in_flight.max(view.dispatcher.in_flight()),
            _ => {}
        }
    }
}
