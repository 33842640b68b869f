//! The invariants of ARCHITECTURE.md that a text search can check.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_path_buf()
}

/// Every source file below `folder`, with its text.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let mut folders = vec![root().join(folder)];
    let mut found = vec![];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a readable file");
                found.push((path, text));
            }
        }
    }
    assert!(!found.is_empty(), "{folder} has sources");
    found
}

fn dependencies(manifest: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(manifest)).expect("a readable manifest");
    let section = text.split("[dependencies]").nth(1).expect("a section of dependencies").split("\n[").next();
    let lines =
        section.expect("its text").lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split(['.', ' ', '=']).next().expect("a name").to_owned()).collect()
}

#[test]
fn core_depends_on_nothing_that_does_anything() {
    // Codecs, hashes, parsers and a calendar: all of them pure.
    let pure = ["base64", "ed25519-dalek", "hmac", "httpdate", "ipnet", "jiff", "sha2", "thiserror", "url"];
    assert_eq!(dependencies("crates/core/Cargo.toml"), pure);
}

#[test]
fn the_dispatcher_depends_on_the_rules_alone() {
    let files = sources("crates/engine/src").into_iter();
    let dispatcher = files.filter(|(path, _)| path.to_string_lossy().contains("/src/dispatcher"));
    let mut uses = 0;
    for (path, text) in dispatcher {
        for line in text.lines().map(str::trim_start) {
            let line =
                line.strip_prefix("pub").map_or(line, |rest| rest.trim_start_matches("(crate)").trim_start());
            let Some(used) = line.strip_prefix("use ") else { continue };
            let known = ["std::", "tidegate_core::", "crate::dispatcher", "super::", "self::"];
            // A file may also bring out its own modules: `pub use lane::View`.
            let own = |name: &str| text.contains(&format!("mod {name};"));
            let first = used.split([':', ';', ' ']).next().unwrap_or_default();
            assert!(
                known.iter().any(|start| used.starts_with(start)) || own(first),
                "{}: {line}",
                path.display()
            );
            uses += 1;
        }
    }
    assert!(uses > 10, "the dispatcher uses the rules");
}

/// What judges must not share a fault with what is judged: neither its crates nor its time zones.
#[test]
fn the_checker_depends_on_nothing_of_what_it_judges() {
    let taken = dependencies("crates/checker/Cargo.toml");
    let shared = taken.iter().find(|name| name.starts_with("tidegate") || name.starts_with("jiff"));
    assert_eq!(shared, None);
}

#[test]
fn nothing_but_the_binary_and_the_benchmarks_takes_the_simulator() {
    for (manifest, takes) in
        [("crates/core", false), ("crates/engine", false), ("crates/server", true), ("bench", true)]
    {
        let found = dependencies(&format!("{manifest}/Cargo.toml")).iter().any(|name| name == "tidegate-sim");
        assert_eq!(found, takes, "{manifest}");
    }
}

#[test]
fn the_rules_and_the_dispatcher_read_no_clock_and_draw_no_number() {
    let banned = [
        "SystemTime::now",
        "Instant::now",
        "Timestamp::now",
        "Zoned::now",
        "sleep(",
        "rand::",
        "async ",
        ".await",
    ];
    for (path, text) in sources("crates/core/src").into_iter().chain(sources("crates/engine/src/dispatcher"))
    {
        for word in banned {
            // `.awaits_refill()` is no `.await`.
            let whole =
                |rest: &str| !word.ends_with(char::is_alphabetic) || !rest.starts_with(char::is_alphabetic);
            assert!(!text.split(word).skip(1).any(whole), "{} has {word}", path.display());
        }
    }
}

/// Leases, and what nodes do for one another, go by the clock of the database; and what is published from SQL is numbered there.
const LEASES: &[&str] = &[
    "0001",
    "0002",
    "add_node",
    "adopt_jobs",
    "claim_slots",
    "clock",
    "drop_nodes",
    "forget_bulletins",
    "has_senior",
    "lock_owners",
    "lock_owners_seats",
    "outbox",
    "refuse_outbox",
    "renew_lease",
    "roll_nodes",
];

#[test]
fn sql_holds_no_policy_and_lies_in_the_store() {
    let mut folders = vec![root().join("crates/store/sql")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).expect("a readable folder").flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).expect("a readable file").to_lowercase();
            for word in ["now()", "random()", "strftime", "datetime(", "unixepoch", "current_timestamp"] {
                assert!(!text.contains(word), "{} has {word}", path.display());
            }
            let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let told_time =
                ["clock_timestamp", "transaction_timestamp"].iter().any(|word| text.contains(word));
            assert!(!told_time || LEASES.contains(&&*name), "{} reads the clock", path.display());
        }
    }
    for (path, text) in sources("crates/server/src").into_iter().chain(sources("crates/engine/src")) {
        for word in ["rusqlite", "begin immediate", "insert into", "select * from"] {
            assert!(!text.contains(word), "{} has {word}", path.display());
        }
    }
}

#[test]
fn no_work_is_put_off_in_the_sources() {
    for (path, text) in ["crates", "bench", "faults", "fuzz/src", "xtask/src"].into_iter().flat_map(sources) {
        for word in ["TODO", "FIXME", "XXX", "todo!(", "unimplemented!("] {
            assert!(!text.contains(word), "{} has {word}", path.display());
        }
        assert!(
            path.file_name().is_some_and(|name| name != "mod.rs"),
            "{}: `foo.rs` beside `foo/`",
            path.display()
        );
    }
}

#[test]
fn every_module_says_what_it_is_for() {
    for (path, text) in ["crates", "bench/src", "faults/src", "fuzz/src"].into_iter().flat_map(sources) {
        let is_test = path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests");
        assert!(is_test || text.starts_with("//!"), "{} opens without a word", path.display());
    }
}
