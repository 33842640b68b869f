//! Deliveries and events through the API: how they end, and what people may do to them.

mod kit;

use kit::{Client, Receiver, Reply, Server, secs, until, until_some};
use serde_json::{Value, json};

async fn make(client: &Client, url: &str, policies: Value) -> Value {
    let mut body = policies;
    body["url"] = json!(url);
    client.post("/v1/destinations", body).await.expect(201)
}

async fn publish(client: &Client, more: Value) -> Value {
    let mut body = json!({"event_type": "order.created", "payload": {"n": 1}});
    for (key, value) in more.as_object().expect("an object") {
        body[key] = value.clone();
    }
    client.post("/v1/outbound-events", body).await.expect(202)
}

async fn event(client: &Client, published: &Value) -> Value {
    client
        .get(&format!("/v1/outbound-events/{}", published["id"].as_str().expect("a string")))
        .await
        .expect(200)
}

async fn until_event(client: &Client, published: &Value, status: &str) -> Value {
    until_some(secs(10), format!("{published} is {status}"), async || {
        let shown = event(client, published).await;
        (shown["status"] == status).then_some(shown)
    })
    .await
}

fn path(delivery: &Value, rest: &str) -> String {
    format!("/v1/deliveries/{}{rest}", delivery["id"].as_str().expect("a string"))
}

#[tokio::test]
async fn a_dead_letter_can_be_replayed_and_the_event_follows_the_newest() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(500).header("x-why", "broken").body("no")).await;
    make(&server, &receiver.url, json!({"retry_policy": {"max_attempts": 1}})).await;
    let published = publish(
        &server,
        json!({"payload": {"big": 123_456_789_012_345_678_u64}, "external_event_id": "ours-1"}),
    )
    .await;
    let story = until_event(&server, &published, "dead_letter").await;
    assert_eq!(story["payload"], json!({"big": 123_456_789_012_345_678_u64}));
    assert_eq!(story["external_event_id"], "ours-1");
    let dead = &story["deliveries"][0];
    assert!(dead["final_reason"].as_str().expect("a string").contains("status 500"), "{dead}");
    assert_eq!((&dead["attempts_used"], &dead["max_attempts"]), (&json!(1), &json!(1)));
    let attempt = &story["attempts"][0];
    assert_eq!((&attempt["status_code"], &attempt["response_body"]), (&json!(500), &json!("no")));
    assert_eq!(attempt["response_headers"]["x-why"], "broken");
    server.post(&path(dead, "/cancel"), json!({})).await.expect_error(409, "already_final");
    server.post(&path(dead, "/retry-now"), json!({})).await.expect_error(409, "already_final");

    receiver.behave(|_| Reply::status(200));
    let replay = server.post(&path(dead, "/replay"), json!({"priority": 2})).await.expect(202);
    assert_eq!((&replay["replay_of"], &replay["priority"]), (&dead["id"], &json!(2)));
    let story = until_event(&server, &published, "delivered").await;
    assert_eq!(story["deliveries"].as_array().expect("a list").len(), 2);
    assert_eq!(story["deliveries"][0]["status"], "dead_letter", "the old one is left as it is");
    let ids: Vec<_> = receiver.received().iter().map(|request| request.event_id().to_owned()).collect();
    assert!(ids.iter().all(|id| *id == published["id"].as_str().expect("a string")), "{ids:?}");
    let path = format!("/v1/outbound-events/{}/replay", published["id"].as_str().expect("a string"));
    let again = server.post(&path, json!({"ttl": "none"})).await.expect(202);
    assert_eq!(again["delivery_ids"].as_array().expect("a list").len(), 1);
    for (query, count) in [
        ("status=dead_letter", 1),
        ("external_event_id=ours-1&status=dead_letter", 1),
        ("external_event_id=ours-2", 0),
        ("event_type=order.created&status=dead_letter", 1),
        ("event_type=order.paid", 0),
        ("from=2100-01-01T00:00:00Z", 0),
    ] {
        let listed = server.get(&format!("/v1/deliveries?total=true&{query}")).await.expect(200);
        assert_eq!(listed["total"], count, "{query}");
    }
    server.get("/v1/deliveries?status=lost").await.expect_error(422, "invalid_field");
    server.get("/v1/deliveries?hold_reason=rain").await.expect_error(422, "invalid_field");
    server.get("/v1/deliveries?state=queued").await.expect_error(422, "invalid_field");
}

#[tokio::test]
async fn what_goes_stale_behind_a_hold_says_behind_which() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let destination = make(&server, &receiver.url, json!({})).await;
    server
        .post(&format!("/v1/destinations/{}/pause", destination["id"].as_str().expect("a string")), json!({}))
        .await
        .expect(200);
    let published = publish(&server, json!({"ttl_seconds": 1})).await;
    let story = until_event(&server, &published, "expired").await;
    let reason = story["deliveries"][0]["final_reason"].as_str().expect("a string");
    assert_eq!(reason, "expired behind paused");
    assert_eq!(receiver.count(), 0);
    let listed = until_some(secs(10), "it is written", async || {
        let listed = server.get("/v1/deliveries?status=expired").await.expect(200);
        listed["items"].get(0).cloned()
    });
    assert!(listed.await["finished_at"].is_string());
}

#[tokio::test]
async fn a_delivery_can_be_cancelled_while_it_waits_and_hastened_before_its_time() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    make(&server, &receiver.url, json!({})).await;
    let far = json!({"deliver_at": in_an_hour()});
    let published = publish(&server, far.clone()).await;
    let waiting = event(&server, &published).await["deliveries"][0].clone();
    assert_eq!(
        (&waiting["status"], &waiting["hold_reason"]),
        (&json!("retry_scheduled"), &json!("scheduled"))
    );
    let listed = server.get("/v1/deliveries?hold_reason=scheduled&status=retry_scheduled").await.expect(200);
    assert!(
        listed["items"].as_array().expect("a list").iter().any(|item| item["id"] == waiting["id"]),
        "{listed}"
    );
    let cancelled = server.post(&path(&waiting, "/cancel"), json!({})).await.expect(200);
    assert_eq!(
        (&cancelled["status"], &cancelled["final_reason"]),
        (&json!("cancelled"), &json!("withdrawn by request"))
    );
    server.post(&path(&waiting, "/cancel"), json!({})).await.expect(200);

    let published = publish(&server, far).await;
    let waiting = event(&server, &published).await["deliveries"][0].clone();
    server.post(&path(&waiting, "/retry-now"), json!({})).await.expect(200);
    until_event(&server, &published, "delivered").await;
    let story = server.get(&path(&waiting, "")).await.expect(200);
    let statuses: Vec<_> =
        story["timeline"].as_array().expect("a list").iter().map(|moment| moment["status"].clone()).collect();
    assert_eq!(
        (statuses.first(), statuses.last()),
        (Some(&json!("queued")), Some(&json!("delivered"))),
        "{story}"
    );
}

fn in_an_hour() -> String {
    in_seconds(3_600)
}

fn in_seconds(seconds: i64) -> String {
    format!("{:.3}", kit::wall() + jiff::SignedDuration::from_secs(seconds))
}

#[tokio::test]
async fn deleting_a_destination_cancels_what_waits_for_it() {
    let mut server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let destination = make(&server, &receiver.url, json!({})).await;
    let path = format!("/v1/destinations/{}", destination["id"].as_str().expect("a string"));
    server.post(&format!("{path}/pause"), json!({})).await.expect(200);
    let mut published = Vec::new();
    for _ in 0..20 {
        published.push(publish(&server, json!({})).await);
    }
    assert_eq!(server.delete(&path).await.status, 204);
    for one in &published {
        let story = event(&server, one).await;
        assert_eq!(story["status"], "cancelled", "visible at once: {story}");
        assert_eq!(story["deliveries"][0]["final_reason"], "its destination was deleted");
        assert!(story["deliveries"][0]["finished_at"].is_string(), "{story}");
    }
    let of_it = format!("/v1/deliveries?destination_id={}", destination["id"].as_str().expect("a string"));
    let listed = server.get(&format!("{of_it}&status=cancelled&total=true")).await.expect(200);
    assert_eq!(
        (&listed["total"], listed["items"].as_array().map(Vec::len)),
        (&json!(20), Some(20)),
        "at once"
    );
    until(secs(10), "all are written", async || {
        server.get("/v1/deliveries?status=cancelled&total=true").await.expect(200)["total"] == 20
    })
    .await;
    assert!(server.stop().await);
    server.restart().await;
    // What it was sent, or not, can be found by its id, which is still shown.
    let id = destination["id"].as_str().expect("a string");
    let path = format!("/v1/deliveries?status=cancelled&destination_id={id}&total=true");
    let listed = server.get(&path).await.expect(200);
    assert_eq!((&listed["total"], &listed["items"][0]["destination_id"]), (&json!(20), &json!(id)));
    assert_eq!(receiver.count(), 0);
}

#[tokio::test]
async fn event_types_and_routes_decide_terms_and_ways() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(500)).await;
    let destination = make(&server, &receiver.url, json!({"event_types": []})).await;
    assert_eq!(publish(&server, json!({})).await["routed"], 0);
    let route = server
        .post("/v1/routes", json!({"destination_id": destination["id"], "event_type_pattern": "order.*"}))
        .await
        .expect(201);
    let made = server
        .put(
            "/v1/event-types/order.*",
            json!({"max_attempts": 1, "delivery_ttl_seconds": 3600, "priority": 2}),
        )
        .await;
    assert_eq!((made.status, made.header("etag")), (201, Some("\"1\"")));
    let published = publish(&server, json!({})).await;
    let story = until_event(&server, &published, "dead_letter").await;
    assert_eq!(
        (&story["deliveries"][0]["max_attempts"], &story["deliveries"][0]["priority"]),
        (&json!(1), &json!(2))
    );
    assert!(story["expires_at"].is_string());
    let own = json!({"retry_policy": {"max_attempts": 2, "delays_seconds": [600]}});
    server
        .patch(&format!("/v1/destinations/{}", destination["id"].as_str().expect("a string")), own)
        .await
        .expect(200);
    server.put("/v1/event-types/order.raised", json!({"max_attempts": 9})).await.expect(201);
    let raised = publish(&server, json!({"event_type": "order.raised"})).await;
    let raised = event(&server, &raised).await;
    assert_eq!(raised["deliveries"][0]["max_attempts"], 9, "the type goes before the destination");
    server.put("/v1/event-types/order.a", json!({})).await.expect(201);
    let page = server.get("/v1/event-types?limit=2").await.expect(200);
    assert_eq!(page["items"][1]["event_type"], "order.a");
    assert_eq!(server.delete("/v1/event-types/order.a").await.status, 204);
    let next =
        format!("/v1/event-types?limit=2&cursor={}", page["next_cursor"].as_str().expect("there is more"));
    let next = server.get(&next).await.expect(200);
    assert_eq!(
        (&next["items"][0]["event_type"], &next["next_cursor"]),
        (&json!("order.raised"), &Value::Null)
    );
    assert_eq!(server.delete("/v1/event-types/order.raised").await.status, 204);
    let shown = server.get("/v1/event-types/order.*").await.expect(200);
    assert_eq!((&shown["event_type"], &shown["version"]), (&json!("order.*"), &json!(1)));
    let refused = server.put("/v1/event-types/order.*", json!({"schema": {}})).await;
    assert_eq!(refused.expect_error(422, "invalid_field")["field"], "schema");
    let refused =
        server.post("/v1/routes", json!({"destination_id": destination["id"], "source_id": "src_1"})).await;
    assert_eq!(refused.expect_error(422, "invalid_field")["field"], "source_id");
    assert_eq!(
        server.delete(&format!("/v1/routes/{}", route["id"].as_str().expect("a string"))).await.status,
        204
    );
    assert_eq!(server.delete("/v1/event-types/order.*").await.status, 204);
    assert_eq!(publish(&server, json!({})).await["routed"], 0);
    assert_eq!(server.get("/v1/routes?total=true").await.expect(200)["total"], 0);
}

#[tokio::test]
async fn what_a_deleted_destination_left_is_cancelled_after_a_crash() {
    let mut server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let destination = make(&server, &receiver.url, json!({})).await;
    let path = format!("/v1/destinations/{}", destination["id"].as_str().expect("a string"));
    server.post(&format!("{path}/pause"), json!({})).await.expect(200);
    let events: Vec<Value> = (0..1_000).map(|n| json!({"event_type": "a.b", "payload": n})).collect();
    for _ in 0..5 {
        server.post("/v1/outbound-events/batch", json!({"events": events})).await.expect(202);
    }
    assert_eq!(server.delete(&path).await.status, 204);
    server.kill9();
    server.restart().await;
    let listed = server.get("/v1/deliveries?limit=200").await.expect(200);
    let shown = listed["items"].as_array().expect("a list");
    assert!(shown.iter().all(|item| item["status"] == "cancelled"), "{}", shown[0]);
    until(secs(20), "all are written", async || {
        server.get("/v1/deliveries?status=cancelled&total=true").await.expect(200)["total"] == 5_000
    })
    .await;
    assert_eq!(receiver.count(), 0);
}

async fn publish_many(client: &Client, count: usize, event: Value) {
    for some in (0..count).collect::<Vec<_>>().chunks(1_000) {
        let events = vec![event.clone(); some.len()];
        client.post("/v1/outbound-events/batch", json!({"events": events})).await.expect(202);
    }
}

/// Goal: a total is exact up to 10,000, however many must be looked at to tell.
#[tokio::test]
async fn totals_are_exact_among_many_that_do_not_fit() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let window =
        json!({"timezone": "UTC", "quiet_start": "00:00", "quiet_end": "23:59:59", "applies_to": ["rare.*"]});
    let rate = json!({"max": 1, "per": "day", "burst_capacity": 1});
    make(&server, &receiver.url, json!({"delivery_schedule": window, "rate_limit": rate})).await;
    publish_many(&server, 7, json!({"event_type": "rare.one", "payload": 1})).await;
    publish_many(&server, 3, json!({"event_type": "a.b", "payload": 1, "deliver_at": in_seconds(3_600)}))
        .await;
    publish_many(&server, 24_001, json!({"event_type": "a.b", "payload": 1})).await;
    until(secs(10), "the one that may go has gone", async || {
        server.get("/v1/deliveries?status=delivered&total=true").await.expect(200)["total"] == 1
    })
    .await;
    for (query, total) in [
        ("status=retry_scheduled", json!(3)),
        ("hold_reason=scheduled", json!(3)),
        ("hold_reason=quiet_hours", json!(7)),
        ("hold_reason=quiet_hours&status=queued", json!(7)),
        ("hold_reason=rate_limited", Value::Null),
        ("status=queued", Value::Null),
        ("status=queued&event_type=rare.one", json!(7)),
        ("event_type=rare.one", json!(7)),
        ("hold_reason=paused", json!(0)),
        ("status=expired", json!(0)),
        ("status=delivering", json!(0)),
        ("", Value::Null),
    ] {
        for list in ["deliveries", "outbound-events"] {
            let path = format!("/v1/{list}?{query}&total=true&limit=1");
            assert_eq!(server.get(&path).await.expect(200)["total"], total, "{path}");
        }
    }
}

/// Goal: what is stale is shown so at once, in lists, totals and counts, though writing it takes a while.
#[tokio::test]
async fn what_is_stale_is_nowhere_shown_as_waiting() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let destination = make(&server, &receiver.url, json!({})).await;
    let path = format!("/v1/destinations/{}", destination["id"].as_str().expect("a string"));
    server.post(&format!("{path}/pause"), json!({})).await.expect(200);
    let expiry = in_seconds(8);
    publish_many(&server, 9_000, json!({"event_type": "a.b", "payload": 1, "expires_at": expiry})).await;
    publish(&server, json!({})).await;
    assert_eq!(server.get(&path).await.expect(200)["queued_events"], 9_001, "before they expire");
    until(secs(20), "their time has come", async || in_seconds(0) > expiry).await;
    let shown = server.get(&path).await.expect(200);
    let total = async |list: &str| {
        server.get(&format!("/v1/{list}&total=true&limit=1")).await.expect(200)["total"].clone()
    };
    assert_eq!(shown["queued_events"], 1);
    assert_eq!(server.get("/v1/stats").await.expect(200)["queued_events"], 1);
    assert_eq!(total("deliveries?status=expired").await, 9_000);
    assert_eq!(total("deliveries?status=queued").await, 1);
    assert_eq!(total("deliveries?hold_reason=paused").await, 1);
    assert_eq!(total("outbound-events?status=expired").await, 9_000);
}

/// Goal: an event tells every request that was made for it, however many destinations it went to.
#[tokio::test]
async fn an_event_for_many_destinations_shows_all_their_attempts() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    for _ in 0..130 {
        make(&server, &receiver.url, json!({})).await;
    }
    let published = publish(&server, json!({})).await;
    let story = until_event(&server, &published, "delivered").await;
    let count = |name: &str| story[name].as_array().map(Vec::len);
    assert_eq!((count("deliveries"), count("attempts")), (Some(130), Some(130)));
    assert_eq!(story["attempts_shown_for"], 130);
}

/// Goal: events are found by what became of them, each once, also where one has more deliveries than a page has places.
#[tokio::test]
async fn events_are_listed_by_status_destination_and_hold() {
    let server = Server::start(&[]).await;
    let well = Receiver::start(|_| Reply::status(200)).await;
    let ill = Receiver::start(|_| Reply::status(500)).await;
    let once = json!({"max_attempts": 1});
    for name in ["a", "b", "c", "d", "e"] {
        make(&server, &well.url, json!({"external_id": name, "event_types": ["to.many"]})).await;
        server.post(&format!("/v1/destinations/{name}/pause"), json!({})).await.expect(200);
    }
    make(&server, &well.url, json!({"external_id": "well", "event_types": ["to.well", "to.both"]})).await;
    let policies = json!({"external_id": "ill", "event_types": ["to.ill", "to.both"], "retry_policy": once});
    make(&server, &ill.url, policies).await;
    let mut ids = std::collections::HashMap::new();
    for (name, event_type) in [
        ("many-1", "to.many"),
        ("nobody", "to.nobody"),
        ("both", "to.both"),
        ("ill", "to.ill"),
        ("well", "to.well"),
        ("many-2", "to.many"),
    ] {
        let published = publish(&server, json!({"event_type": event_type})).await;
        ids.insert(published["id"].as_str().expect("an id").to_owned(), name);
    }
    let listed = async |query: &str| {
        let (mut names, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let after = cursor.map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
            let page = server.get(&format!("/v1/outbound-events?{query}{after}")).await.expect(200);
            let items = page["items"].as_array().expect("a list").iter();
            names.extend(items.map(|item| ids[item["id"].as_str().expect("an id")]));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return names,
            }
        }
    };
    until(secs(10), "all that can end has ended", async || listed("status=dead_letter").await.len() == 2)
        .await;
    until(secs(10), "and the others", async || listed("status=delivered").await.len() == 2).await;
    for limit in [1, 2, 3, 25] {
        for (query, expected) in [
            ("status=queued", &["many-2", "many-1"][..]),
            ("hold_reason=paused", &["many-2", "many-1"]),
            ("hold_reason=paused&status=dead_letter", &[]),
            ("destination_id=c", &["many-2", "many-1"]),
            ("destination_id=c&status=queued&hold_reason=paused", &["many-2", "many-1"]),
            ("destination_id=well", &["well", "both"]),
            ("destination_id=well&status=dead_letter", &["both"]),
            ("destination_id=ill&event_type=to.ill", &["ill"]),
            ("status=dead_letter", &["ill", "both"]),
            ("status=delivered", &["well", "nobody"]),
            ("status=expired", &[]),
            ("destination_id=c&to=2020-01-01T00:00:00Z", &[]),
            ("destination_id=c&from=2020-01-01T00:00:00Z", &["many-2", "many-1"]),
        ] {
            let query = format!("{query}&limit={limit}");
            assert_eq!(listed(&query).await, expected, "{query}");
            let counted = server.get(&format!("/v1/outbound-events?{query}&total=true")).await.expect(200);
            assert_eq!(counted["total"], expected.len(), "{query}");
        }
    }

    // A replay is a newer delivery of the same event, which is still listed once.
    ill.behave(|_| Reply::status(200));
    let both = ids.iter().find(|(_, name)| **name == "both").expect("it is there").0;
    server.post(&format!("/v1/outbound-events/{both}/replay"), json!({})).await.expect(202);
    until(secs(10), "the replay is through", async || listed("status=delivered").await.contains(&"both"))
        .await;
    assert_eq!(listed("status=dead_letter").await, ["ill"]);
    assert_eq!(listed("destination_id=ill&limit=1").await, ["both", "ill"], "where its newest stands");

    // One event, and not all of its deliveries.
    let many = ids.iter().find(|(_, name)| **name == "many-1").expect("it is there").0;
    let told = server.get(&format!("/v1/outbound-events/{many}?deliveries=2")).await.expect(200);
    assert_eq!(told["deliveries"].as_array().expect("a list").len(), 2);
    assert_eq!(told["delivery_counts"], json!({"queued": 5}));
    server.get("/v1/outbound-events?status=lost").await.expect_error(422, "invalid_field");
    server.get("/v1/outbound-events?destination_id=nobody").await.expect_error(404, "not_found");
}
