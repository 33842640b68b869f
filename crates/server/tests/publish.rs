//! Publishing: what is accepted is committed, routed, and sent byte for byte.

mod kit;

use bytes::Bytes;
use http::Method;
use kit::{Answer, Receiver, Reply, Server, millis, secs, until};
use serde_json::{Value, json};
use tidegate_core::time::{Millis, Timestamp};

/// Publishes a body as it stands.
async fn publish_raw(server: &Server, body: &str) -> Answer {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let path = "/v1/outbound-events";
    server.try_send(Method::POST, path, Some("application/json"), body).await.expect("an answer")
}

async fn destination(server: &Server, url: &str, more: Value) -> String {
    let mut body = json!({"name": "receiver", "url": url});
    for (field, value) in more.as_object().expect("more fields") {
        body[field] = value.clone();
    }
    let made = server.post("/v1/destinations", body).await.expect(201);
    made["id"].as_str().expect("an id").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn payloads_arrive_as_the_bytes_that_were_published() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    destination(&server, &receiver.url, json!({})).await;
    let table = [
        (r#"{"b": 1,  "a":2, "b":3}"#, r#"{"b": 1,  "a":2, "b":3}"#),
        ("123456789012345678901234567890.10", "123456789012345678901234567890.10"),
        (r#"{"nul":"\u0000","half":"\ud800"}"#, r#"{"nul":"\u0000","half":"\ud800"}"#),
        ("[1e400, 1E+2]", "[1e400, 1E+2]"),
        (r#""a;b\n\u00fc""#, "a;b\nü"),
        ("null", "null"),
    ];
    for (index, (payload, _)) in table.iter().enumerate() {
        let body = format!(r#"{{"event_type":"t.{index}","payload":{payload}}}"#);
        let data = publish_raw(&server, &body).await.expect(202);
        assert_eq!((data["status"].as_str(), data["routed"].as_u64()), (Some("queued"), Some(1)), "{data}");
        assert_eq!(data["duplicate"], false);
    }
    until(secs(20), "all arrive", async || receiver.count() == table.len()).await;
    for received in receiver.received() {
        let event_type = received.header("tidegate-event-type").expect("the type is sent").to_owned();
        let index: usize = event_type.trim_start_matches("t.").parse().unwrap();
        assert_eq!(&received.body[..], table[index].1.as_bytes());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_goes_to_those_it_matches_or_names() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let orders = destination(&server, &receiver.url, json!({"event_types": ["order.*"]})).await;
    let named = destination(&server, &receiver.url, json!({"event_types": [], "external_id": "mine"})).await;
    for (body, routed) in [
        (json!({"event_type": "order.created", "payload": 1}), 1),
        (json!({"event_type": "user.created", "payload": 1}), 0),
        (json!({"event_type": "user.created", "payload": 1, "destination_ids": [named, "mine"]}), 1),
        (json!({"event_type": "user.created", "payload": 1, "destination_ids": [orders, "mine"]}), 2),
    ] {
        let data = server.post("/v1/outbound-events", body.clone()).await.expect(202);
        assert_eq!(data["routed"], routed, "{body}");
    }
    server.delete(&format!("/v1/destinations/{orders}")).await.expect(204);
    let data = server
        .post("/v1/outbound-events", json!({"event_type": "order.created", "payload": 1}))
        .await
        .expect(202);
    assert_eq!(data["routed"], 0, "a deleted destination gets nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_and_body_give_the_first_answer_again() {
    let mut server = Server::start(&[]).await;
    let keyed = server.with_header("idempotency-key", "k-1");
    let body = json!({"event_type": "a.b", "payload": {"n": 1}});
    let first = keyed.post("/v1/outbound-events", body.clone()).await.expect(202);
    let again = keyed.post("/v1/outbound-events", body.clone()).await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.expect(202), first);
    let other = keyed.post("/v1/outbound-events", json!({"event_type": "a.b", "payload": 2})).await;
    assert_eq!(other.expect_error(422, "idempotency_key_reused")["field"], "Idempotency-Key");
    let batch = keyed.post("/v1/outbound-events/batch", json!({"events": [body.clone()]})).await;
    assert_eq!(batch.expect(202)["accepted"], 1, "another endpoint is another scope");
    server.kill9();
    server.restart().await;
    let keyed = server.with_header("idempotency-key", "k-1");
    assert_eq!(keyed.post("/v1/outbound-events", body).await.expect(202), first, "after a crash, too");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_calls_with_one_key_at_a_time_one_is_accepted() {
    let server = Server::start(&[]).await;
    let keyed = server.with_header("idempotency-key", "race");
    let calls = (0..40).map(|_| {
        let keyed = keyed.clone();
        tokio::spawn(async move {
            let body = json!({"event_type": "a.b", "payload": {"n": 1}});
            keyed.post("/v1/outbound-events", body).await.expect(202)["id"].as_str().unwrap().to_owned()
        })
    });
    let mut ids = std::collections::BTreeSet::new();
    for call in calls.collect::<Vec<_>>() {
        ids.insert(call.await.unwrap());
    }
    assert_eq!(ids.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_external_id_names_one_event() {
    let server = Server::start(&[]).await;
    let publish = async |payload: Value| {
        let body = json!({"event_type": "a.b", "payload": payload, "external_event_id": "x-1"});
        server.post("/v1/outbound-events", body).await
    };
    let first = publish(json!(1)).await.expect(202);
    let again = publish(json!(1)).await.expect(202);
    assert_eq!((&again["id"], &again["duplicate"]), (&first["id"], &json!(true)));
    let other = publish(json!(2)).await.expect_error(409, "external_event_id_taken");
    assert_eq!(other["field"], "external_event_id");
    let batch = json!({"events": [
        {"event_type": "c.d", "payload": 1},
        {"event_type": "a.b", "payload": 3, "external_event_id": "x-1"},
    ]});
    let refused =
        server.post("/v1/outbound-events/batch", batch).await.expect_error(409, "external_event_id_taken");
    assert_eq!((&refused["index"], &refused["field"]), (&json!(1), &json!("events[1].external_event_id")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_accepted_whole_or_not_at_all() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    destination(&server, &receiver.url, json!({})).await;
    let bad = json!({"events": [{"event_type": "a.b", "payload": 1}, {"event_type": "a b", "payload": 1}]});
    let refused = server.post("/v1/outbound-events/batch", bad).await.expect_error(422, "invalid_field");
    assert_eq!((&refused["index"], &refused["field"]), (&json!(1), &json!("events[1].event_type")));
    let missing = json!({"events": [{"event_type": "a.b"}]});
    let refused = server.post("/v1/outbound-events/batch", missing).await.expect_error(422, "invalid_field");
    assert_eq!(refused["field"], "events[0].payload");

    let path = "/v1/outbound-events/batch";
    let lines = "{\"event_type\":\"l.1\",\"payload\":1}\n{broken\n";
    let sent = server.try_send(Method::POST, path, Some("application/x-ndjson"), Bytes::from(lines)).await;
    let refused = sent.unwrap().expect_error(400, "invalid_json");
    assert_eq!((&refused["index"], &refused["field"]), (&json!(1), &json!("events[1]")));

    let lines =
        "{\"event_type\":\"l.1\",\"payload\": [1 ,2]}\n\n{\"event_type\":\"l.2\",\"payload\":\"x\"}\n";
    let sent =
        server.try_send(Method::POST, path, Some("application/x-ndjson"), Bytes::from(lines)).await.unwrap();
    let data = sent.expect(202);
    assert_eq!((data["accepted"].as_u64(), data["items"].as_array().unwrap().len()), (Some(2), 2));
    until(secs(20), "both arrive", async || receiver.count() >= 2).await;
    let mut bodies: Vec<Vec<u8>> =
        receiver.received().iter().map(|received| received.body.to_vec()).collect();
    bodies.sort();
    assert_eq!(bodies, [b"[1 ,2]".to_vec(), b"x".to_vec()], "and nothing of the refused batches");

    let many: Vec<Value> = (0..1_001).map(|n| json!({"event_type": "a.b", "payload": n})).collect();
    server.post(path, json!({"events": many})).await.expect_error(422, "invalid_field");
    server.post(path, json!({"events": []})).await.expect_error(422, "invalid_field");
    server.post(path, json!({"events": many[..1_000]})).await.expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_cannot_be_sent_in_time_is_accepted_with_a_warning() {
    let server = Server::start(&[]).await;
    let id = destination(&server, "http://127.0.0.1:9/", json!({})).await;
    let past = json!({"event_type": "a.b", "payload": 1, "expires_at": "2020-01-01T00:00:00Z"});
    let data = server.post("/v1/outbound-events", past).await.expect(202);
    assert_eq!(data["status"], "expired");
    assert!(data["warnings"][0].as_str().unwrap().contains("already expired"), "{data}");
    let all_day =
        json!({"delivery_schedules": [{"timezone": "UTC", "quiet_start": "00:00", "quiet_end": "23:59:59"}]});
    let patched = server.patch(&format!("/v1/destinations/{id}"), all_day).await;
    assert_eq!(patched.status, 200, "{}", patched.text());
    let short = json!({"event_type": "a.b", "payload": 1, "ttl_seconds": 1});
    let data = server.post("/v1/outbound-events", short).await.expect(202);
    let warned =
        data["warnings"].as_array().unwrap().iter().any(|warning| warning.as_str().unwrap().contains(&id));
    assert!(warned, "{data}");
}

#[tokio::test(flavor = "multi_thread")]
async fn above_its_quota_an_account_is_answered_429() {
    let server = Server::start(&[]).await;
    let id = destination(&server, "http://127.0.0.1:9/", json!({})).await;
    server.post(&format!("/v1/destinations/{id}/pause"), json!({})).await.expect(200);
    server.patch("/v1/settings", json!({"max_queued_events": 3})).await.expect(200);
    let event = json!({"event_type": "a.b", "payload": 1});
    for _ in 0..3 {
        server.post("/v1/outbound-events", event.clone()).await.expect(202);
    }
    let mut named = json!({"event_type": "a.b", "payload": 1, "external_event_id": "again"});
    let refused = server.post("/v1/outbound-events", named.clone()).await;
    refused.expect_error(429, "quota_exceeded");
    server.patch("/v1/settings", json!({"max_queued_events": 4})).await.expect(200);
    let first = server.post("/v1/outbound-events", named.clone()).await.expect(202);
    let again = server.post("/v1/outbound-events", named.clone()).await.expect(202);
    assert_eq!((&again["id"], &again["duplicate"]), (&first["id"], &json!(true)), "it needs no room");
    named["payload"] = json!(2);
    server.post("/v1/outbound-events", named).await.expect_error(409, "external_event_id_taken");
    let refused = server.post("/v1/outbound-events", event.clone()).await;
    assert!(refused.header("retry-after").is_some());
    refused.expect_error(429, "quota_exceeded");
    server.patch("/v1/settings", json!({"max_queued_events": null})).await.expect(200);
    server.post("/v1/outbound-events", event).await.expect(202);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_is_over_when_it_comes_in_is_counted_as_expired() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    destination(&server, &receiver.url, json!({})).await;
    let stale = json!({"event_type": "a.b", "payload": 1, "expires_at": "2020-01-01T00:00:00Z", "external_event_id": "x"});
    server.post("/v1/outbound-events", stale.clone()).await.expect(202);
    assert_eq!(server.post("/v1/outbound-events", stale).await.expect(202)["duplicate"], true);
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("tidegate_deliveries_final_total{status=\"expired\"} 1\n"), "{metrics}");
    assert_eq!(receiver.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflict_within_a_batch_names_the_other_event_of_the_batch() {
    let server = Server::start(&[]).await;
    let event = |id: &str, n: u32| json!({"event_type": "a.b", "payload": n, "external_event_id": id});
    let batch = json!({"events": [event("o", 0), event("x", 1), event("x", 2)]});
    let refused = server.post("/v1/outbound-events/batch", batch).await;
    let refused = refused.expect_error(409, "external_event_id_taken");
    assert_eq!((&refused["index"], &refused["field"]), (&json!(2), &json!("events[2].external_event_id")));
    let sentence = refused["error"].as_str().unwrap();
    assert!(sentence.contains("events[1]") && !sentence.contains("evt_"), "{sentence}");
    let first = server.post("/v1/outbound-events", event("x", 1)).await.expect(202);
    let refused = server.post("/v1/outbound-events/batch", json!({"events": [event("x", 2)]})).await;
    let refused = refused.expect_error(409, "external_event_id_taken");
    assert!(refused["error"].as_str().unwrap().contains(first["id"].as_str().unwrap()), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warning_names_what_makes_an_event_late() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let plain = destination(&server, &receiver.url, json!({})).await;
    let now = server.get(&format!("/v1/destinations/{plain}")).await.expect(200);
    let now = Timestamp::parse(now["created_at"].as_str().unwrap()).unwrap();
    let clock = |minutes: i64| {
        let minute = (now.as_millis() / 60_000 + minutes).rem_euclid(24 * 60);
        format!("{:02}:{:02}", minute / 60, minute % 60)
    };
    let night = json!({"timezone": "UTC", "quiet_start": clock(120), "quiet_end": clock(240)});
    let asleep = destination(&server, &receiver.url, json!({"delivery_schedule": night})).await;
    let after = |ms: i64| (now + Millis::new(ms)).to_string();
    let publish = async |destination: &str, deliver_at: i64, expires_at: i64| {
        let event = json!({"event_type": "a.b", "payload": 1, "destination_ids": [destination],
                           "deliver_at": after(deliver_at), "expires_at": after(expires_at)});
        server.post("/v1/outbound-events", event).await.expect(202)
    };
    let hasty = publish(&plain, 3_600_000, 3_600_200).await;
    let warning = hasty["warnings"][0].as_str().expect("it cannot be sent in 200 ms");
    assert!(warning.contains("too little time"), "{warning}");
    assert_eq!(hasty["status"], "expired");
    assert_eq!(publish(&plain, 3_600_000, 3_600_300).await["warnings"], json!([]));
    let late = publish(&asleep, 3 * 3_600_000, 3 * 3_600_000 + 1_800_000).await;
    let warning = late["warnings"][0].as_str().expect("its destination sleeps then");
    assert!(warning.contains("quiet hours"), "{warning}");
    assert_eq!(late["status"], "queued");
}

/// Goal: who asks again after a lost answer gets it, whatever has changed since.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_answered_as_the_first_time_where_the_request_would_be_refused_now() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let gone = destination(&server, &receiver.url, json!({})).await;
    let keyed = server.with_header("idempotency-key", "lost");
    let body = json!({"event_type": "a.b", "payload": 1, "destination_ids": [gone]});
    let first = keyed.post("/v1/outbound-events", body.clone()).await.expect(202);
    let mut named = body.clone();
    named["external_event_id"] = json!("x");
    let known = server.post("/v1/outbound-events", named.clone()).await.expect(202);
    let batch = json!({"events": [body.clone()]});
    let all = keyed.post("/v1/outbound-events/batch", batch.clone()).await.expect(202);
    assert_eq!(server.delete(&format!("/v1/destinations/{gone}")).await.status, 204);
    assert_eq!(keyed.post("/v1/outbound-events", body.clone()).await.expect(202), first);
    assert_eq!(keyed.post("/v1/outbound-events/batch", batch).await.expect(202), all);
    let again = server.post("/v1/outbound-events", named).await.expect(202);
    assert_eq!(
        (&again["id"], &again["duplicate"], &again["routed"]),
        (&known["id"], &json!(true), &json!(1))
    );
    let other = server.with_header("idempotency-key", "another").post("/v1/outbound-events", body).await;
    assert_eq!(other.expect_error(422, "invalid_field")["field"], "destination_ids[0]");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_is_answered_with_what_the_first_one_led_to() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let event = json!({"event_type": "a.b", "payload": 1, "external_event_id": "x"});
    let first = server.post("/v1/outbound-events", event.clone()).await.expect(202);
    assert_eq!((&first["status"], &first["routed"]), (&json!("delivered"), &json!(0)));
    destination(&server, &receiver.url, json!({})).await;
    let keyed = server.with_header("idempotency-key", "k");
    let again = keyed.post("/v1/outbound-events", event.clone()).await.expect(202);
    let expected =
        json!({"id": first["id"], "status": "delivered", "routed": 0, "duplicate": true, "warnings": []});
    assert_eq!(again, expected);
    assert_eq!(keyed.post("/v1/outbound-events", event).await.expect(202), expected, "and so is its repeat");
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_pause_what_expires_will_expire_and_what_is_due_is_queued() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let paused = destination(&server, &receiver.url, json!({})).await;
    server.post(&format!("/v1/destinations/{paused}/pause"), json!({})).await.expect(200);
    let event = json!({"event_type": "a.b", "payload": 1, "ttl_seconds": 600, "ordering_key": "dies"});
    let warned = server.post("/v1/outbound-events", event).await.expect(202);
    assert!(warned["warnings"][0].as_str().expect("a warning").contains("paused"), "{warned}");
    let soon = (kit::wall() + millis(200)).to_string();
    let event = json!({"event_type": "a.b", "payload": 1, "deliver_at": soon, "ordering_key": "due"});
    server.post("/v1/outbound-events", event).await.expect(202);
    until(secs(5), "its own time has come", async || {
        let due = server.get("/v1/deliveries?ordering_key=due&status=queued").await.expect(200);
        due["items"][0]["hold_reason"] == "paused"
    })
    .await;
    let later =
        json!({"event_type": "a.b", "payload": 1, "deliver_at": (kit::wall() + secs(600)).to_string()});
    server.post("/v1/outbound-events", later).await.expect(202);
    let told = server.get("/metrics").await.text();
    assert!(told.contains("tidegate_held_deliveries{reason=\"paused\"} 2"), "{told}");
    assert!(told.contains("tidegate_held_deliveries{reason=\"scheduled\"} 1"), "{told}");
    let dies = server.get("/v1/deliveries?ordering_key=dies").await.expect(200);
    assert_eq!(dies["items"][0]["will_expire"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_media_type_is_known_in_any_case() {
    let server = Server::start(&[]).await;
    let spelt = server.with_header("content-type", "Application/JSON; charset=UTF-8");
    spelt.post("/v1/outbound-events", json!({"event_type": "a.b", "payload": 1})).await.expect(202);
}

/// Goal: what was accepted once under a name is answered so again, whatever would be refused by now; another event under that
/// name is a conflict even then.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_was_accepted_is_known_also_where_it_would_be_refused_now() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    destination(&server, &receiver.url, json!({})).await;
    let soon = kit::wall() + secs(100);
    let event = |payload: u32| json!({"event_type": "a.b", "payload": payload, "external_event_id": "x", "deliver_at": soon.to_string()});
    let first = server.post("/v1/outbound-events", event(1)).await.expect(202);
    server.put("/v1/event-types/a.b", json!({"delivery_ttl_seconds": 10})).await.expect(201);
    let again = server.post("/v1/outbound-events", event(1)).await.expect(202);
    assert_eq!((&again["id"], &again["duplicate"]), (&first["id"], &json!(true)));
    server.patch("/v1/settings", json!({"max_queued_events": 1})).await.expect(200);
    server.post("/v1/outbound-events", event(2)).await.expect_error(409, "external_event_id_taken");
    let mut other = event(2);
    other["external_event_id"] = json!("y");
    let refused = server.post("/v1/outbound-events", other).await.expect_error(422, "invalid_field");
    assert_eq!(refused["field"], "deliver_at");
}
