//! What people ask about many destinations at once, and about what comes next: search and order, forecasts, history, previews.

mod kit;

use kit::{Receiver, Reply, Server, secs, until};
use serde_json::{Value, json};

async fn destination(server: &Server, body: Value) -> String {
    server.post("/v1/destinations", body).await.expect(201)["id"].as_str().expect("an id").to_owned()
}

fn names(page: &Value) -> Vec<&str> {
    page["items"].as_array().expect("items").iter().filter_map(|item| item["name"].as_str()).collect()
}

#[tokio::test]
async fn destinations_are_found_by_name_url_and_id_and_sorted_as_a_person_wants() {
    let server = Server::start(&[]).await;
    let url = "https://hooks.example.com";
    let beta = destination(
        &server,
        json!({"name": "Beta", "url": format!("{url}/b"), "event_types": ["b"], "timeout_seconds": 20}),
    )
    .await;
    destination(
        &server,
        json!({"name": "alpha", "url": format!("{url}/a"), "external_id": "shop-7", "event_types": ["a"]}),
    )
    .await;
    destination(&server, json!({"name": "Gamma", "url": format!("{url}/c"), "event_types": ["c"]})).await;
    for paused in [&beta, "shop-7"] {
        server.post(&format!("/v1/destinations/{paused}/pause"), json!({})).await.expect(200);
    }
    for event_type in ["a", "a", "b"] {
        server
            .post("/v1/outbound-events", json!({"event_type": event_type, "payload": {}}))
            .await
            .expect(202);
    }
    for (query, wanted) in [
        ("", vec!["Gamma", "alpha", "Beta"]),
        ("?search=ALP", vec!["alpha"]),
        ("?search=shop-7", vec!["alpha"]),
        ("?search=example.com%2Fb", vec!["Beta"]),
        (&format!("?search={beta}"), vec!["Beta"]),
        ("?search=nothing", vec![]),
        ("?sort=name", vec!["alpha", "Beta", "Gamma"]),
        ("?sort=queued", vec!["alpha", "Beta", "Gamma"]),
        ("?sort=attention", vec!["alpha", "Beta", "Gamma"]),
        ("?sort=timeout", vec!["Beta", "Gamma", "alpha"]),
        ("?sort=oldest", vec!["alpha", "Beta", "Gamma"]),
        ("?sort=success_rate", vec!["Gamma", "alpha", "Beta"]),
        ("?status=paused&sort=name", vec!["alpha", "Beta"]),
        ("?status=active", vec!["Gamma"]),
    ] {
        let page = server.get(&format!("/v1/destinations{query}")).await.expect(200);
        assert_eq!(names(&page), wanted, "{query}");
    }
    let mut path = "/v1/destinations?sort=name&limit=1&total=true".to_owned();
    let mut seen = Vec::new();
    loop {
        let page = server.get(&path).await.expect(200);
        assert_eq!(page["total"], 3);
        seen.extend(names(&page).into_iter().map(str::to_owned));
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/destinations?sort=name&limit=1&total=true&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen, ["alpha", "Beta", "Gamma"]);
    // Whoever pages through comes to an end, though what was shown last is no longer one of them.
    for query in ["status=paused&sort=name", "status=paused"] {
        let mut path = format!("/v1/destinations?{query}&limit=1");
        let mut seen = Vec::new();
        while let Some(page) = Some(server.get(&path).await.expect(200)) {
            let id = page["items"][0]["id"].as_str().expect("an id").to_owned();
            seen.extend(names(&page).into_iter().map(str::to_owned));
            let Some(cursor) = page["next_cursor"].as_str() else { break };
            path = format!("/v1/destinations?{query}&limit=1&cursor={cursor}");
            server.post(&format!("/v1/destinations/{id}/resume"), json!({})).await.expect(200);
        }
        seen.sort();
        assert_eq!(seen, ["Beta", "alpha"], "{query}");
        for name in &seen {
            let found = server.get(&format!("/v1/destinations?search={name}")).await.expect(200);
            let id = found["items"][0]["id"].as_str().expect("an id");
            server.post(&format!("/v1/destinations/{id}/pause"), json!({})).await.expect(200);
        }
    }
    assert_eq!(
        server.get("/v1/destinations?sort=colour").await.expect_error(422, "invalid_field")["field"],
        "sort"
    );
}

#[tokio::test]
async fn a_forecast_counts_the_rate_and_says_what_a_person_must_do() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let limit = json!({"max_per_minute": 1, "burst_capacity": 1});
    let shop = destination(&server, json!({"name": "Slow", "url": receiver.url, "rate_limit": limit})).await;
    let forecast = format!("/v1/destinations/{shop}/forecast");
    assert_eq!(server.get(&forecast).await.expect(200)["drained_at"], Value::Null, "nothing waits");
    for number in 0..11 {
        server.post("/v1/outbound-events", json!({"event_type": "a", "payload": number})).await.expect(202);
    }
    until(secs(10), "the first arrives", async || receiver.count() == 1).await;
    let said = server.get(&forecast).await.expect(200);
    assert_eq!(said["queued_events"], 10);
    let at: jiff::Timestamp = said["drained_at"].as_str().expect("a time").parse().expect("a time");
    let minutes = at.duration_since(kit::wall()).as_secs() / 60;
    assert!((8..=10).contains(&minutes), "ten at one a minute: {said}");
    let shown = server.get(&format!("/v1/destinations/{shop}")).await.expect(200);
    assert_eq!((&shown["rate_now"]["tokens"], &shown["rate_now"]["burst"]), (&json!(0), &json!(1)));
    server.post(&format!("/v1/destinations/{shop}/pause"), json!({})).await.expect(200);
    let said = server.get(&forecast).await.expect(200);
    assert_eq!((&said["drained_at"], &said["opens_at"]), (&Value::Null, &Value::Null));
    assert!(said["waits_for"].as_str().is_some_and(|what| what.contains("resuming it")), "{said}");
}

#[tokio::test]
async fn what_is_held_is_counted_by_reason_and_what_happened_is_kept() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(429).header("retry-after", "600")).await;
    let shop =
        destination(&server, json!({"name": "Busy", "url": receiver.url, "event_types": ["busy"]})).await;
    let still =
        destination(&server, json!({"name": "Still", "url": receiver.url, "event_types": ["still"]})).await;
    server.post(&format!("/v1/destinations/{still}/pause"), json!({})).await.expect(200);
    for event_type in ["still", "still", "busy"] {
        server
            .post("/v1/outbound-events", json!({"event_type": event_type, "payload": {}}))
            .await
            .expect(202);
    }
    until(secs(10), "both are held", async || {
        let stats = server.get("/v1/stats").await.expect(200);
        stats["held"]
            == json!([
                {"reason": "paused", "deliveries": 2, "destinations": 1},
                {"reason": "throttled", "deliveries": 1, "destinations": 1},
            ])
            && stats["oldest_queued_at"].is_string()
    })
    .await;
    let stats = server.get("/v1/stats").await.expect(200);
    let minutes = stats["minutes"].as_array().expect("minutes");
    let sum = |field: &str| minutes.iter().filter_map(|minute| minute[field].as_u64()).sum::<u64>();
    assert_eq!((sum("accepted"), sum("attempts"), sum("successes")), (3, 1, 0));
    assert!(minutes.iter().any(|minute| minute["p99_ms"].is_i64()), "{stats}");
    server
        .post(
            "/v1/outbound-events",
            json!({"event_type": "busy", "payload": {}, "expires_at": "2020-01-01T00:00:00Z"}),
        )
        .await
        .expect(202);
    let ended = server.get("/v1/stats/ended").await.expect(200);
    assert_eq!(ended, json!({"delivered": 0, "dead_letter": 0, "expired": 1, "cancelled": 0}));
    let notices = server.get(&format!("/v1/destinations/{shop}/notices?total=true")).await.expect(200);
    assert_eq!((&notices["total"], &notices["items"][0]["kind"]), (&json!(1), &json!("throttled")));
    // Nothing of it is another account's.
    let other = server.post("/v1/accounts", json!({"name": "Other"})).await.expect(201);
    let other = server.with_key(other["api_key"].as_str().expect("a key"));
    assert_eq!(other.get("/v1/stats").await.expect(200)["held"], json!([]));
    assert_eq!(other.get("/v1/stats").await.expect(200)["minutes"], json!([]));
    other.get(&format!("/v1/destinations/{shop}/notices")).await.expect_error(404, "not_found");
}

#[tokio::test]
async fn a_preview_plays_the_past_again_and_changes_nothing() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let shop = destination(&server, json!({"name": "Shop", "url": receiver.url})).await;
    let events: Vec<Value> =
        (0..100).map(|number| json!({"event_type": "a", "payload": number, "ttl_seconds": 120})).collect();
    server.post("/v1/outbound-events/batch", json!({"events": events})).await.expect(202);
    until(secs(10), "all arrive", async || receiver.count() == 100).await;
    let path = format!("/v1/destinations/{shop}/preview");
    let same = server.post(&path, json!({})).await.expect(200);
    assert_eq!((&same["deliveries"], &same["before"]), (&json!(100), &same["after"]));
    assert_eq!(same["before"]["delivered"], 100);
    let limit = json!({"rate_limit": {"max_per_minute": 10, "burst_capacity": 1}});
    let limited = server.post(&path, limit).await.expect(200);
    assert_eq!(limited["before"], same["before"], "the same past, the same figures");
    let (delivered, expired) = (&limited["after"]["delivered"], &limited["after"]["expired"]);
    assert!(
        delivered.as_u64() < Some(25) && expired.as_u64() > Some(75),
        "two minutes at ten a minute: {limited}"
    );
    assert_eq!(limited["after"]["busiest_minute"], 10);
    let wrong = json!({"rate_limit": {"max_per_minute": 0}});
    let refused = server.post(&path, wrong).await.expect_error(422, "invalid_field");
    assert_eq!(refused["field"], "rate_limit.max_per_minute");
    assert_eq!(server.get(&format!("/v1/destinations/{shop}")).await.expect(200)["rate_limit"], Value::Null);
    let viewer = server.post("/v1/api-keys", json!({"name": "look", "role": "viewer"})).await.expect(201);
    let viewer = server.with_key(viewer["api_key"].as_str().expect("a key"));
    viewer.post(&path, json!({})).await.expect_error(403, "forbidden");
}
