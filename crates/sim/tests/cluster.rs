//! Goal: several nodes on one database lose nothing and break no bound, whichever of them dies, freezes, is cut off, leaves or
//! comes back, and whatever becomes of notices, answers and clocks.
//! Method: two to four nodes under every policy for a few minutes with a fault every few seconds, then heal and let it come to
//! rest. The oracles of one node watch all of them, as receivers, publishers and the database see it.
//!
//! `TIDEGATE_SEEDS=0..5000` runs these seeds instead of those that every test run has.

use std::ops::Range;

use tidegate_core::time::Millis;
use tidegate_sim::cluster::{Cluster, Counts, Faults, world};

const FAULTS: Millis = Millis::minutes(3);
const REST: Millis = Millis::minutes(30);

fn run(seed: u64, faults: Faults) -> (u64, Counts) {
    let mut cluster = Cluster::new(world(seed, FAULTS, faults));
    cluster.run_for(FAULTS);
    cluster.heal();
    let rested = cluster.run_until_quiet(REST);
    for (name, wrong) in cluster.watch.verdicts() {
        assert!(wrong.is_empty(), "seed {seed}: {name}: {wrong:#?}");
    }
    let ledger = &cluster.watch.oracles.ledger;
    let open = cluster.open_deliveries();
    assert!(rested && open == 0 && ledger.open() == 0, "seed {seed}: {open} left open");
    assert!(ledger.accepted() > 500, "seed {seed}: too little happened to mean anything");
    (cluster.trace(), cluster.watch.counts)
}

/// The seeds that the environment asks for, or these.
fn seeds(usual: Range<u64>) -> Range<u64> {
    let Ok(asked) = std::env::var("TIDEGATE_SEEDS") else { return usual };
    let range = asked.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("TIDEGATE_SEEDS is {asked:?}; a range such as 0..300 is wanted"))
}

#[test]
fn a_cluster_loses_nothing_and_breaks_no_bound() {
    for seed in seeds(0..20) {
        let (_, counts) = run(seed, Faults::ALL);
        println!("{seed} {counts:?}");
    }
}
