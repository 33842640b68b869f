//! Every case that is kept is run again: what fuzzing found once, and what was written by hand.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_fuzz::TARGETS;

/// A corpus stays small: what it covers is kept, what only looks different is not.
const MOST_CASES: usize = 120;
const MOST_BYTES: u64 = 8 * 1024;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn cases(name: &str) -> Vec<PathBuf> {
    let folder = fs::read_dir(corpus().join(name)).expect("a corpus for each target");
    let mut cases: Vec<PathBuf> = folder.map(|entry| entry.expect("a readable entry").path()).collect();
    cases.sort();
    cases
}

#[test]
fn every_case_that_is_kept_holds() {
    let mut broken = Vec::new();
    for (name, run) in TARGETS {
        for case in cases(name) {
            let data = fs::read(&case).expect("a readable case");
            if std::panic::catch_unwind(|| run(&data)).is_err() {
                broken.push(case);
            }
        }
    }
    assert!(broken.is_empty(), "these break a law: {broken:#?}");
}

#[test]
fn every_target_has_a_small_corpus_and_every_corpus_a_target() {
    for (name, _) in TARGETS {
        let cases = cases(name);
        assert!((10..=MOST_CASES).contains(&cases.len()), "{name} has {} cases", cases.len());
        let large = cases.iter().find(|case| fs::metadata(case).expect("a file").len() > MOST_BYTES);
        assert_eq!(large, None, "over {MOST_BYTES} bytes");
    }
    for entry in fs::read_dir(corpus()).expect("a folder").flatten() {
        let name = entry.file_name();
        assert!(TARGETS.iter().any(|(known, _)| name == *known), "{name:?} belongs to no target");
    }
}
