//! Goal: several nodes on one database lose nothing and break no bound, whichever of them dies, freezes, is cut off, leaves or
//! comes back, and whatever becomes of notices, answers and clocks.
//! Method: two to four nodes under every policy for two minutes with a fault every few seconds, then heal and let it come to
//! rest. The oracles of one node watch all of them, as receivers, publishers and the database see it.
//!
//! `TIDEGATE_SEEDS=0..5000` runs these seeds instead of those that every test run has.

use std::ops::Range;

use tidegate_core::time::Millis;
use tidegate_sim::cluster::{Cluster, Counts, Faults, world};

const FAULTS: Millis = Millis::minutes(2);
const REST: Millis = Millis::minutes(30);

fn run(seed: u64) -> (u64, Counts) {
    let mut cluster = Cluster::new(world(seed, FAULTS, Faults::ALL));
    cluster.run_for(FAULTS);
    cluster.heal();
    let rested = cluster.run_until_quiet(REST);
    for (name, wrong) in cluster.watch.verdicts() {
        assert!(wrong.is_empty(), "seed {seed}: {name}: {wrong:#?}");
    }
    let ledger = &cluster.watch.oracles.ledger;
    let (open, left) = (cluster.open_deliveries(), ledger.open());
    assert!(rested && open == 0 && left == 0, "seed {seed}: {open} left open, {left} of them accepted");
    assert!(ledger.accepted() > 300, "seed {seed}: too little happened to mean anything");
    (cluster.trace(), cluster.watch.counts)
}

/// The seeds that the environment asks for, or these.
fn seeds(usual: Range<u64>) -> Range<u64> {
    let Ok(asked) = std::env::var("TIDEGATE_SEEDS") else { return usual };
    let range = asked.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("TIDEGATE_SEEDS is {asked:?}; a range such as 0..300 is wanted"))
}

/// The rare states are reached, too: else the runs would say nothing about them.
#[test]
fn a_cluster_loses_nothing_and_breaks_no_bound() {
    let all: Vec<Counts> = seeds(0..120).map(|seed| run(seed).1).collect();
    let reached = |what: &str, count: fn(&Counts) -> u64| {
        let sum: u64 = all.iter().map(count).sum();
        assert!(sum > 0, "in no run: {what}");
        println!("{sum} × {what}");
    };
    reached("a slot taken over after a lease had ended", |counts| counts.take_overs);
    reached("a slot handed over", |counts| counts.hand_overs);
    reached("a stale result refused", |counts| counts.stale_refused);
    reached("a lost notice made up for by the poll", |counts| counts.lost_notices_survived);
    reached("a frozen node that woke up holding nothing", |counts| counts.woke_with_nothing);
    reached("a frozen node's request overlapping", |counts| counts.overlaps);
    reached("a lease that ended with requests out", |counts| counts.lease_ended_busy);
    reached("a request stopped at the last moment", |counts| counts.stopped_at_the_last_moment);
    reached("a commit that was made, its answer lost", |counts| counts.doubtful_made);
    reached("a commit that was not made, its answer lost", |counts| counts.doubtful_lost);
    reached("a death right after a claim", |counts| counts.storms);
    reached("a dead node's slot worked again in time", |counts| counts.revivals);
    reached("a clean leave", |counts| counts.leaves);
    reached("a cut from the database", |counts| counts.cuts);
    reached("a database that was away", |counts| counts.aways);
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).0, run(8).0);
}
