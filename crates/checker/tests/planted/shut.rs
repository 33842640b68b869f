//! While a destination is shut: 429, 503, 410, and the breaker.

use serde_json::json;

use crate::world::{Event, MILLI, Reply, Try, World, answered};

fn told(at: u64, status: u16, wait: &'static str) -> Try {
    Try { at, took: 3, reply: Reply::RetryAfter(status, wait) }
}

#[test]
fn a_request_before_the_throttle_ends_is_found() {
    for wait in ["20", "Sun, 01 Nov 2026 06:10:42 GMT"] {
        let mut world = World::new();
        world.add(Event::new("plain", 20_000).tries(&[told(20_010, 429, wait), answered(42_100, 200)]));
        // Already on its way when that was said.
        world.add(Event::new("plain", 20_005).tries(&[answered(20_014, 200)]));
        let later = world.add(Event::new("plain", 30_000).tries(&[answered(42_300, 200)]));
        world.breaks(&[]);
        let mut early = world.clone();
        early.shift(later, 1, -8_000);
        early.breaks(&["I9"]);
        early.producer.push(json!({"kind": "change", "t": 31_000 * MILLI, "answered": 31_002 * MILLI,
            "destination": "dst_plain", "action": "retry-now", "status": 200}));
        early.breaks(&[]);
    }
}

#[test]
fn what_begins_within_jitter_of_a_refusal_is_on_its_way_and_nothing_after() {
    let mut world = World::new();
    world.add(Event::new("narrow", 20_000).tries(&[told(20_010, 429, "20"), answered(40_100, 200)]));
    let brief = |at| Try { at, took: 1, reply: Reply::Status(200) };
    let last =
        (14..=17).map(|at| world.add(Event::new("narrow", 20_000).tries(&[brief(20_000 + at)]))).last();
    world.breaks(&[]);
    world.shift(last.unwrap(), 1, 2);
    world.breaks(&["I9"]);
}

#[test]
fn the_one_that_was_told_to_wait_was_not_on_its_way() {
    let mut world = World::new();
    world.world["jitter_ms"] = json!(250);
    let event =
        world.add(Event::new("plain", 20_000).tries(&[told(20_010, 429, "1"), answered(21_020, 200)]));
    world.breaks(&[]);
    world.shift(event, 2, -1_000);
    world.breaks(&["I9"]);
}

#[test]
fn a_second_probe_beside_the_first_is_found() {
    let mut world = World::new();
    let probe = Try { at: 40_100, took: 500, reply: Reply::Status(200) };
    world.add(Event::new("plain", 20_000).tries(&[told(20_010, 429, "20"), probe]));
    let next = world.add(Event::new("plain", 30_000).tries(&[answered(40_700, 200)]));
    world.breaks(&[]);
    world.shift(next, 1, -300);
    world.breaks(&["I9"]);
}

#[test]
fn a_second_probe_is_found_however_soon_after_a_kill() {
    let mut world = World::new();
    let probe = Try { at: 40_100, took: 500, reply: Reply::Status(200) };
    world.add(Event::new("plain", 20_000).tries(&[told(20_010, 429, "20"), probe]));
    world.add(Event::new("plain", 30_000).tries(&[answered(40_300, 200)]));
    world.breaks(&["I9"]);
    let mut after = world.clone();
    after.crash(39_900);
    after.breaks(&["I9"]);
    // The first one went with its process.
    world.crash(40_150);
    world.breaks(&[]);
}

#[test]
fn what_a_destination_says_soon_after_a_start_is_not_forgotten() {
    let mut good = World::new();
    good.crash(19_700);
    let mut throttled = good.clone();
    throttled.add(Event::new("plain", 20_000).tries(&[told(20_010, 429, "20"), answered(40_100, 200)]));
    let early = throttled.add(Event::new("plain", 30_000).tries(&[answered(40_200, 200)]));
    throttled.breaks(&[]);
    throttled.shift(early, 1, -8_000);
    throttled.breaks(&["I9"]);
    let mut gone = good;
    gone.add(Event::new("flaky", 20_000).tries(&[answered(20_010, 410), answered(21_050, 200)]));
    gone.breaks(&["I9"]);
    // Killed before that was stored.
    gone.crash(20_020);
    gone.breaks(&[]);
}

#[test]
fn a_request_while_a_destination_is_unavailable_is_found() {
    let mut world = World::new();
    world.add(Event::new("plain", 20_000).tries(&[told(20_010, 503, "40"), answered(60_500, 200)]));
    let next = world.add(Event::new("plain", 30_000).tries(&[answered(60_600, 200)]));
    world.breaks(&[]);
    world.shift(next, 1, -25_000);
    world.breaks(&["I9"]);
}

#[test]
fn a_request_while_the_breaker_is_open_is_found() {
    let mut world = World::new();
    for at in [20_000, 20_100, 20_200, 20_300, 20_400] {
        let hangs = Try { at: at + 6, took: 50, reply: Reply::Hangs };
        let first = if at == 20_100 { hangs } else { answered(at + 6, 500) };
        world.add(Event::new("broken", at).tries(&[first, answered(at + 60_000, 200)]));
    }
    world.breaks(&[]);
    let early = world.add(Event::new("broken", 30_000).tries(&[answered(61_000, 200)]));
    world.breaks(&[]);
    world.shift(early, 1, -25_000);
    world.breaks(&["I9"]);
}

#[test]
fn a_second_probe_of_an_open_breaker_is_found() {
    let mut world = World::new();
    for at in [20_000, 20_100, 20_200, 20_300, 20_400] {
        world.add(Event::new("broken", at).tries(&[answered(at + 6, 500), answered(at + 60_000, 200)]));
    }
    let probe = Try { at: 58_000, took: 500, reply: Reply::Status(200) };
    world.add(Event::new("broken", 30_000).tries(&[probe]));
    let next = world.add(Event::new("broken", 30_100).tries(&[answered(58_600, 200)]));
    world.breaks(&[]);
    world.shift(next, 1, -300);
    world.breaks(&["I9"]);
}

#[test]
fn a_success_between_failures_keeps_the_breaker_closed() {
    let mut world = World::new();
    for (at, status) in
        [(20_000, 500), (20_100, 500), (20_200, 200), (20_300, 500), (20_400, 500), (20_500, 500)]
    {
        let mut tries = vec![answered(at + 6, status)];
        if status != 200 {
            tries.push(answered(at + 60_000, 200));
        }
        world.add(Event::new("broken", at).tries(&tries));
    }
    world.add(Event::new("broken", 25_000));
    world.breaks(&[]);
}

#[test]
fn what_is_gone_is_never_sent_again_and_three_disable() {
    let mut world = World::new();
    let gone =
        |at: u64| Event { state: "dead_letter", ..Event::new("flaky", at).tries(&[answered(at + 6, 410)]) };
    world.add(gone(20_000));
    world.add(gone(20_100));
    world.add(Event::new("flaky", 20_200));
    let third = world.add(gone(20_300));
    world.add(Event::new("flaky", 22_000));
    world.breaks(&[]);
    let mut again = world.clone();
    again.repeat(third, 1, 5_000);
    let last = again.receiver.len() - 2;
    again.receiver[last]["attempt"] = json!(2);
    let mut logged =
        again.api.iter().find(|line| line["delivery_id"] == format!("dlv_{third}")).unwrap().clone();
    logged["body"]["number"] = json!(2);
    again.api.push(logged);
    again.delivery(third)["attempts_count"] = json!(2);
    again.delivery(third)["attempts_used"] = json!(2);
    again.breaks(&["I9"]);
    // Without the success between, there are three.
    let n = world.receipt(3, 1)["n"].clone();
    let end = world.receiver.iter_mut().find(|line| line["kind"] == "end" && line["n"] == n).unwrap();
    end["status"] = json!(410);
    (world.attempt(3, 1)["status_code"], world.attempt(3, 1)["outcome"]) = (json!(410), json!("gone"));
    world.delivery(3)["status"] = json!("dead_letter");
    world.breaks(&["I9"]);
}
