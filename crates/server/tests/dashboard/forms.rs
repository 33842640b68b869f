//! The account's defaults as a form, requests as they were made, and charts that outlive a restart.

use serde_json::{Value, json};

use super::browser::Browser;
use super::kit::{Receiver, Reply, Server, secs, until};
use super::{destination, publish};

#[tokio::test(flavor = "multi_thread")]
async fn defaults_are_a_form_with_the_faults_of_the_api() {
    let server = Server::start(&[]).await;
    let shop = destination(&server, json!({"url": "https://example.com"})).await;
    let in_force =
        async |field: &str| server.get(&format!("/v1/destinations/{shop}")).await.expect(200)[field].clone();
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    browser.go("/settings").await;
    browser.press("Defaults: policies for destinations that say nothing").await;
    browser.fill("max_concurrency", "many").await;
    browser.press("Save").await;
    browser.reads("#f-max-concurrency-fault", "max_concurrency").await;
    browser.fill("max_concurrency", "9").await;
    browser.fill("delivery_schedules[0].timezone", "Mars/Olympus").await;
    browser.fill("delivery_schedules[0].quiet_start", "22:00").await;
    browser.fill("delivery_schedules[0].quiet_end", "06:00").await;
    browser.press("Save").await;
    browser.reads("#f-delivery-schedules-0--timezone-fault", "time zone").await;
    browser.fill("delivery_schedules[0].timezone", "Asia/Tokyo").await;
    browser.press_on("[name='rate_limit']").await;
    browser.fill("rate_limit.max", "30").await;
    browser.choose("timeout.mode", "manual").await;
    browser.fill("timeout_seconds", "7").await;
    browser.press("Save").await;
    browser.reads(".notice", "Saved").await;
    let defaults = server.get("/v1/settings").await.expect(200)["defaults"].clone();
    let said: Vec<&String> = defaults.as_object().expect("an object").keys().collect();
    let wanted =
        ["delivery_schedule", "delivery_schedules", "max_concurrency", "rate_limit", "timeout_seconds"];
    assert_eq!(said, wanted, "what was left alone is not said");
    assert_eq!((in_force("max_concurrency").await, in_force("timeout_seconds").await), (json!(9), json!(7)));
    assert_eq!(in_force("delivery_schedules").await[0]["timezone"], "Asia/Tokyo");

    // What is emptied goes; what stays stays.
    browser.fill("max_concurrency", "").await;
    browser.press_on("[name='rate_limit']").await;
    browser.choose("timeout.mode", "").await;
    browser.press_on("[name='delivery_schedules[0].remove']").await;
    browser.fill("max_age_seconds", "3600").await;
    browser.press("Save").await;
    browser.reads("[name='max_age_seconds']", "").await;
    until(secs(60), "the others are gone", async || {
        server.get("/v1/settings").await.expect(200)["defaults"] == json!({"max_age_seconds": 3600})
    })
    .await;
    assert_eq!((in_force("rate_limit").await, in_force("max_concurrency").await), (Value::Null, json!(5)));
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_shows_its_request_as_it_was_sent_and_no_secret() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(500)).await;
    let shop = destination(
        &server,
        json!({"url": format!("{}/hooks?shop=1", receiver.url), "envelope": "standard", "custom_headers": {"X-Shop": "north"},
            "auth_config": {"type": "header", "name": "X-Token", "value": "do-not-show-this"},
            "retry_policy": {"max_attempts": 1}}),
    )
    .await;
    let event =
        publish(&server, json!({"event_type": "order.paid", "payload": {"n": 1}, "ttl_seconds": 3600})).await;
    until(secs(60), "it is given up", async || {
        server.get("/v1/deliveries?status=dead_letter&total=true").await.expect(200)["total"] == 1
    })
    .await;
    let sent = receiver.received().remove(0);
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    browser.go(&format!("/events/{event}")).await;
    browser.press_on("details.attempt summary").await;
    browser.reads("details.attempt", &format!("POST {}/hooks?shop=1", receiver.url)).await;
    let shown = browser.text("details.attempt").await;
    // All that was received is shown as it was, but for what the connection adds and what is secret.
    for (name, value) in &sent.headers {
        let (name, value) = (name.as_str(), value.to_str().expect("text"));
        match name {
            "content-length" => {}
            "webhook-signature" => {
                assert!(shown.contains("webhook-signature: made from") && !shown.contains(value), "{shown}");
            }
            "x-token" => assert!(shown.contains("x-token: a credential, not shown"), "{shown}"),
            name => assert!(shown.contains(&format!("{name}: {value}")), "{name}: {value} is not in {shown}"),
        }
    }
    assert!(
        !browser
            .run("return document.documentElement.outerHTML")
            .await
            .to_string()
            .contains("do-not-show-this")
    );
    assert!(!shown.contains("was changed after this attempt"), "{shown}");
    let body = String::from_utf8_lossy(&sent.body).replace("{\"n\":1}", "…");
    assert!(shown.contains(&body) && body.contains("\"data\":…}"), "{body} is not in {shown}");

    server.patch(&format!("/v1/destinations/{shop}"), json!({"custom_headers": {}})).await.expect(200);
    browser.go(&format!("/events/{event}")).await;
    browser.press_on("details.attempt summary").await;
    browser.reads("details.attempt .notice", "The destination was changed after this attempt").await;
    server.delete(&format!("/v1/destinations/{shop}")).await.expect(204);
    browser.go(&format!("/events/{event}")).await;
    browser.press_on("details.attempt summary").await;
    browser.reads("details.attempt", "how the request looked is not known any more").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn charts_show_what_was_before_a_restart() {
    let mut server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    destination(&server, json!({"url": receiver.url})).await;
    for number in 0..5 {
        publish(&server, json!({"event_type": "a.b", "payload": {"n": number}})).await;
    }
    until(secs(60), "all are delivered", async || {
        server.get("/v1/stats").await.expect(200)["last_24h"]["delivered"] == 5
    })
    .await;
    assert!(server.stop().await);
    server.restart().await;
    let stats = server.get("/v1/stats").await.expect(200);
    assert_eq!(stats["minutes"], json!([]), "memory does not reach back");
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    for section in ["hour", "day"] {
        let script = format!(
            "return [...document.querySelectorAll('section[aria-labelledby={section}] svg')].map(chart => chart.textContent)"
        );
        let charts = browser.run(&script).await;
        let says =
            |place: usize, words: &str| charts[place].as_str().is_some_and(|text| text.contains(words));
        assert!(!says(0, "Nothing") && !says(1, "Nothing") && charts[1].is_string(), "{section}: {charts}");
        assert!(says(2, "No response times are known"), "{section}: {charts}");
    }
    browser.reads("section[aria-labelledby=hour] .note", "This node started").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_description_keeps_what_its_form_was_not_asked_to_change() {
    let server = Server::start(&[]).await;
    let retry = json!({"max_attempts": 3, "delays_seconds": [5, 10], "jitter": "none"});
    let written = json!({"description": "Stock.", "retry_policy": retry, "priority": 4});
    server.put("/v1/event-types/stock.*", written).await.expect(201);
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    browser.go("/event-types").await;
    browser.press("Edit").await;
    browser.fill("description", "Stock has changed.").await;
    browser.fill("retry_policy.max_attempts", "many").await;
    browser.press("Save").await;
    browser.reads("#f-retry-policy-max-attempts-fault", "must be a whole number").await;
    browser.fill("retry_policy.max_attempts", "4").await;
    browser.press("Save").await;
    browser.reads(".notice", "Saved").await;
    let now = server.get("/v1/event-types/stock.*").await.expect(200);
    let retry = json!({"max_attempts": 4, "delays_seconds": [5, 10], "jitter": "none"});
    assert_eq!((&now["retry_policy"], &now["priority"]), (&retry, &json!(4)));
    assert_eq!(now["description"], "Stock has changed.");
    browser.go("/event-types/edit").await;
    browser.press("Save").await;
    browser.reads("#f-event-type-fault", "has a name").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_somebody_else_changed_meanwhile_are_not_overruled() {
    let server = Server::start(&[]).await;
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    browser.go("/settings").await;
    server.patch("/v1/settings", json!({"paused": true})).await.expect(200);
    browser.fill("max_queued_events", "1000").await;
    browser.press("Save").await;
    browser.reads(".notice.bad", "changed meanwhile").await;
    let now = server.get("/v1/settings").await.expect(200);
    assert_eq!((&now["paused"], &now["max_queued_events"]), (&json!(true), &Value::Null));
}
