//! Goal: a process that dies at any moment loses no event and breaks no bound.
//! Method: crash every few minutes under every policy, then heal and let it come to rest; oracles watch every step.

use tidegate_core::time::Millis;
use tidegate_sim::oracle::Oracles;
use tidegate_sim::run::Sim;
use tidegate_sim::scenario::restart;

#[test]
fn crashes_lose_nothing_and_break_no_bound() {
    for seed in 0..200 {
        let report = restart::run_for(seed, Millis::hours(6), &mut |_, _| {});
        let wrong: Vec<_> = report.findings.iter().filter(|finding| !finding.holds).collect();
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
        assert!(report.deliveries > 1_000, "seed {seed}: too little happened to mean anything");
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let trace = |seed| {
        let setup = restart::world(seed, Millis::hours(2));
        let oracles = Oracles::new(&setup);
        let mut sim = Sim::new(setup, oracles);
        sim.run_for(Millis::hours(2));
        (sim.trace(), sim.now(), sim.open_deliveries())
    };
    assert_eq!(trace(7), trace(7));
    assert_ne!(trace(7).0, trace(8).0);
}
