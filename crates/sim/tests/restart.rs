//! Goal: a process that dies at any moment loses no event and breaks no bound.
//! Method: crash every few minutes under every policy, then heal and let it come to rest; oracles watch every step. On the
//! real store, and for more seeds in the same time on the reference in memory: both must give the same trace.
//!
//! `TIDEGATE_SEEDS=100..400` runs these seeds on both instead of the few that every test run has.

use std::ops::Range;

use tidegate_core::time::Millis;
use tidegate_sim::oracle::Oracles;
use tidegate_sim::run::{Sim, Storage, Work};
use tidegate_sim::scenario::restart;

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
    let setup = restart::world(seed, FAULTS, storage);
    let oracles = Oracles::new(&setup);
    let mut sim = Sim::new(setup, oracles);
    sim.run_for(FAULTS);
    sim.heal();
    let rested = sim.run_until_quiet(REST);
    let open = sim.open_deliveries();
    assert!(rested && open == 0, "seed {seed} on {storage:?}: {open} left open");
    for (name, wrong) in sim.observer.verdicts() {
        assert!(wrong.is_empty(), "seed {seed} on {storage:?}: {name}: {wrong:#?}");
    }
    let ledger = &sim.observer.ledger;
    assert!(ledger.accepted() > 1_000, "seed {seed}: too little happened to mean anything");
    Ran { trace: sim.trace(), work: sim.work(), accepted: ledger.accepted(), sent_again: ledger.duplicates() }
}

/// The seeds that the environment asks for, or these.
fn seeds(usual: Range<u64>) -> Range<u64> {
    let Ok(asked) = std::env::var("TIDEGATE_SEEDS") else { return usual };
    let range = asked.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("TIDEGATE_SEEDS is {asked:?}; a range such as 0..300 is wanted"))
}

/// The reference says what a refill is; the store finds it by index. Seven keys are fewer lines than a lane asks for, so
/// the order in which the store goes through keys does not matter, and everything is to be the same.
#[test]
fn crashes_of_the_real_store_lose_nothing_and_break_no_bound() {
    for seed in seeds(0..8) {
        assert_eq!(run(seed, Storage::Sqlite), run(seed, Storage::Memory), "seed {seed}");
    }
}

#[test]
fn crashes_lose_nothing_and_break_no_bound_under_many_seeds() {
    for seed in 0..200 {
        run(seed, Storage::Memory);
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    assert_eq!(run(7, Storage::Memory), run(7, Storage::Memory));
    assert_ne!(run(7, Storage::Memory).trace, run(8, Storage::Memory).trace);
}
