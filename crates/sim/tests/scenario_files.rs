//! Files that people write: what is refused and how it is said, and what a good file gives.

use std::io;

use proptest::prelude::*;
use tidegate_sim::scenario::file::{Run, ScenarioFile};

const GOOD: &str = r#"
start = "2026-03-07T18:00:00Z"
length = "2 h"

[[destination]]
name = "erp"

[[traffic]]
to = "erp"
event_type = "order.created"
arrivals = { every = "1 min" }
"#;

fn no_recordings(_: &str) -> io::Result<String> {
    Err(io::ErrorKind::NotFound.into())
}

fn parse(text: &str) -> Result<ScenarioFile, String> {
    ScenarioFile::parse(text, "test", &no_recordings).map_err(|problems| problems.to_string())
}

fn run(text: &str) -> Run {
    parse(text).expect("the file is good").run(1, &mut |_, _| {})
}

/// The good file with this among the fields of its destination.
fn destination(fields: &str) -> String {
    GOOD.replace("name = \"erp\"", &format!("name = \"erp\"\n{fields}"))
}

/// The good file with these arrivals.
fn arrivals(form: &str) -> String {
    GOOD.replace("{ every = \"1 min\" }", form)
}

#[track_caller]
fn refused(text: &str, expected: &[&str]) {
    let message = parse(text).expect_err("the file is bad");
    assert_eq!(message.lines().collect::<Vec<_>>(), expected, "for\n{text}");
}

#[test]
fn a_bad_field_is_named_with_its_value_and_what_is_allowed() {
    for (fields, expected) in [
        ("max_concurrency = -1", "line 7: `destination[0].max_concurrency` is -1; allowed: 1 to 1000"),
        ("max_concurrency = \"x\"", "line 7: `destination[0].max_concurrency` is \"x\"; allowed: 1 to 1000"),
        (
            "max_concurrency = 100000000000000000000",
            "line 7: `destination[0].max_concurrency` is 100000000000000000000; allowed: 1 to 1000",
        ),
        (
            "rate_limit = { max_per_minute = -1 }",
            "line 7: `destination[0].rate_limit.max_per_minute` is -1; allowed: 1 to 600000",
        ),
        (
            "rate_limit = { max = \"x\", per = \"second\" }",
            "line 7: `destination[0].rate_limit.max` is \"x\"; allowed: 1 to 10000",
        ),
        (
            "rate_limit = { max_per_minute = 5, burst_capacity = -1 }",
            "line 7: `destination[0].rate_limit.burst_capacity` is -1; allowed: 1 to 1000000",
        ),
        ("timeout_seconds = -1", "line 7: `destination[0].timeout_seconds` is -1; allowed: 1 to 120"),
        (
            "retry_policy = { max_attempts = -1 }",
            "line 7: `destination[0].retry_policy.max_attempts` is -1; allowed: 1 to 50",
        ),
        (
            "retry_policy = { delays_seconds = [30, -1] }",
            "line 7: `destination[0].retry_policy.delays_seconds[1]` is -1; allowed: 1 s to 7 days",
        ),
        (
            "circuit_breaker = { failure_ratio = -1 }",
            "line 7: `destination[0].circuit_breaker.failure_ratio` is -1; allowed: above 0, up to 1",
        ),
        (
            "circuit_breaker = { min_attempts = -1 }",
            "line 7: `destination[0].circuit_breaker.min_attempts` is -1; allowed: 1 to 10000",
        ),
        (
            "circuit_breaker = { open_seconds = 700, max_open_seconds = -1 }",
            "line 7: `destination[0].circuit_breaker.max_open_seconds` is -1; allowed: 700 to 86400",
        ),
        (
            "permanent_statuses = [-1]",
            "line 7: `destination[0].permanent_statuses[0]` is -1; allowed: 400 to 599, but not 429",
        ),
        (
            "behaviour = { latency = { median_ms = 5, sgma = 1 } }",
            "line 7: `destination[0].behaviour.latency.sgma` is 1, but there is no such field; allowed: `sigma`, or any \
             of median_ms, sigma",
        ),
        ("max_concurrency = 0", "line 7: `destination[0].max_concurrency` is 0; allowed: 1 to 1000"),
        (
            "rate_limit = { max_per_minute = 0 }",
            "line 7: `destination[0].rate_limit.max_per_minute` is 0; allowed: 1 to 600000",
        ),
        (
            "rate_limit = { max = 0, per = \"minute\" }",
            "line 7: `destination[0].rate_limit.max` is 0; allowed: 1 to 600000",
        ),
        (
            "rate_limit = { max = 5, per = \"week\" }",
            "line 7: `destination[0].rate_limit.per` is \"week\"; allowed: second, minute, hour or day",
        ),
        (
            "rate_limit = { max = 5 }",
            "line 7: `destination[0].rate_limit.per` is missing; allowed: second, minute, hour or day",
        ),
        (
            "rate_limit = { burst_capacity = 5 }",
            "line 7: `destination[0].rate_limit` is a table with none of them; allowed: exactly one of max_per_minute, max",
        ),
        (
            "rate_limit = { max_per_minute = 5, burst_capacity = 0 }",
            "line 7: `destination[0].rate_limit.burst_capacity` is 0; allowed: 1 to 1000000",
        ),
        (
            "rate_limit = { max_per_minute = 5, mode = \"clever\" }",
            "line 7: `destination[0].rate_limit.mode` is \"clever\"; allowed: fixed, adaptive",
        ),
        ("ordering = \"lifo\"", "line 7: `destination[0].ordering` is \"lifo\"; allowed: none, fifo or key"),
        ("on_exhausted = \"cry\"", "line 7: `destination[0].on_exhausted` is \"cry\"; allowed: skip or halt"),
        ("timeout_seconds = 0", "line 7: `destination[0].timeout_seconds` is 0; allowed: 1 to 120"),
        (
            "timeout_seconds = 5\ntimeout = { mode = \"default\" }",
            "line 8: `destination[0].timeout` is there beside `timeout_seconds`; allowed: one of the two",
        ),
        (
            "retry_policy = { max_attempts = 51 }",
            "line 7: `destination[0].retry_policy.max_attempts` is 51; allowed: 1 to 50",
        ),
        (
            "retry_policy = { delays_seconds = [30, 0] }",
            "line 7: `destination[0].retry_policy.delays_seconds[1]` is 0 s; allowed: 1 s to 7 days",
        ),
        (
            "retry_policy = { delays_seconds = [] }",
            "line 7: `destination[0].retry_policy.delays_seconds` is a list of 0; allowed: 1 to 50 delays",
        ),
        (
            "circuit_breaker = { failure_ratio = 1.5 }",
            "line 7: `destination[0].circuit_breaker.failure_ratio` is 1.5; allowed: above 0, up to 1",
        ),
        (
            "circuit_breaker = { open_seconds = 60, max_open_seconds = 30 }",
            "line 7: `destination[0].circuit_breaker.max_open_seconds` is 30; allowed: 60 to 86400",
        ),
        (
            "permanent_statuses = [422, 429]",
            "line 7: `destination[0].permanent_statuses[1]` is 429; allowed: 400 to 599, but not 429, \
             which is about the pace and not about the event",
        ),
        (
            "delivery_schedule = { timezone = \"Mars/Base\", quiet_start = \"00:00\", quiet_end = \"06:00\" }",
            "line 7: `destination[0].delivery_schedule.timezone` is Mars/Base; allowed: a name of the IANA time zone \
             database, such as Europe/Berlin or America/New_York",
        ),
        (
            "delivery_schedules = [{ timezone = \"UTC\", quiet_start = \"00:00\", quiet_end = \"24:00\" }]",
            "line 7: `destination[0].delivery_schedules` is",
        ),
        (
            "behaviour = { latency = { median_ms = 0 } }",
            "line 7: `destination[0].behaviour.latency.median_ms` is 0; allowed: a number, 1 to 600000",
        ),
        (
            "behaviour = { limiter = { max = 5, per = \"minute\", says = \"please\" } }",
            "line 7: `destination[0].behaviour.limiter.says` is \"please\"; allowed: nothing, seconds, http_date, headers",
        ),
        (
            "trouble = [{ from = \"1h\", kind = \"sulks\" }]",
            "line 7: `destination[0].trouble[0].kind` is \"sulks\"; allowed: hangs, refuses, errors, unavailable, slow, \
             flaps, gone, degrades",
        ),
        (
            "trouble = [{ from = \"1h\", to = \"30 min\", kind = \"hangs\" }]",
            "line 7: `destination[0].trouble[0].to` is 2026-03-07T18:30:00.000Z; allowed: after `from`, which is \
             2026-03-07T19:00:00.000Z",
        ),
        (
            "trouble = [{ from = \"1h\", kind = \"hangs\" }, { from = \"90 min\", kind = \"refuses\" }]",
            "line 7: `destination[0].trouble` is two at a time at 2026-03-07T19:30:00.000Z; allowed: one at a time:",
        ),
        (
            "trouble = [{ from = \"1h\", kind = \"flaps\", up = \"1 min\" }]",
            "line 7: `destination[0].trouble[0].down` is missing; allowed: how long it hangs",
        ),
        (
            "trouble = [{ from = \"1h\", kind = \"hangs\", status = 500 }]",
            "line 7: `destination[0].trouble[0].status` is 500, but there is no such field; allowed: from, to, kind",
        ),
        (
            "outages = { between = \"0s\", lasting = \"1 min\", kind = \"hangs\" }",
            "line 7: `destination[0].outages.between` is \"0s\"; allowed: 1 s to 400 days",
        ),
        (
            "max_concurency = 5",
            "line 7: `destination[0].max_concurency` is 5, but there is no such field; allowed: `max_concurrency`, or",
        ),
        ("account = 7", "line 7: `destination[0].account` is 7; allowed: a text in quotes"),
        ("count = \"ten\"", "line 7: `destination[0].count` is \"ten\"; allowed: a whole number, 1 to 5000"),
        ("behaviour = 3", "line 7: `destination[0].behaviour` is 3; allowed: a table: { … }"),
        (
            "trouble = { from = \"1h\" }",
            "line 7: `destination[0].trouble` is a table; allowed: a list of tables:",
        ),
    ] {
        let message = parse(&destination(fields)).expect_err(fields);
        assert_eq!(message.lines().count(), 1, "for {fields}:\n{message}");
        assert!(message.starts_with(expected), "for {fields}:\n{message}\nnot\n{expected}");
    }
}

#[test]
fn bad_arrivals_are_named_likewise() {
    for (form, expected) in [
        (
            "{ every = \"soon\" }",
            "line 11: `traffic[0].arrivals.every` is \"soon\"; allowed: a length of time such as",
        ),
        ("{ every = 5 }", "line 11: `traffic[0].arrivals.every` is 5; allowed: a length of time such as"),
        (
            "{ every = \"-5s\" }",
            "line 11: `traffic[0].arrivals.every` is \"-5s\"; allowed: a length of time such as \"30s\", \"5 min\", \
             \"1h 30min\" or \"2 days\", 1 ms to 366 days",
        ),
        (
            "{ every = \"1h\", form = \"1h\" }",
            "line 11: `traffic[0].arrivals.form` is \"1h\", but there is no such field; allowed: `from`, or any of every, \
             from, to",
        ),
        (
            "{ every = \"1s\", at = \"1h\" }",
            "line 11: `traffic[0].arrivals` is a table with every and at; allowed: exactly one of every, ",
        ),
        (
            "{ poisson_per_minute = -1 }",
            "line 11: `traffic[0].arrivals.poisson_per_minute` is -1; allowed: a number, ",
        ),
        (
            "{ poisson = 5 }",
            "line 11: `traffic[0].arrivals.per` is missing; allowed: second, minute, hour or day",
        ),
        (
            "{ poisson_per_minute = nan }",
            "line 11: `traffic[0].arrivals.poisson_per_minute` is nan; allowed: a number, ",
        ),
        ("{ at = \"1h\" }", "line 11: `traffic[0].arrivals.count` is missing; allowed: how many events"),
        (
            "{ at = \"3h\", count = 5 }",
            "line 11: `traffic[0].arrivals.at` is 2026-03-07T21:00:00.000Z; allowed: within the run: \
             2026-03-07T18:00:00.000Z to 2026-03-07T20:00:00.000Z",
        ),
        (
            "{ daily_at = \"25:00\", count = 5 }",
            "line 11: `traffic[0].arrivals.daily_at` is \"25:00\"; allowed: a time of the day such as \"02:00\"",
        ),
        (
            "{ daily_at = \"23:00\", count = 5 }",
            "line 11: `traffic[0].arrivals.daily_at` is a time that never comes; allowed: a time that comes between",
        ),
        (
            "{ daily_at = \"19:00\", timezone = \"Moon\", count = 5 }",
            "line 11: `traffic[0].arrivals.timezone` is \"Moon\"; allowed: a name of the IANA time zone database",
        ),
        (
            "{ recorded = \"past.csv\" }",
            "line 11: `traffic[0].arrivals.recorded` is \"past.csv\", which cannot be read: entity not found; allowed: a CSV",
        ),
        (
            "{ every = \"1ms\", to = \"30 days\" }",
            "line 11: `traffic[0].arrivals.to` is 2026-04-06T18:00:00.000Z; allowed: within the run",
        ),
    ] {
        let message = parse(&arrivals(form)).expect_err(form);
        assert_eq!(message.lines().count(), 1, "for {form}:\n{message}");
        assert!(message.starts_with(expected), "for {form}:\n{message}\nnot\n{expected}");
    }
    let endless = arrivals("{ every = \"1ms\" }").replace("\"2 h\"", "\"300 days\"");
    refused(
        &endless,
        &[
            "line 11: `traffic[0].arrivals` is about 25920 million events; allowed: at most 20 million in all, over all \
           destinations",
        ],
    );
}

#[test]
fn more_troubles_than_fit_are_refused() {
    let year = |fields: &str| destination(fields).replace("\"2 h\"", "\"366 days\"");
    refused(
        &year("outages = { between = \"1s\", lasting = \"1s\", kind = \"hangs\" }\ncount = 20"),
        &[
            "line 7: `destination[0].outages` is about 15811200 troubles; allowed: at most 10000 for a destination",
        ],
    );
    refused(
        &year("outages = { between = \"1h\", lasting = \"1h\", kind = \"hangs\" }\ncount = 1000"),
        &[
            "line 7: `destination[0].outages` is about 4392000 troubles; allowed: at most 1000000 in all, over all \
           destinations",
        ],
    );
}

#[test]
fn a_run_lies_within_the_calendar_and_what_is_expected_within_the_run() {
    let late =
        GOOD.replace("2026-03-07T18:00:00Z", "9999-12-30T21:00:00Z").replace("\"2 h\"", "\"366 days\"");
    refused(
        &late,
        &[
            "line 2: `start` is 9999-12-30T21:00:00.000Z; allowed: 9998-12-21T22:00:00.000Z at the latest, so that \
           `length` and `drain` end by 9999-12-30T22:00:00.000Z",
        ],
    );
    refused(
        &format!("{GOOD}\n[expect]\ndrained_by = \"2026-03-07T17:00:00Z\""),
        &["line 14: `expect.drained_by` is 2026-03-07T17:00:00.000Z; allowed: not before `start`, which is \
           2026-03-07T18:00:00.000Z"],
    );
}

#[test]
fn a_bad_frame_is_the_only_problem_of_what_lies_in_it() {
    let busy = arrivals("{ every = \"1s\" }");
    for bad in ["-5s", "99999999999999999999 days"] {
        refused(
            &busy.replace("2 h", bad),
            &[&format!(
                "line 3: `length` is \"{bad}\"; allowed: a length of time such as \"30s\", \"5 min\", \"1h 30min\" or \
                 \"2 days\", 1 s to 366 days"
            )],
        );
    }
    let absolute = arrivals("{ every = \"1s\", from = \"2026-03-07T19:00:00Z\" }");
    refused(
        &absolute.replace("\"2026-03-07T18:00:00Z\"", "\"today\""),
        &["line 2: `start` is \"today\"; allowed: a time such as \"2026-03-07T18:00:00Z\""],
    );
    refused(
        &GOOD.replace("[[destination]]\nname = \"erp\"\n", "").replace("to = \"erp\"", "to = 3"),
        &[
            "line 1: `destination` is missing; allowed: at least one [[destination]]",
            "line 7: `traffic[0].to` is 3; allowed: \"*\", or one or several names of destinations",
        ],
    );
}

#[test]
fn all_problems_are_reported_at_once_in_the_order_of_their_lines() {
    let text = r#"
start = "yesterday"
length = "2 fortnights"
slots = 0
colour = "red"

[[destination]]
name = "erp"
rate_limit = { max_per_minute = 0, burst_capacity = 0, per = "minute" }
circuit_breaker = { min_attempts = 0, open_seconds = 0 }
delivery_schedule = { timezone = "Mars", quiet_start = "25:00", quiet_end = "06:00", days = ["mon", "someday"] }

[[destination]]
name = "erp"

[[traffic]]
to = "nobody"
event_type = "not a type"
arrivals = { every = "1s" }
priority = 5
ttl_seconds = 60
deliver_after = "2 min"

[faults]
lost_wakes = 1.5
"#;
    let message = parse(text).expect_err("it is full of problems");
    let fields: Vec<&str> = message.lines().filter_map(|line| line.split('`').nth(1)).collect();
    assert_eq!(
        fields,
        [
            "start",
            "length",
            "slots",
            "colour",
            "destination[0].rate_limit.max_per_minute",
            "destination[0].rate_limit.burst_capacity",
            "destination[0].rate_limit.per",
            "destination[0].circuit_breaker.min_attempts",
            "destination[0].circuit_breaker.open_seconds",
            "destination[0].delivery_schedule.timezone",
            "destination[0].delivery_schedule.quiet_start",
            "destination[0].delivery_schedule.days[1]",
            "destination[1].name",
            "traffic[0].to",
            "traffic[0].event_type",
            "traffic[0].priority",
            "traffic[0].deliver_after",
            "faults.lost_wakes",
        ],
        "{message}"
    );
}

#[test]
fn what_is_not_toml_is_named_with_line_and_column() {
    refused(
        "start = \n",
        &["line 1, column 9: not TOML: string values must be quoted, expected literal string"],
    );
    let message = parse("name = \"a\nb = [1,\n").expect_err("not TOML");
    assert!(message.lines().count() >= 2 && message.starts_with("line 1, column "), "{message}");
    refused(
        "start = 2026-01-01T00:00:00Z\nstart = 2026-01-01T00:00:00Z\nlength = \"1h\"\n",
        &["line 2, column 1: not TOML: duplicate key"],
    );
}

#[test]
fn an_empty_file_is_told_what_it_needs() {
    refused(
        "",
        &[
            "line 1: `start` is missing; allowed: a time such as \"2026-03-07T18:00:00Z\"",
            "line 1: `length` is missing; allowed: how long its traffic lasts, such as \"2 days\"",
            "line 1: `destination` is missing; allowed: at least one [[destination]]",
            "line 1: `traffic` is missing; allowed: at least one [[traffic]]",
        ],
    );
}

#[test]
fn a_recording_with_bad_lines_is_told_which_and_why() {
    let text = GOOD
        .replace("event_type = \"order.created\"\n", "")
        .replace("{ every = \"1 min\" }", "{ recorded = \"past.csv\" }");
    let check = |csv: &str, expected: &[&str]| {
        let read = |path: &str| {
            if path == "past.csv" { Ok(csv.to_owned()) } else { Err(io::ErrorKind::NotFound.into()) }
        };
        let message = ScenarioFile::parse(&text, "test", &read).expect_err("it is bad").to_string();
        let found: Vec<&str> =
            message.lines().map(|line| line.split("` is ").nth(1).unwrap_or(line)).collect();
        assert_eq!(found, expected);
    };
    check("", &["past.csv, line 1: \"\"; allowed: the header time,event_type or time"]);
    check("time,event_type\n", &["\"past.csv\", which has no events; allowed: at least one line"]);
    check(
        "time,event_type\n2026-03-07T18:00:01Z,a.b\n2026-03-07T18:00:02Z\nyesterday,a.b\n2026-03-07T18:00:03Z,a b\n",
        &[
            "past.csv, line 3: \"2026-03-07T18:00:02Z\"; allowed: two columns: time,event_type",
            "past.csv, line 4: \"yesterday,a.b\"; allowed: a time such as 2026-03-07T18:00:00Z",
            "past.csv, line 5: \"2026-03-07T18:00:03Z,a b\"; allowed: an event type: 1 to 128 characters: segments of A-Z, \
             a-z, 0-9, _ and -, joined by dots",
        ],
    );
    check(
        "time,event_type\n2026-03-07T18:00:01Z,a.b\n2025-03-07T18:00:02Z,a.b\n",
        &[
            "past.csv, line 3: \"2025-03-07T18:00:02Z,a.b\"; allowed: times within the run: 2026-03-07T18:00:00.000Z to \
           2026-03-07T20:00:00.000Z",
        ],
    );
    check(
        "time\n2025-03-07T18:00:02Z\nyesterday\n",
        &[
            "past.csv, line 2: \"2025-03-07T18:00:02Z\"; allowed: times within the run: 2026-03-07T18:00:00.000Z to \
             2026-03-07T20:00:00.000Z",
            "past.csv, line 3: \"yesterday\"; allowed: a time such as 2026-03-07T18:00:00Z",
        ],
    );
    check(
        "time\n2026-03-07T18:00:01Z\n",
        &["missing; allowed: the type of its events, such as \"order.created\""],
    );
}

#[test]
fn the_recorded_past_comes_as_it_was_in_whatever_order_it_is_written() {
    let text = GOOD
        .replace("event_type = \"order.created\"\n", "")
        .replace("{ every = \"1 min\" }", "{ recorded = \"past.csv\" }");
    let csv = "\u{feff}time,event_type\r\n2026-03-07T19:30:00Z,b\r\n\r\n\"2026-03-07T18:00:01Z\", \"a\"\r\n2026-03-07T18:59:59.999Z,b\r\n";
    let file = ScenarioFile::parse(&text, "test", &|_| Ok(csv.to_owned())).expect("it is good");
    let run = file.run(1, &mut |_, _| {});
    assert_eq!((run.destinations[0].accepted, run.destinations[0].ends.delivered), (3, 3));
    let arrived: Vec<(usize, u32)> = run.report.pictures[0]
        .series
        .steps
        .iter()
        .map(|step| step.arrived)
        .enumerate()
        .filter(|(_, arrived)| *arrived > 0)
        .collect();
    // Steps of 30 seconds.
    assert_eq!(arrived, [(0, 1), (119, 1), (180, 1)]);
}

#[test]
fn the_same_file_and_seed_give_the_same_report_and_another_seed_another() {
    let text = include_str!("../../../examples/scenarios/bad-day.toml").replace("12 hours", "9h 30min");
    let file = parse(&text).expect("it is good");
    let json = |seed| serde_json::to_string(&file.run(seed, &mut |_, _| {})).expect("it can be written");
    let first = json(7);
    assert_eq!(first, json(7));
    assert_ne!(first, json(8));
}

#[test]
fn the_examples_are_good_files_and_hold() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be read").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let file =
                ScenarioFile::load(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let run = file.run(1, &mut |_, _| {});
            assert!(run.report.holds(), "{}: {:#?}", path.display(), run.report.findings);
            assert_eq!(Some(file.name()), path.file_stem().and_then(|stem| stem.to_str()));
            seen += 1;
        }
    }
    assert!(seen >= 3);
}

#[test]
fn every_file_in_the_reference_is_good() {
    let reference = include_str!("../../../docs/scenario-files.md");
    let blocks: Vec<&str> =
        reference.split("```toml\n").skip(1).filter_map(|block| block.split("```").next()).collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let run = run(block);
        assert!(run.report.holds(), "{:#?}", run.report.findings);
    }
}

/// A field that does not exist makes the reader list those that do: each of them must be in the reference.
#[test]
fn every_field_is_in_the_reference() {
    let reference = include_str!("../../../docs/scenario-files.md");
    let unknown = "zzz = 1";
    let inside = |table: &str| destination(&format!("{table} = {{ {unknown} }}"));
    let arrival = |form: &str| arrivals(&format!("{{ {form}, {unknown} }}"));
    let trouble = |kind: &str| destination(&format!("trouble = [{{ from = \"1h\", {kind}, {unknown} }}]"));
    let files = [
        format!("{unknown}\n{GOOD}"),
        destination(unknown),
        format!("{GOOD}{unknown}"),
        format!("{GOOD}\n[faults]\n{unknown}"),
        format!("{GOOD}\n[faults]\nclock_steps = {{ every = \"1h\", up_to = \"1s\", {unknown} }}"),
        format!("{GOOD}\n[expect]\n{unknown}"),
        inside("retry_policy"),
        inside("circuit_breaker"),
        inside("behaviour"),
        destination(&format!("rate_limit = {{ max_per_minute = 5, {unknown} }}")),
        destination(&format!("rate_limit = {{ max = 5, per = \"day\", {unknown} }}")),
        destination(&format!(
            "delivery_schedule = {{ timezone = \"UTC\", quiet_start = \"00:00\", quiet_end = \"01:00\", {unknown} }}"
        )),
        destination(&format!("timeout = {{ mode = \"default\", {unknown} }}")),
        destination(&format!("behaviour = {{ latency = {{ ms = 5, {unknown} }} }}")),
        destination(&format!("behaviour = {{ latency = {{ median_ms = 5, {unknown} }} }}")),
        destination(&format!(
            "behaviour = {{ latency = {{ fast_ms = 5, slow_ms = 9, slow_share = 0, {unknown} }} }}"
        )),
        destination(&format!(
            "behaviour = {{ limiter = {{ max = 5, per = \"day\", says = \"nothing\", {unknown} }} }}"
        )),
        destination(&format!(
            "outages = {{ between = \"1h\", lasting = \"1h\", kind = \"hangs\", {unknown} }}"
        )),
        trouble("kind = \"errors\""),
        trouble("kind = \"unavailable\""),
        trouble("kind = \"slow\", factor = 2"),
        trouble("kind = \"degrades\", factor = 2"),
        trouble("kind = \"flaps\", up = \"1s\", down = \"1s\""),
        arrival("every = \"1s\""),
        arrival("poisson_per_minute = 1"),
        arrival("poisson = 1, per = \"hour\""),
        arrival("at = \"1h\", count = 1"),
        arrival("daily_at = \"19:00\", count = 1"),
    ];
    for file in files {
        let message = parse(&file).expect_err("there is an unknown field");
        assert_eq!(message.lines().count(), 1, "{message}\nfor\n{file}");
        let known =
            message.split("there is no such field; allowed: ").nth(1).expect("it is refused for that");
        for field in known.split(", ") {
            let named =
                [format!("`{field}`"), format!("{field} ="), format!(", {field} }}"), format!("{{ {field},")];
            assert!(named.iter().any(|form| reference.contains(form)), "`{field}` is not in the reference");
        }
    }
}

#[test]
fn each_trouble_shows_in_the_outcomes() {
    for (behaviour, outcome) in [
        ("trouble = [{ from = \"0s\", to = \"1h\", kind = \"hangs\" }]", "timeout"),
        ("trouble = [{ from = \"0s\", to = \"1h\", kind = \"refuses\" }]", "network_error"),
        ("trouble = [{ from = \"0s\", to = \"1h\", kind = \"errors\" }]", "http_error"),
        ("trouble = [{ from = \"0s\", to = \"1h\", kind = \"errors\", status = 302 }]", "redirect"),
        ("trouble = [{ from = \"0s\", to = \"1h\", kind = \"unavailable\" }]", "unavailable"),
        ("trouble = [{ from = \"0s\", to = \"1h\", kind = \"gone\" }]", "gone"),
        ("trouble = [{ from = \"0s\", kind = \"slow\", factor = 1000 }]", "timeout"),
        ("trouble = [{ from = \"0s\", kind = \"degrades\", factor = 1000 }]", "timeout"),
        ("trouble = [{ from = \"0s\", kind = \"flaps\", up = \"5 min\", down = \"5 min\" }]", "timeout"),
        ("outages = { between = \"10 min\", lasting = \"20 min\", kind = \"hangs\" }", "timeout"),
        ("behaviour = { status = 500 }", "http_error"),
        ("behaviour = { limiter = { max = 10, per = \"hour\", says = \"nothing\" } }", "rate_limited"),
        ("behaviour = { limiter = { max = 10, per = \"hour\", says = \"seconds\" } }", "rate_limited"),
        ("behaviour = { limiter = { max = 10, per = \"hour\", says = \"http_date\" } }", "rate_limited"),
        ("behaviour = { limiter = { max = 10, per = \"hour\", says = \"headers\" } }", "rate_limited"),
    ] {
        let run = run(&destination(behaviour));
        let row = &run.destinations[0];
        assert!(row.attempts.contains_key(outcome), "{behaviour}: {:?}", row.attempts);
        assert!(run.report.holds(), "{behaviour}: {:#?}", run.report.findings);
    }
}

#[test]
fn the_seed_decides_when_outages_come() {
    let text = destination(
        "behaviour = { latency = { ms = 50 } }\nretry_policy = { max_attempts = 1 }\n\
         circuit_breaker = { enabled = false }\noutages = { between = \"20 min\", lasting = \"10 min\", kind = \"refuses\" }",
    );
    let file = parse(&text).expect("it is good");
    let dead = |seed| file.run(seed, &mut |_, _| {}).destinations[0].ends.dead_letter;
    let dead: std::collections::BTreeSet<u64> = (1..6).map(dead).collect();
    assert!(dead.len() > 1, "{dead:?}");
}

#[test]
fn a_limiter_that_names_the_time_is_asked_less_often_than_one_that_says_nothing() {
    let asked = |says: &str| {
        let limited =
            format!("behaviour = {{ limiter = {{ max = 10, per = \"hour\", says = \"{says}\" }} }}");
        run(&destination(&limited)).destinations[0].attempts["rate_limited"]
    };
    assert!(asked("seconds") < asked("nothing"));
    assert_eq!(asked("seconds"), asked("http_date"));
}

#[test]
fn arrivals_come_as_often_as_they_say() {
    for (form, least, most) in [
        ("{ every = \"1 min\" }", 120, 120),
        ("{ every = \"1 min\", from = \"30 min\", to = \"1h\" }", 30, 30),
        ("{ poisson_per_minute = 100 }", 11_600, 12_400),
        ("{ poisson_per_minute = 6000, to = \"20 min\" }", 118_600, 121_400),
        ("{ poisson = 100000, per = \"day\" }", 8_000, 8_660),
        ("{ at = \"1h\", count = 500 }", 500, 500),
        ("{ at = \"1h\", count = 500, over = \"10 min\" }", 500, 500),
        ("{ daily_at = \"19:00\", count = 70 }", 70, 70),
    ] {
        let text = arrivals(form).replace("name = \"erp\"", "name = \"erp\"\nmax_concurrency = 1000");
        let accepted = run(&text).destinations[0].accepted;
        assert!((least..=most).contains(&accepted), "{form} gave {accepted}");
    }
}

#[test]
fn a_daily_job_follows_the_clocks_of_its_zone() {
    let text = arrivals("{ daily_at = \"02:30\", timezone = \"America/Chicago\", count = 5 }")
        .replace("2026-03-07T18:00:00Z", "2026-03-06T06:00:00Z")
        .replace("\"2 h\"", "\"4 days\"");
    let series = &run(&text).report.pictures[0].series;
    let at: Vec<String> = (series.steps.iter().enumerate())
        .filter(|(_, step)| step.arrived > 0)
        .map(|(index, _)| {
            let ms = series.from_ms + series.step_ms * i64::try_from(index).expect("few steps");
            tidegate_core::time::Timestamp::from_millis(ms).to_string()
        })
        .collect();
    // On the 8th the clocks skip from 02:00 to 03:00: 02:30 comes as 03:30, which is 08:30 in UTC.
    assert_eq!(
        at,
        [
            "2026-03-06T08:30:00.000Z",
            "2026-03-07T08:30:00.000Z",
            "2026-03-08T08:30:00.000Z",
            "2026-03-09T07:30:00.000Z"
        ]
    );
}

#[test]
fn waits_and_their_reasons_are_told() {
    let quiet = "delivery_schedule = { timezone = \"UTC\", quiet_start = \"18:00\", quiet_end = \"19:00\" }";
    let row = run(&destination(quiet)).destinations.remove(0);
    assert_eq!(row.longest_wait_reason, Some("quiet_hours"));
    assert!(row.longest_wait_ms.is_some_and(|wait| (3_590_000..=3_610_000).contains(&wait)));
    assert!((3_500.0..=3_600.0).contains(&row.held_seconds["quiet_hours"]), "{:?}", row.held_seconds);

    // A process that comes back finds the hold still on: it is one wait.
    let crashing = format!("{}\n[faults]\ncrash_every = \"2 min\"", destination(quiet));
    let row = run(&crashing).destinations.remove(0);
    assert_eq!(row.longest_wait_reason, Some("quiet_hours"));
    assert!(row.held_seconds["quiet_hours"] > 2_500.0, "{:?}", row.held_seconds);

    let burst = arrivals("{ at = \"0s\", count = 300 }")
        .replace("name = \"erp\"", "name = \"erp\"\nrate_limit = { max_per_minute = 10 }");
    let row = run(&burst).destinations.remove(0);
    assert_eq!((row.longest_wait_reason, row.busiest_minute), (Some("rate_limited"), 19));

    let failing = destination(
        "trouble = [{ from = \"0s\", to = \"1s\", kind = \"errors\" }]\ncircuit_breaker = { enabled = false }",
    );
    let row = run(&failing).destinations.remove(0);
    assert_eq!(row.longest_wait_reason, Some("retry_backoff"));
}

#[test]
fn the_series_shows_what_waited_in_the_steps_in_which_it_waited() {
    let burst = arrivals("{ at = \"1h\", count = 100 }").replace(
        "name = \"erp\"",
        "name = \"erp\"\nrate_limit = { max_per_minute = 60, burst_capacity = 1 }",
    );
    let report = run(&burst).report;
    let steps = &report.pictures[0].series.steps;
    let waiting: Vec<u32> = steps.iter().map(|step| step.held.iter().sum::<u32>() + step.waiting).collect();
    // Steps of 30 seconds: the burst comes with step 120 and goes out one a second.
    assert!(waiting[..120].iter().all(|waiting| *waiting == 0), "{waiting:?}");
    assert!(
        (99..=100).contains(&waiting[120]) && (68..=72).contains(&waiting[121]),
        "{:?}",
        &waiting[118..126]
    );
    assert!(waiting[124..].iter().all(|waiting| *waiting == 0), "{:?}", &waiting[118..126]);
    assert!(steps[121].sent == 30 && steps[121].in_flight <= 1 && steps[121].peak_in_flight == 1);
    assert_eq!(steps.len(), 240);
}

#[test]
fn the_series_ends_with_the_run_and_shows_nothing_of_what_comes_after() {
    // The last minute's event stays, and a retry of it waits long after the run.
    let failing = destination("trouble = [{ from = \"119 min\", kind = \"refuses\" }]");
    let late = format!(
        "{failing}\n[[traffic]]\nto = \"erp\"\nevent_type = \"late\"\narrivals = {{ at = \"2h\", count = 50 }}"
    );
    let series = &run(&late).report.pictures[0].series;
    let last = series.steps.last().expect("there are steps");
    assert_eq!((series.steps.len(), last.held.iter().sum::<u32>() + last.waiting), (240, 1));
}

#[test]
fn a_burst_is_spread_as_it_says() {
    let spread = run(&arrivals("{ at = \"1h\", count = 60, over = \"10 min\" }")).report;
    let arrived: Vec<u32> =
        spread.pictures[0].series.steps[118..142].iter().map(|step| step.arrived).collect();
    assert_eq!(arrived, [[0; 2].as_slice(), &[3; 20], &[0; 2]].concat());
}

#[test]
fn what_was_asked_for_later_is_measured_from_then() {
    let text = GOOD.replace("arrivals =", "deliver_after = \"20 min\"\narrivals =");
    let row = run(&text).destinations.remove(0);
    assert_eq!(row.ends.delivered, 120);
    assert!(row.longest_wait_ms.is_some_and(|wait| wait < 2_000), "{:?}", row.longest_wait_ms);
}

#[test]
fn an_expectation_that_is_not_met_is_a_finding_that_does_not_hold() {
    let hanging = destination("trouble = [{ from = \"0s\", kind = \"hangs\" }]");
    for (expectation, holds) in [
        ("dead_letter_at_most = 0", false),
        ("dead_letter_at_most = 120", true),
        ("delivered_share_at_least = 0.5", false),
        ("p99_at_most = \"1h\"", false),
        ("expired_at_most = 0", true),
        ("rate_limited_at_most = 0", true),
        ("drained_by = \"1h\"", false),
        ("drained_by = \"9 days\"", true),
    ] {
        let run = run(&format!("{hanging}\n[expect]\n{expectation}"));
        assert_eq!(run.report.holds(), holds, "{expectation}: {:#?}", run.report.findings);
    }
}

#[test]
fn copies_of_a_destination_each_get_the_traffic() {
    let run = run(&destination("count = 3"));
    let rows: Vec<(&str, u64)> =
        run.destinations.iter().map(|row| (row.name.as_str(), row.accepted)).collect();
    assert_eq!(rows, [("erp-1", 120), ("erp-2", 120), ("erp-3", 120)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever is in a file, it is read or refused.
    #[test]
    fn no_file_breaks_the_reader(text in ".{0,200}") {
        let _ = parse(&text);
        let _ = parse(&destination(&text));
        let _ = parse(&arrivals(&text));
        let _ = parse(&format!("{text}\n{GOOD}"));
    }

    /// A good file with any value replaced by another is read, or refused with a problem on some line.
    #[test]
    fn no_value_breaks_the_reader(place in 0_usize..200, value in prop_oneof![
        Just("-1".to_owned()), Just("0".to_owned()), Just("18446744073709551616".to_owned()), Just("nan".to_owned()),
        Just("1e308".to_owned()), Just("\"\"".to_owned()), Just("[]".to_owned()), Just("{}".to_owned()), Just("true".to_owned()),
        Just("\"9223372036854775807 ms\"".to_owned()), Just("9999-12-31T23:59:59Z".to_owned()), Just("[[[[1]]]]".to_owned()),
        Just("[\"*\", \"*\"]".to_owned()), "\"[a-z0-9 :*.]{0,12}\"",
    ]) {
        let reference = include_str!("../../../docs/scenario-files.md");
        let full = reference.split("```toml\n").nth(2).and_then(|block| block.split("```").next()).expect("it is there");
        let mut lines: Vec<String> = full.lines().map(str::to_owned).collect();
        let fields: Vec<usize> = (0..lines.len()).filter(|index| lines[*index].contains(" = ")).collect();
        let line = &mut lines[fields[place % fields.len()]];
        let name = line.split(" = ").next().expect("it has one").to_owned();
        *line = format!("{name} = {value}");
        if let Err(message) = parse(&lines.join("\n")) {
            prop_assert!(message.starts_with("line "));
        }
    }
}
