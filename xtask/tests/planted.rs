//! The table of planted bugs fits the sources as they are: `cargo xtask planted` would plant every one of them.

use std::collections::BTreeSet;
use std::path::Path;

#[path = "../src/planted/table.rs"]
mod table;

#[test]
fn every_bug_finds_its_place_exactly_once() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace");
    for bug in table::read().expect("a table") {
        bug.plant(root).expect("a bug that fits");
    }
}

#[test]
fn every_bug_has_a_name_of_its_own_and_says_what_it_breaks() {
    let bugs = table::read().expect("a table");
    assert!(bugs.len() >= 20, "{} bugs", bugs.len());
    let names: BTreeSet<&str> = bugs.iter().map(|bug| bug.name.as_str()).collect();
    assert_eq!(names.len(), bugs.len());
    for bug in &bugs {
        assert!(bug.breaks.len() > 20 && bug.test.contains("--"), "{}", bug.name);
        assert!(bug.says.iter().all(|words| words.len() > 5), "{}", bug.name);
    }
}
