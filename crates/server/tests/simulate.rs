//! The binary as people use it: what it prints where, and how it ends.

use std::path::PathBuf;
use std::process::{Command, Output};

fn tidegate(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidegate")).args(args).output().expect("the binary starts")
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// A file of this test, under a name of its own.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("it can be written");
    path
}

fn path(path: &std::path::Path) -> &str {
    path.to_str().expect("a plain path")
}

const GOOD: &str = r#"
about = "Ten orders <b>&</b> a destination."
start = "2026-03-07T18:00:00Z"
length = "10 min"

[[destination]]
name = "erp"

[[traffic]]
to = "erp"
event_type = "order.created"
arrivals = { every = "1 min" }
"#;

#[test]
fn help_and_version_are_there() {
    let about = tidegate(&["--help"]);
    assert!(about.status.success() && out(&about).contains("simulate"), "{}", out(&about));
    assert!(out(&about).lines().all(|line| line.chars().count() <= 110));
    let help = tidegate(&["simulate", "--help"]);
    assert!(help.status.success());
    for option in ["--seed", "--json", "--svg", "--history", "--list"] {
        assert!(out(&help).contains(option), "{option} is not in the help");
    }
    let version = tidegate(&["--version"]);
    assert!(version.status.success() && out(&version).starts_with("tidegate "));
}

#[test]
fn a_good_file_gives_a_table_that_begins_and_ends_with_the_seed() {
    let scenario = file("good.toml", GOOD);
    let output = tidegate(&["simulate", path(&scenario), "--seed", "42"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines[lines.len() - 1]), ("seed 42", "seed 42"));
    assert!(text.contains("✓ holds") && text.contains("✓ The one check holds."), "{text}");
    assert!(lines.iter().all(|line| line.chars().count() <= 110), "{text}");
    // No terminal, no progress.
    assert_eq!(err(&output), "");
}

#[test]
fn json_is_all_there_is_on_standard_output_and_the_same_each_time() {
    let scenario = file("json.toml", &GOOD.replace("{ every = \"1 min\" }", "{ poisson_per_minute = 30 }"));
    let run = |seed: &str| tidegate(&["simulate", path(&scenario), "--seed", seed, "--json"]);
    let first = run("7");
    assert_eq!(first.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&first.stdout).expect("it is JSON");
    assert_eq!((report["scenario"].as_str(), report["seed"].as_u64()), (Some("json"), Some(7)));
    assert_eq!(report["destinations"][0]["name"].as_str(), Some("erp"));
    assert_eq!(report["deliveries"], report["destinations"][0]["accepted"]);
    assert_eq!(first.stdout, run("7").stdout);
    assert_ne!(first.stdout, run("8").stdout);
}

#[test]
fn the_picture_is_written_where_it_is_asked_for() {
    let scenario = file("picture.toml", GOOD);
    let picture = scenario.with_extension("svg");
    let output = tidegate(&["simulate", path(&scenario), "--svg", path(&picture), "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let svg = std::fs::read_to_string(&picture).expect("it is there");
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && svg.contains("prefers-color-scheme"));
    assert!(svg.contains("seed 1") && svg.contains("&lt;b&gt;&amp;") && !svg.contains("<b>"));
    assert_eq!(
        svg.matches("http").count(),
        1,
        "only the name space is an address: the picture needs nothing else"
    );

    let nowhere = tidegate(&["simulate", path(&scenario), "--svg", "/no/such/folder/picture.svg"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(err(&nowhere).contains("error: the picture cannot be written to /no/such/folder/picture.svg"));
    assert_eq!(out(&nowhere), "", "it is found before the run");
}

#[test]
fn what_does_not_hold_ends_with_1() {
    let failing = format!("{GOOD}\n[expect]\np99_at_most = \"1ms\"\n");
    let output = tidegate(&["simulate", path(&file("failing.toml", &failing))]);
    assert_eq!(output.status.code(), Some(1));
    assert!(out(&output).contains("✗ fails") && out(&output).contains("1 of 2 checks does not hold"));
}

#[test]
fn a_bad_file_ends_with_2_and_all_its_problems() {
    let bad = GOOD.replace("10 min", "soon").replace("name = \"erp\"", "name = \"erp\"\nmax_concurrency = 0");
    let scenario = file("bad.toml", &bad);
    let output = tidegate(&["simulate", path(&scenario)]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(out(&output), "");
    let message = err(&output);
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines[0], format!("error: {}: 2 problems", scenario.display()));
    assert_eq!(
        lines[1],
        "  line 4: `length` is \"soon\"; allowed: a length of time such as \"30s\", \"5 min\", \"1h 30min\" or \"2 days\", \
         1 s to 366 days"
    );
    assert_eq!(lines[2], "  line 8: `destination[0].max_concurrency` is 0; allowed: 1 to 1000");
    assert_eq!(lines[3], "The format is described in docs/scenario-files.md.");
}

#[test]
fn a_name_that_nobody_knows_is_answered_with_those_there_are() {
    let output = tidegate(&["simulate", "no-such-scenario"]);
    assert_eq!(output.status.code(), Some(2));
    let message = err(&output);
    assert!(
        message.starts_with("error: there is no scenario \"no-such-scenario\"; the built-in ones are: "),
        "{message}"
    );
    assert!(message.contains("must end in .toml"));
    for scenario in tidegate_sim::scenario::ALL {
        assert!(message.contains(scenario.name));
    }
    let missing = tidegate(&["simulate", "no-such-file.toml"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(err(&missing).starts_with("error: no-such-file.toml: cannot be read: "));
    assert_eq!(tidegate(&["simulate", "burst", "--seed", "many"]).status.code(), Some(2));
}

#[test]
fn the_list_has_every_scenario_with_a_sentence() {
    let listed = tidegate(&["simulate", "--list"]);
    assert!(listed.status.success());
    let words: Vec<String> = out(&listed).split_whitespace().map(str::to_owned).collect();
    for scenario in tidegate_sim::scenario::ALL {
        let entry = format!("{} {}", scenario.name, scenario.about);
        assert!(words.join(" ").contains(&entry), "{entry}");
    }
    assert!(out(&listed).lines().all(|line| line.chars().count() <= 110));
    assert_eq!(tidegate(&["simulate"]).stdout, listed.stdout);
}

#[test]
fn a_run_leaves_histories_where_it_is_told() {
    let scenario = file("recorded.toml", GOOD);
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("recorded-history");
    let output = tidegate(&["simulate", path(&scenario), "--history", path(&directory)]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(out(&output).contains(path(&directory)), "{}", out(&output));
    for name in ["world.json", "producer.jsonl", "receiver.jsonl", "faults.jsonl", "api.jsonl"] {
        let text = std::fs::read_to_string(directory.join(name)).expect("it was written");
        assert!(text.ends_with("}\n"), "{name}: {text}");
    }
    let refused = tidegate(&["simulate", "burst", "--history", path(&directory)]);
    assert!(!refused.status.success() && err(&refused).contains("only `restart`"), "{}", err(&refused));
}
