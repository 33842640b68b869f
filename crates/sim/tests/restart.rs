//! Goal: a process that dies at any moment loses no event and breaks no bound.
//! Method: crash every few minutes under every policy, then heal and let it come to rest; oracles watch every step. On the
//! real store, and for more seeds in the same time on the reference in memory: both must give the same trace.
//!
//! `TIDEGATE_SEEDS=0..20000` runs these seeds in memory, and `TIDEGATE_STORE_SEEDS=0..300` these on both, instead of the few that every
//! test run has. The states that were reached, and how often, are printed (`--nocapture`).

use std::ops::Range;
use std::thread;

use tidegate_core::time::{Millis, Timestamp};
use tidegate_sim::oracle::Oracles;
use tidegate_sim::oracle::reached::{Reached, STATES};
use tidegate_sim::run::{Sim, Storage, Work};
use tidegate_sim::scenario::restart;

/// 2026-03-08T03:00:00Z: three hours before the quiet ones in Chicago, in which the clocks go forward.
const START: Timestamp = Timestamp::from_millis(1_772_938_800_000);
const FAULTS: Millis = Millis::hours(6);
const REST: Millis = Millis::days(3);

/// What is the same whenever the same happened.
#[derive(Debug, PartialEq, Eq)]
struct Ran {
    trace: u64,
    work: Work,
    accepted: u64,
    sent_again: u64,
}

fn run(seed: u64, storage: Storage) -> Ran {
    watched(seed, storage).0
}

fn watched(seed: u64, storage: Storage) -> (Ran, Reached) {
    let setup = restart::world_from(START, seed, FAULTS, storage);
    let oracles = Oracles::new(&setup);
    let mut sim = Sim::new(setup, (oracles, Reached::default()));
    sim.run_for(FAULTS);
    sim.heal();
    let rested = sim.run_until_quiet(REST);
    let open = sim.open_deliveries();
    assert!(rested && open == 0, "seed {seed} on {storage:?}: {open} left open");
    for (name, wrong) in sim.observer.0.verdicts() {
        assert!(wrong.is_empty(), "seed {seed} on {storage:?}: {name}: {wrong:#?}");
    }
    let ledger = &sim.observer.0.ledger;
    assert!(ledger.accepted() > 1_000, "seed {seed}: too little happened to mean anything");
    let ran = Ran {
        trace: sim.trace(),
        work: sim.work(),
        accepted: ledger.accepted(),
        sent_again: ledger.duplicates(),
    };
    (ran, sim.observer.1)
}

/// The seeds that the environment asks for under this name, or these.
fn seeds(name: &str, usual: Range<u64>) -> Range<u64> {
    let Ok(asked) = std::env::var(name) else { return usual };
    let range = asked.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("{name} is {asked:?}; a range such as 0..300 is wanted"))
}

/// The reference says what a refill is; the store finds it by index. Seven keys are fewer lines than a lane asks for, so
/// the order in which the store goes through keys does not matter, and everything is to be the same.
#[test]
fn crashes_of_the_real_store_lose_nothing_and_break_no_bound() {
    for seed in seeds("TIDEGATE_STORE_SEEDS", 0..8) {
        assert_eq!(run(seed, Storage::Sqlite), run(seed, Storage::Memory), "seed {seed}");
    }
}

/// On all cores, as the runs have nothing to do with each other. The rare states are reached, too: else the runs would say nothing
/// about them.
#[test]
fn crashes_lose_nothing_and_break_no_bound_under_many_seeds() {
    let all = seeds("TIDEGATE_SEEDS", 0..200);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let part = |first: usize| {
        let mut counts = [0; STATES.len()];
        for seed in all.clone().skip(first).step_by(cores) {
            let (_, reached) = watched(seed, Storage::Memory);
            for (sum, state) in counts.iter_mut().zip(STATES) {
                *sum += reached.count(state);
            }
        }
        counts
    };
    let parts: Vec<_> = thread::scope(|scope| {
        let part = &part;
        let parts: Vec<_> = (0..cores).map(|first| scope.spawn(move || part(first))).collect();
        parts.into_iter().map(|part| part.join().expect("no run fails")).collect()
    });
    for (index, state) in STATES.iter().enumerate() {
        let sum: u64 = parts.iter().map(|counts| counts[index]).sum();
        println!("{sum} × {state}");
        assert!(sum > 0, "in no run: {state}");
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    assert_eq!(run(7, Storage::Memory), run(7, Storage::Memory));
    assert_ne!(run(7, Storage::Memory).trace, run(8, Storage::Memory).trace);
}
