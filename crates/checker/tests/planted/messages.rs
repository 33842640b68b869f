//! What is sent: nothing lost, nothing made up, nothing twice, one event for one key.

use serde_json::json;

use crate::world::{Event, MILLI, START_MS, Try, World, answered, sign};

fn good() -> (World, u64) {
    let mut world = World::new();
    let first = world.add(Event::new("plain", 20_000));
    for at in 1..5 {
        world.add(Event::new("plain", 20_000 + at * 100));
    }
    (world, first)
}

#[test]
fn a_good_run_breaks_nothing_and_every_request_is_judged() {
    let (world, _) = good();
    world.breaks(&[]);
    for name in ["I1", "I2", "I3", "I4", "I11", "I13", "I15"] {
        assert!(world.judged(name) >= 5, "{name}");
    }
}

#[test]
fn an_event_that_never_came_is_lost() {
    let (mut world, event) = good();
    let n = world.receipt(event, 1)["n"].clone();
    world.receiver.retain(|line| line["n"] != n);
    world.attempt(event, 1)["status_code"] = json!(null);
    world.breaks(&["I1"]);
}

#[test]
fn an_accepted_event_without_a_delivery_is_lost() {
    let (mut world, event) = good();
    world.api.retain(|line| line["body"]["id"] != format!("dlv_{event}"));
    world.breaks(&["I1"]);
}

#[test]
fn a_delivery_that_is_left_open_is_lost() {
    let (mut world, event) = good();
    world.delivery(event)["status"] = json!("queued");
    world.breaks(&["I1"]);
}

#[test]
fn an_answered_delivery_that_ends_as_dead_is_lost() {
    let (mut world, event) = good();
    world.delivery(event)["status"] = json!("dead_letter");
    world.breaks(&["I1"]);
}

#[test]
fn half_a_batch_that_was_never_answered_is_a_loss() {
    let (mut world, event) = good();
    let (whole, half) = (world.clone(), event);
    let mut batch = whole;
    let line =
        batch.producer.iter_mut().find(|line| line["kind"] == "send" && line["request"] == half).unwrap();
    let other = json!({"event_type": "plain.a", "sha256": "ab".repeat(32)});
    line["events"].as_array_mut().unwrap().push(other);
    let answer =
        batch.producer.iter_mut().find(|line| line["kind"] == "answer" && line["request"] == half).unwrap();
    (answer["status"], answer["ids"]) = (json!(null), json!([]));
    batch.breaks(&["I1"]);
    // Alone and unanswered, it may have been accepted.
    let answer =
        world.producer.iter_mut().find(|line| line["kind"] == "answer" && line["request"] == half).unwrap();
    (answer["status"], answer["ids"]) = (json!(null), json!([]));
    world.breaks(&[]);
}

#[test]
fn what_nobody_published_is_a_phantom() {
    let (mut world, event) = good();
    world.repeat(event, 1, 50);
    let last = world.receiver.len() - 2;
    let (id, body) = ("evt_none", "{\"number\":1}");
    let stamp = world.receiver[last]["timestamp"].as_i64().unwrap();
    world.receiver[last]["event_id"] = json!(id);
    world.receiver[last]["delivery_id"] = json!("dlv_none");
    world.receiver[last]["signature"] = json!(sign(crate::world::SECRET, id, stamp, body));
    world.breaks(&["I2"]);
}

#[test]
fn changed_bytes_and_types_and_places_are_found() {
    let (good, event) = good();
    let mut bytes = good.clone();
    bytes.receipt(event, 1)["sha256"] = json!("00".repeat(32));
    bytes.breaks(&["I2"]);
    let mut kind = good.clone();
    kind.receipt(event, 1)["event_type"] = json!("plain.other");
    kind.breaks(&["I2"]);
    let mut place = good;
    place.receipt(event, 1)["receiver"] = json!("narrow");
    place.breaks(&["I2"]);
}

#[test]
fn a_wrong_signature_is_found_and_so_is_none() {
    let (good, event) = good();
    for wrong in ["v1,", "", "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="] {
        let mut world = good.clone();
        world.receipt(event, 1)["signature"] = json!(wrong);
        world.breaks(&["I2"]);
    }
}

#[test]
fn a_stamp_of_another_time_is_found() {
    let (mut world, event) = good();
    let (id, body, stamp) = (format!("evt_{event}"), format!("{{\"number\":{event}}}"), START_MS / 1_000);
    let receipt = world.receipt(event, 1);
    receipt["timestamp"] = json!(stamp);
    receipt["signature"] = json!(sign(crate::world::SECRET, &id, stamp, &body));
    world.breaks(&["I2"]);
}

#[test]
fn a_duplicate_without_a_reason_is_found_and_one_with_a_crash_is_explained() {
    let (good, event) = good();
    let mut unexplained = good.clone();
    unexplained.repeat(event, 1, 1_000);
    unexplained.breaks(&["I3"]);
    // It was answered at 20.009 s; the kill comes before the result can be stored.
    let mut killed = good.clone();
    killed.repeat(event, 1, 1_000);
    for (at, kind) in [(20_010, "kill"), (20_500, "start"), (20_700, "ready")] {
        killed.fault(at, kind, None);
    }
    killed.breaks(&[]);
    // Ten seconds and twenty acknowledgements later, it must have been stored.
    let mut stored = good;
    stored.repeat(event, 1, 12_000);
    for at in 0..25 {
        stored.add(Event::new("plain", 21_000 + at * 100));
    }
    for (at, kind) in [(31_000, "kill"), (31_500, "start"), (31_700, "ready")] {
        stored.fault(at, kind, None);
    }
    stored.breaks(&["I3"]);
}

#[test]
fn a_success_that_is_in_the_log_explains_no_repeat_whatever_was_killed() {
    let (mut world, event) = good();
    world.repeat(event, 1, 3_000);
    let last = world.receiver.len() - 2;
    world.receiver[last]["attempt"] = json!(2);
    for (at, kind) in [(20_010, "kill"), (20_500, "start"), (20_700, "ready")] {
        world.fault(at, kind, None);
    }
    // Nor is the second one in the log: that, at least, the kill does not explain either.
    world.breaks(&["I3", "I11"]);
}

#[test]
fn a_replay_and_an_answer_that_came_too_late_are_explained() {
    let (good, event) = good();
    let mut late = good.clone();
    let slow = late.add(Event::new("plain", 30_000).tries(&[
        Try { at: 30_006, took: 10_001, reply: crate::world::Reply::Status(200) },
        answered(70_100, 200),
    ]));
    late.attempt(slow, 1)["outcome"] = json!("timeout");
    late.attempt(slow, 1)["status_code"] = json!(null);
    late.breaks(&[]);
    let mut replayed = good;
    replayed.repeat(event, 1, 5_000);
    let last = replayed.receiver.len() - 2;
    replayed.receiver[last]["delivery_id"] = json!("dlv_replay");
    let mut body = replayed.delivery(event).clone();
    (body["id"], body["replay_of"]) = (json!("dlv_replay"), json!(format!("dlv_{event}")));
    replayed.api.push(json!({"kind": "delivery", "body": body}));
    let mut attempt = replayed.api.iter().find(|line| line["kind"] == "attempt").unwrap().clone();
    attempt["delivery_id"] = json!("dlv_replay");
    replayed.api.push(attempt);
    replayed.breaks(&[]);
}

/// Publishes the first event once more, with another body if asked.
fn again(world: &mut World, event: u64, key: &str, ids: &[&str], status: u16, body: Option<&str>) {
    let find = |world: &World, kind: &str| {
        world.producer.iter().position(|line| line["kind"] == kind && line["request"] == event).unwrap()
    };
    let index = find(world, "send");
    world.producer[index]["key"] = json!(key);
    let (mut send, mut answer) =
        (world.producer[index].clone(), world.producer[find(world, "answer")].clone());
    (send["t"], send["request"]) = (json!(29_000 * MILLI), json!(900));
    if let Some(body) = body {
        send["body_sha256"] = json!(body);
        send["events"][0]["sha256"] = json!(body);
    }
    (answer["t"], answer["request"]) = (json!(29_002 * MILLI), json!(900));
    (answer["status"], answer["ids"]) = (json!(status), json!(ids));
    world.producer.extend([send, answer]);
}

#[test]
fn one_key_has_one_answer() {
    let (good, event) = good();
    let other = "77".repeat(32);
    let same = format!("evt_{event}");
    let mut repeated = good.clone();
    again(&mut repeated, event, "k", &[&same], 202, None);
    repeated.breaks(&[]);
    let mut refused = good.clone();
    again(&mut refused, event, "k", &[], 422, Some(&other));
    refused.breaks(&[]);
    let mut ignored = good.clone();
    again(&mut ignored, event, "k", &[], 409, Some(&other));
    ignored.breaks(&["I13"]);
    let mut shared = good.clone();
    again(&mut shared, event, "k", &[&same], 202, Some(&other));
    shared.breaks(&["I13"]);
    let mut twice = good;
    twice.add(Event::new("plain", 29_000));
    again(&mut twice, event, "k", &["evt_6"], 202, None);
    twice.producer.retain(|line| line["request"] != 6);
    let sha = twice.receipt(event, 1)["sha256"].clone();
    twice.receipt(6, 1)["sha256"] = sha;
    twice.breaks(&["I13"]);
}

#[test]
fn a_repeated_publication_that_made_a_second_event_is_found() {
    let (mut world, event) = good();
    world.add(Event::new("plain", 29_000));
    // Number 6 is what came of the first try, which was never answered; the second try, under the same key, is the event.
    let sha = world.receipt(event, 1)["sha256"].clone();
    let index =
        world.producer.iter().position(|line| line["kind"] == "send" && line["request"] == event).unwrap();
    world.producer[index]["key"] = json!("k");
    let first =
        world.producer.iter_mut().find(|line| line["kind"] == "send" && line["request"] == 6).unwrap();
    (first["key"], first["body_sha256"], first["events"][0]["sha256"]) =
        (json!("k"), sha.clone(), sha.clone());
    let answer =
        world.producer.iter_mut().find(|line| line["kind"] == "answer" && line["request"] == 6).unwrap();
    (answer["status"], answer["ids"]) = (json!(null), json!([]));
    world.receipt(6, 1)["sha256"] = sha;
    world.breaks(&["I13"]);
}
