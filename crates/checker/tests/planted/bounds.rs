//! How many, how fast, when: concurrency, rate, quiet hours, expiry, retries.

use serde_json::json;

use crate::world::{Event, MILLI, Reply, START_MS, Try, World, answered};

fn open(at: u64, took: u64) -> Try {
    Try { at, took, reply: Reply::Status(200) }
}

#[test]
fn one_request_too_many_at_a_time_is_found() {
    let mut world = World::new();
    world.add(Event::new("narrow", 20_000).tries(&[open(20_010, 100)]));
    world.add(Event::new("narrow", 20_001).tries(&[open(20_020, 100)]));
    let third = world.add(Event::new("narrow", 20_002).tries(&[open(20_110, 100)]));
    world.breaks(&[]);
    // An answer is noted before it is written: nobody can have known of it a millisecond earlier.
    world.shift(third, 1, -1);
    world.breaks(&["I4"]);
}

#[test]
fn what_a_frozen_node_had_open_is_excused_and_counted() {
    let mut world = World::new();
    for at in [20_010, 20_020] {
        let event = world.add(Event::new("narrow", 20_000).tries(&[open(at, 15_000)]));
        world.attempt(event, 1)["timeout_ms"] = json!(20_000);
    }
    world.add(Event::new("narrow", 20_002).tries(&[open(33_000, 100)]));
    world.breaks(&["I4"]);
    world.fault(20_500, "pause", None);
    world.fault(36_000, "resume", None);
    world.breaks(&[]);
    let verdicts = world.verdicts();
    assert!(
        verdicts[3].notes.iter().any(|note| note.starts_with("1 begun beside")),
        "{:?}",
        verdicts[3].notes
    );
}

#[test]
fn what_a_dead_process_had_open_is_excused_and_what_the_next_one_has_is_not() {
    let mut world = World::new();
    let hangs = |at| Try { at, took: 100, reply: Reply::Hangs };
    for at in [20_010, 20_020] {
        world.add(Event::new("narrow", 20_000).tries(&[hangs(at), answered(at + 30_500, 200)]));
    }
    world.add(Event::new("narrow", 20_002).tries(&[open(20_095, 10)]));
    world.breaks(&["I4"]);
    let mut after = world.clone();
    after.crash(19_700);
    after.breaks(&["I4"]);
    for (at, kind) in [(20_030, "kill"), (20_090, "start"), (20_092, "ready")] {
        world.fault(at, kind, None);
    }
    world.breaks(&[]);
}

#[test]
fn a_lowered_limit_holds_a_second_after_its_answer() {
    let mut world = World::new();
    for at in [20_010, 20_020, 20_030] {
        world.add(Event::new("plain", 20_000).tries(&[open(at, 100)]));
    }
    world.producer.push(json!({"kind": "change", "t": 18_000 * MILLI, "answered": 19_500 * MILLI,
        "destination": "dst_plain", "patch": {"max_concurrency": 2}, "status": 200}));
    world.breaks(&[]);
    world.producer.last_mut().unwrap()["answered"] = json!(18_500 * MILLI);
    world.breaks(&["I4"]);
}

#[test]
fn a_request_before_its_token_is_found_also_across_a_restart() {
    let mut world = World::new();
    // Two at once, then one every 100 ms.
    let events: Vec<u64> = [20_000, 20_000, 20_100, 20_200, 20_300, 20_400]
        .map(|at| world.add(Event::new("limited", 19_000).tries(&[answered(at, 200)])))
        .to_vec();
    world.breaks(&[]);
    let mut early = world.clone();
    early.shift(events[5], 1, -60);
    early.breaks(&["I5"]);
    // What began in time may come late, in a bunch with the next. What began early is found though it came late.
    let mut bunched = world.clone();
    bunched.shift(events[4], 1, 4);
    bunched.breaks(&[]);
    let wall = bunched.receipt(events[5], 1)["wall_ms"].as_i64().unwrap();
    bunched.attempt(events[5], 1)["started_at"] = json!(crate::world::time(wall - 50));
    bunched.breaks(&["I5"]);
    // A restart must not fill the bucket.
    world.add(Event::new("limited", 19_000).tries(&[answered(20_460, 200)]));
    for (at, kind) in [(20_410, "kill"), (20_420, "start"), (20_430, "ready")] {
        world.fault(at, kind, None);
    }
    world.breaks(&["I5"]);
}

#[test]
fn a_change_of_a_rate_fills_no_bucket() {
    // Two at once and ten a second, and from 20.01 s on, five at once.
    let rate = json!({"rate_limit": {"max": 10, "per": "second", "burst_capacity": 5}});
    let change = json!({"kind": "change", "t": 20_010 * MILLI, "answered": 20_011 * MILLI, "destination": "dst_limited",
        "patch": rate, "status": 200});
    let world = |times: &[u64]| {
        let mut world = World::new();
        world.producer.push(change.clone());
        let event = |at: &u64| Event::new("limited", 19_000).tries(&[answered(*at, 200)]);
        for at in times {
            world.add(event(at));
        }
        world
    };
    let spent = [20_000, 20_001];
    // The bucket is empty at the change, and has two tokens 200 ms later: not five.
    world(&[&spent[..], &[20_205, 20_206]].concat()).breaks(&[]);
    world(&[&spent[..], &[20_205, 20_206, 20_207]].concat()).breaks(&["I5"]);
    // Much later it is full.
    world(&[&spent[..], &[22_000, 22_001, 22_002, 22_003, 22_004]].concat()).breaks(&[]);
    world(&[&spent[..], &[22_000, 22_001, 22_002, 22_003, 22_004, 22_005]].concat()).breaks(&["I5"]);
}

#[test]
fn a_request_in_quiet_hours_is_found_in_the_first_and_in_the_second_fold_hour() {
    // 06:10Z and 07:10Z are both 01:10 in Chicago; 08:00Z is 02:00 there.
    for (minutes, red) in [(1, true), (49, true), (61, true), (109, true), (111, false)] {
        let mut world = World::new();
        let at = minutes * 60_000;
        world.add(Event::new("quiet", at).tries(&[answered(at + 6, 200)]));
        world.breaks(if red { &["I6"] } else { &[] });
        assert_eq!(world.judged("I6"), 1);
        // What bypasses quiet hours says nothing about them.
        let mut urgent = World::new();
        urgent.add(Event { kind: "urgent", ..Event::new("quiet", at) });
        urgent.breaks(&[]);
        assert_eq!(urgent.judged("I6"), 0);
    }
}

#[test]
fn what_waits_an_hour_longer_than_quiet_hours_last_is_found() {
    // 08:00Z is 02:00 in Chicago, an hour and fifty minutes after the start.
    let over = 110 * 60_000;
    let mut world = World::new();
    world.add(Event { kind: "urgent", ..Event::new("quiet", 20_000) });
    let first = world.add(Event::new("quiet", 60_000).tries(&[answered(over + 10, 200)]));
    world.add(Event::new("quiet", 120_000).tries(&[answered(over + 3_000, 200)]));
    world.breaks(&[]);
    let mut late = world.clone();
    late.shift(first, 1, 3_600_000);
    late.breaks(&["I6"]);
    // With a retry ahead of it, or its node down, it may wait.
    let mut failed = late.clone();
    failed.end(1, 1)["status"] = json!(500);
    failed.breaks(&["I1", "I11"]);
    late.crash(over - 1_000);
    late.breaks(&[]);
}

#[test]
fn quiet_hours_go_by_the_clock_of_the_node() {
    let mut world = World::new();
    world.add(Event::new("quiet", 30_000));
    let receipt = world.receipt(1, 1);
    let stamp = receipt["timestamp"].as_i64().unwrap() + 7_200;
    receipt["timestamp"] = json!(stamp);
    receipt["signature"] = json!(crate::world::sign(crate::world::SECRET, "evt_1", stamp, "{\"number\":1}"));
    // Two hours ahead, it is past two o'clock there.
    world.fault(5_000, "clock", Some(7_200_000));
    world.breaks(&[]);
}

#[test]
fn a_request_after_expiry_is_found_and_one_that_outlives_its_event() {
    let mut world = World::new();
    let lives = |ms: i64| Some(START_MS + ms);
    let timely = world.add(Event { expires_at: lives(25_000), ..Event::new("plain", 20_000) });
    world.breaks(&[]);
    let mut late = world.clone();
    late.shift(timely, 1, 1_000);
    late.delivery(timely)["expires_at"] = json!(crate::world::time(START_MS + 20_500));
    late.breaks(&["I7"]);
    let mut long = world.clone();
    long.end(timely, 1)["t"] = json!(28_000 * MILLI);
    long.breaks(&["I7"]);
    // Killed and started before it came, nothing keeps it from being cut off.
    long.crash(19_500);
    long.breaks(&["I7"]);
    let stale = world.add(Event {
        tries: Vec::new(),
        state: "expired",
        expires_at: lives(40_000),
        ..Event::new("plain", 30_000)
    });
    // It ends when its time has come.
    world.breaks(&["I1"]);
    world.delivery(stale)["finished_at"] = json!(crate::world::time(START_MS + 40_000));
    world.breaks(&[]);
    let mut dead = world.clone();
    dead.delivery(stale)["status"] = json!("dead_letter");
    dead.breaks(&["I7"]);
    world.delivery(stale)["final_reason"] = json!(null);
    world.breaks(&["I7"]);
}

#[test]
fn retries_come_neither_early_nor_late_nor_too_often() {
    let mut world = World::new();
    let event = world.add(Event::new("flaky", 20_000).tries(&[
        answered(20_010, 500),
        answered(21_020, 500),
        answered(22_030, 200),
    ]));
    world.breaks(&[]);
    let mut early = world.clone();
    let other = early.add(Event::new("flaky", 40_000).tries(&[
        answered(40_010, 500),
        answered(44_030, 500),
        answered(45_040, 200),
    ]));
    early.breaks(&["I11"]);
    let _ = (other, event);
    let mut often = world.clone();
    often.delivery(event)["attempts_used"] = json!(9);
    often.breaks(&["I11"]);
    // By what receivers saw, whatever the API counts.
    let mut over = world.clone();
    over.delivery(event)["max_attempts"] = json!(2);
    (over.delivery(event)["attempts_used"], over.attempt(event, 1)["counted"]) = (json!(2), json!(false));
    over.breaks(&["I11"]);
    // An answer is noted before it is written: nothing excuses ten milliseconds.
    let mut hasty = world.clone();
    hasty.shift(event, 3, -995);
    hasty.breaks(&["I11"]);
    world.world["destinations"][7]["policy"]["retry_policy"]["delays_seconds"] = json!([5]);
    world.breaks(&["I11"]);
}

#[test]
fn the_log_is_what_receivers_saw() {
    let mut good = World::new();
    let event = good.add(Event::new("flaky", 20_000).tries(&[answered(20_010, 500), answered(21_020, 200)]));
    good.breaks(&[]);
    let mut unlogged = good.clone();
    let first = |line: &serde_json::Value| line["kind"] == "attempt" && line["body"]["number"] == 1;
    unlogged.api.retain(|line| !first(line));
    unlogged.breaks(&["I11"]);
    let mut untold = good.clone();
    untold.api.retain(|line| line["delivery_id"] != "dlv_1");
    untold.delivery(event)["attempts_count"] = json!(0);
    untold.delivery(event)["attempts_used"] = json!(0);
    untold.breaks(&["I11"]);
    let mut phantom = good.clone();
    let n = phantom.receipt(event, 1)["n"].clone();
    phantom.receiver.retain(|line| line["n"] != n);
    phantom.breaks(&["I11"]);
    let mut other = good.clone();
    other.attempt(event, 1)["status_code"] = json!(502);
    other.breaks(&["I11"]);
    let mut swapped = good.clone();
    swapped.receipt(event, 1)["attempt"] = json!(3);
    (swapped.receipt(event, 2)["attempt"], swapped.receipt(event, 3)["attempt"]) = (json!(1), json!(2));
    swapped.attempt(event, 1)["status_code"] = json!(200);
    swapped.attempt(event, 2)["status_code"] = json!(500);
    swapped.breaks(&["I11"]);
    // After a success there is nothing left to try.
    let mut early = good.clone();
    early.attempt(event, 1)["outcome"] = json!("success");
    early.breaks(&["I11"]);
    // It came of a publication that was never answered, and the API does not know it.
    let mut unknown = good.clone();
    let answer = unknown.producer.iter_mut().find(|line| line["kind"] == "answer").unwrap();
    (answer["status"], answer["ids"]) = (json!(null), json!([]));
    unknown.add(Event::new("plain", 30_000));
    unknown.breaks(&[]);
    unknown.api.retain(|line| line["body"]["id"] != "dlv_1" && line["delivery_id"] != "dlv_1");
    unknown.breaks(&["I11"]);
    let mut twice = good;
    twice.repeat(event, 1, 500);
    twice.breaks(&["I11"]);
}
