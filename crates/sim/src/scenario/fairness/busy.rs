//! One busy destination among twenty, on a node with ten slots.

use std::collections::HashMap;

use tidegate_core::policy::Policy;
use tidegate_core::time::{Millis, Timestamp};

use super::super::count::Count;
use crate::report::Finding;
use crate::run::{Commit, Destination, Faults, Note, Observer, Setup, Sim, Storage, View};
use crate::series::Series;
use crate::traffic::{Arrivals, Source, Template};
use crate::world::{Latency, Model};

/// Events for the busy one.
const BUSY: u32 = 180;
/// The others; the first of them gets two events, each of the rest one.
const OTHERS: usize = 19;
/// Requests that the node makes at a time.
const SLOTS: u32 = 10;
/// How long an answer takes, everywhere.
const EXCHANGE: Millis = Millis::new(200);
/// Before the rush, destinations that are in use get an event every second for so long.
const BEFORE: Millis = Millis::seconds(20);

/// Whether the destinations were in use before the rush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Past {
    None,
    InUse,
}

/// When the events of the busy one come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rush {
    /// Not at all: the others are alone.
    Absent,
    /// Together with those of the others.
    Together,
    /// Just before: the busy one has all the slots it may have when the others come.
    Before,
}

/// What was seen.
pub(super) struct Ran {
    /// How long each event of the others waited for its request: by destination and number.
    waits: HashMap<(usize, u32), Millis>,
    pub(super) series: Series,
    pub(super) count: Count,
    pub(super) lasted: Millis,
}

pub(super) fn judge(past: Past, rush: Rush, alone: &Ran, crowded: &Ran) -> Finding {
    let longest = |ran: &Ran| ran.waits.values().copied().max().unwrap_or(Millis::ZERO);
    let more = |(event, wait): (&(usize, u32), &Millis)| {
        *wait - alone.waits.get(event).copied().unwrap_or(Millis::ZERO)
    };
    let most = crowded.waits.iter().map(more).max().unwrap_or(Millis::MAX);
    let name = match (past, rush) {
        (Past::None, _) => "nothing known of any",
        (Past::InUse, Rush::Before) => "all in use, the 180 first",
        (Past::InUse, _) => "all in use, all at once",
    };
    Finding::check(
        format!("180 for one, 20 for 19 others, {name}: wait of the 20"),
        format!("up to {}, alone {}; none more than {most} longer", longest(crowded), longest(alone)),
        format!("no event waits longer than alone, plus one exchange ({EXCHANGE})"),
        crowded.waits.len() == OTHERS + 1 && alone.waits.len() == OTHERS + 1 && most <= EXCHANGE,
    )
}

pub(super) fn run(seed: u64, past: Past, rush: Rush) -> Ran {
    let begins = Timestamp::parse("2026-05-01T12:00:00Z").expect("a valid time");
    let start = begins - BEFORE - Millis::seconds(2);
    let series = Series::new(begins - Millis::seconds(1), begins + Millis::seconds(9), 100);
    let waits = Waits { begins, came: HashMap::new(), numbers: HashMap::new(), waits: HashMap::new() };
    let setup = world(seed, start, begins, past, rush);
    let mut sim = Sim::new(setup, (waits, (series, Count::default())));
    sim.run_until_quiet(Millis::hours(1));
    let lasted = sim.now().wall - start;
    let (waits, (series, count)) = sim.observer;
    Ran { waits: waits.waits, series, count, lasted }
}

fn world(seed: u64, start: Timestamp, begins: Timestamp, past: Past, rush: Rush) -> Setup {
    let destination = |index| Destination {
        name: format!("destination {index}"),
        account: 0,
        policy: Policy::default(),
        model: Model::healthy(Latency::Constant { ms: EXCHANGE.get() as f64 }),
    };
    let source =
        |destination, arrivals| Source { destination, template: Template::new("order.created"), arrivals };
    let mut sources = Vec::new();
    if past == Past::InUse {
        let earlier = |index: usize| {
            // Spread out, so that they never meet.
            let from = start + Millis::new(i64::try_from(index).expect("few") * 50);
            source(index, Arrivals::Steady { from, every: Millis::seconds(1), to: start + BEFORE })
        };
        sources.extend((0..=OTHERS).map(earlier));
    }
    let busy = match rush {
        Rush::Absent => None,
        Rush::Together => Some(begins),
        Rush::Before => Some(begins - Millis::new(1)),
    };
    sources.extend(busy.map(|at| source(0, Arrivals::Burst { at, count: BUSY })));
    sources.extend(
        (1..=OTHERS).map(|index| {
            source(index, Arrivals::Burst { at: begins, count: if index == 1 { 2 } else { 1 } })
        }),
    );
    Setup {
        seed,
        start,
        slots: SLOTS,
        commit: Commit::Instant,
        storage: Storage::Memory,
        destinations: (0..=OTHERS).map(destination).collect(),
        sources,
        faults: Faults::default(),
    }
}

/// Watches the events of the others, from the rush on.
struct Waits {
    begins: Timestamp,
    came: HashMap<u64, ((usize, u32), Timestamp)>,
    numbers: HashMap<usize, u32>,
    waits: HashMap<(usize, u32), Millis>,
}

impl Observer for Waits {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        let now = view.now.wall;
        match note {
            Note::Accepted(lane, delivery) if lane.index() > 0 && now >= self.begins => {
                let number = self.numbers.entry(lane.index()).or_default();
                self.came.insert(delivery.place.sequence, ((lane.index(), *number), now));
                *number += 1;
            }
            Note::Sent(_, sending) => {
                if let Some((event, came)) = self.came.remove(&sending.place.sequence) {
                    self.waits.insert(event, now - came);
                }
            }
            _ => {}
        }
    }
}
