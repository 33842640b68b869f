//! What pages do by themselves: they follow what happens, say when they no longer do, and stand where a reload finds them.

use serde_json::{Value, json};

use super::browser::Browser;
use super::kit::{Receiver, Reply, Server, secs, until};
use super::{destination, publish};

#[tokio::test(flavor = "multi_thread")]
async fn what_a_form_leads_to_is_a_page_of_its_own_that_goes_on_living() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    browser.go("/destinations/new").await;
    browser.fill("name", "Shop").await;
    browser.fill("url", &receiver.url).await;
    browser.press("Create").await;
    browser.reads(".secret", "whsec_").await;
    let page = browser.path().await;
    assert!(page.starts_with("/destinations/dst_"), "{page}");
    browser.press("Send a test event").await;
    browser.reads(".notice", "Test event: ✓ success").await;
    assert_eq!(browser.path().await, page, "a reload sends no second test event");
    browser.press("Pause").await;
    browser.reads("[data-live=status]", "paused").await;
    browser.press("Send a test event").await;
    browser.reads(".notice", "Test event: ✓ success").await;
    publish(&server, json!({"event_type": "a.b", "payload": {}})).await;
    browser.reads("[data-live=backlog]", "1 delivery waits").await;

    // The addresses of forms lead to where the forms are.
    for (path, there) in [
        (format!("{page}/test"), page.clone()),
        (format!("{page}/secret"), page.clone()),
        (format!("{page}/preview"), format!("{page}/edit")),
        ("/settings/keys".to_owned(), "/settings".to_owned()),
        ("/sign-out".to_owned(), "/".to_owned()),
    ] {
        browser.go(&path).await;
        assert_eq!(browser.path().await, there);
    }
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_says_that_its_session_is_over_and_that_it_has_learned_another_zone() {
    let server = Server::start(&[]).await;
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    browser.reads("#live", "Live").await;
    // Somebody who travels comes back to a page that knows another zone.
    browser.run("document.cookie = 'tidegate_zone=Asia%2FTokyo; path=/; max-age=3600'").await;
    browser.go("/log").await;
    browser.reads("#live", "Live").await;
    browser.go("/log").await;
    browser.reads(".foot", "Times in UTC").await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());

    let other = "const done = arguments[arguments.length - 1];\
        fetch('/sign-out', {method: 'POST'}).then(answer => done(answer.status));";
    assert_eq!(browser.run_later(other).await, 200);
    browser.reads("#live", "Signed out").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_lost_finds_a_page_and_programs_find_what_they_read() {
    let server = Server::start(&[]).await;
    let lost = server.with_key("").with_header("accept", "text/html,*/*").get("/nowhere").await;
    assert_eq!(lost.status, 404);
    assert!(lost.text().contains("There is no page at this address."), "{}", lost.text());
    assert!(
        lost.header("content-security-policy").is_some_and(|policy| policy.contains("default-src 'none'"))
    );
    for (path, accept) in [("/nowhere", "application/json"), ("/v1/nowhere", "text/html")] {
        let answer = server.with_header("accept", accept).get(path).await;
        answer.expect_error(404, "not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_of_many_accounts_names_the_one_to_look_into() {
    let server = Server::start(&[]).await;
    for number in 0..51 {
        let account = json!({"name": format!("Customer {number}"), "external_id": format!("c-{number}")});
        server.post("/v1/accounts", account).await.expect(201);
    }
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    browser.fill("account", "c-7").await;
    browser.press("Go").await;
    browser.reads(".account", "Customer 7").await;
    browser.fill("account", "nobody’s").await;
    browser.press("Go").await;
    browser.reads("h1", "Not found").await;
    browser.go("/").await;
    browser.reads(".account", "Customer 7").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_may_only_look_is_shown_no_line_that_would_be_refused() {
    let server = Server::start(&[]).await;
    destination(&server, json!({"url": "https://example.com"})).await;
    let made = server.post("/v1/api-keys", json!({"name": "look", "role": "viewer"})).await.expect(201);
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(made["api_key"].as_str().expect("a key")).await;
    browser.reads(".steps", "Your key may only look").await;
    assert!(browser.text(".steps pre").await.contains("tg_EDITOR_KEY"));
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_no_destination_takes_are_seen_to_come_in() {
    let server = Server::start(&[]).await;
    destination(&server, json!({"url": "https://example.com", "event_types": ["a.b"]})).await;
    publish(&server, json!({"event_type": "nobody.takes.it", "payload": {}})).await;
    until(secs(60), "they are counted", async || {
        let stats = server.get("/v1/stats").await.expect(200);
        let minutes = stats["minutes"].as_array().cloned().unwrap_or_default();
        let sum = |field: &str| minutes.iter().filter_map(|minute| minute[field].as_u64()).sum::<u64>();
        (sum("events"), sum("accepted")) == (1, 0)
    })
    .await;
    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    let charts = browser
        .run("return document.querySelector('[aria-labelledby=hour] svg').getAttribute('aria-label')")
        .await;
    assert!(charts.as_str().is_some_and(|label| label.starts_with("Traffic: events in last ")), "{charts}");
    assert_ne!(charts, Value::Null);
}
