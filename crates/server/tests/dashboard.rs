//! The dashboard in a real browser, driven as a person would.

#[path = "dashboard/axe.rs"]
mod axe;
#[path = "dashboard/browser.rs"]
mod browser;
#[path = "dashboard/forms.rs"]
mod forms;
#[path = "dashboard/guards.rs"]
mod guards;
mod kit;
#[path = "dashboard/live.rs"]
mod live;
#[path = "dashboard/looks.rs"]
mod looks;
#[path = "dashboard/many.rs"]
mod many;
#[path = "dashboard/sessions.rs"]
mod sessions;
#[path = "interop/tools.rs"]
mod tools;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering::Relaxed};

use browser::Browser;
use kit::{Receiver, Reply, Server, secs, until, until_some, wall};
use serde_json::{Value, json};

async fn destination(server: &Server, more: Value) -> String {
    let mut body = more;
    if body.get("name").is_none() {
        body["name"] = json!("Orders");
    }
    let made = server.post("/v1/destinations", body).await.expect(201);
    made["id"].as_str().expect("an id").to_owned()
}

async fn publish(server: &Server, body: Value) -> String {
    let made = server.post("/v1/outbound-events", body).await.expect(202);
    made["id"].as_str().expect("an id").to_owned()
}

/// A window around now, in UTC, as a person would write it.
fn window_around_now() -> (String, String) {
    let now = wall().to_zoned(jiff::tz::TimeZone::UTC);
    let clock = |hours: i64| {
        now.checked_add(jiff::Span::new().hours(hours)).expect("a time").strftime("%H:00").to_string()
    };
    (clock(-1), clock(3))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_creates_a_destination_sees_its_event_held_and_lets_it_go() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let browser = Browser::open(&server.base_url).await;
    browser.go("/destinations").await;
    assert_eq!(browser.path().await, "/sign-in?next=%2Fdestinations", "nobody sees anything without a key");
    browser.fill("key", "tg_wrong").await;
    browser.press("Sign in").await;
    browser.reads(".fault", "no valid key").await;
    browser.fill("key", &server.key).await;
    browser.press("Sign in").await;
    browser.reads("h1", "Destinations").await;

    browser.go("/").await;
    browser.reads(".steps", "What to do next").await;
    browser.press("Create one here").await;
    browser.fill("name", "Night shop").await;
    browser.fill("url", "not a url").await;
    let (start, end) = window_around_now();
    browser.fill("delivery_schedules[0].timezone", "UTC").await;
    browser.fill("delivery_schedules[0].quiet_start", &start).await;
    browser.fill("delivery_schedules[0].quiet_end", &end).await;
    browser.press("Create").await;
    browser.reads("#f-url-fault", "url").await;
    browser.fill("url", &receiver.url).await;
    browser.press("Create").await;
    browser.reads(".secret", "whsec_").await;
    browser.reads("h1", "Night shop").await;
    browser.reads("[data-live=gates]", "quiet hours").await;

    // The lines of the empty overview work as they stand.
    browser.go("/").await;
    browser.reads(".steps", "✓ Create a destination").await;
    let line = browser.text(".steps pre").await;
    assert!(line.contains(&server.key) && line.contains(&server.base_url), "{line}");
    let output = std::process::Command::new("sh").args(["-c", &line]).output().expect("a shell");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("an answer");
    let event = answer["data"]["id"].as_str().expect("an event").to_owned();

    browser.go(&format!("/events/{event}")).await;
    browser.reads("[data-live=status]", "queued").await;
    browser.reads(".delivery", "quiet hours").await;
    let explained = browser.text(".explain").await;
    assert!(explained.contains(&format!("{end}:00")), "the window's end {end} is named: {explained}");
    assert_eq!(receiver.count(), 0);
    // Its picture names what it waits for, although that lasts.
    let picture = "return document.querySelector('[data-live=lanes] svg').textContent";
    until(secs(60), "the wait is named", async || {
        browser.run(picture).await.as_str().is_some_and(|text| text.contains("quiet hours"))
    })
    .await;

    // In another tab the window goes; this one shows it without a reload.
    let mark = "document.body.dataset.mark = 'same page'";
    browser.run(mark).await;
    let shop = server.get("/v1/destinations").await.expect(200)["items"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let other = Browser::open(&server.base_url).await;
    other.sign_in(&server.key).await;
    other.go(&format!("/destinations/{shop}/edit")).await;
    other.press_on("[name='delivery_schedules[0].remove']").await;
    other.press("Save").await;
    other.reads(".notice", "Saved").await;
    other.reads("[data-live=gates]", "none are set").await;
    until(secs(60), "the event arrives", async || receiver.count() == 1).await;
    browser.reads("[data-live=status]", "delivered").await;
    assert_eq!(browser.run("return document.body.dataset.mark").await, "same page");
    let complaints = browser.complaints().await;
    assert!(
        complaints.iter().all(|line| line.contains("/sign-in") && line.contains("401")),
        "{complaints:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn throttle_and_breaker_are_seen_with_their_reason_and_lifted_by_hand() {
    let server = Server::start(&[]).await;
    let status = Arc::new(AtomicU16::new(429));
    let answers = Arc::clone(&status);
    let receiver =
        Receiver::start(move |_| Reply::status(answers.load(Relaxed)).header("retry-after", "600")).await;
    let shop = destination(
        &server,
        json!({"url": receiver.url, "retry_policy": {"max_attempts": 20, "delays_seconds": [1]}}),
    )
    .await;
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    browser.go(&format!("/destinations/{shop}")).await;
    browser.reads("[data-live=status]", "active").await;
    publish(&server, json!({"event_type": "order.paid", "payload": {"n": 1}})).await;
    browser.reads("[data-live=status]", "throttled").await;
    browser.reads("[data-live=gates]", "answered 429").await;
    browser.reads("[data-live=gates]", "opens in").await;
    browser.reads("[data-live=backlog]", "1 delivery waits").await;
    browser.reads("[data-live=history]", "throttled").await;
    browser.go("/").await;
    browser.reads("[data-live=overview]", "answered 429").await;

    status.store(500, Relaxed);
    browser.go(&format!("/destinations/{shop}")).await;
    browser.press("Retry now").await;
    browser.reads(".notice", "A probe goes at once").await;
    for number in 2..12 {
        publish(&server, json!({"event_type": "order.paid", "payload": {"n": number}})).await;
    }
    browser.reads("[data-live=status]", "circuit open").await;
    browser.reads("[data-live=attempts]", "http error").await;
    status.store(200, Relaxed);
    browser.press("Retry now").await;
    until(secs(60), "all arrive", async || {
        server.get("/v1/deliveries?status=delivered&total=true").await.expect(200)["total"] == 11
    })
    .await;
    browser.reads("[data-live=status]", "active").await;
    browser.reads("[data-live=history]", "circuit closed").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_expired_and_what_was_given_up_are_told_apart_and_sent_again_in_bulk() {
    let server = Server::start(&[]).await;
    let well = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&well);
    let receiver =
        Receiver::start(move |_| Reply::status(if answers.load(Relaxed) { 200 } else { 500 })).await;
    let breaker = json!({"enabled": false});
    let dead = destination(&server, json!({"name": "Dead", "url": receiver.url, "event_types": ["dead"], "retry_policy": {"max_attempts": 1}, "circuit_breaker": breaker})).await;
    let paused =
        destination(&server, json!({"name": "Paused", "url": receiver.url, "event_types": ["stale"]})).await;
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    browser.go(&format!("/destinations/{paused}")).await;
    browser.press("Pause").await;
    browser.reads("[data-live=status]", "paused").await;
    for number in 0..30 {
        publish(&server, json!({"event_type": "dead", "payload": {"n": number}})).await;
    }
    publish(&server, json!({"event_type": "stale", "payload": {}, "ttl_seconds": 1})).await;

    browser.go("/log").await;
    browser.reads(".tabs", "Dead letter 30").await;
    browser.reads(".tabs", "Expired 1").await;
    browser.go("/log?tab=expired").await;
    browser.reads("table", "paused").await;
    assert!(!browser.text("table").await.contains("dead"));
    browser.press("Dead letter 30").await;
    browser.reads("table", "dead letter").await;

    well.store(true, Relaxed);
    browser.go("/dead-letters").await;
    browser.fill("filter.destination_id", &dead).await;
    browser.fill("max_per_minute", "10").await;
    browser.press("Count them (dry run)").await;
    browser.reads(".notice", "30 deliveries fit").await;
    assert_eq!(
        receiver.received().iter().filter(|request| request.answered == 200).count(),
        0,
        "a dry run sends nothing"
    );
    browser.press("Replay them").await;
    browser.reads("h1", "Replay").await;
    browser.reads("[data-live=job]", "running").await;
    browser.press("Stop").await;
    browser.reads("[data-live=job]", "stopped").await;
    browser.press("Dead letters").await;
    browser.fill("filter.destination_id", &dead).await;
    browser.press("Replay them").await;
    browser.reads("[data-live=job]", "done").await;
    until(secs(60), "all are delivered", async || {
        server.get("/v1/deliveries?status=delivered&total=true").await.expect(200)["total"] == 30
    })
    .await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_scripts_every_page_and_form_works() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let browser = Browser::open(&server.base_url).await;
    browser.scripts(false).await;
    browser.sign_in(&server.key).await;
    browser.go("/destinations/new").await;
    browser.fill("name", "Plain").await;
    browser.fill("url", &receiver.url).await;
    browser.press("Create").await;
    browser.reads("h1", "Plain").await;
    let made = until_some(secs(60), "it is there", async || {
        server.get("/v1/destinations").await.expect(200)["items"][0]["id"].as_str().map(str::to_owned)
    })
    .await;
    browser.go(&format!("/destinations/{made}/edit")).await;
    browser.fill("max_concurrency", "7").await;
    browser.press("Save").await;
    until(secs(60), "it is saved", async || {
        server.get(&format!("/v1/destinations/{made}")).await.expect(200)["max_concurrency"] == 7
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_previewed_on_the_traffic_that_was() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let shop = destination(&server, json!({"url": receiver.url})).await;
    let events: Vec<Value> =
        (0..60).map(|number| json!({"event_type": "a.b", "payload": {"n": number}})).collect();
    server.post("/v1/outbound-events/batch", json!({"events": events})).await.expect(202);
    until(secs(60), "all arrive", async || receiver.count() == 60).await;
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    browser.go(&format!("/destinations/{shop}/edit")).await;
    browser.press_on("[name='rate_limit']").await;
    browser.fill("rate_limit.max", "10").await;
    browser.fill("rate_limit.burst_capacity", "1").await;
    browser.press("Preview on the last 24 hours").await;
    browser.reads(".preview", "60 deliveries").await;
    browser.reads(".preview", "mostly rate limited").await;
    assert_eq!(
        server.get(&format!("/v1/destinations/{shop}")).await.expect(200)["rate_limit"],
        Value::Null,
        "nothing is saved"
    );
    browser.press("Save").await;
    browser.reads(".notice", "Saved").await;
    assert_eq!(server.get(&format!("/v1/destinations/{shop}")).await.expect(200)["rate_limit"]["max"], 10);
    // What was not touched is not pinned: the account's default goes on to hold.
    server.patch("/v1/settings", json!({"defaults": {"max_concurrency": 9}})).await.expect(200);
    assert_eq!(server.get(&format!("/v1/destinations/{shop}")).await.expect(200)["max_concurrency"], 9);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_made_shown_once_and_revoked_and_types_are_published() {
    let server = Server::start(&[]).await;
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    browser.go("/settings").await;
    browser.fill("name", "For the shop").await;
    browser.choose("role", "publisher").await;
    browser.press("Make a key").await;
    browser.reads(".secret", "tg_").await;
    let key = browser.text(".secret pre").await;
    server
        .with_key(key.trim())
        .post("/v1/outbound-events", json!({"event_type": "a.b", "payload": {}}))
        .await
        .expect(202);
    browser.go("/settings").await;
    assert!(!browser.text("body").await.contains(key.trim()), "it is shown once");
    browser.press("Revoke").await;
    browser.reads(".notice", "Revoked").await;
    server
        .with_key(key.trim())
        .post("/v1/outbound-events", json!({"event_type": "a.b", "payload": {}}))
        .await
        .expect_error(401, "unauthorized");

    browser.go("/event-types/edit").await;
    browser.fill("event_type", "order.paid").await;
    browser.fill("description", "A customer has paid.").await;
    browser.fill("delivery_ttl_seconds", "-5").await;
    browser.press("Save").await;
    browser.reads(".fault", "delivery_ttl_seconds").await;
    browser.fill("delivery_ttl_seconds", "300").await;
    browser.press("Save").await;
    browser.reads("article", "5 min").await;
    let account =
        server.get("/v1/accounts").await.expect(200)["items"][0]["id"].as_str().expect("an id").to_owned();
    let public = format!("/catalogue/{account}");
    assert_eq!(server.with_key("").get(&public).await.status, 404, "not unless an owner says so");
    browser.go("/settings").await;
    browser.press_on("[name='public_event_types']").await;
    browser.press("Save").await;
    browser.reads(".notice", "Saved").await;
    let shown = server.with_key("").get(&public).await;
    assert!(shown.status == 200 && shown.text().contains("A customer has paid."), "{}", shown.text());
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}
