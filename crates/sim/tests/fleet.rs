//! Goal: learned timeouts beat every line of the table that they are measured by, and lock nobody out.
//! Method: sixty days of the fleet, with the fixed timeout and with the adaptive one, under seeds that the world was not
//! calibrated with (those were 1 to 3).

use std::ops::RangeInclusive;
use std::thread;

use tidegate_core::time::Millis;
use tidegate_core::timeout::TimeoutMode;
use tidegate_sim::run::Sim;
use tidegate_sim::scenario::fleet::{self, Figures, Run};

const SEEDS: RangeInclusive<u64> = 201..=205;

fn runs(timeout: TimeoutMode) -> Vec<Run> {
    SEEDS.map(|seed| fleet::simulate(seed, timeout, &mut |_, _| {})).collect()
}

#[test]
fn adaptive_timeouts_beat_every_line_of_the_table() {
    let (fixed, adaptive) = thread::scope(|scope| {
        let fixed = scope.spawn(|| runs(fleet::FIXED));
        let adaptive = runs(TimeoutMode::Adaptive);
        (fixed.join().expect("a run that panics fails the test"), adaptive)
    });
    for (seed, (fixed, adaptive)) in SEEDS.zip(fixed.into_iter().zip(adaptive)) {
        println!("seed {seed}\n  fixed    {:?}\n  adaptive {:?}", fixed.figures, adaptive.figures);
        is_what_the_table_starts_from(seed, &fixed.figures);
        assert_eq!(
            fixed.figures.deliveries, adaptive.figures.deliveries,
            "seed {seed}: both meet the same traffic"
        );
        assert!(adaptive.figures.dead < fixed.figures.dead, "seed {seed}: fewer events are given up");
        let report = fleet::report(seed, fixed, adaptive);
        let wrong: Vec<_> = report.findings.iter().filter(|finding| !finding.holds).collect();
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
    }
}

fn is_what_the_table_starts_from(seed: u64, fixed: &Figures) {
    assert!((0.015..=0.021).contains(&fixed.false_timeouts), "seed {seed}: {fixed:?}");
    assert!((0.20..=0.24).contains(&fixed.failed_capacity), "seed {seed}: {fixed:?}");
    assert!((34.0..=42.0).contains(&fixed.mean_detection.as_secs_f64()), "seed {seed}: {fixed:?}");
    assert!(!fixed.none_locked_out(), "seed {seed}: with a fixed timeout, slowness does lock out");
}

/// What the node keeps at a moment: deliveries that are open, in the store, in memory or in flight, and bytes of samples.
fn kept(sim: &Sim<()>) -> usize {
    let lane_keeps = |lane: &tidegate_engine::dispatcher::Lane| {
        let samples: usize = lane.state().timeouts.days().map(|(_, sketch)| sketch.len()).sum();
        lane.waiting() + lane.in_flight().count() + samples
    };
    sim.open_deliveries() + sim.dispatcher().lanes().iter().map(lane_keeps).sum::<usize>()
}

#[test]
fn what_is_kept_does_not_grow_with_the_run() {
    let mut sim = Sim::new(fleet::setup(201, TimeoutMode::Adaptive, 28), ());
    let mut most_in_week = [0; 4];
    for day in 0..28 {
        sim.run_for(Millis::days(1));
        most_in_week[day / 7] = kept(&sim).max(most_in_week[day / 7]);
    }
    println!("kept at most, by week: {most_in_week:?}");
    // After the first week the window of samples is full.
    assert!(most_in_week[3] * 10 <= most_in_week[1] * 11, "{most_in_week:?}");
}
