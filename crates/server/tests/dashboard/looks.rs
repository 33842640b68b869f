//! Every page, in every way that people look at it.

use serde_json::{Value, json};

use super::axe;
use super::browser::{Browser, Looks};
use super::kit::{Receiver, Reply, Server, millis, secs, until};
use super::{destination, window_around_now};

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
        ("event-type", "/event-types/edit".to_owned()),
        ("settings", "/settings".to_owned()),
        ("lost", "/nowhere".to_owned()),
    ]
}

const LOOKS: [(&str, Looks); 4] = [
    ("light-wide", Looks { width: 1280, height: 900, dark: false }),
    ("dark-wide", Looks { width: 1280, height: 900, dark: true }),
    ("light-phone", Looks { width: 390, height: 844, dark: false }),
    ("dark-phone", Looks { width: 390, height: 844, dark: true }),
];

/// Whether axe, which takes its time, judges it so: light and wide, dark and narrow, and with these all colours and all widths.
fn judges(settings: Looks) -> bool {
    settings.dark == (settings.width < 600)
}

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
            if judges(settings) {
                let faults = axe::serious(browser).await;
                assert!(faults.is_empty(), "{world} {name} {looks}: {faults:#?}");
            }
            if let Some(kept) = &kept {
                let picture = browser.picture(2_400).await;
                std::fs::write(kept.join(format!("{world}-{name}-{looks}.png")), picture)
                    .expect("it is written");
            }
        }
    }
}

/// What is seen after something was asked for: a replay, the catalogue for customers, something that is not there.
async fn more_pages(server: &Server) -> Vec<(&'static str, String)> {
    let asked = json!({"filter": {"status": "dead_letter"}, "max_per_minute": 1});
    let job = server.post("/v1/replays", asked).await.expect(202)["id"].clone();
    server.patch("/v1/settings", json!({"public_event_types": true})).await.expect(200);
    let account = server.get("/v1/accounts").await.expect(200)["items"][0]["id"].clone();
    let path = |before: &str, id: &Value| format!("{before}{}", id.as_str().expect("an id"));
    vec![
        ("replay", path("/dead-letters/jobs/", &job)),
        ("catalogue", path("/catalogue/", &account)),
        ("refused", "/destinations/dst_none".to_owned()),
    ]
}

/// What forms are answered with: faults beside their fields, a preview, a secret.
async fn look_at_answers(browser: &Browser, shop: &str) {
    for (looks, settings) in LOOKS.into_iter().filter(|(_, settings)| judges(*settings)) {
        browser.look(settings).await;
        browser.go(&format!("/destinations/{shop}/edit")).await;
        browser.fill("rate_limit.max", "none").await;
        browser.press("Save").await;
        browser.reads("#f-rate-limit-max-fault", "whole number").await;
        assert_eq!(axe::serious(browser).await, Vec::<String>::new(), "a fault, {looks}");
        browser.fill("rate_limit.max", "6").await;
        browser.press("Preview on the last 24 hours").await;
        browser.reads(".preview", "With the change").await;
        assert_eq!(axe::serious(browser).await, Vec::<String>::new(), "a preview, {looks}");
    }
    browser.go("/settings").await;
    browser.fill("name", "For a look").await;
    browser.press("Make a key").await;
    browser.reads(".secret", "tg_").await;
    assert_eq!(axe::serious(browser).await, Vec::<String>::new(), "a secret");
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
    server.put("/v1/event-types/stock.*", json!({"description": "Stock has changed.", "delivery_ttl_seconds": 60, "max_attempts": 2, "priority": 4})).await.expect(201);
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
    look_at(&browser, "trouble", &more_pages(&server).await).await;
    look_at_answers(&browser, &shops[0]).await;
    // Pages that say that something is not there are answered so.
    let known = |line: &String| line.contains("the server responded with a status of 404");
    let complaints = browser.complaints().await;
    assert!(complaints.iter().all(known), "{complaints:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_reached_by_the_keyboard() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let shop = destination(&server, json!({"url": receiver.url})).await;
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    // What can be pressed can be reached, and shows that it is.
    let unreached = "const all = [...document.querySelectorAll('a[href], button, summary, input:not([type=hidden]), select, textarea')].filter(one => one.checkVisibility());\
        return all.filter(one => { one.focus(); return document.activeElement !== one || one.tabIndex < 0; }).map(one => one.outerHTML);";
    for (name, path) in pages(&shop, "none") {
        browser.go(&path).await;
        browser.reads("h1", "").await;
        assert_eq!(browser.run(unreached).await, json!([]), "{name}");
    }
}
