//! Fairness, liveness, changes, resources, health.

use serde_json::{Value, json};

use crate::world::{Event, MILLI, START_MS, World, answered, sign};

/// Thirty wait for a destination that is slow; one comes for another.
fn crowd() -> (World, u64) {
    let mut world = World::new();
    for number in 0..30 {
        let at = 20_000 + number;
        world.add(Event::new("limited", at).tries(&[answered(20_100 + number * 150, 200)]));
    }
    let quiet = world.add(Event::new("plain", 20_500));
    (world, quiet)
}

#[test]
fn a_destination_that_waits_for_anothers_crowd_is_found() {
    let (mut world, quiet) = crowd();
    world.breaks(&[]);
    assert_eq!(world.judged("I10"), 1);
    world.shift(quiet, 1, 3_000);
    world.breaks(&["I10"]);
}

#[test]
fn equal_backlogs_that_are_not_served_evenly_are_found() {
    let backlogs = |pace: u64| {
        let mut world = World::new();
        world.world["destinations"][1]["policy"]["max_concurrency"] = json!(50);
        for number in 0..70 {
            for (name, pace) in [("plain", 20), ("narrow", pace)] {
                let at = 20_100 + number * pace;
                world.add(Event::new(name, 20_000 + number).tries(&[answered(at, 200)]));
            }
        }
        world
    };
    let even = backlogs(25);
    even.breaks(&[]);
    let verdicts = even.verdicts();
    let notes = &verdicts.iter().find(|verdict| verdict.name == "I10").unwrap().notes;
    assert!(notes.iter().any(|note| note.ends_with("or more, 1 times")), "{notes:?}");
    backlogs(120).breaks(&["I10"]);
    // One that had failed, or had asked to be left alone, may be shut.
    let mut shut = backlogs(120);
    shut.add(Event::new("narrow", 10_000).tries(&[answered(10_006, 500), answered(40_500, 200)]));
    shut.breaks(&[]);
    // Those with different policies need not be served alike.
    let mut other = backlogs(120);
    other.world["destinations"][1]["policy"]["max_concurrency"] = json!(40);
    other.breaks(&[]);
}

#[test]
fn what_is_left_waiting_though_nothing_holds_it_is_found() {
    let mut world = World::new();
    let event = world.add(Event::new("plain", 20_000));
    world.shift(event, 1, 5_000);
    world.breaks(&["I15"]);
    // While something runs short it may wait, and not much longer.
    for (relief, breaks) in [(16_000, &[][..]), (14_000, &["I15"])] {
        let mut strained = world.clone();
        strained.fault(10_000, "strain", None);
        strained.fault(relief, "relief", None);
        strained.breaks(breaks);
    }
    // With its node down, it may wait.
    for (at, kind) in [(20_003, "kill"), (23_000, "start"), (24_000, "ready")] {
        world.fault(at, kind, None);
    }
    world.breaks(&[]);
}

#[test]
fn a_rate_and_a_failure_excuse_no_standstill() {
    let mut world = World::new();
    world.add(Event::new("limited", 20_000));
    let event = world.add(Event::new("limited", 25_000));
    world.breaks(&[]);
    world.shift(event, 1, 60_000);
    world.breaks(&["I15"]);
    let mut failed = World::new();
    failed.add(Event::new("plain", 20_000).tries(&[answered(20_006, 500), answered(50_500, 200)]));
    let event = failed.add(Event::new("plain", 60_000));
    failed.breaks(&[]);
    failed.shift(event, 1, 30_000);
    failed.breaks(&["I15"]);
}

#[test]
fn a_request_that_never_ends_and_a_queue_that_grows_by_itself_are_found() {
    let mut world = World::new();
    let stuck = world.add(Event::new("narrow", 20_000));
    world.add(Event::new("narrow", 300_000));
    let mut open = world.clone();
    open.end(stuck, 1)["t"] = json!(200_000 * MILLI);
    open.breaks(&["I15"]);
    // What its destination pins counts, whatever the API says was in force.
    open.end(stuck, 1)["t"] = json!(29_000 * MILLI);
    open.breaks(&[]);
    open.world["destinations"][1]["policy"]["timeout_seconds"] = json!(5);
    open.breaks(&["I15"]);
    for (at, queued) in [(310_000, 3), (320_000, 4)] {
        world.api.push(
            json!({"kind": "poll", "t": at * MILLI, "path": "/v1/destinations/dst_narrow", "status": 200,
            "body": {"queued_events": queued, "inflight": 0}}),
        );
    }
    world.breaks(&["I15"]);
    // That it is stopped in the end undoes nothing.
    world.fault(330_000, "stop", None);
    world.breaks(&["I15"]);
}

fn change(at: u64, action: &str, patch: &Value) -> Value {
    json!({"kind": "change", "t": at * MILLI, "answered": (at + 5) * MILLI, "destination": "dst_plain", "action": action,
           "patch": patch, "status": 200})
}

#[test]
fn a_request_to_a_paused_or_inactive_destination_is_found() {
    for (stop, go) in [
        (change(21_000, "pause", &json!({})), change(30_000, "resume", &json!({}))),
        (
            change(21_000, "patch", &json!({"active": false})),
            change(30_000, "patch", &json!({"active": true})),
        ),
    ] {
        let mut world = World::new();
        world.add(Event::new("plain", 20_000));
        let held = world.add(Event::new("plain", 21_500).tries(&[answered(30_050, 200)]));
        world.producer.extend([stop, go]);
        world.breaks(&[]);
        let mut moment = world.clone();
        moment.shift(held, 1, -8_500);
        moment.breaks(&[]);
        world.shift(held, 1, -5_000);
        world.breaks(&["I14"]);
    }
}

#[test]
fn a_request_to_the_url_of_before_is_found() {
    let mut world = World::new();
    let event = world.add(Event::new("plain", 30_000));
    world.world["destinations"][0]["policy"]["url"] = json!("http://127.0.0.1:1/old");
    world.receipt(event, 1)["path"] = json!("/old");
    world.breaks(&[]);
    world.producer.push(change(29_500, "patch", &json!({"url": "http://127.0.0.1:1/new?a=1"})));
    world.breaks(&[]);
    world.producer.last_mut().unwrap()["answered"] = json!(28_000 * MILLI);
    world.producer.last_mut().unwrap()["t"] = json!(27_000 * MILLI);
    world.breaks(&["I14"]);
    world.receipt(event, 1)["path"] = json!("/new?a=1");
    world.breaks(&[]);
    // It came three milliseconds after the question, and began after it.
    world.producer.last_mut().unwrap()["t"] = json!(30_003 * MILLI);
    world.producer.last_mut().unwrap()["answered"] = json!(30_020 * MILLI);
    world.breaks(&[]);
    world.producer.last_mut().unwrap()["t"] = json!(30_007 * MILLI);
    world.breaks(&["I14"]);
}

#[test]
fn after_a_rotation_both_secrets_sign_and_then_only_the_new_one() {
    const NEW: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
    let mut world = World::new();
    let event = world.add(Event::new("plain", 30_000));
    let stamp = (START_MS + 30_006) / 1_000;
    let (old, new) =
        [crate::world::SECRET, NEW].map(|secret| sign(secret, "evt_1", stamp, "{\"number\":1}")).into();
    world.producer.push(change(21_000, "rotate", &json!({"signing_secret": NEW, "overlap_seconds": 60})));
    world.breaks(&["I14"]);
    world.receipt(event, 1)["signature"] = json!(format!("{new} {old}"));
    world.breaks(&[]);
    world.producer.last_mut().unwrap()["patch"]["overlap_seconds"] = json!(0);
    world.receipt(event, 1)["signature"] = json!(new);
    world.breaks(&[]);
    world.receipt(event, 1)["signature"] = json!(old);
    world.breaks(&["I2", "I14"]);
}

#[test]
fn without_an_overlap_either_secret_signs_for_a_second_and_then_only_the_new_one() {
    const SECOND: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX";
    const THIRD: &str = "whsec_GBkaGxwdHh8gISIjJCUmJygpKissLS4v";
    let mut world = World::new();
    let event = world.add(Event::new("plain", 30_000));
    let stamp = (START_MS + 30_006) / 1_000;
    let signed = |secret| json!(sign(secret, "evt_1", stamp, "{\"number\":1}"));
    let rotate =
        |at, secret: &str| change(at, "rotate", &json!({"signing_secret": secret, "overlap_seconds": 0}));
    world.producer.extend([rotate(21_000, SECOND), rotate(29_500, THIRD)]);
    for (secret, breaks) in [(THIRD, &[][..]), (SECOND, &[]), (crate::world::SECRET, &["I2", "I14"])] {
        world.receipt(event, 1)["signature"] = signed(secret);
        world.breaks(breaks);
    }
    *world.producer.last_mut().unwrap() = rotate(28_000, THIRD);
    world.receipt(event, 1)["signature"] = signed(THIRD);
    world.breaks(&[]);
    world.receipt(event, 1)["signature"] = signed(SECOND);
    world.breaks(&["I2", "I14"]);
}

fn sample(at: u64, rss_bytes: u64, fds: u64) -> Value {
    json!({"t": at * MILLI, "node": "a", "rss_bytes": rss_bytes, "fds": fds})
}

#[test]
fn a_leak_and_a_peak_are_found() {
    let mut world = World::new();
    world.add(Event::new("plain", 20_000));
    world.resources =
        (0..100).map(|index| sample(30_000 + index * 10_000, 90 << 20, 40 + index % 7)).collect();
    world.breaks(&[]);
    let mut peak = world.clone();
    peak.resources.push(sample(5_000_000, 700 << 20, 40));
    peak.breaks(&["I16"]);
    let mut descriptors = world.clone();
    descriptors.resources.push(sample(5_000_000, 90 << 20, 9_000));
    descriptors.breaks(&["I16"]);
    let mut leak = world.clone();
    leak.resources =
        (0..100).map(|index| sample(30_000 + index * 10_000, (90 + 3 * index) << 20, 40)).collect();
    leak.breaks(&["I16"]);
    world.resources =
        (0..100).map(|index| sample(30_000 + index * 10_000, 90 << 20, 40 + index * 4)).collect();
    world.breaks(&["I16"]);
}

#[test]
fn a_verdict_on_resources_says_whether_growth_was_judged() {
    let said = |samples: u64, kills: &[u64]| {
        let mut world = World::new();
        world.add(Event::new("plain", 20_000));
        world.resources =
            (0..samples).map(|index| sample(30_000 + index * 10_000, (90 + index) << 20, 40)).collect();
        kills.iter().for_each(|at| world.crash(*at));
        let verdicts = world.verdicts();
        let verdict = verdicts.iter().find(|verdict| verdict.name == "I16").unwrap();
        (verdict.holds(), verdict.notes.last().cloned().unwrap_or_default())
    };
    let not_judged = "growth not judged: no life of 10 minutes";
    let judged = |lives: &str| format!("growth judged in {lives} lives, those of 10 minutes at least");
    // 61 samples are ten minutes. A MiB more each time is a leak after twenty, in one life.
    assert_eq!(said(60, &[]), (true, not_judged.to_owned()));
    assert_eq!(said(61, &[]), (true, judged("1 of 1")));
    assert_eq!(said(120, &[]), (false, judged("1 of 1")));
    assert_eq!(said(120, &[305_000]), (true, judged("1 of 2")));
    assert_eq!(said(120, &[305_000, 705_000]), (true, not_judged.to_owned()));
    assert_eq!(said(0, &[]), (true, String::new()));
}

/// Publications every 200 ms, which are refused from the 10th on; `ready` as it was told at 22.5 s.
fn refusing(ready: u16, until: u64) -> World {
    let mut world = World::new();
    for number in 0..30 {
        let event = world.add(Event::new("plain", 20_000 + number * 200));
        if number >= 10 && number < until {
            let n = world.receipt(event, 1)["n"].clone();
            world.receiver.retain(|line| line["n"] != n);
            let id = format!("dlv_{event}");
            world.api.retain(|line| line["body"]["id"] != *id && line["delivery_id"] != *id);
            let answer = world.producer.last_mut().unwrap();
            (answer["status"], answer["ids"]) = (json!(503), json!([]));
        }
    }
    world.api.push(json!({"kind": "poll", "t": 22_550 * MILLI, "path": "/readyz", "status": ready}));
    world
}

#[test]
fn ready_while_everything_is_refused_is_found() {
    refusing(503, 30).breaks(&[]);
    refusing(200, 30).breaks(&["I18"]);
    refusing(200, 10).breaks(&[]);
}

#[test]
fn ready_while_nothing_is_answered_is_found() {
    let mut world = refusing(200, 30);
    for line in world.producer.iter_mut().filter(|line| line["status"] == 503) {
        line["status"] = json!(null);
    }
    world.breaks(&["I18"]);
    // They hang for twelve seconds each.
    for line in world.producer.iter_mut().filter(|line| line["kind"] == "answer" && line["status"].is_null())
    {
        line["t"] = json!(line["t"].as_u64().unwrap() + 12_000 * MILLI);
    }
    world.breaks(&["I18"]);
}
