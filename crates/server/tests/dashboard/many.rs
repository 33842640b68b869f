//! Ten thousand destinations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use serde_json::json;

use super::browser::Browser;
use super::kit::{Receiver, Reply, Server, secs, until};
use super::{destination, publish};

const MANY: u32 = 10_000;
const CALLERS: usize = 32;

/// Makes the destinations, all alike but for their names.
async fn fill(server: &Server, url: &str) {
    let next = Arc::new(AtomicU32::new(1));
    let make = |_| {
        let (client, next, url) = (server.client(), Arc::clone(&next), url.to_owned());
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Relaxed);
                if number > MANY - 3 {
                    return;
                }
                let name = format!("Customer {number:05}");
                let body = json!({"name": name, "url": format!("{url}/{number}"), "event_types": ["common"]});
                client.post("/v1/destinations", body).await.expect(201);
            }
        })
    };
    for maker in (0..CALLERS).map(make).collect::<Vec<_>>() {
        maker.await.expect("all are made");
    }
}

/// The names on the page, from the top.
async fn names(browser: &Browser) -> Vec<String> {
    let found =
        browser.run("return [...document.querySelectorAll('tbody th a')].map(name => name.innerText)").await;
    let names = found.as_array().cloned().unwrap_or_default();
    names.iter().map(|name| name.as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn among_ten_thousand_destinations_the_one_that_matters_is_found() {
    let server = Server::start(&[]).await;
    let receiver =
        Receiver::start(|request| Reply::status(if request.path == "/fails" { 500 } else { 200 })).await;
    let paused = async |name: &str, event_type: &str| {
        let body = json!({"name": name, "url": receiver.url, "event_types": [event_type]});
        let made = destination(&server, body).await;
        server.post(&format!("/v1/destinations/{made}/pause"), json!({})).await.expect(200);
    };
    paused("Waits longest", "first").await;
    paused("Waits too", "second").await;
    let once = json!({"max_attempts": 1});
    let fails = json!({"name": "Fails", "url": format!("{}/fails", receiver.url), "event_types": ["fails"], "retry_policy": once});
    destination(&server, fails).await;
    let oldest = publish(&server, json!({"event_type": "first", "payload": {}})).await;
    for event_type in ["second", "second", "fails"] {
        publish(&server, json!({"event_type": event_type, "payload": {}})).await;
    }
    fill(&server, &receiver.url).await;
    until(secs(30), "one is given up", async || {
        server.get("/v1/deliveries?status=dead_letter&total=true").await.expect(200)["total"] == 1
    })
    .await;

    let browser = Browser::open(&server.base_url).await;
    browser.sign_in(&server.key).await;
    browser.press("Destinations").await;
    browser.reads(".count", "10,000 destinations").await;
    browser.fill("search", "customer 0777").await;
    browser.press("Show").await;
    browser.reads(".count", "10 destinations").await;
    browser.go("/destinations").await;
    // The heads of the columns lead to the orders, and the next page goes on where this one ended.
    browser.press("Oldest").await;
    browser.reads("th[aria-sort=ascending]", "Oldest").await;
    assert_eq!(names(&browser).await[..2], ["Waits longest", "Waits too"]);
    browser.press("Queue").await;
    browser.reads("th[aria-sort=descending]", "Queue").await;
    assert_eq!(names(&browser).await[..2], ["Waits too", "Waits longest"]);
    browser.press("Success 24 h").await;
    browser.reads("th[aria-sort=ascending]", "Success 24 h").await;
    assert_eq!(names(&browser).await[0], "Fails");
    browser.press("Name").await;
    browser.reads("th[aria-sort=ascending]", "Name").await;
    let first = names(&browser).await;
    assert_eq!((first[0].as_str(), first[49].as_str()), ("Customer 00001", "Customer 00050"));
    browser.press("Next page →").await;
    browser.reads("tbody", "Customer 00051").await;
    let second = names(&browser).await;
    assert_eq!((second.len(), second[49].as_str()), (50, "Customer 00100"));
    browser.press("↑ Back to the first page").await;
    browser.reads("tbody", "Customer 00001").await;
    assert_eq!(names(&browser).await, first);

    // The oldest of all is the oldest of all, not of those that were held longest.
    let accepted =
        server.get(&format!("/v1/outbound-events/{oldest}")).await.expect(200)["created_at"].clone();
    until(secs(30), "the overview knows it", async || {
        server.get("/v1/stats").await.expect(200)["oldest_queued_at"] == accepted
    })
    .await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}
