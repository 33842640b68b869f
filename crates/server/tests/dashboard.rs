//! The dashboard in a real browser, driven as a person would.

#[path = "dashboard/axe.rs"]
mod axe;
#[path = "dashboard/browser.rs"]
mod browser;
#[path = "dashboard/forms.rs"]
mod forms;
mod kit;
#[path = "dashboard/many.rs"]
mod many;
#[path = "dashboard/sessions.rs"]
mod sessions;
#[path = "interop/tools.rs"]
mod tools;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering::Relaxed};

use browser::{Browser, Looks};
use kit::{Receiver, Reply, Server, millis, secs, until, until_some, wall};
use serde_json::{Value, json};

/// What an attacker would have a page take for HTML.
const EVIL: &str =
    "\"'><script>window.evil=1</script><img src=x onerror=window.evil=1><svg onload=window.evil=1>";

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
    until(secs(30), "the event arrives", async || receiver.count() == 1).await;
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
    until(secs(30), "all arrive", async || {
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
    browser.fill("max_per_minute", "100").await;
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
    until(secs(30), "all are delivered", async || {
        server.get("/v1/deliveries?status=delivered&total=true").await.expect(200)["total"] == 30
    })
    .await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn text_full_of_markup_does_nothing_anywhere() {
    let server = Server::start(&[]).await;
    let receiver =
        Receiver::start(|_| Reply::status(400).header("x-evil", "<script>window.evil=1</script>").body(EVIL))
            .await;
    let shop = destination(&server, json!({"name": EVIL, "url": format!("{}/?a=<script>", receiver.url), "retry_policy": {"max_attempts": 1}})).await;
    let body = json!({"event_type": "a.b", "payload": {EVIL: [EVIL, "</pre></script>"]}, "external_event_id": EVIL, "ordering_key": EVIL});
    let event = publish(&server, body).await;
    let described = json!({"description": EVIL, "consumer_guidance": EVIL});
    server.put("/v1/event-types/a.b", described).await.expect(201);
    server.patch("/v1/settings", json!({"public_event_types": true})).await.expect(200);
    server.post("/v1/api-keys", json!({"name": EVIL, "role": "viewer"})).await.expect(201);
    until(secs(30), "it is given up", async || {
        server.get("/v1/deliveries?status=dead_letter&total=true").await.expect(200)["total"] == 1
    })
    .await;
    let account =
        server.get("/v1/accounts").await.expect(200)["items"][0]["id"].as_str().expect("an id").to_owned();
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    let search = format!(
        "/destinations?search={}&status=%3Cscript%3E",
        "%22%3E%3Cscript%3Ewindow.evil%3D1%3C%2Fscript%3E"
    );
    for path in [
        "/".to_owned(),
        "/destinations".to_owned(),
        search,
        format!("/destinations/{shop}"),
        format!("/destinations/{shop}/edit"),
        "/log".to_owned(),
        "/log/events".to_owned(),
        "/log?external_id=%3Cscript%3Ewindow.evil%3D1%3C%2Fscript%3E".to_owned(),
        format!("/events/{event}"),
        "/dead-letters".to_owned(),
        "/event-types".to_owned(),
        "/event-types/edit?event_type=a.b".to_owned(),
        "/settings".to_owned(),
        format!("/catalogue/{account}"),
        "/sign-in?next=%22%3E%3Cscript%3Ewindow.evil%3D1%3C%2Fscript%3E".to_owned(),
    ] {
        browser.go(&path).await;
        browser.reads("h1", "").await;
        let found = browser
            .run("return [window.evil === undefined, document.querySelectorAll('script').length, document.querySelectorAll('main img, main script, [onerror], [onload]').length]")
            .await;
        assert_eq!(found, json!([true, 1, 0]), "{path}");
        let complaints = browser.complaints().await;
        let of_status = |line: &String| line.contains("the server responded with a status of 4");
        assert!(complaints.iter().all(of_status), "{path}: {complaints:?}");
    }
    browser.go(&format!("/events/{event}")).await;
    browser.press_on("details.attempt summary").await;
    browser.reads("details.attempt", "<script>window.evil=1</script>").await;
    browser.reads("pre.payload", "<script>").await;
    // What comes with a live update is text as well.
    publish(&server, json!({"event_type": "a.b", "payload": {"again": EVIL}})).await;
    browser.go("/log").await;
    browser.reads("[data-live=log]", "a.b").await;
    assert_eq!(browser.run("return window.evil === undefined").await, true);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_sees_no_forms_and_its_posts_are_refused() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let shop = destination(&server, json!({"url": receiver.url})).await;
    let event = publish(&server, json!({"event_type": "a.b", "payload": {}})).await;
    let made = server.post("/v1/api-keys", json!({"name": "look", "role": "viewer"})).await.expect(201);
    let (key, id) =
        (made["api_key"].as_str().expect("a key").to_owned(), made["id"].as_str().expect("an id").to_owned());
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&key).await;
    for path in [
        "/",
        "/destinations",
        "/log",
        "/dead-letters",
        "/event-types",
        "/settings",
        &format!("/destinations/{shop}"),
        &format!("/events/{event}"),
        &format!("/destinations/{shop}/edit"),
        "/destinations/new",
    ] {
        browser.go(path).await;
        let posts = browser.run("return [...document.querySelectorAll('form[method=post]')].map(form => form.getAttribute('action')).join()").await;
        assert_eq!(posts, "/sign-out", "{path}");
    }
    // A form that the page does not have is refused by the server.
    let post = |path: &str| {
        format!(
            "const done = arguments[arguments.length - 1]; fetch('{path}', {{method: 'POST', redirect: 'manual', headers: {{'content-type': 'application/x-www-form-urlencoded'}}, \
             body: 'what=pause&csrf=' + encodeURIComponent(document.querySelector('[name=csrf]').value)}}).then(answer => done(answer.status))"
        )
    };
    assert_eq!(browser.run_later(&post(&format!("/destinations/{shop}/do"))).await, 403);
    assert_eq!(server.get(&format!("/v1/destinations/{shop}")).await.expect(200)["status"], "active");

    // The session ends with its key.
    server.delete(&format!("/v1/api-keys/{id}")).await.expect(204);
    browser.go("/log").await;
    assert_eq!(browser.path().await, "/sign-in?next=%2Flog");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_without_the_sessions_own_word_is_refused() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let shop = destination(&server, json!({"url": receiver.url})).await;
    let form = "application/x-www-form-urlencoded";
    let bare = server.with_key("");
    let enter = async |client: &kit::Client, body: &str| {
        client
            .try_send(http::Method::POST, "/sign-in", Some(form), bytes::Bytes::from(body.to_owned()))
            .await
            .expect("an answer")
    };
    let entered = enter(&bare, &format!("key={}", server.key)).await;
    let cookie = entered.header("set-cookie").expect("a cookie").to_owned();
    assert!(
        cookie.contains("; HttpOnly; SameSite=Lax")
            && !cookie.contains("Secure")
            && !cookie.contains(&server.key),
        "{cookie}"
    );
    let over_tls =
        enter(&bare.with_header("x-forwarded-proto", "https"), &format!("key={}", server.key)).await;
    assert!(over_tls.header("set-cookie").is_some_and(|cookie| cookie.ends_with("; Secure")));
    let elsewhere =
        enter(&bare.with_header("origin", "https://evil.example"), &format!("key={}", server.key)).await;
    assert_eq!((elsewhere.status, elsewhere.header("set-cookie")), (403, None));

    let session = bare.with_header("cookie", cookie.split(';').next().expect("a pair"));
    let page = session.get(&format!("/destinations/{shop}")).await;
    assert_eq!(page.status, 200);
    for (header, part) in [
        ("content-security-policy", "default-src 'none'"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
    ] {
        assert!(
            page.header(header).is_some_and(|value| value.contains(part)),
            "{header}: {:?}",
            page.header(header)
        );
    }
    let text = page.text();
    let csrf = text
        .split("name=\"csrf\" value=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("a word")
        .to_owned();
    let post = async |client: &kit::Client, body: String| {
        let path = format!("/destinations/{shop}/do");
        client
            .try_send(http::Method::POST, &path, Some(form), bytes::Bytes::from(body))
            .await
            .expect("an answer")
            .status
    };
    assert_eq!(post(&session, "what=pause".to_owned()).await, 403);
    assert_eq!(post(&session, "what=pause&csrf=x".to_owned()).await, 403);
    assert_eq!(
        post(&session.with_header("sec-fetch-site", "cross-site"), format!("what=pause&csrf={csrf}")).await,
        403
    );
    assert_eq!(
        post(&bare, format!("what=pause&csrf={csrf}")).await,
        303,
        "without a session: to the sign-in"
    );
    assert_eq!(server.get(&format!("/v1/destinations/{shop}")).await.expect(200)["status"], "active");
    assert_eq!(post(&session, format!("what=pause&csrf={csrf}")).await, 303);
    assert_eq!(server.get(&format!("/v1/destinations/{shop}")).await.expect(200)["status"], "paused");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_scripts_every_page_and_form_works() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let browser = Browser::open(&server.base_url).await;
    browser.scripts(false).await;
    browser.go("/sign-in").await;
    browser.fill("key", &server.key).await;
    browser.press("Sign in").await;
    browser.go("/destinations/new").await;
    browser.fill("name", "Plain").await;
    browser.fill("url", &receiver.url).await;
    browser.press("Create").await;
    let made = until_some(secs(30), "it is there", async || {
        server.get("/v1/destinations").await.expect(200)["items"][0]["id"].as_str().map(str::to_owned)
    })
    .await;
    browser.go(&format!("/destinations/{made}/edit")).await;
    browser.fill("max_concurrency", "7").await;
    browser.press("Save").await;
    until(secs(30), "it is saved", async || {
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
    until(secs(30), "all arrive", async || receiver.count() == 60).await;
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

/// The pages of a server, by name.
fn pages(shop: &str, event: &str) -> Vec<(&'static str, String)> {
    vec![
        ("overview", "/".to_owned()),
        ("destinations", "/destinations".to_owned()),
        ("destination", format!("/destinations/{shop}")),
        ("edit", format!("/destinations/{shop}/edit")),
        ("log", "/log".to_owned()),
        ("events", "/log/events".to_owned()),
        ("event", format!("/events/{event}")),
        ("dead-letters", "/dead-letters".to_owned()),
        ("event-types", "/event-types".to_owned()),
        ("settings", "/settings".to_owned()),
    ]
}

const LOOKS: [(&str, Looks); 4] = [
    ("light-wide", Looks { width: 1280, height: 900, dark: false }),
    ("dark-wide", Looks { width: 1280, height: 900, dark: true }),
    ("light-phone", Looks { width: 390, height: 844, dark: false }),
    ("dark-phone", Looks { width: 390, height: 844, dark: true }),
];

/// Looks at pages in every way: nothing is wider than the window, and axe finds no serious fault. Pictures are kept where
/// `XTASK_PICTURES` says.
async fn look_at(browser: &Browser, world: &str, pages: &[(&'static str, String)]) {
    let kept = std::env::var_os("XTASK_PICTURES").map(std::path::PathBuf::from);
    for (looks, settings) in LOOKS {
        browser.look(settings).await;
        for (name, path) in pages {
            browser.go(path).await;
            browser.reads("h1", "").await;
            let wide = browser.run("return document.documentElement.scrollWidth").await.as_u64().unwrap_or(0);
            assert!(wide <= u64::from(settings.width), "{world} {name} {looks} is {wide} wide");
            let faults = axe::serious(browser).await;
            assert!(faults.is_empty(), "{world} {name} {looks}: {faults:#?}");
            if let Some(kept) = &kept {
                let picture = browser.picture(2_400).await;
                std::fs::write(kept.join(format!("{world}-{name}-{looks}.png")), picture)
                    .expect("it is written");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_of_an_empty_installation_can_be_read_by_everybody() {
    let server = Server::start(&[]).await;
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    let none = "none";
    let pages: Vec<_> = pages(none, none).into_iter().filter(|(_, path)| !path.contains(none)).collect();
    look_at(&browser, "empty", &pages).await;
    look_at(&browser, "empty", &[("new", "/destinations/new".to_owned())]).await;
    browser.press("Sign out").await;
    browser.reads("h1", "Sign in").await;
    look_at(&browser, "empty", &[("sign-in", "/sign-in".to_owned())]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_with_traffic_and_trouble_can_be_read_by_everybody() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|request| match request.path.as_str() {
        "/busy" => Reply::status(429).header("retry-after", "900"),
        "/broken" => Reply::status(500).body("{\"error\": \"database is down\"}"),
        "/slow" => Reply::status(200).after(millis(120)),
        _ => Reply::status(200).after(millis(15)),
    })
    .await;
    let (start, end) = window_around_now();
    let windows = json!([
        {"timezone": "America/Chicago", "quiet_start": "22:00", "quiet_end": "06:00", "bypass_event_types": ["payment.failed"]},
        {"timezone": "Asia/Kolkata", "quiet_start": "12:30", "quiet_end": "14:00", "days": ["mon", "tue", "wed"]},
    ]);
    let retry = json!({"max_attempts": 2, "delays_seconds": [1]});
    let worlds = [
        json!({"name": "Order Fulfillment", "url": format!("{}/slow", receiver.url), "delivery_schedules": windows, "rate_limit": {"max_per_minute": 600, "burst_capacity": 100}}),
        json!({"name": "Warehouse (Chicago)", "url": format!("{}/busy", receiver.url)}),
        json!({"name": "Legacy ERP", "url": format!("{}/broken", receiver.url), "retry_policy": retry}),
        json!({"name": "Night shop", "url": format!("{}/ok", receiver.url), "delivery_schedule": {"timezone": "UTC", "quiet_start": start, "quiet_end": end}}),
        json!({"name": "Slow lane", "url": format!("{}/ok", receiver.url), "rate_limit": {"max_per_minute": 6, "burst_capacity": 2}}),
        json!({"name": "A destination with a very long name that somebody wrote without thinking of tables", "url": format!("{}/ok/{}", receiver.url, "x".repeat(120))}),
    ];
    let mut shops = Vec::new();
    for world in worlds {
        shops.push(destination(&server, world).await);
    }
    server.put("/v1/event-types/order.paid", json!({"description": "A customer has paid.", "delivery_ttl_seconds": 86_400, "consumer_guidance": "Ship it."})).await.expect(201);
    server.put("/v1/event-types/stock.*", json!({"description": "Stock has changed.", "delivery_ttl_seconds": 60, "max_attempts": 3, "priority": 4})).await.expect(201);
    let events: Vec<Value> = (0..40)
        .map(|number| json!({"event_type": if number % 3 == 0 { "stock.changed" } else { "order.paid" }, "payload": {"order": number, "total": 12.5, "items": [{"sku": "A-1", "count": 2}]}}))
        .collect();
    let made = server.post("/v1/outbound-events/batch", json!({"events": events})).await.expect(202);
    let event = made["items"][0]["id"].as_str().expect("an id").to_owned();
    until(secs(60), "some are given up", async || {
        server.get("/v1/deliveries?status=dead_letter&total=true").await.expect(200)["total"]
            .as_u64()
            .is_some_and(|dead| dead > 0)
    })
    .await;
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    look_at(&browser, "trouble", &pages(&shops[0], &event)).await;
    let held = [
        ("throttled", format!("/destinations/{}", shops[1])),
        ("broken", format!("/destinations/{}", shops[2])),
        ("quiet", format!("/destinations/{}", shops[3])),
    ];
    look_at(&browser, "trouble", &held).await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_reached_by_the_keyboard() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let shop = destination(&server, json!({"url": receiver.url})).await;
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    browser.go(&format!("/destinations/{shop}")).await;
    // What can be pressed can be reached, and shows that it is.
    let reached = browser
        .run("const all = [...document.querySelectorAll('a[href], button, summary, input:not([type=hidden]), select, textarea')].filter(one => one.checkVisibility());\
              return all.filter(one => { one.focus(); return document.activeElement !== one || one.tabIndex < 0; }).map(one => one.outerHTML);")
        .await;
    assert_eq!(reached, json!([]));
}
