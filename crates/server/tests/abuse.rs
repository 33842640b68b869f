//! What somebody with a valid key, or none, may try on the API, and get nothing for.

mod kit;

#[path = "abuse/accounts.rs"]
mod accounts;
#[path = "abuse/live.rs"]
mod live;
#[path = "abuse/secrets.rs"]
mod secrets;
#[path = "abuse/slow.rs"]
mod slow;
#[path = "abuse/stream.rs"]
mod stream;
#[path = "abuse/terminal.rs"]
mod terminal;

use std::collections::BTreeSet;

use accounts::{Owned, operations};
use http::Method;
use kit::{Answer, Client, Receiver, Reply, Server, millis, now, secs, until};
use serde_json::{Value, json};

async fn call(client: &Client, method: &str, path: &str, body: Option<&Value>) -> Answer {
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
    let bytes = body.map(|body| bytes::Bytes::from(body.to_string())).unwrap_or_default();
    let sent = client.try_send(method, path, body.map(|_| "application/json"), bytes).await;
    sent.unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Goal: an id of another account is worth as much as one that nobody has.
/// Method: every operation of the OpenAPI document that takes an id is called with both, by an owner of another account.
#[tokio::test(flavor = "multi_thread")]
async fn no_operation_takes_an_id_of_another_account() {
    let server = Server::start(&[]).await;
    let owned = Owned::make(&server).await;
    let stranger = accounts::account(&server, "stranger").await;
    let before = owned.seen_by_its_owner().await;
    let document = server.get("/openapi.json").await.json;
    let mut tried = 0;
    for (method, path) in operations(&document).into_iter().filter(|(_, path)| path.contains('{')) {
        if path.starts_with("/v1/event-types/") {
            continue; // a name, which each account has for itself: see below
        }
        for (foreign, unknown) in owned.ids_for(&path) {
            let body = (method != "get").then(|| accounts::body_for(&path));
            let asked = call(&stranger, &method, &accounts::with_id(&path, &foreign), body.as_ref()).await;
            let blind = call(&stranger, &method, &accounts::with_id(&path, &unknown), body.as_ref()).await;
            assert!([403, 404].contains(&asked.status), "{method} {path}: {} {}", asked.status, asked.text());
            assert_eq!(
                (asked.status, asked.text()),
                (blind.status, blind.text()),
                "{method} {path} {foreign}"
            );
            tried += 1;
        }
    }
    assert!(tried >= 30, "{tried}");

    // Where an id is not in the path.
    let Owned { destination, event, .. } = &owned;
    let event_to = json!({"event_type": "a.b", "payload": 1, "destination_ids": [destination]});
    for (path, body) in [
        ("/v1/outbound-events", event_to.clone()),
        ("/v1/outbound-events", json!({"event_type": "a.b", "payload": 1, "destination_ids": ["mine"]})),
        ("/v1/outbound-events/batch", json!({"events": [event_to]})),
        ("/v1/routes", json!({"destination_id": destination, "event_type_pattern": "*"})),
        ("/v1/replays", json!({"filter": {"destination_id": destination}})),
        ("/v1/cancellations", json!({"filter": {"destination_id": destination}})),
    ] {
        let refused = stranger.post(path, body).await;
        assert!([404, 422].contains(&refused.status), "{path}: {}", refused.text());
    }
    for query in
        [format!("destination_id={destination}"), format!("event_id={event}"), "destination_id=mine".into()]
    {
        let found = stranger.get(&format!("/v1/deliveries?{query}&total=true")).await;
        assert!(found.status != 200 || found.json["data"]["items"] == json!([]), "{query}: {}", found.text());
    }
    // A type of the same name is one's own.
    stranger.get("/v1/event-types/a.b").await.expect_error(404, "not_found");
    stranger.put("/v1/event-types/a.b", json!({"description": "theirs"})).await;
    stranger.delete("/v1/event-types/a.b").await.expect(204);
    assert_eq!(owned.seen_by_its_owner().await, before, "nothing of the owner's has changed");
}

/// Goal: no list shows anything of another account, whatever cursor it is given, and no cursor breaks it.
#[tokio::test(flavor = "multi_thread")]
async fn no_list_tells_of_another_account_and_no_cursor_is_trusted() {
    let server = Server::start(&[]).await;
    let owned = Owned::make(&server).await;
    let stranger = accounts::account(&server, "stranger").await;
    let document = server.get("/openapi.json").await.json;
    let secret = owned.ids();
    let mut lists = 0;
    for (method, path) in operations(&document) {
        if method != "get" || path.contains('{') || !path.starts_with("/v1/") || path == "/v1/stream" {
            continue; // it does not end: see abuse/stream.rs
        }
        let shown = stranger.get(&path).await;
        let told: Vec<_> = secret.iter().filter(|id| shown.text().contains(id.as_str())).collect();
        assert!(told.is_empty(), "{path} tells {told:?}");
        let parameters = document["paths"][path.as_str()]["get"]["parameters"].to_string();
        if shown.status != 200 || !parameters.contains("\"cursor\"") {
            continue;
        }
        lists += 1;
        let theirs = owned.client.get(&format!("{path}?limit=1")).await.expect(200);
        let own = theirs["next_cursor"].as_str().unwrap_or("AAAA").to_owned();
        let turned: String = own.chars().rev().collect();
        let forged = [
            own.clone(),
            turned,
            "A".repeat(5_000),
            "%00".into(),
            "%F0%9F%92%A3".into(),
            "..%2F..".into(),
            format!("{own}A"),
            "-1".into(),
            "W10".into(),
            "eyJhIjoxfQ".into(),
        ];
        for cursor in forged {
            let answer = stranger.get(&format!("{path}?cursor={cursor}")).await;
            assert!([200, 422].contains(&answer.status), "{path}?cursor={cursor}: {}", answer.text());
            let told: Vec<_> = secret.iter().filter(|id| answer.text().contains(id.as_str())).collect();
            assert!(told.is_empty(), "{path}?cursor={cursor} tells {told:?}");
        }
        for limit in ["0", "-1", "1000000000", "1e3", "18446744073709551616"] {
            stranger.get(&format!("{path}?limit={limit}")).await.expect_error(422, "invalid_field");
        }
    }
    assert!(lists >= 8, "{lists}");
}

/// Goal: nobody guesses keys quickly, by whichever door, and nobody is somebody else by saying so.
#[tokio::test(flavor = "multi_thread")]
async fn guessing_is_limited_at_every_door_whoever_one_claims_to_be() {
    let server = Server::start(&[]).await;
    let mut refused = BTreeSet::new();
    for number in 0..80 {
        let guesser = server
            .with_key(&format!("tg_{number:043}"))
            .with_header("x-forwarded-for", &format!("9.9.9.{number}"));
        let guesser = guesser.with_header("forwarded", &format!("for=9.9.8.{number}"));
        refused.insert(guesser.get("/v1/stats").await.status);
    }
    assert_eq!(refused, BTreeSet::from([401, 429]));
    let kind = Some("application/x-www-form-urlencoded");
    let form = bytes::Bytes::from_static(b"key=tg_guess");
    let guessed = Client::new(&server.base_url, "").try_send(Method::POST, "/sign-in", kind, form).await;
    assert_eq!(guessed.expect("an answer").status, 429, "the door of the dashboard is the same");
    server.get("/v1/stats").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_header_is_smuggled_into_a_request() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let evil = ["a\r\nx: y", "a\ny", "a\rb", "a\0b", "a\u{7f}", "a\u{1b}[2J"];
    for text in evil {
        let header = |name: &str, value: &str| json!({"type": "header", "name": name, "value": value});
        let fields = [
            json!({"custom_headers": {"x-a": text}}),
            json!({"custom_headers": {text: "v"}}),
            json!({"auth_config": {"type": "bearer", "token": text}}),
            json!({"auth_config": header("x-a", text)}),
            json!({"auth_config": header(text, "v")}),
        ];
        for more in fields {
            let mut body = more.clone();
            body["url"] = json!(receiver.url);
            let refused = server.post("/v1/destinations", body).await.expect_error(422, "invalid_field");
            assert!(!refused["error"].as_str().expect("a sentence").contains(text), "{refused}");
        }
        for field in ["event_type", "content_type"] {
            let mut event = json!({"event_type": "a.b", "payload": "x"});
            event[field] = json!(text);
            server.post("/v1/outbound-events", event).await.expect_error(422, "invalid_field");
        }
        server
            .post("/v1/destinations", json!({"url": format!("{}/{text}", receiver.url)}))
            .await
            .expect_error(422, "invalid_field");
    }
    for name in [
        "Host",
        "content-length",
        "Transfer-Encoding",
        "connection",
        "proxy-authorization",
        "webhook-id",
        "Metadata-Flavor",
        "x-aws-ec2-metadata-token",
        "cookie",
        "te",
        "x y",
        "x:y",
        "",
    ] {
        for more in [
            json!({"custom_headers": {name: "v"}}),
            json!({"auth_config": {"type": "header", "name": name, "value": "v"}}),
        ] {
            let mut body = more;
            body["url"] = json!(receiver.url);
            server.post("/v1/destinations", body).await.expect_error(422, "invalid_field");
        }
    }
}

/// Goal: headers are few and short, whoever asks for more: what is sent with every request is kept in memory for each.
#[tokio::test(flavor = "multi_thread")]
async fn headers_without_measure_are_refused() {
    let server = Server::start(&[]).await;
    let many = |count: usize| {
        let headers: serde_json::Map<_, _> = (0..count).map(|n| (format!("x-{n}"), json!("v"))).collect();
        json!({"custom_headers": headers})
    };
    let header = |name: &str, value: &str| json!({"type": "header", "name": name, "value": value});
    let long = "v".repeat(64 * 1_024);
    for (fields, status) in [
        (many(32), 201),
        (many(33), 422),
        (many(1_000), 422),
        (json!({"custom_headers": {"x-a": "v".repeat(4_096)}}), 201),
        (json!({"custom_headers": {"x-a": long}}), 422),
        (json!({"custom_headers": {format!("x-{long}"): "v"}}), 422),
        (json!({"auth_config": header("x-a", &long)}), 422),
        (json!({"auth_config": {"type": "bearer", "token": long}}), 422),
    ] {
        let mut body = fields.clone();
        body["url"] = json!("https://example.com/");
        let made = server.post("/v1/destinations", body).await;
        assert_eq!(made.status, status, "{:.80}: {:.300}", fields.to_string(), made.text());
        assert!(made.bytes.len() < 16 * 1_024, "an answer does not repeat what was too long");
        if status == 422 {
            server.post("/v1/destinations", json!({"url": "https://example.com/", "external_id": "d"})).await;
            let changed = server.patch("/v1/destinations/d", fields).await;
            assert_eq!(changed.status, 422, "{}", changed.text());
        }
    }
}

/// Goal: one key is one event, whoever asks how often at once; and a key is any text.
#[tokio::test(flavor = "multi_thread")]
async fn one_idempotency_key_is_one_event() {
    let server = Server::start(&[]).await;
    let key = "k".repeat(255);
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..24 {
        let client = server.with_header("idempotency-key", &key);
        // Two bodies: one of them is first, and the other is refused.
        let event = json!({"event_type": "a.b", "payload": number % 2});
        calls.spawn(async move { (number % 2, client.post("/v1/outbound-events", event).await) });
    }
    let (mut ids, mut bodies) = (BTreeSet::new(), BTreeSet::new());
    for (body, answer) in calls.join_all().await {
        match answer.status {
            202 => {
                bodies.insert(body);
                ids.insert(answer.expect(202)["id"].to_string());
            }
            _ => {
                answer.expect_error(422, "idempotency_key_reused");
            }
        }
    }
    assert_eq!((ids.len(), bodies.len()), (1, 1), "{ids:?}");
    let other = accounts::account(&server, "other").await.with_header("idempotency-key", &key);
    let theirs =
        other.post("/v1/outbound-events", json!({"event_type": "a.b", "payload": 7})).await.expect(202);
    assert!(!ids.contains(&theirs["id"].to_string()), "a key belongs to its account");
    let listed = server.get("/v1/outbound-events?total=true").await.expect(200);
    assert_eq!(listed["total"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn depth_and_number_of_keys_break_nothing() {
    let server = Server::start(&["--max-event-size", "4MiB"]).await;
    let keys: String = (0..200_000).map(|n| format!("\"k{n}\":{n},")).collect();
    let same = "\"k\":1,".repeat(200_000);
    let deep =
        |open: &str, close: &str, times: usize| format!("{}1{}", open.repeat(times), close.repeat(times));
    for (payload, status) in [
        (format!("{{{keys}\"z\":0}}"), 202),
        (format!("{{{same}\"z\":0}}"), 202),
        (format!("[{}1]", "1,".repeat(900_000)), 202),
        (deep("[", "]", 100), 202),
        (deep("{\"a\":", "}", 100), 202),
        (deep("[", "]", 1_000_000), 422),
        (deep("{\"a\":", "}", 300_000), 422),
        ("[".repeat(2_000_000), 400),
    ] {
        let body = format!(r#"{{"event_type":"a.b","payload":{payload}}}"#);
        let sent =
            server.try_send(Method::POST, "/v1/outbound-events", Some("application/json"), body.into()).await;
        let answer = sent.expect("an answer");
        let fits = answer.status == status || (status == 400 && answer.status == 422);
        assert!(fits, "{:.60}: {} {}", payload, answer.status, answer.text());
    }
    for path in ["/v1/destinations", "/v1/api-keys", "/v1/replays", "/v1/schedules/preview", "/v1/accounts"] {
        for body in [deep("[", "]", 100_000), format!("{{\"url\":{}}}", deep("{\"a\":", "}", 50_000))] {
            let sent = server.try_send(Method::POST, path, Some("application/json"), body.into()).await;
            let status = sent.expect("an answer").status;
            assert!([400, 413, 422].contains(&status), "{path}: {status}");
        }
    }
    server.get("/readyz").await.expect(200);
}

/// Goal: what is changed while deliveries are under way holds for every request that starts a second later.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_changes_under_load_holds_at_once() {
    let server = Server::start(&[]).await;
    let old = Receiver::start(|_| Reply::status(200).after(millis(20))).await;
    let new = Receiver::start(|_| Reply::status(200).after(millis(5))).await;
    let body = json!({"url": old.url, "external_id": "d", "max_concurrency": 20, "custom_headers": {"x-version": "1"}});
    server.post("/v1/destinations", body).await.expect(201);
    let publish = async |count: usize| {
        let events: Vec<_> = (0..count).map(|n| json!({"event_type": "a.b", "payload": n})).collect();
        server.post("/v1/outbound-events/batch", json!({"events": events})).await.expect(202);
    };
    publish(400).await;
    until(secs(20), "it is under way", async || old.count() >= 20).await;
    let change = json!({"url": new.url, "max_concurrency": 1, "custom_headers": {"x-version": "2"}});
    server.patch("/v1/destinations/d", change).await.expect(200);
    let changed = now();
    publish(50).await;
    until(secs(60), "all arrive", async || old.count() + new.count() >= 450).await;
    until(secs(20), "all are answered", async || new.received().iter().all(|one| one.ended_at.is_some()))
        .await;
    let late = changed + secs(1);
    assert_eq!(
        old.received().iter().filter(|one| one.began_at > late).count(),
        0,
        "the old URL is left alone"
    );
    let mut arrived = new.received();
    assert!(arrived.len() >= 50 && arrived.iter().all(|one| one.header("x-version") == Some("2")));
    arrived.sort_by_key(|one| one.began_at);
    for pair in arrived.windows(2).filter(|pair| pair[0].began_at > late) {
        assert!(pair[0].ended_at.is_some_and(|ended| ended <= pair[1].began_at), "one at a time");
    }
    let all: BTreeSet<_> =
        old.received().iter().chain(&arrived).map(|one| one.event_id().to_owned()).collect();
    assert_eq!((all.len(), old.count() + new.count()), (450, 450), "each once");
}
