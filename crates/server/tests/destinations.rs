//! Destinations through the API: written, shown, changed, deleted, and what their policies do to deliveries.

mod kit;

use kit::{
    Answer, Client, Postgres, Receiver, Reply, SECRET_KEY, Server, Watch, millis, secs, until, until_some,
};
use serde_json::{Value, json};

/// Makes a destination at `url` with some policies.
async fn make(client: &Client, url: &str, policies: Value) -> Value {
    let mut body = policies;
    body["url"] = json!(url);
    client.post("/v1/destinations", body).await.expect(201)
}

/// Publishes to one destination, and gives the id of the delivery.
async fn publish(client: &Client, destination: &Value, more: Value) -> String {
    let mut body =
        json!({"event_type": "order.created", "payload": {"n": 1}, "destination_ids": [destination["id"]]});
    for (key, value) in more.as_object().expect("an object") {
        body[key] = value.clone();
    }
    let event = client.post("/v1/outbound-events", body).await.expect(202);
    let story = client
        .get(&format!("/v1/outbound-events/{}", event["id"].as_str().expect("a string")))
        .await
        .expect(200);
    story["deliveries"][0]["id"].as_str().expect("a string").to_owned()
}

async fn delivery(client: &Client, id: &str) -> Value {
    client.get(&format!("/v1/deliveries/{id}")).await.expect(200)
}

async fn explain(client: &Client, id: &str) -> Value {
    client.get(&format!("/v1/deliveries/{id}/explain")).await.expect(200)
}

/// The path of a destination.
fn at(destination: &Value, rest: &str) -> String {
    format!("/v1/destinations/{}{rest}", destination["id"].as_str().expect("a string"))
}

async fn until_status(client: &Client, id: &str, status: &str) -> Value {
    until_some(secs(10), format!("{id} is {status}"), async || {
        let shown = delivery(client, id).await;
        (shown["status"] == status).then_some(shown)
    })
    .await
}

async fn until_held(client: &Client, id: &str, reason: &str) -> Value {
    until_some(secs(10), format!("{id} is held by {reason}"), async || {
        let shown = delivery(client, id).await;
        (shown["hold_reason"] == reason).then_some(shown)
    })
    .await
}

/// The gate with this name in an explanation.
fn gate<'a>(explanation: &'a Value, name: &str) -> &'a Value {
    explanation["gates"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|gate| gate["gate"] == name)
        .expect("every gate is told")
}

#[tokio::test]
async fn a_destination_is_written_shown_changed_and_deleted() {
    let server = Server::start(&[]).await;
    let made = server
        .post(
            "/v1/destinations",
            json!({"url": "https://example.com/hooks", "external_id": "shop-1", "rate_limit": {"max_per_minute": 60},
                   "auth_config": {"type": "bearer", "token": "canary-token"}}),
        )
        .await;
    assert_eq!(made.header("etag"), Some("\"1\""));
    let made = made.expect(201);
    let secret = made["signing_secret"].as_str().expect("a string").to_owned();
    assert!(secret.starts_with("whsec_"));
    assert_eq!(
        (&made["status"], &made["active"], &made["name"]),
        (&json!("active"), &json!(true), &json!("example.com"))
    );
    assert_eq!(made["rate_limit"], json!({"max_per_minute": 60, "burst_capacity": 60, "mode": "fixed"}));
    assert_eq!(made["timeout"]["mode"], "adaptive");

    let shown = server.get("/v1/destinations/shop-1").await;
    assert!(!shown.text().contains(&secret) && !shown.text().contains("canary-token"), "{}", shown.text());
    assert_eq!(shown.expect(200)["id"], made["id"], "an external id stands wherever the id does");
    let list = server.get("/v1/destinations?total=true").await;
    assert!(!list.text().contains("canary-token"));
    assert_eq!(list.expect(200)["total"], 1);

    let taken = json!({"url": "https://example.com", "external_id": "shop-1"});
    server.post("/v1/destinations", taken).await.expect_error(409, "external_id_taken");

    let stale = server.with_header("if-match", "\"7\"");
    stale.patch(&at(&made, ""), json!({"name": "x"})).await.expect_error(412, "version_conflict");
    let current = server.with_header("if-match", "\"1\"");
    let changed = current.patch(&at(&made, ""), json!({"name": "Shop", "rate_limit": null})).await;
    assert_eq!(changed.header("etag"), Some("\"2\""));
    let changed = changed.expect(200);
    assert_eq!((&changed["name"], &changed["rate_limit"]), (&json!("Shop"), &Value::Null));
    assert_eq!(changed["auth_config"], json!({"type": "bearer", "name": "authorization"}));

    let refused = server.patch(&at(&made, ""), json!({"rate_limit": {"max_per_minute": 0}})).await;
    assert_eq!(refused.expect_error(422, "invalid_field")["field"], "rate_limit.max_per_minute");
    let refused = server.patch(&at(&made, ""), json!({"metadata": {}})).await;
    assert_eq!(refused.expect_error(422, "invalid_field")["field"], "metadata");
    let refused = server.patch(&at(&made, ""), json!({"url": "http://10.0.0.1/"})).await;
    assert_eq!(refused.expect_error(422, "invalid_field")["field"], "url");

    assert_eq!(server.delete("/v1/destinations/shop-1").await.status, 204);
    server.get(&at(&made, "")).await.expect_error(404, "not_found");
    server
        .post("/v1/destinations", json!({"url": "https://example.com", "external_id": "shop-1"}))
        .await
        .expect(201);
}

#[tokio::test]
async fn what_belongs_to_another_account_is_as_unknown_as_what_is_not_there() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let own = make(&server, &receiver.url, json!({})).await;
    let id = publish(&server, &own, json!({})).await;
    let event = delivery(&server, &id).await["event_id"].as_str().expect("a string").to_owned();
    let route = server.post("/v1/routes", json!({"destination_id": own["id"]})).await.expect(201);
    let job = server.post("/v1/replays", json!({"filter": {}})).await.expect(202);
    let other = server.post("/v1/accounts", json!({"name": "Other"})).await.expect(201);
    let other = server.client().with_key(other["api_key"].as_str().expect("a string"));
    let unknown = |text: &str| {
        let digits = if text.ends_with('0') { "1" } else { "0" };
        format!("{}{digits}", &text[..text.len() - 1])
    };
    let destination = own["id"].as_str().expect("a string");
    for (kind, known, rests) in [
        ("destinations", destination, &["", "/latency", "/holds", "/attempts"][..]),
        ("deliveries", &id, &["", "/explain"]),
        ("outbound-events", &event, &[""]),
        ("routes", route["id"].as_str().expect("a string"), &[""]),
        ("replays", job["id"].as_str().expect("a string"), &[""]),
    ] {
        for rest in rests {
            let foreign = other.get(&format!("/v1/{kind}/{known}{rest}")).await;
            let missing = other.get(&format!("/v1/{kind}/{}{rest}", unknown(known))).await;
            assert_eq!((foreign.status, missing.status), (404, 404), "{kind}{rest}: {}", foreign.text());
            assert_eq!(foreign.bytes, missing.bytes, "{kind}{rest}");
            assert_eq!(server.get(&format!("/v1/{kind}/{known}{rest}")).await.status, 200, "{kind}{rest}");
        }
    }
    for path in [
        format!("/v1/destinations/{destination}/pause"),
        format!("/v1/destinations/{destination}/test"),
        format!("/v1/destinations/{destination}/rotate-secret"),
        format!("/v1/deliveries/{id}/replay"),
        format!("/v1/deliveries/{id}/cancel"),
        format!("/v1/outbound-events/{event}/replay"),
    ] {
        other.post(&path, json!({})).await.expect_error(404, "not_found");
    }
    other.patch(&at(&own, ""), json!({"name": "Mine"})).await.expect_error(404, "not_found");
    other.delete(&at(&own, "")).await.expect_error(404, "not_found");
    other.get(&format!("/v1/deliveries?destination_id={destination}")).await.expect_error(404, "not_found");
    assert_eq!(other.get(&format!("/v1/deliveries?event_id={event}")).await.expect(200)["items"], json!([]));
    assert_eq!(other.get("/v1/deliveries?total=true").await.expect(200)["total"], 0);
}

#[tokio::test]
async fn quiet_hours_hold_until_they_are_removed() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    // All day but for one minute; whichever of the two is farther away.
    let ask = |start: &str, end: &str| json!({"delivery_schedule": window(start, end)});
    let night = server.post("/v1/schedules/preview", ask("06:01", "06:00")).await.expect(200);
    let day = server.post("/v1/schedules/preview", ask("18:01", "18:00")).await.expect(200);
    let (quiet, _) = [(window("06:01", "06:00"), night), (window("18:01", "18:00"), day)]
        .into_iter()
        .max_by_key(|(_, preview)| preview["release_at"].as_str().expect("a string").to_owned())
        .unwrap();
    let destination = make(&server, &receiver.url, json!({"delivery_schedule": quiet})).await;
    assert_eq!(destination["status"], "quiet_hours");
    let id = publish(&server, &destination, json!({})).await;
    let held = until_held(&server, &id, "quiet_hours").await;
    assert!(held["retry_at"].is_string() && held["attempts_count"] == 0);
    let explanation = explain(&server, &id).await;
    let closed = gate(&explanation, "quiet_hours");
    assert_eq!((&closed["open"], &closed["until"]), (&json!(false), &held["retry_at"]));
    assert_eq!(explanation["estimated_at"], held["retry_at"]);
    let listed = server.get("/v1/deliveries?hold_reason=quiet_hours").await.expect(200);
    assert_eq!(listed["items"][0]["id"], json!(id));
    assert_eq!(receiver.count(), 0);
    server.patch(&at(&destination, ""), json!({"delivery_schedule": null})).await.expect(200);
    until_status(&server, &id, "delivered").await;
}

fn window(start: &str, end: &str) -> Value {
    json!({"timezone": "UTC", "quiet_start": start, "quiet_end": end})
}

#[tokio::test]
async fn a_rate_limit_spaces_attempts_and_says_when_the_next_token_comes() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let policies = json!({"rate_limit": {"max": 1, "per": "hour", "burst_capacity": 1}});
    let destination = make(&server, &receiver.url, policies).await;
    let first = publish(&server, &destination, json!({})).await;
    until_status(&server, &first, "delivered").await;
    let second = publish(&server, &destination, json!({})).await;
    let held = until_held(&server, &second, "rate_limited").await;
    assert!(held["retry_at"].is_string());
    let third = publish(&server, &destination, json!({})).await;
    let explanation = explain(&server, &third).await;
    assert_eq!(
        (&gate(&explanation, "rate")["open"], &explanation["queue"]["ahead"]),
        (&json!(false), &json!(1))
    );
    let expiring = publish(&server, &destination, json!({"ttl_seconds": 600})).await;
    assert_eq!(delivery(&server, &expiring).await["will_expire"], true);
    assert_eq!(server.get(&at(&destination, "")).await.expect(200)["status"], "rate_limited");
    server.patch(&at(&destination, ""), json!({"rate_limit": null})).await.expect(200);
    until_status(&server, &third, "delivered").await;
}

#[tokio::test]
async fn a_429_throttles_the_destination_and_uses_no_attempt() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(429).header("retry-after", "3600")).await;
    let destination = make(&server, &receiver.url, json!({})).await;
    let id = publish(&server, &destination, json!({})).await;
    until_held(&server, &id, "throttled").await;
    until(secs(10), "the attempt is written", async || delivery(&server, &id).await["attempts_count"] == 1)
        .await;
    let held = delivery(&server, &id).await;
    assert_eq!(held["attempts_used"], 0);
    assert_eq!(
        (&held["attempts"][0]["outcome"], &held["attempts"][0]["counted"]),
        (&json!("rate_limited"), &json!(false))
    );
    let shown = server.get(&at(&destination, "")).await.expect(200);
    assert_eq!((&shown["status"], &shown["consecutive_throttles"]), (&json!("throttled"), &json!(1)));
    assert!(shown["throttled_until"].is_string() && shown["throttle_reason"].is_string());
    assert_eq!(
        (&shown["holds"][0]["reason"], &shown["holds"][0]["until"]),
        (&json!("throttled"), &shown["throttled_until"])
    );
    assert_eq!(gate(&explain(&server, &id).await, "throttle")["open"], false);
    assert!(
        held["timeline"].as_array().expect("a list").iter().any(|moment| moment["status"] == "throttled"),
        "{held}"
    );
    receiver.behave(|_| Reply::status(200));
    server.post(&at(&destination, "/retry-now"), json!({})).await.expect(200);
    until_status(&server, &id, "delivered").await;
    assert_eq!(server.get(&at(&destination, "")).await.expect(200)["consecutive_throttles"], 0);
}

#[tokio::test]
async fn failures_open_the_breaker_and_retry_now_probes_at_once() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(500).body("broken")).await;
    let policies = json!({
        "circuit_breaker": {"consecutive_failures": 2, "open_seconds": 3600, "max_open_seconds": 3600, "successes_to_close": 1},
        "retry_policy": {"max_attempts": 9, "delays_seconds": [1], "jitter": "none"}
    });
    let destination = make(&server, &receiver.url, policies).await;
    let first = publish(&server, &destination, json!({})).await;
    let second = publish(&server, &destination, json!({})).await;
    until(secs(10), "the breaker is open", async || {
        server.get(&at(&destination, "")).await.expect(200)["status"] == "circuit_open"
    })
    .await;
    let third = publish(&server, &destination, json!({})).await;
    let held = until_held(&server, &third, "circuit_open").await;
    assert_eq!(held["attempts_count"], 0, "a hold writes no attempt");
    assert_eq!(gate(&explain(&server, &third).await, "breaker")["open"], false);
    let attempts = server.get(&at(&destination, "/attempts")).await.expect(200);
    assert_eq!(
        (&attempts["items"][0]["outcome"], &attempts["items"][0]["response_body"]),
        (&json!("http_error"), &json!("broken"))
    );
    receiver.behave(|_| Reply::status(204));
    server.post(&at(&destination, "/retry-now"), json!({})).await.expect(200);
    for id in [first, second, third] {
        until_status(&server, &id, "delivered").await;
    }
    let shown = server.get(&at(&destination, "")).await.expect(200);
    assert!(shown["success_rate_24h"].as_f64().expect("a number") > 0.0, "{shown}");
}

#[tokio::test]
async fn pause_disable_and_unavailable_hold_with_their_own_words() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let destination = make(&server, &receiver.url, json!({})).await;
    assert_eq!(server.post(&at(&destination, "/pause"), json!({})).await.expect(200)["status"], "paused");
    let id = publish(&server, &destination, json!({})).await;
    let held = until_held(&server, &id, "paused").await;
    assert_eq!(held["retry_at"], Value::Null, "only a person lifts it");
    assert_eq!(explain(&server, &id).await["estimated_at"], Value::Null);
    assert_eq!(server.get(&at(&destination, "")).await.expect(200)["queued_events"], 1);
    server.post(&at(&destination, "/resume"), json!({})).await.expect(200);
    until_status(&server, &id, "delivered").await;

    let off = server.patch(&at(&destination, ""), json!({"active": false})).await.expect(200);
    assert_eq!((&off["status"], &off["active"]), (&json!("disabled"), &json!(false)));
    let id = publish(&server, &destination, json!({})).await;
    until_held(&server, &id, "disabled").await;
    let on = server.patch(&at(&destination, ""), json!({"active": true})).await.expect(200);
    assert_eq!(on["active"], true);
    until_status(&server, &id, "delivered").await;

    receiver.behave(|_| Reply::status(503).header("retry-after", "3600"));
    let failed = publish(&server, &destination, json!({})).await;
    until_held(&server, &failed, "retry_backoff").await;
    assert_held_since(&server, &destination, "unavailable").await;
    let waiting = publish(&server, &destination, json!({})).await;
    until_held(&server, &waiting, "unavailable").await;
    assert_eq!(gate(&explain(&server, &waiting).await, "unavailable")["open"], false);
}

/// The version of a destination that an answer shows.
fn version(answer: &Answer) -> u64 {
    let tag = answer.header("etag").map(|tag| tag.trim_matches('"').parse().ok());
    tag.flatten().expect("its tag is its version")
}

/// Goal: of two who switch a destination at the same moment one comes last, in what is written and in what is done.
/// Method: both ask the same node, first the one that works the destination and then the one that does not: there it takes a
/// while until it is done.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_switches_last_decides_whether_it_sends() {
    let Some(programs) = Postgres::programs() else {
        kit::skip(kit::NO_POSTGRES);
        return;
    };
    let postgres = Postgres::start(&programs);
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", postgres.port);
    let environment = [("TIDEGATE_DATABASE_URL", url.as_str()), ("TIDEGATE_SECRET_KEY", SECRET_KEY)];
    let first = Server::start_in(&environment, &["--node-name", "first"]).await;
    let second = Server::start_in(&environment, &["--node-name", "second"]).await;
    until(secs(20), "each has its share", async || {
        let nodes = second.get("/v1/nodes").await.expect(200);
        let nodes = nodes["items"].as_array().expect("a list").iter();
        nodes.filter(|node| node["slot_count"] == 128).count() == 2
    })
    .await;
    let destination = make(&first, "http://127.0.0.1:9/", json!({})).await;
    let path = at(&destination, "");
    until(secs(5), "the other node knows it", async || second.get(&path).await.status == 200).await;
    for node in [&first, &second] {
        let switch = async |active: bool| {
            let answer = node.patch(&path, json!({"active": active})).await;
            (version(&answer), active)
        };
        for _ in 0..8 {
            switch(true).await;
            let (off, on) = tokio::join!(switch(false), switch(true));
            let (last, active) = off.max(on);
            let shown = node.get(&path).await;
            assert_eq!(version(&shown), last);
            assert_eq!(shown.expect(200)["active"], active, "{off:?} {on:?}");
        }
        // The other node is to begin with what this one has left.
        let other = if std::ptr::eq(node, &raw const first) { &second } else { &first };
        let last = version(&node.get(&path).await);
        until(secs(5), "it has heard of that", async || version(&other.get(&path).await) == last).await;
    }
}

/// It is held so, and says since when, though nothing waits for that.
async fn assert_held_since(server: &Client, destination: &Value, reason: &str) {
    let path = format!("/v1/destinations/{}", destination["id"].as_str().expect("an id"));
    let shown = server.get(&path).await.expect(200);
    let hold = shown["holds"].as_array().and_then(|holds| holds.iter().find(|hold| hold["reason"] == reason));
    let since = hold.and_then(|hold| hold["since"].as_str()).and_then(|text| text.parse().ok());
    let ago = since.map(|since: jiff::Timestamp| kit::wall().duration_since(since).as_secs());
    assert!(ago.is_some_and(|ago| (0..30).contains(&ago)), "{reason}: {shown}");
}

#[tokio::test]
async fn a_full_destination_says_so() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200).after(secs(60))).await;
    let destination = make(&server, &receiver.url, json!({"max_concurrency": 1})).await;
    let first = publish(&server, &destination, json!({})).await;
    until(secs(10), "the first is on its way", async || receiver.count() == 1).await;
    assert_eq!(until_status(&server, &first, "delivering").await["hold_reason"], Value::Null);
    let listed = server.get("/v1/deliveries?status=delivering&total=true").await.expect(200);
    assert_eq!((&listed["items"][0]["id"], &listed["total"]), (&json!(first), &json!(1)));
    assert_held_since(&server, &destination, "at_capacity").await;
    let second = publish(&server, &destination, json!({})).await;
    until_held(&server, &second, "at_capacity").await;
    assert_eq!(gate(&explain(&server, &second).await, "concurrency")["open"], false);
    let shown = server.get(&at(&destination, "")).await.expect(200);
    assert_eq!((&shown["inflight"], &shown["status"]), (&json!(1), &json!("at_capacity")));
    let listed = server.get("/v1/deliveries?hold_reason=at_capacity").await.expect(200);
    assert_eq!(
        listed["items"].as_array().expect("a list").len(),
        1,
        "the one in flight is not held: {listed}"
    );
}

#[tokio::test]
async fn a_rotated_secret_signs_beside_the_old_one_and_a_test_event_passes_every_gate() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(201).body("thanks")).await;
    let destination = make(&server, &receiver.url, json!({})).await;
    let rotated =
        server.post(&at(&destination, "/rotate-secret"), json!({"overlap_seconds": 600})).await.expect(200);
    assert!(rotated["signing_secret"].as_str().expect("a string").starts_with("whsec_"));
    assert_ne!(rotated["signing_secret"], destination["signing_secret"]);
    assert!(rotated["previous_valid_until"].is_string());
    server.post(&at(&destination, "/pause"), json!({})).await.expect(200);
    let result = server.post(&at(&destination, "/test"), json!({})).await.expect(200);
    assert_eq!((&result["outcome"], &result["status_code"]), (&json!("success"), &json!(201)));
    let received = receiver.received();
    let request = received.last().unwrap();
    assert_eq!(request.header("tidegate-event-type"), Some("tidegate.test"));
    assert_eq!(request.event_id(), result["event_id"].as_str().expect("a string"));
    assert_eq!(request.header("webhook-signature").unwrap().split(' ').count(), 2);
    let known = json!({"signing_secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "overlap_seconds": 0});
    let rotated = server.post(&at(&destination, "/rotate-secret"), known).await.expect(200);
    assert_eq!((&rotated["signing_secret"], &rotated["previous_valid_until"]), (&Value::Null, &Value::Null));
    server.post(&at(&destination, "/test"), json!({})).await.expect(200);
    let received = receiver.received();
    assert_eq!(received.last().unwrap().header("webhook-signature").unwrap().split(' ').count(), 1);
    let shown = server.get(&at(&destination, "/latency")).await.expect(200);
    assert_eq!(shown["all"]["samples"], 0, "a test is no sample");
}

#[tokio::test]
async fn an_order_is_kept_and_a_halted_line_waits_for_a_person() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|request| {
        let refuse = request.body.windows(4).any(|part| part == b"fail");
        Reply::status(if refuse { 400 } else { 200 }).after(millis(5))
    })
    .await;
    let policies = json!({"ordering": "fifo", "on_exhausted": "halt", "retry_policy": {"max_attempts": 1}});
    let destination = make(&server, &receiver.url, policies).await;
    let first = publish(&server, &destination, json!({"payload": "fail"})).await;
    let second = publish(&server, &destination, json!({})).await;
    until_status(&server, &first, "dead_letter").await;
    let held = until_held(&server, &second, "order_blocked").await;
    assert_eq!(held["attempts_count"], 0);
    let explanation = explain(&server, &second).await;
    assert!(
        gate(&explanation, "order")["detail"].as_str().expect("a string").contains(&first),
        "{explanation}"
    );
    server.post(&at(&destination, "/resume"), json!({})).await.expect(200);
    until_status(&server, &second, "delivered").await;
}

#[tokio::test]
async fn roles_bound_what_a_key_may_do() {
    let server = Server::start(&[]).await;
    let destination = make(&server, "https://example.com", json!({})).await;
    let key = async |role: &str| {
        let made = server.post("/v1/api-keys", json!({"name": role, "role": role})).await.expect(201);
        server.client().with_key(made["api_key"].as_str().or(made["key"].as_str()).unwrap())
    };
    let viewer = key("viewer").await;
    viewer.get(&at(&destination, "")).await.expect(200);
    viewer.patch(&at(&destination, ""), json!({"name": "x"})).await.expect_error(403, "forbidden");
    viewer.post("/v1/replays", json!({})).await.expect_error(403, "forbidden");
    let publisher = key("publisher").await;
    publisher.get("/v1/destinations").await.expect_error(403, "forbidden");
    publisher.get("/v1/deliveries").await.expect_error(403, "forbidden");
    let editor = key("editor").await;
    editor.patch(&at(&destination, ""), json!({"name": "Edited"})).await.expect(200);
}

/// The defaults of an account change as the policies of a destination do.
#[tokio::test(flavor = "multi_thread")]
async fn defaults_replace_what_they_contradict_and_null_removes_them() {
    let server = Server::start(&[]).await;
    let patch = async |defaults: Value| {
        let changed = server.patch("/v1/settings", json!({"defaults": defaults})).await;
        changed.expect(200)["defaults"].clone()
    };
    let window = json!({"timezone": "UTC", "quiet_start": "01:00", "quiet_end": "02:00"});
    assert_eq!(patch(json!({"timeout_seconds": 3})).await, json!({"timeout_seconds": 3}));
    let mode = json!({"timeout": {"mode": "default"}});
    assert_eq!(patch(mode.clone()).await, mode, "a mode ends a pin");
    assert_eq!(patch(json!({"timeout_seconds": 4})).await, json!({"timeout_seconds": 4}), "and a pin a mode");
    let shown = patch(json!({"timeout_seconds": null, "delivery_schedule": window})).await;
    assert_eq!(shown["delivery_schedules"][0]["quiet_start"], "01:00", "{shown}");
    assert_eq!(shown["delivery_schedule"], shown["delivery_schedules"][0]);
    let made = make(&server, "http://127.0.0.1:9/", json!({})).await;
    let in_force = server.get(&at(&made, "")).await.expect(200);
    assert_eq!(in_force["delivery_schedule"]["quiet_start"], "01:00", "{in_force}");
    let two = patch(json!({"delivery_schedules": [window, window]})).await;
    assert_eq!(two["delivery_schedules"].as_array().map(Vec::len), Some(2), "{two}");
    patch(json!({"delivery_schedule": window})).await;
    assert_eq!(patch(json!({"delivery_schedules": null})).await, json!({}), "the window is gone");
    patch(json!({"max_concurrency": 2, "max_age_seconds": 60})).await;
    assert_eq!(patch(json!({"max_concurrency": null})).await, json!({"max_age_seconds": 60}));
    assert_eq!(patch(json!(null)).await, json!({}), "null removes them all");
}

#[tokio::test(flavor = "multi_thread")]
async fn null_is_refused_where_there_is_nothing_to_remove() {
    let server = Server::start(&[]).await;
    server.post("/v1/accounts", json!({"name": "x", "external_id": "x"})).await.expect(201);
    let destination = make(&server, "http://127.0.0.1:9/", json!({})).await;
    for (path, body, field) in [
        ("/v1/settings", json!({"defaults": {"nonsense": null}}), "defaults.nonsense"),
        ("/v1/settings", json!({"defaults": {"max_age_seconds": 0}}), "defaults.max_age_seconds"),
        ("/v1/settings", json!({"defaults": {"ordering": 1}}), "defaults.ordering"),
        (
            "/v1/settings",
            json!({"defaults": {"rate_limit": {"max_per_minute": 0}}}),
            "defaults.rate_limit.max_per_minute",
        ),
        ("/v1/settings", json!({"paused": null}), "paused"),
        ("/v1/accounts/x", json!({"name": null}), "name"),
        (&at(&destination, ""), json!({"active": null}), "active"),
        (&at(&destination, ""), json!({"signing_secret": null}), "signing_secret"),
    ] {
        let refused = server.patch(path, body.clone()).await.expect_error(422, "invalid_field");
        assert_eq!(refused["field"], field, "{body}: {refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_watches_sees_what_people_do() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let destination = make(&server, &receiver.url, json!({})).await;
    let watch = Watch::start(&server).await;
    // What changes nothing is not told.
    for _ in 0..2 {
        server.post(&at(&destination, "/pause"), json!({})).await.expect(200);
    }
    for _ in 0..2 {
        server.post(&at(&destination, "/resume"), json!({})).await.expect(200);
    }
    for active in [false, false, true, true] {
        server.patch(&at(&destination, ""), json!({"active": active})).await.expect(200);
    }
    for paused in [true, true, false, false] {
        server.patch("/v1/settings", json!({"paused": paused})).await.expect(200);
    }
    let expired = publish(&server, &destination, json!({"expires_at": "2020-01-01T00:00:00Z"})).await;
    let told = ["paused", "resumed", "disabled", "enabled", "account_paused", "account_resumed", "delivery"];
    until(secs(5), "all is told", async || watch.kinds().len() >= told.len()).await;
    assert_eq!(watch.kinds(), told);
    let seen = watch.seen();
    for event in &seen[..4] {
        assert_eq!(event["destination_id"], destination["id"]);
    }
    for event in &seen[4..6] {
        assert_eq!(event["destination_id"], json!(null));
    }
    for event in &seen {
        assert!(event["at"].is_string() && event["detail"].as_str().is_some_and(|detail| !detail.is_empty()));
    }
    assert_eq!((&seen[6]["delivery_id"], &seen[6]["status"]), (&json!(expired), &json!("expired")));
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_name_the_node_that_made_them() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let destination = make(&server, &receiver.url, json!({})).await;
    let id = publish(&server, &destination, json!({})).await;
    let done = until_status(&server, &id, "delivered").await;
    let node = server.get("/v1/nodes").await.expect(200)["items"][0]["id"].clone();
    assert!(node.is_string());
    assert_eq!(done["attempts"][0]["node"], node);
    let named = Server::start(&["--node-name", "n1"]).await;
    let destination = make(&named, &receiver.url, json!({})).await;
    let id = publish(&named, &destination, json!({})).await;
    assert_eq!(until_status(&named, &id, "delivered").await["attempts"][0]["node"], "n1");
}
