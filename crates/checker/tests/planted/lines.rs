//! Order, and states over time.

use serde_json::json;

use crate::world::{Event, MILLI, World, answered};

#[test]
fn two_of_a_line_that_change_places_are_found() {
    for to in ["fifo", "keyed"] {
        let mut world = World::new();
        let key = Some("k");
        let one = world.add(Event { key, ..Event::new(to, 20_000) });
        let two = world.add(Event { key, ..Event::new(to, 20_100) });
        world.add(Event { key: Some("other"), ..Event::new(to, 20_200) });
        world.breaks(&[]);
        let mut swapped = world.clone();
        swapped.shift(one, 1, 110);
        swapped.shift(two, 1, -5);
        swapped.breaks(&["I8"]);
    }
}

#[test]
fn keys_do_not_wait_for_each_other() {
    let mut world = World::new();
    world.add(Event { key: Some("a"), tries: vec![answered(21_000, 200)], ..Event::new("keyed", 20_000) });
    world.add(Event { key: Some("b"), ..Event::new("keyed", 20_100) });
    world.add(Event { key: None, ..Event::new("keyed", 20_200) });
    world.breaks(&[]);
}

#[test]
fn the_next_of_a_line_waits_for_a_retry() {
    let mut world = World::new();
    world.add(Event::new("fifo", 20_000).tries(&[answered(20_010, 500), answered(50_500, 200)]));
    let next = world.add(Event::new("fifo", 20_100).tries(&[answered(50_600, 200)]));
    world.breaks(&[]);
    world.shift(next, 1, -20_000);
    world.breaks(&["I8"]);
}

#[test]
fn a_line_goes_on_after_what_is_dead_and_halts_if_it_is_to() {
    for (to, red) in [("fifo", &[][..]), ("halting", &["I8"])] {
        let mut world = World::new();
        let tries = [answered(20_010, 400)];
        let dead = world.add(Event { state: "dead_letter", ..Event::new(to, 20_000).tries(&tries) });
        world.delivery(dead)["max_attempts"] = json!(1);
        world.add(Event::new(to, 20_100));
        world.breaks(red);
        world.producer.push(json!({"kind": "change", "t": 20_050 * MILLI, "answered": 20_060 * MILLI,
            "destination": format!("dst_{to}"), "action": "resume", "status": 200}));
        world.breaks(&[]);
    }
}

#[test]
fn two_of_a_line_at_a_time_are_found() {
    let mut world = World::new();
    // Sent at the same time: nobody knows which is the earlier one, but they go one by one.
    let one = world.add(Event::new("fifo", 20_000).tries(&[answered(20_010, 200)]));
    world.add(Event::new("fifo", 20_000).tries(&[answered(20_100, 200)]));
    world.breaks(&[]);
    world.end(one, 1)["t"] = json!(20_200 * MILLI);
    world.breaks(&["I8"]);
}

#[test]
fn two_of_a_line_at_a_time_are_found_however_soon_after_a_kill() {
    let mut world = World::new();
    let one = world.add(Event::new("fifo", 20_000).tries(&[answered(20_010, 200)]));
    world.add(Event::new("fifo", 20_000).tries(&[answered(20_120, 200)]));
    world.end(one, 1)["t"] = json!(20_200 * MILLI);
    // Killed, and started before the first of them: both are the new process's.
    let mut after = world.clone();
    after.crash(19_700);
    after.breaks(&["I8"]);
    // Killed between the two.
    let mut between = world.clone();
    between.crash(20_012);
    between.breaks(&[]);
    // Killed between the two, but the second came before anybody was started.
    world.crash(20_050);
    world.breaks(&["I8"]);
}

#[test]
fn a_batch_is_in_the_order_of_its_events() {
    let mut world = World::new();
    let one = world.add(Event::new("fifo", 20_000).tries(&[answered(20_010, 200)]));
    let two = world.add(Event::new("fifo", 20_000).tries(&[answered(20_020, 200)]));
    // Both in one request.
    let event = world.producer.iter().find(|line| line["kind"] == "send" && line["request"] == two).unwrap()
        ["events"][0]
        .clone();
    world.producer.retain(|line| line["request"] != two);
    world.producer[0]["events"].as_array_mut().unwrap().push(event);
    world.producer[1]["ids"].as_array_mut().unwrap().push(json!(format!("evt_{two}")));
    world.breaks(&[]);
    world.shift(one, 1, 20);
    world.breaks(&["I8"]);
}

fn poll(world: &mut World, event: u64, at: u64, status: &str, attempts: u32) {
    world.api.push(
        json!({"kind": "poll", "t": at * MILLI, "path": format!("/v1/deliveries/dlv_{event}"), "status": 200,
        "body": {"data": {"status": status, "attempts_count": attempts}}}),
    );
}

#[test]
fn what_is_final_stays_final_and_attempts_never_fall() {
    let mut world = World::new();
    let event = world.add(Event::new("plain", 20_000));
    poll(&mut world, event, 20_003, "queued", 0);
    poll(&mut world, event, 20_050, "delivered", 1);
    world.breaks(&[]);
    assert_eq!(world.judged("I12"), 2);
    let mut back = world.clone();
    poll(&mut back, event, 20_060, "queued", 1);
    back.breaks(&["I12"]);
    poll(&mut world, event, 20_040, "delivering", 2);
    world.breaks(&["I12"]);
}
