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
fn two_deliveries_of_one_event_to_one_destination_are_found() {
    let (mut world, event) = good();
    let mut body = world.delivery(event).clone();
    (body["id"], body["status"]) = (json!("dlv_9"), json!("cancelled"));
    (body["attempts_count"], body["attempts_used"]) = (json!(0), json!(0));
    world.api.push(json!({"kind": "delivery", "body": body}));
    world.producer.push(json!({"kind": "change", "t": 19_000 * MILLI, "answered": 19_001 * MILLI,
        "destination": "dst_plain", "action": "cancel", "status": 200}));
    world.breaks(&["I1"]);
}

#[test]
fn without_a_dump_everything_is_lost() {
    let (mut world, _) = good();
    world.api.clear();
    world.breaks(&["I1"]);
    world.world["at_rest"] = json!(false);
    world.breaks(&[]);
}

#[test]
fn a_delivery_to_where_its_event_does_not_belong_is_found() {
    let (mut world, event) = good();
    let mut body = world.delivery(event).clone();
    (body["id"], body["destination_id"], body["status"]) =
        (json!("dlv_9"), json!("dst_flaky"), json!("cancelled"));
    (body["attempts_count"], body["attempts_used"]) = (json!(0), json!(0));
    world.api.push(json!({"kind": "delivery", "body": body}));
    world.producer.push(json!({"kind": "change", "t": 19_000 * MILLI, "answered": 19_001 * MILLI,
        "destination": "dst_flaky", "action": "cancel", "status": 200}));
    world.breaks(&["I1"]);
}

#[test]
fn a_replay_and_what_was_never_answered_end_like_everything_else() {
    let (good, event) = good();
    let mut replay = good.clone();
    let mut body = replay.delivery(event).clone();
    (body["id"], body["status"], body["replay_of"]) = (json!("dlv_9"), json!("delivering"), json!("dlv_1"));
    (body["attempts_count"], body["attempts_used"]) = (json!(0), json!(0));
    replay.api.push(json!({"kind": "delivery", "body": body}));
    replay.breaks(&["I1"]);
    let mut unknown = good;
    let line = unknown.producer.iter_mut().find(|line| line["kind"] == "answer").unwrap();
    (line["status"], line["ids"]) = (json!(null), json!([]));
    unknown.breaks(&[]);
    unknown.delivery(event)["status"] = json!("queued");
    unknown.breaks(&["I1"]);
}

#[test]
fn an_end_that_nothing_leads_to_is_found() {
    let mut world = World::new();
    let tries = [answered(20_010, 500)];
    let event = world.add(Event { state: "dead_letter", ..Event::new("flaky", 20_000).tries(&tries) });
    world.breaks(&["I1"]);
    // Its attempts are used up: then it must say so.
    let mut used_up = world.clone();
    used_up.delivery(event)["max_attempts"] = json!(1);
    used_up.breaks(&[]);
    used_up.delivery(event)["final_reason"] = json!("");
    used_up.breaks(&["I1"]);
    let mut permanent = world.clone();
    permanent.world["destinations"][7]["policy"]["permanent_statuses"] = json!([500]);
    permanent.breaks(&[]);
    let mut old = world.clone();
    old.delivery(event)["finished_at"] = json!(crate::world::time(START_MS + 20_000 + 7 * 86_400_000));
    old.breaks(&[]);
    let mut aside = world.clone();
    aside.delivery(event)["final_reason"] = json!("put aside: the server died three times");
    aside.breaks(&["I1"]);
    for at in [30_000, 31_000, 32_000] {
        aside.fault(at, "kill", None);
        aside.fault(at + 100, "start", None);
        aside.fault(at + 200, "ready", None);
    }
    aside.breaks(&[]);
    // Nobody asked, or somebody did.
    world.delivery(event)["status"] = json!("cancelled");
    world.breaks(&["I1"]);
    world.producer.push(json!({"kind": "change", "t": 20_500 * MILLI, "answered": 20_501 * MILLI,
        "destination": "dst_flaky", "action": "delete", "status": 204}));
    world.breaks(&[]);
}

#[test]
fn nothing_expires_before_its_time_but_what_would_be_stale_at_its_retry() {
    let mut world = World::new();
    let tries = [answered(20_010, 500)];
    let expires_at = Some(START_MS + 20_900);
    let event =
        world.add(Event { state: "expired", expires_at, ..Event::new("flaky", 20_000).tries(&tries) });
    world.breaks(&[]);
    world.delivery(event)["expires_at"] = json!(crate::world::time(START_MS + 22_000));
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
fn a_clean_stop_explains_no_repeat_of_what_was_answered() {
    let (good, event) = good();
    let mut stopped = good.clone();
    stopped.repeat(event, 1, 2_000);
    for (at, kind) in [(20_005, "stop"), (20_600, "start"), (20_700, "ready")] {
        stopped.fault(at, kind, None);
    }
    stopped.breaks(&["I3"]);
    // Cut off at its drain limit, it was not answered.
    let mut cut = good;
    cut.repeat(event, 1, 2_000);
    for (at, kind) in [(20_005, "stop"), (20_600, "start"), (20_700, "ready")] {
        cut.fault(at, kind, None);
    }
    (cut.end(event, 1)["how"], cut.end(event, 1)["status"]) = (json!("closed"), json!(null));
    cut.breaks(&[]);
}

#[test]
fn a_kill_explains_nothing_that_the_next_process_does() {
    let (good, event) = good();
    // It came at 20.006 s. What the dead process had written may be read after the kill, but not after the next start.
    for (kill, red) in [(20_000, &[][..]), (19_900, &["I3"]), (19_300, &["I3"])] {
        let mut world = good.clone();
        world.repeat(event, 1, 150);
        world.crash(kill);
        world.breaks(red);
    }
    // The next process may be killed, too.
    let mut again = good.clone();
    again.repeat(event, 1, 500);
    again.crash(19_700);
    again.crash(20_010);
    again.breaks(&[]);
}

#[test]
fn a_kill_explains_no_repeat_before_the_next_process_is_started() {
    let (mut world, event) = good();
    world.repeat(event, 1, 50);
    world.crash(20_010);
    world.breaks(&["I3"]);
}

#[test]
fn a_failure_that_comes_twice_in_one_life_is_found_however_soon_after_a_kill_or_a_stop() {
    let mut good = World::new();
    let event = good.add(Event::new("flaky", 20_000).tries(&[answered(20_010, 500), answered(21_200, 200)]));
    good.repeat(event, 1, 100);
    good.breaks(&["I11"]);
    for (kind, at, red) in
        [("kill", 19_700, &["I11"][..]), ("stop", 19_700, &["I11"]), ("kill", 20_005, &[][..])]
    {
        let mut world = good.clone();
        for (at, kind) in [(at, kind), (at + 100, "start"), (at + 101, "ready")] {
            world.fault(at, kind, None);
        }
        world.breaks(red);
    }
}

#[test]
fn a_crash_explains_only_what_a_commit_can_have_missed() {
    let (good, event) = good();
    // Publications take 2 ms: what was answered two seconds before the kill is stored.
    for (at, red) in [(20_300, &[][..]), (22_000, &["I3"])] {
        let mut world = good.clone();
        world.repeat(event, 1, 4_000);
        for (at, kind) in [(at, "kill"), (at + 100, "start"), (at + 200, "ready")] {
            world.fault(at, kind, None);
        }
        world.breaks(red);
    }
    // Five of them tell little. Where enough tell that commits are fast, a quarter of a second is long.
    for (at, red) in [(20_250, &[][..]), (20_300, &["I3"])] {
        let mut world = good.clone();
        world.repeat(event, 1, 4_000);
        for number in 0..10 {
            world.add(Event::new("plain", 20_010 + number * 20));
        }
        world.crash(at);
        world.breaks(red);
        // A death that was only seen then came before.
        let kill = world.faults.iter_mut().find(|line| line["kind"] == "kill").unwrap();
        kill["detail"]["by"] = json!("the fault");
        world.breaks(&[]);
    }
    // With a disk so slow that a publication takes a second and a half, it need not be.
    let mut slow = good;
    slow.repeat(event, 1, 4_000);
    slow.add(Event::new("narrow", 20_100).tries(&[answered(21_700, 200)]));
    slow.producer.last_mut().unwrap()["t"] = json!(21_600 * MILLI);
    for (at, kind) in [(22_000, "kill"), (22_100, "start"), (22_200, "ready")] {
        slow.fault(at, kind, None);
    }
    slow.breaks(&[]);
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
    let mut denied = good.clone();
    again(&mut denied, event, "k", &[], 422, None);
    denied.breaks(&["I13"]);
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
fn an_answer_has_an_id_of_its_own_for_each_event() {
    let (good, _) = good();
    let answer = |world: &mut World, ids: serde_json::Value| {
        let line = world.producer.iter_mut().find(|line| line["kind"] == "answer").unwrap();
        line["ids"] = ids;
    };
    let mut more = good.clone();
    answer(&mut more, json!(["evt_1", "evt_2"]));
    more.breaks(&["I13"]);
    // Two publications without a key, and one event: what the other one was answered with before is lost to nobody.
    let mut shared = good;
    answer(&mut shared, json!(["evt_2"]));
    let n = shared.receipt(1, 1)["n"].clone();
    shared.receiver.retain(|line| line["n"] != n);
    shared.api.retain(|line| line["body"]["id"] != "dlv_1" && line["delivery_id"] != "dlv_1");
    let sha = shared.receipt(2, 1)["sha256"].clone();
    let send = shared.producer.iter_mut().find(|line| line["kind"] == "send").unwrap();
    send["events"][0]["sha256"] = sha;
    shared.breaks(&["I13"]);
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

/// Makes the events `first` and `second` two of one body, of two publications that were never answered.
fn unanswered(world: &mut World, numbers: [u64; 2], key: Option<&str>) {
    let sha = world.receipt(numbers[0], 1)["sha256"].clone();
    for number in numbers {
        for line in world.producer.iter_mut().filter(|line| line["request"] == number) {
            if line["kind"] == "send" {
                (line["key"], line["body_sha256"]) = (json!(key), sha.clone());
                line["events"][0]["sha256"] = sha.clone();
            } else {
                (line["status"], line["ids"]) = (json!(null), json!([]));
            }
        }
        world.receipt(number, 1)["sha256"] = sha.clone();
    }
}

#[test]
fn what_was_never_answered_makes_no_more_events_than_it_has() {
    let (good, _) = good();
    let mut one_key = good.clone();
    unanswered(&mut one_key, [1, 2], Some("k"));
    one_key.breaks(&["I13"]);
    let mut unkeyed = good;
    unanswered(&mut unkeyed, [1, 2], None);
    unkeyed.breaks(&[]);
    // Two events of one publication.
    unkeyed.producer.retain(|line| line["request"] != 2);
    unkeyed.breaks(&["I13"]);
}
