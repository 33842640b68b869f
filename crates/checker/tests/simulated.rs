//! Goal: the checker judges simulated runs as it judges real ones, and finds nothing wrong with them.
//! Method: the fault world of the simulator (crashes, clean stops, lost wake-ups, a clock that is set, under every policy)
//! writes its histories in virtual time, so that nothing is excused for being seen late.
//!
//! `TIDEGATE_SEEDS=0..300` runs these seeds instead of those that every test run has.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tidegate_checker::{Run, Verdict, judge_all};
use tidegate_core::time::{Millis, Timestamp};
use tidegate_sim::history::Recorder;
use tidegate_sim::run::{Sim, Storage};
use tidegate_sim::scenario::restart;
use tidegate_sim::traffic::{Arrivals, Source, Template};

const FAULTS: Millis = Millis::hours(3);
const REST: Millis = Millis::days(3);

/// When runs begin, one after the other. Their quiet hours are the nights of Chicago, from midnight to six.
const STARTS: [Timestamp; 4] = [
    // 2026-03-07T18:00:00Z: by day.
    Timestamp::from_millis(1_772_906_400_000),
    // 2026-03-08T04:00:00Z: two hours before the night in which clocks go forward. Nothing but its end is left to happen then.
    Timestamp::from_millis(1_772_942_400_000),
    // 2026-03-08T09:30:00Z: an hour and a half before its end, which comes an hour early.
    Timestamp::from_millis(1_772_962_200_000),
    // 2026-11-01T09:30:00Z: two hours and a half before the end of the night in which clocks went back.
    Timestamp::from_millis(1_793_525_400_000),
];

/// The directory of its history, and whether it came to rest.
fn simulate(seed: u64) -> (PathBuf, bool) {
    let directory = std::env::temp_dir().join(format!("tidegate-checker-{}-{seed}", std::process::id()));
    let start = STARTS[usize::try_from(seed).unwrap_or(0) % STARTS.len()];
    let mut setup = restart::world_from(start, seed, FAULTS, Storage::Memory);
    setup.sources.extend(more_sources(start, setup.destinations.len()));
    let recorder = Recorder::create(&directory, &setup).expect("a directory of our own");
    let mut sim = Sim::new(setup, recorder);
    sim.run_for(FAULTS);
    sim.heal();
    let rests = sim.run_until_quiet(REST);
    sim.observer.finish().expect("a disk with room");
    (directory, rests)
}

/// What a run must have so that a broken promise shows: events that live shorter than a destination that hangs is waited for;
/// more at once than a lane has in memory, without a rate that spreads them; and more that wait for a time after all faults.
fn more_sources(start: Timestamp, destinations: usize) -> Vec<Source> {
    let (end, at_once) = (start + FAULTS, start + FAULTS.scaled(2, 3));
    let brief = Template::new("quote.changed").with_ttl(Millis::seconds(20));
    let later = Template { deliver_after: Some(Millis::minutes(50)), ..Template::new("report.ready") };
    let source = |destination, template: &Template, arrivals| Source {
        destination,
        template: template.clone(),
        arrivals,
    };
    let mut sources: Vec<Source> = (0..destinations)
        .map(|destination| source(destination, &brief, Arrivals::per_day(300.0, start, end)))
        .collect();
    sources.push(source(0, &Template::new("order.created"), Arrivals::Burst { at: at_once, count: 600 }));
    sources.push(source(0, &later, Arrivals::Burst { at: end - Millis::minutes(10), count: 40 }));
    sources
}

fn seeds(usual: Range<u64>) -> Range<u64> {
    let Ok(asked) = std::env::var("TIDEGATE_SEEDS") else { return usual };
    let range = asked.split_once("..").and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range.unwrap_or_else(|| panic!("TIDEGATE_SEEDS is {asked:?}; a range such as 0..300 is wanted"))
}

/// What no simulated run says anything about: nobody patches, polls readiness or samples memory there.
const SILENT: [&str; 3] = ["I14", "I16", "I18"];

#[test]
fn simulated_runs_with_every_fault_keep_every_promise() {
    let mut judged: BTreeMap<&str, u64> = BTreeMap::new();
    // The first that is wrong with each promise, and where to look closer.
    let mut broken: BTreeMap<&str, String> = BTreeMap::new();
    for seed in seeds(0..40) {
        let (directory, rests) = simulate(seed);
        let verdicts = judge_all(&Run::load(&directory).expect("what was just written"));
        let kept = broken.len();
        for verdict in &verdicts {
            let Verdict { name, promise, checked, violated, violations, .. } = verdict;
            *judged.entry(name).or_default() += checked;
            if let Some(first) = violations.first() {
                let place = directory.display();
                broken.entry(name).or_insert_with(|| {
                    format!("{name} {promise}: {violated} violated by seed {seed}, in {place}: {first}\n")
                });
            }
        }
        assert!(rests || !broken.is_empty(), "seed {seed} does not come to rest, and no promise is broken");
        if broken.len() == kept {
            std::fs::remove_dir_all(&directory).expect("our own");
        }
    }
    println!("judged: {judged:?}");
    assert!(broken.is_empty(), "broken:\n{}", broken.into_values().collect::<String>());
    for (name, count) in judged.iter().filter(|(name, _)| !SILENT.contains(name)) {
        assert!(*count > 0, "{name} judged nothing in any run");
    }
}

/// Changes what the receivers of a history saw.
fn edit(directory: &Path, change: impl FnOnce(&mut Vec<Value>)) {
    let path = directory.join("receiver.jsonl");
    let text = std::fs::read_to_string(&path).expect("it was just written");
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect();
    change(&mut lines);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text).expect("a disk with room");
}

fn red(directory: &Path) -> Vec<&'static str> {
    let run = Run::load(directory).expect("it was just written");
    judge_all(&run).iter().filter(|verdict| !verdict.holds()).map(|verdict| verdict.name).collect()
}

/// `strict` gets 20 a minute, one at a time: a request comes 3 s after the one before, and never a millisecond earlier.
#[test]
fn a_millisecond_before_its_token_is_too_early() {
    let (directory, _) = simulate(1_000);
    assert_eq!(red(&directory), [""; 0]);
    edit(&directory, |lines| {
        let is_strict = |line: &&mut Value| line["receiver"] == "receiver-2";
        let mut last = None;
        let early = lines.iter_mut().filter(is_strict).find(|line| {
            let at = line["t"].as_u64();
            let gap = at.zip(last.replace(at.unwrap_or(0))).map(|(at, last)| at - last);
            gap == Some(3_000_000_000)
        });
        let early = early.expect("two in a row at its full rate");
        early["t"] = json!(early["t"].as_u64().unwrap_or(0) - 1_000_000);
    });
    assert_eq!(red(&directory), ["I5"]);
    std::fs::remove_dir_all(&directory).expect("our own");
}

#[test]
fn a_receipt_that_is_missing_or_comes_twice_is_found_in_a_simulated_run() {
    let (directory, _) = simulate(1_001);
    let first = |lines: &[Value]| {
        let done = lines.iter().find(|line| line["kind"] == "end" && line["status"] == 200);
        done.expect("something was delivered")["n"].clone()
    };
    edit(&directory, |lines| {
        let n = first(lines);
        lines.retain(|line| line["n"] != n);
    });
    assert_eq!(red(&directory), ["I1", "I11"], "not delivered, and in the log");
    std::fs::remove_dir_all(&directory).expect("our own");
    let (directory, _) = simulate(1_001);
    edit(&directory, |lines| {
        let n = first(lines);
        let mut again: Vec<Value> = lines.iter().filter(|line| line["n"] == n).cloned().collect();
        for line in &mut again {
            line["n"] = json!(1_000_000);
            line["t"] = json!(line["t"].as_u64().unwrap_or(0) + 1);
        }
        lines.extend(again);
    });
    assert!(red(&directory).contains(&"I3"), "{:?}", red(&directory));
    std::fs::remove_dir_all(&directory).expect("our own");
}
