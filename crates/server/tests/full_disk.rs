//! A full disk: whoever wants something hears at once that it cannot be, and then it is not done.

mod kit;

use std::collections::BTreeSet;

use kit::{Answer, Postgres, Receiver, Reply, Server, secs, until};
use serde_json::{Value, json};
use tokio::time::timeout;

/// As if there were no room for anything on the disk of the database.
const FILL: &str = "create function full_disk() returns trigger language plpgsql as $$
    begin raise exception 'no room' using errcode = '53100'; end $$;
    create trigger full_disk before update on tidegate.seats execute function public.full_disk()";

/// Whoever presses a button does not wait until somebody has made room.
async fn post(server: &Server, path: &str, body: Value) -> Answer {
    timeout(secs(5), server.post(path, body)).await.unwrap_or_else(|_| panic!("no answer from {path}"))
}

/// What the audit log tells, each line as its action and its subject.
async fn audit(server: &Server) -> BTreeSet<(String, String)> {
    let log = server.get("/v1/audit-log?limit=100").await.expect(200);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let lines = log["items"].as_array().expect("a list").iter();
    let lines: Vec<_> = lines.map(|line| (text(&line["action"]), text(&line["subject"]))).collect();
    let told: BTreeSet<_> = lines.iter().cloned().collect();
    assert_eq!(told.len(), lines.len(), "told twice: {lines:?}");
    told
}

/// Goal: 503 means that it was not done, for everything that a person may want of a destination, an event or a delivery; and what
/// is done later is in the audit log, once.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_not_done_and_what_is_done_is_in_the_audit_log() {
    let Some(programs) = Postgres::programs() else {
        kit::skip(kit::NO_POSTGRES);
        return;
    };
    let postgres = Postgres::start(&programs);
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", postgres.port);
    let server = Server::start_in(&[("TIDEGATE_DATABASE_URL", &url)], &[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let held = server.post("/v1/destinations", json!({"url": receiver.url})).await.expect(201);
    let held = format!("/v1/destinations/{}", held["id"].as_str().expect("an id"));
    server.post(&format!("{held}/pause"), json!({})).await.expect(200);
    let event = json!({"event_type": "a.b", "payload": 1});
    let first = server.post("/v1/outbound-events", event.clone()).await.expect(202);
    let second = server.post("/v1/outbound-events", event.clone()).await.expect(202);
    let of = |event: &Value| event["id"].as_str().expect("an id").to_owned();
    let listed = server.get(&format!("/v1/deliveries?event_id={}", of(&first))).await.expect(200);
    let delivery = format!("/v1/deliveries/{}", listed["items"][0]["id"].as_str().expect("an id"));
    let open = server.post("/v1/destinations", json!({"url": receiver.url})).await.expect(201);
    let open = format!("/v1/destinations/{}", open["id"].as_str().expect("an id"));
    let calls = [
        (format!("{open}/pause"), "destination.pause"),
        (format!("{held}/retry-now"), "destination.retry_now"),
        (format!("{delivery}/retry-now"), "delivery.retry_now"),
        (format!("{delivery}/cancel"), "delivery.cancel"),
        (format!("/v1/outbound-events/{}/cancel", of(&second)), "event.cancel"),
        (format!("{held}/resume"), "destination.resume"),
        (format!("{delivery}/replay"), "delivery.replay"),
    ];
    let before = audit(&server).await;

    postgres.sql("postgres", FILL);
    // Whatever is written first finds it out.
    post(&server, "/v1/outbound-events", event).await.expect_error(503, "store_unavailable");
    for (path, _) in &calls[..calls.len() - 1] {
        post(&server, path, json!({})).await.expect_error(503, "store_unavailable");
    }
    for path in ["/v1/cancellations", "/v1/replays"] {
        post(&server, path, json!({"filter": {}})).await.expect_error(503, "store_unavailable");
    }
    postgres.sql("postgres", "drop trigger full_disk on tidegate.seats");
    until(secs(20), "there is room again", async || server.get("/readyz").await.status == 200).await;
    assert_eq!(audit(&server).await, before);
    let status = async |path: &str| server.get(path).await.expect(200)["status"].clone();
    assert_eq!((status(&held).await, status(&open).await), (json!("paused"), json!("active")));
    let waiting = server.get("/v1/deliveries?status=queued&total=true").await.expect(200);
    assert_eq!((&waiting["total"], receiver.count()), (&json!(2), 0));

    for (path, action) in &calls {
        let before = audit(&server).await;
        let answer = post(&server, path, json!({})).await;
        assert!([200, 202].contains(&answer.status), "{path}: {}", answer.text());
        let subject = path.split('/').nth(3).expect("an id");
        let new: Vec<_> = audit(&server).await.difference(&before).cloned().collect();
        assert_eq!(new, [((*action).to_owned(), subject.to_owned())]);
    }
    server.patch(&held, json!({"active": false})).await.expect(200);
    let last = server.get("/v1/audit-log?limit=1").await.expect(200)["items"][0].clone();
    assert_eq!(
        (&last["action"], &last["detail"]),
        (&json!("destination.update"), &json!({"changed": ["active"]}))
    );
}
