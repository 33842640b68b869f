//! Ten thousand destinations.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use serde_json::{Value, json};

use super::browser::Browser;
use super::kit::{Receiver, Reply, Server, secs, until};
use super::{destination, publish};

const MANY: u32 = 10_000;
/// Held ones, and three of which each has its own trouble.
const HELD: u32 = 40;
const CALLERS: usize = 32;

/// Makes the destinations, all alike but for their names.
async fn fill(server: &Server, url: &str) {
    let next = Arc::new(AtomicU32::new(1));
    let make = |_| {
        let (client, next, url) = (server.client(), Arc::clone(&next), url.to_owned());
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Relaxed);
                if number > MANY - HELD - 3 {
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

/// Events are found by what became of them, and one for nearly all of the destinations is as quick to look at as another.
async fn events_are_found(server: &Server, browser: &Browser) {
    browser.go("/log/events").await;
    browser.choose("status", "dead_letter").await;
    browser.press("Show").await;
    // The page before this one has it, too.
    until(secs(10), "only what died is shown", async || names(browser).await == ["fails"]).await;
    browser.choose("status", "").await;
    browser.choose("hold", "paused").await;
    browser.press("Show").await;
    browser.reads("tbody", "most").await;
    assert_eq!(names(browser).await, ["most", "most", "most", "held"]);
    let common = publish(server, json!({"event_type": "common", "payload": {}})).await;
    browser.go(&format!("/events/{common}")).await;
    browser.reads("main", "9,907 more deliveries are in the log.").await;
    browser.press("in the log").await;
    browser.reads("tbody", "common").await;
    assert_eq!(names(browser).await, vec!["common"; 50]);
    browser.press_on("tbody th a").await;
    browser.reads("main", "9,906 more deliveries are in the log.").await;
    let told = "return document.getElementById(location.hash.slice(1)) !== null";
    assert_eq!(browser.run(told).await, true, "the one that was asked for is told, too");
}

#[tokio::test(flavor = "multi_thread")]
async fn among_ten_thousand_destinations_the_one_that_matters_is_found() {
    let server = Server::start(&[]).await;
    let receiver =
        Receiver::start(|request| Reply::status(if request.path.starts_with("/fails") { 500 } else { 200 }))
            .await;
    let made = async |name: &str, path: &str, retry: Value| {
        let url = format!("{}/{path}", receiver.url);
        let body = json!({"name": name, "url": url, "event_types": [path], "retry_policy": retry});
        destination(&server, body).await
    };
    let pause = async |id: String| {
        server.post(&format!("/v1/destinations/{id}/pause"), json!({})).await.expect(200);
    };
    // The oldest waits for its own time: nothing holds its destination, and all others that wait are held.
    made("Waits longest", "fails.at_first", json!({"max_attempts": 9, "delays_seconds": [86_400]})).await;
    let oldest = publish(&server, json!({"event_type": "fails.at_first", "payload": {}})).await;
    until(secs(60), "it was tried", async || receiver.count() == 1).await;
    pause(made("Waits most", "most", Value::Null).await).await;
    for number in 0..HELD {
        pause(made(&format!("Held {number:02}"), "held", Value::Null).await).await;
    }
    made("Fails", "fails", json!({"max_attempts": 1})).await;
    for event_type in ["held", "most", "most", "most", "fails"] {
        publish(&server, json!({"event_type": event_type, "payload": {}})).await;
    }
    fill(&server, &receiver.url).await;
    until(secs(60), "one is given up", async || {
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
    let shown = names(&browser).await;
    assert!(shown[0] == "Waits longest" && shown[1].starts_with("Held"), "{shown:?}");
    browser.press("Queue").await;
    browser.reads("th[aria-sort=descending]", "Queue").await;
    assert_eq!(names(&browser).await[0], "Waits most");
    browser.press("Success 24 h").await;
    browser.reads("th[aria-sort=ascending]", "Success 24 h").await;
    assert_eq!(names(&browser).await[..2], ["Fails", "Waits longest"]);
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

    events_are_found(&server, &browser).await;

    // The oldest of all is the oldest of all, not of those that were held longest.
    let accepted =
        server.get(&format!("/v1/outbound-events/{oldest}")).await.expect(200)["created_at"].clone();
    until(secs(60), "the overview knows it", async || {
        server.get("/v1/stats").await.expect(200)["oldest_queued_at"] == accepted
    })
    .await;
    assert_eq!(browser.complaints().await, Vec::<String>::new());
}
