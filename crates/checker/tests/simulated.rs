//! Goal: the checker judges simulated runs as it judges real ones, and finds nothing wrong with them.
//! Method: the fault world of the simulator (crashes, clean stops, lost wake-ups, a clock that is set, under every policy)
//! writes its histories in virtual time, so that nothing is excused for being seen late.
//!
//! `TIDEGATE_SEEDS=0..300` runs these seeds instead of those that every test run has.

use std::ops::Range;
use std::path::PathBuf;

use tidegate_checker::{Run, Verdict, judge_all, table};
use tidegate_core::time::Millis;
use tidegate_sim::history::Recorder;
use tidegate_sim::run::{Sim, Storage};
use tidegate_sim::scenario::restart;

const FAULTS: Millis = Millis::hours(3);
const REST: Millis = Millis::days(3);

fn simulate(seed: u64) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("tidegate-checker-{}-{seed}", std::process::id()));
    let setup = restart::world(seed, FAULTS, Storage::Memory);
    let recorder = Recorder::create(&directory, &setup).expect("a directory of our own");
    let mut sim = Sim::new(setup, recorder);
    sim.run_for(FAULTS);
    sim.heal();
    assert!(sim.run_until_quiet(REST), "seed {seed} does not come to rest");
    sim.observer.finish().expect("a disk with room");
    directory
}

fn seeds(usual: Range<u64>) -> Range<u64> {
    let Ok(asked) = std::env::var("TIDEGATE_SEEDS") else { return usual };
    let range = asked.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("TIDEGATE_SEEDS is {asked:?}; a range such as 0..300 is wanted"))
}

#[test]
fn simulated_runs_with_every_fault_keep_every_promise() {
    // What a fault world has nothing to say about: nobody patches, polls or samples there.
    let silent = ["I10", "I14", "I16", "I18"];
    for seed in seeds(0..40) {
        let directory = simulate(seed);
        let run = Run::load(&directory).expect("what was just written");
        let verdicts = judge_all(&run);
        let text = table::render(&verdicts);
        let kept = directory.display();
        assert!(verdicts.iter().all(Verdict::holds), "seed {seed}, in {kept}:\n{text}");
        for verdict in verdicts.iter().filter(|verdict| !silent.contains(&verdict.name)) {
            assert!(verdict.checked > 0, "seed {seed}: {} judged nothing\n{text}", verdict.name);
        }
        if seed == 0 {
            println!("{text}");
        }
        std::fs::remove_dir_all(&directory).expect("our own");
    }
}
