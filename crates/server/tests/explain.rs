//! What the API says about waiting must be what then happens: explain, holds, and the log of them.

mod kit;

use std::time::Duration;

use kit::{Client, Receiver, Reply, Server, secs, until, until_some};
use serde_json::{Value, json};

async fn make(client: &Client, url: &str, policies: Value) -> String {
    let mut body = policies;
    body["url"] = json!(url);
    let made = client.post("/v1/destinations", body).await.expect(201);
    format!("/v1/destinations/{}", made["id"].as_str().expect("a string"))
}

/// Publishes an event and gives the path of its one delivery.
async fn publish(client: &Client, name: &str, more: Value) -> String {
    let mut body = json!({"event_type": "order.created", "payload": {"name": name}});
    for (key, value) in more.as_object().expect("an object") {
        body[key] = value.clone();
    }
    let published = client.post("/v1/outbound-events", body).await.expect(202);
    let event = format!("/v1/outbound-events/{}", published["id"].as_str().expect("a string"));
    let shown = client.get(&event).await.expect(200);
    format!("/v1/deliveries/{}", shown["deliveries"][0]["id"].as_str().expect("a string"))
}

async fn explain(client: &Client, delivery: &str) -> Value {
    client.get(&format!("{delivery}/explain")).await.expect(200)
}

async fn words(client: &Client, destination: &str) -> (String, Vec<String>) {
    let shown = client.get(destination).await.expect(200);
    let word = |value: &Value| value.as_str().expect("a string").to_owned();
    let holds = shown["holds"].as_array().expect("a list").iter().map(|hold| word(&hold["reason"]));
    (word(&shown["status"]), holds.collect())
}

fn names(receiver: &Receiver) -> Vec<String> {
    let name = |body: &[u8]| {
        let json: Value = serde_json::from_slice(body).expect("JSON");
        json["name"].as_str().expect("a string").to_owned()
    };
    receiver.received().iter().map(|received| name(&received.body)).collect()
}

#[tokio::test]
async fn those_whose_retry_is_due_go_before_and_are_counted() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(500)).await;
    let policies = json!({
        "rate_limit": {"max": 1, "per": "second", "burst_capacity": 4}, "circuit_breaker": {"enabled": false},
        "retry_policy": {"delays_seconds": [1], "jitter": "none"}, "max_concurrency": 10,
    });
    make(&server, &receiver.url, policies).await;
    let mut deliveries = Vec::new();
    for number in 0..4 {
        deliveries.push(publish(&server, &format!("old{number}"), json!({})).await);
    }
    until(secs(5), "all were tried", async || receiver.count() == 4).await;
    receiver.behave(|_| Reply::status(200));
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    deliveries.push(publish(&server, "new", json!({"ttl_seconds": 30})).await);
    // One goes every second: what is told counts if none went meanwhile.
    let (done, ahead) = loop {
        let done = receiver.count() - 4;
        let mut ahead = Vec::new();
        for delivery in &deliveries[done..] {
            let told = explain(&server, delivery).await;
            ahead.push(told["queue"]["ahead"].as_u64().filter(|_| told["will_expire"] == false));
        }
        if receiver.count() - 4 == done {
            break (done, ahead);
        }
    };
    assert!(done < 4, "they are too slow for the machine");
    let expected: Vec<_> = (0..ahead.len() as u64).map(Some).collect();
    assert_eq!(ahead, expected, "each says who goes before it; {done} were sent by then");
    until(secs(10), "all are sent", async || receiver.count() == 9).await;
    assert_eq!(names(&receiver)[4..], ["old0", "old1", "old2", "old3", "new"]);
}

#[tokio::test]
async fn what_is_in_flight_has_its_token_and_goes_before_nobody() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200).after(secs(2))).await;
    let policies =
        json!({"rate_limit": {"max": 1, "per": "second", "burst_capacity": 3}, "max_concurrency": 10});
    make(&server, &receiver.url, policies).await;
    for number in 0..3 {
        publish(&server, &format!("slow{number}"), json!({})).await;
        // One proves that it is well; then more may go at once.
        if number == 0 {
            until(secs(5), "it was sent", async || receiver.count() == 1).await;
        }
    }
    until(secs(10), "all are in flight", async || receiver.count() == 3).await;
    let last = publish(&server, "last", json!({"ttl_seconds": 20})).await;
    let told = explain(&server, &last).await;
    assert_eq!((&told["queue"]["ahead"], &told["will_expire"]), (&json!(0), &json!(false)), "{told}");
}

#[tokio::test]
async fn the_line_behind_a_retried_head_counts_it() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(500)).await;
    let policies = json!({"ordering": "fifo", "retry_policy": {"delays_seconds": [60], "jitter": "none"}});
    make(&server, &receiver.url, policies).await;
    let mut deliveries = Vec::new();
    for name in ["head", "second", "third"] {
        deliveries.push(publish(&server, name, json!({})).await);
    }
    until(secs(5), "the head waits for its retry", async || {
        explain(&server, &deliveries[0]).await["hold_reason"] == "retry_backoff"
    })
    .await;
    let head = explain(&server, &deliveries[0]).await;
    let mut before = head["retry_at"].clone();
    assert_eq!(head["estimated_at"], before);
    for (delivery, ahead) in deliveries.iter().zip(0..) {
        let told = explain(&server, delivery).await;
        assert_eq!(told["queue"]["ahead"], ahead, "{told}");
        // One after the other, from the moment at which the head goes.
        let at = told["estimated_at"].clone();
        assert!(at.as_str() > before.as_str() || ahead == 0, "{told}");
        before = at;
    }
}

#[tokio::test]
async fn a_halted_line_is_seen_from_everywhere() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(500)).await;
    let policies = json!({"ordering": "fifo", "on_exhausted": "halt", "retry_policy": {"max_attempts": 1}});
    let destination = make(&server, &receiver.url, policies).await;
    for name in ["dies", "stands", "stands too"] {
        publish(&server, name, json!({})).await;
    }
    until(secs(5), "it stands", async || {
        words(&server, &destination).await == ("paused".to_owned(), vec!["order_blocked".to_owned()])
    })
    .await;
    until(secs(5), "the metrics say so", async || {
        server.get("/metrics").await.text().contains("tidegate_held_deliveries{reason=\"order_blocked\"} 2")
    })
    .await;
    receiver.behave(|_| Reply::status(200));
    server.post(&format!("{destination}/resume"), json!({})).await.expect(200);
    until(secs(5), "it goes on", async || receiver.count() == 3).await;
    assert_eq!(words(&server, &destination).await, ("active".to_owned(), vec![]));
}

/// Goal: where only some ordering keys stand, others go, and whoever looks after the destination sees that he must look.
#[tokio::test]
async fn halted_keys_show_on_a_destination_that_goes_on() {
    let mut server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(410)).await;
    let policies = json!({"ordering": "key", "on_exhausted": "halt"});
    let destination = make(&server, &receiver.url, policies).await;
    let quiet = Receiver::start(|_| Reply::status(200)).await;
    make(&server, &quiet.url, json!({"event_types": []})).await;
    let dead = publish(&server, "dies", json!({"ordering_key": "a"})).await;
    let client = server.client();
    let of_key = async || client.get(&destination).await.expect(200)["holds"][0].clone();
    until(secs(5), "the key stands", async || of_key().await["reason"] == "order_blocked").await;
    let ended = server.get(&dead).await.expect(200)["finished_at"].clone();
    let (hold, notices) = (of_key().await, server.get(&format!("{destination}/notices")).await.expect(200));
    assert_eq!((&hold["since"], &hold["until"]), (&ended, &Value::Null), "{hold}");
    assert_eq!(notices["items"][0]["kind"], "order_halted", "{notices}");
    let first = server.get("/v1/destinations?sort=attention").await.expect(200)["items"][0]["id"].clone();
    assert!(destination.ends_with(first.as_str().unwrap()), "it asks for a person");
    receiver.behave(|_| Reply::status(200));
    publish(&server, "goes", json!({"ordering_key": "b"})).await;
    until(secs(5), "others go", async || receiver.count() == 2).await;
    assert_eq!(words(&server, &destination).await, ("active".to_owned(), vec!["order_blocked".to_owned()]));
    server.kill9();
    server.restart().await;
    assert_eq!(of_key().await["since"], ended, "a crash does not make it younger");
    server.post(&format!("{destination}/resume"), json!({"skip_head": true})).await.expect(200);
    assert_eq!(words(&server, &destination).await, ("active".to_owned(), vec![]));
    let log = server.get("/v1/audit-log?limit=1").await.expect(200)["items"][0].clone();
    assert_eq!(
        (&log["action"], &log["detail"]),
        (&json!("destination.resume"), &json!({"skip_head": true})),
        "{log}"
    );
}

#[tokio::test]
async fn paused_and_switched_off_are_two_things() {
    let mut server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let destination = make(&server, &receiver.url, json!({})).await;
    let pause = format!("{destination}/pause");
    let resume = format!("{destination}/resume");
    let both = || ("disabled".to_owned(), vec!["disabled".to_owned(), "paused".to_owned()]);
    server.post(&pause, json!({})).await.expect(200);
    let off = server.patch(&destination, json!({"active": false})).await.expect(200);
    assert_eq!(off["active"], false);
    assert_eq!(words(&server, &destination).await, both());
    server.kill9();
    server.restart().await;
    assert_eq!(words(&server, &destination).await, both(), "after a crash, too");
    server.patch(&destination, json!({"active": true})).await.expect(200);
    assert_eq!(words(&server, &destination).await, ("paused".to_owned(), vec!["paused".to_owned()]));
    server.patch(&destination, json!({"active": false})).await.expect(200);
    let resumed = server.post(&resume, json!({})).await.expect(200);
    assert_eq!(resumed["active"], false, "resuming does not switch it on");
    assert_eq!(words(&server, &destination).await, ("disabled".to_owned(), vec!["disabled".to_owned()]));
    publish(&server, "waits", json!({})).await;
    server.post(&pause, json!({})).await.expect(200);
    server.post(&resume, json!({})).await.expect(200);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(receiver.count(), 0);
    server.patch(&destination, json!({"active": true})).await.expect(200);
    until(secs(5), "it is sent", async || receiver.count() == 1).await;
}

#[tokio::test]
async fn an_interval_in_which_work_waited_is_one_row_over_restarts() {
    let mut server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let destination = make(&server, &receiver.url, json!({})).await;
    server.post(&format!("{destination}/pause"), json!({})).await.expect(200);
    let delivery = publish(&server, "waits", json!({})).await;
    let holds = format!("{destination}/holds");
    let begun = until_some(secs(5), "it is held".to_owned(), async || {
        let rows = server.get(&holds).await.expect(200)["items"].clone();
        rows[0]["since"].as_str().map(str::to_owned)
    })
    .await;
    for clean in [true, false, true] {
        if clean {
            assert!(server.stop().await);
        } else {
            server.kill9();
        }
        server.restart().await;
        let rows = server.get(&holds).await.expect(200)["items"].clone();
        assert_eq!(rows.as_array().map(Vec::len), Some(1), "{rows}");
        assert_eq!((&rows[0]["since"], &rows[0]["until"]), (&json!(begun), &Value::Null), "{rows}");
    }
    let paused = |moment: &&Value| moment["status"] == "paused";
    let shown = server.get(&delivery).await.expect(200);
    let lasts = |moment: &Value| moment["retry_at"].is_null();
    let moments = shown["timeline"].as_array().expect("a list");
    assert!(moments.iter().filter(paused).all(lasts), "no end of what lasts is made up: {shown}");
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    server.post(&format!("{destination}/resume"), json!({})).await.expect(200);
    until(secs(5), "it is sent", async || receiver.count() == 1).await;
    until(secs(5), "the row is whole", async || {
        let rows = server.get(&holds).await.expect(200)["items"].clone();
        rows.as_array().map(Vec::len) == Some(1) && rows[0]["since"] == begun && rows[0]["until"].is_string()
    })
    .await;
    let shown = server.get(&delivery).await.expect(200);
    let moments = shown["timeline"].as_array().expect("a list");
    assert_eq!(moments.iter().filter(paused).count(), 1, "{shown}");

    server.post(&format!("{destination}/pause"), json!({})).await.expect(200);
    publish(&server, "waits, too", json!({})).await;
    until(secs(5), "it is held", async || {
        server.get(&holds).await.expect(200)["items"].as_array().map(Vec::len) == Some(2)
    })
    .await;
    let page = server.get(&format!("{holds}?limit=1")).await.expect(200);
    assert_eq!((page["items"].as_array().map(Vec::len), &page["items"][0]["until"]), (Some(1), &Value::Null));
    let cursor = page["next_cursor"].as_str().expect("there is more");
    let page = server.get(&format!("{holds}?limit=1&cursor={cursor}")).await.expect(200);
    assert_eq!((&page["items"][0]["since"], &page["next_cursor"]), (&json!(begun), &Value::Null), "{page}");
    let age = "tidegate_oldest_held_seconds{destination=\"dst_";
    until(secs(5), "the metrics tell its age", async || {
        let metrics = server.get("/metrics").await.text();
        let line = metrics.lines().find(|line| line.starts_with(age)).expect("a gauge");
        line.rsplit(' ').next().and_then(|seconds| seconds.parse::<f64>().ok()).is_some_and(|age| age > 0.5)
    })
    .await;
}

#[tokio::test]
async fn an_attempt_in_flight_outlives_its_destination() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200).after(secs(1))).await;
    let destination = make(&server, &receiver.url, json!({})).await;
    let delivery = publish(&server, "on its way", json!({})).await;
    until(secs(5), "it is in flight", async || receiver.count() == 1).await;
    assert_eq!(server.delete(&destination).await.status, 204);
    assert_eq!(server.get(&delivery).await.expect(200)["status"], "delivering", "not over before it is");
    until(secs(5), "it is over", async || server.get(&delivery).await.expect(200)["status"] == "delivered")
        .await;
}

#[tokio::test]
async fn a_retry_is_named_in_the_timeline_and_a_hold_ends_with_the_delivery() {
    let server = Server::start(&[]).await;
    let receiver =
        Receiver::start(|received| Reply::status(if received.attempt() == 1 { 500 } else { 200 })).await;
    make(&server, &receiver.url, json!({"retry_policy": {"delays_seconds": [1], "jitter": "none"}})).await;
    let delivery = publish(&server, "twice", json!({})).await;
    until(secs(10), "it is delivered", async || {
        server.get(&delivery).await.expect(200)["status"] == "delivered"
    })
    .await;
    let words = |shown: &Value| {
        let moments = shown["timeline"].as_array().expect("a list").iter();
        moments.map(|moment| moment["status"].as_str().expect("a word").to_owned()).collect::<Vec<_>>()
    };
    let shown = server.get(&delivery).await.expect(200);
    assert_eq!(words(&shown), ["queued", "http_error", "retry_backoff", "success", "delivered"], "{shown}");
    let delivery = publish(&server, "once", json!({})).await;
    until(secs(10), "it has failed", async || {
        server.get(&delivery).await.expect(200)["status"] == "retry_scheduled"
    })
    .await;
    server.post(&format!("{delivery}/cancel"), json!({})).await.expect(200);
    let shown = server.get(&delivery).await.expect(200);
    assert_eq!(words(&shown), ["queued", "http_error", "retry_backoff", "cancelled"], "{shown}");
}

/// A night lets no more through at once than the burst: what waits goes at the rate from when it opens.
#[tokio::test(flavor = "multi_thread")]
async fn a_forecast_counts_tokens_from_when_it_opens_and_waits_for_the_last_retry() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(500)).await;
    let now = kit::wall().to_zoned(jiff::tz::TimeZone::UTC);
    let clock = |hours: i64| {
        now.checked_add(jiff::Span::new().hours(hours)).expect("a time").strftime("%H:00").to_string()
    };
    let window = json!({"timezone": "UTC", "quiet_start": clock(-1), "quiet_end": clock(3)});
    let rate = json!({"max_per_minute": 60, "burst_capacity": 1});
    let night = make(
        &server,
        &receiver.url,
        json!({"name": "n", "event_types": ["night"], "delivery_schedule": window, "rate_limit": rate}),
    )
    .await;
    let retries = json!({"max_attempts": 2, "delays_seconds": [7_200], "jitter": "none"});
    let broken = make(
        &server,
        &receiver.url,
        json!({"name": "b", "event_types": ["broken"], "retry_policy": retries}),
    )
    .await;
    let events: Vec<Value> =
        (0..101).map(|number| json!({"event_type": "night", "payload": number})).collect();
    server.post("/v1/outbound-events/batch", json!({"events": events})).await.expect(202);
    server.post("/v1/outbound-events", json!({"event_type": "broken", "payload": {}})).await.expect(202);
    let at = |value: &Value| value.as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let forecast = server.get(&format!("{night}/forecast")).await.expect(200);
    let (opens, drained) =
        (at(&forecast["opens_at"]).expect("a time"), at(&forecast["drained_at"]).expect("a time"));
    assert_eq!(drained.duration_since(opens).as_secs(), 100, "{forecast}");

    until(secs(30), "it has failed", async || receiver.count() == 1).await;
    let drained = until_some(secs(30), "its retry is known", async || {
        let forecast = server.get(&format!("{broken}/forecast")).await.expect(200);
        at(&forecast["drained_at"]).filter(|at| at.duration_since(kit::wall()).as_secs() > 600)
    })
    .await;
    assert!(drained.duration_since(kit::wall()).as_secs() <= 7_200);
}

/// The words of a delivery's timeline, once it is delivered.
async fn story(client: &Client, delivery: &str) -> Vec<String> {
    until(secs(10), "it is delivered", async || {
        client.get(delivery).await.expect(200)["status"] == "delivered"
    })
    .await;
    let rows = async || {
        let shown = client.get(delivery).await.expect(200);
        let moments = shown["timeline"].as_array().expect("a list").clone();
        let word = |moment: &Value| moment["status"].as_str().expect("a word").to_owned();
        moments.iter().map(word).collect::<Vec<_>>()
    };
    // The log of holds is written with the next record.
    tokio::time::sleep(Duration::from_millis(300)).await;
    rows().await
}

/// Goal: the timeline tells of every wait of the delivery, however short, and of none that was another's.
#[tokio::test]
async fn a_timeline_has_all_waits_of_the_delivery_and_no_others() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let paused = make(&server, &receiver.url, json!({"event_types": ["paused"]})).await;
    server.post(&format!("{paused}/pause"), json!({})).await.expect(200);
    let held = publish(&server, "paused", json!({"event_type": "paused"})).await;
    tokio::time::sleep(Duration::from_millis(150)).await;
    server.post(&format!("{paused}/resume"), json!({})).await.expect(200);
    assert_eq!(story(&server, &held).await, ["queued", "paused", "success", "delivered"]);

    // Long enough for the second to be accepted meanwhile, also where every commit takes its time.
    let slow = Receiver::start(|_| Reply::status(200).after(secs(2))).await;
    make(&server, &slow.url, json!({"event_types": ["ordered"], "ordering": "fifo"})).await;
    publish(&server, "goes first", json!({"event_type": "ordered"})).await;
    let second = publish(&server, "goes second", json!({"event_type": "ordered"})).await;
    let told = story(&server, &second).await;
    assert_eq!(told, ["queued", "order_blocked", "success", "delivered"]);

    let rate = json!({"max_per_minute": 30, "burst_capacity": 1});
    make(&server, &receiver.url, json!({"event_types": ["paced"], "rate_limit": rate})).await;
    publish(&server, "takes the token", json!({"event_type": "paced"})).await;
    let second = publish(&server, "waits for the next", json!({"event_type": "paced"})).await;
    assert_eq!(story(&server, &second).await, ["queued", "rate_limited", "success", "delivered"]);

    let all_day = json!({"timezone": "UTC", "quiet_start": "00:00", "quiet_end": "23:59"});
    let other_half = json!({"timezone": "UTC", "quiet_start": "12:00", "quiet_end": "11:59"});
    let night = if kit::wall().to_string().contains("T23:59") { other_half } else { all_day };
    let quiet =
        make(&server, &receiver.url, json!({"event_types": ["night"], "delivery_schedule": night})).await;
    let held = publish(&server, "at night", json!({"event_type": "night"})).await;
    tokio::time::sleep(Duration::from_millis(150)).await;
    server.patch(&quiet, json!({"delivery_schedule": null})).await.expect(200);
    assert_eq!(story(&server, &held).await, ["queued", "quiet_hours", "success", "delivered"]);

    let throttling = Receiver::start(|received| match received.attempt() {
        1 => Reply::status(429).header("retry-after", "1"),
        _ => Reply::status(200),
    })
    .await;
    make(&server, &throttling.url, json!({"event_types": ["throttled"]})).await;
    let told = story(&server, &publish(&server, "429", json!({"event_type": "throttled"})).await).await;
    assert!(told.iter().any(|word| word == "throttled"), "{told:?}");
    assert!(told.iter().all(|word| word != "retry_backoff"), "it used no attempt: {told:?}");

    let slow = Receiver::start(|_| Reply::status(200).after(Duration::from_millis(400))).await;
    make(&server, &slow.url, json!({"event_types": ["narrow"], "max_concurrency": 1})).await;
    let first = publish(&server, "has the slot", json!({"event_type": "narrow"})).await;
    let second = publish(&server, "waits for it", json!({"event_type": "narrow"})).await;
    assert_eq!(story(&server, &second).await, ["queued", "at_capacity", "success", "delivered"]);
    assert_eq!(story(&server, &first).await, ["queued", "success", "delivered"]);
}

/// A window for some types is named as long as something waits for it, and other types pass.
#[tokio::test]
async fn a_window_for_some_types_is_among_what_holds() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let now = kit::wall().to_zoned(jiff::tz::TimeZone::UTC);
    let hour = |hours: i64| {
        now.checked_add(jiff::Span::new().hours(hours)).expect("a time").strftime("%H:00").to_string()
    };
    let window =
        json!({"timezone": "UTC", "quiet_start": hour(-1), "quiet_end": hour(2), "applies_to": ["order.*"]});
    let destination = make(&server, &receiver.url, json!({"delivery_schedule": window})).await;
    assert_eq!(words(&server, &destination).await, ("active".to_owned(), vec![]));
    publish(&server, "held", json!({})).await;
    until(secs(5), "it is told", async || {
        words(&server, &destination).await == ("quiet_hours".to_owned(), vec!["quiet_hours".to_owned()])
    })
    .await;
    publish(&server, "passes", json!({"event_type": "other"})).await;
    until(secs(5), "another type goes", async || names(&receiver) == ["passes"]).await;
}

/// Every change of a delivery's state is told as it happens: accepted, sent, over.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_tells_of_each_state() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    make(&server, &receiver.url, json!({})).await;
    let watch = kit::Watch::start(&server).await;
    let delivery = publish(&server, "watched", json!({})).await;
    let states = || {
        let seen = watch.seen().into_iter().filter(|event| event["kind"] == "delivery");
        seen.filter_map(|event| event["status"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let way = ["queued", "delivering", "delivered"];
    until(secs(5), "it is over", async || states().last().is_some_and(|state| state == "delivered")).await;
    assert_eq!(states(), way);
    // The stream may be ahead of the store by a commit.
    let replay = format!("{delivery}/replay");
    until(secs(5), "it is replayed", async || server.post(&replay, json!({})).await.status == 202).await;
    until(secs(5), "it is over again", async || states().len() >= 6).await;
    assert_eq!(states(), [way, way].concat(), "a replay goes the same way");
}

/// Goal: figures name what each delivery waits for, also where more wait than a lane keeps in memory.
#[tokio::test(flavor = "multi_thread")]
async fn figures_of_what_waits_are_of_all_that_waits() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(500)).await;
    let types = |name: &str| json!({"event_types": [name]});
    let with = |mut body: Value, more: Value| {
        more.as_object().unwrap().iter().for_each(|(key, value)| body[key] = value.clone());
        body
    };
    let paused = make(&server, &receiver.url, types("to.paused")).await;
    let order = json!({"ordering": "fifo", "circuit_breaker": {"enabled": false}});
    make(&server, &receiver.url, with(types("to.line"), order)).await;
    make(&server, &receiver.url, types("to.later")).await;
    server.post(&format!("{paused}/pause"), json!({})).await.expect(200);
    let later = (kit::wall() + secs(3_600)).to_string();
    let events = |name: &str, count: usize, deliver_at: Option<&str>| {
        let event = |n: usize| match deliver_at {
            None => json!({"event_type": name, "payload": n}),
            Some(at) => json!({"event_type": name, "payload": n, "deliver_at": at}),
        };
        json!({"events": (0..count).map(event).collect::<Vec<_>>()})
    };
    let batch = "/v1/outbound-events/batch";
    for body in [
        events("to.paused", 100, None),
        events("to.paused", 150, Some(&later)),
        events("to.later", 300, Some(&later)),
        events("to.line", 200, None),
    ] {
        server.post(batch, body).await.expect(202);
    }
    let expected = [("paused", 100), ("scheduled", 450), ("order_blocked", 199), ("retry_backoff", 1)];
    until(secs(10), "the metrics say so", async || {
        let text = server.get("/metrics").await.text();
        let says = |(reason, count): &(&str, u64)| {
            text.contains(&format!("tidegate_held_deliveries{{reason=\"{reason}\"}} {count}\n"))
        };
        expected.iter().all(says)
    })
    .await;
    let stats = server.get("/v1/stats").await.expect(200);
    for (reason, count) in expected {
        let held = stats["held"].as_array().unwrap().iter().find(|held| held["reason"] == reason);
        assert_eq!(held.map(|held| &held["deliveries"]), Some(&json!(count)), "{reason}: {stats}");
    }
}
