//! Start, stop, restart: what was accepted stays, and one server has one store.

mod kit;

use std::process::{Command, Stdio};

use kit::{Receiver, Reply, Server, millis, secs, until};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

fn tidegate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.stdin(Stdio::null());
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_accepted_is_sent_after_a_crash() {
    let mut server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let made = server.post("/v1/destinations", json!({"name": "a", "url": receiver.url})).await.expect(201);
    let id = made["id"].as_str().unwrap().to_owned();
    server.post(&format!("/v1/destinations/{id}/pause"), json!({})).await.expect(200);
    for n in 0..20 {
        server.post("/v1/outbound-events", json!({"event_type": "a.b", "payload": n})).await.expect(202);
    }
    server.kill9();
    server.restart().await;
    assert_eq!(receiver.count(), 0, "a pause outlives a crash");
    server.post(&format!("/v1/destinations/{id}/resume"), json!({})).await.expect(200);
    until(secs(20), "all arrive", async || receiver.count() == 20).await;
}

/// Goal: attempts that were not made leave nothing behind that keeps a limited destination from starting others.
/// Method: what waits there is suspected of a crash, and so goes back to its gates once, when it has waited apart.
#[tokio::test(flavor = "multi_thread")]
async fn a_limited_destination_goes_on_after_an_attempt_that_was_not_made() {
    let mut server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let limited = json!({"name": "a", "url": receiver.url, "max_concurrency": 1,
        "rate_limit": {"max_per_minute": 600, "burst_capacity": 600}});
    let made = server.post("/v1/destinations", limited).await.expect(201);
    let id = made["id"].as_str().unwrap().to_owned();
    server.post(&format!("/v1/destinations/{id}/pause"), json!({})).await.expect(200);
    for n in 0..3 {
        server.post("/v1/outbound-events", json!({"event_type": "a.b", "payload": n})).await.expect(202);
    }
    let waiting = server.get("/v1/deliveries").await.expect(200);
    let first = waiting["items"][2]["id"].as_str().expect("an id");
    server.kill9();
    std::fs::write(server.data_dir.join("suspects"), format!("{first} 1 0\n")).expect("a file");
    server.restart().await;
    server.post(&format!("/v1/destinations/{id}/resume"), json!({})).await.expect(200);
    until(secs(10), "all arrive", async || receiver.count() == 3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_lets_the_attempt_in_flight_finish() {
    let mut server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200).after(millis(1_500))).await;
    server.post("/v1/destinations", json!({"name": "a", "url": receiver.url})).await.expect(201);
    server.post("/v1/outbound-events", json!({"event_type": "a.b", "payload": 1})).await.expect(202);
    until(secs(10), "it is under way", async || receiver.count() == 1).await;
    assert!(server.stop().await, "it ends with 0");
    server.restart().await;
    let listed = server.get("/v1/deliveries").await.expect(200);
    assert_eq!(listed["items"][0]["status"], "delivered", "{listed}");
    assert_eq!(receiver.count(), 1, "and is not sent again");
}

/// Goal: whoever insists on https is obeyed for what was made before that, too.
#[tokio::test(flavor = "multi_thread")]
async fn https_only_holds_for_destinations_made_without_it() {
    let mut server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let made = server.post("/v1/destinations", json!({"name": "a", "url": receiver.url})).await.expect(201);
    let id = made["id"].as_str().expect("an id").to_owned();
    assert!(server.stop().await);
    server.restart_with(&["--https-only"]).await;
    let expected = (json!("blocked"), json!("the URL is http, and this server sends to https alone"));
    let tested = server.post(&format!("/v1/destinations/{id}/test"), json!({})).await.expect(200);
    assert_eq!((&tested["outcome"], &tested["error"]), (&expected.0, &expected.1));
    server.post("/v1/outbound-events", json!({"event_type": "a.b", "payload": 1})).await.expect(202);
    let attempts = format!("/v1/destinations/{id}/attempts");
    until(secs(10), "an attempt is refused", async || {
        let listed = server.get(&attempts).await.expect(200);
        let last = &listed["items"][0];
        (&last["outcome"], &last["error"]) == (&expected.0, &expected.1)
    })
    .await;
    assert_eq!(receiver.count(), 0);
    let refused = server.post("/v1/destinations", json!({"name": "b", "url": receiver.url})).await;
    assert_eq!((refused.status, &refused.json["field"]), (422, &json!("url")));
}

/// Goal: a limit on the length of files is an error that says what to do, and no death without a word.
/// Method: it is set for a server that runs, and small enough for the store's log to reach it.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_on_the_length_of_files_is_told() {
    let mut server = Server::start(&[]).await;
    if server.database_url().is_some() {
        return;
    }
    server.post("/v1/destinations", json!({"name": "a", "url": "http://127.0.0.1:9/"})).await.expect(201);
    server.limit_files(600 << 10);
    let event = json!({"event_type": "a.b", "payload": "x".repeat(20_000)});
    let mut accepted = 0;
    while accepted < 100 {
        let body = bytes::Bytes::from(event.to_string());
        let asked =
            server.try_send(http::Method::POST, "/v1/outbound-events", Some("application/json"), body);
        match asked.await {
            Ok(answer) if answer.status == 202 => accepted += 1,
            _ => break,
        }
    }
    assert!(!server.ends().await, "it leaves with an error");
    let log = server.log();
    assert!(log.contains("disk I/O error") && log.contains("ulimit -f"), "{log}");
    server.restart().await;
    let listed = server.get("/v1/outbound-events?total=true").await.expect(200);
    assert!(listed["total"].as_u64().is_some_and(|total| total >= accepted), "{accepted}: {listed}");
}

/// Goal: a disk that was full before the start is as good as one that is full later: nothing is accepted, and all goes on by
/// itself when there is room.
/// Method: a store after a clean stop, which has left neither a log nor its index, moved to a small disk that is full.
#[test]
fn a_start_on_a_full_disk_waits_for_room() {
    kit::in_own_namespace("--mount", "a_start_on_a_full_disk_waits_for_room", starts_on_a_full_disk());
}

async fn starts_on_a_full_disk() {
    let mut server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    server.post("/v1/destinations", json!({"name": "a", "url": receiver.url})).await.expect(201);
    assert!(server.stop().await);
    let aside = server.data_dir.with_file_name("aside");
    std::fs::rename(&server.data_dir, &aside).expect("it can be moved");
    std::fs::create_dir(&server.data_dir).expect("a directory");
    let small = ["-t", "tmpfs", "-o", "size=4m", "tmpfs"];
    let mounted = Command::new("mount").args(small).arg(&server.data_dir).status();
    assert!(mounted.is_ok_and(|status| status.success()));
    for entry in std::fs::read_dir(&aside).expect("it is there").flatten() {
        std::fs::copy(entry.path(), server.data_dir.join(entry.file_name())).expect("there is room for it");
    }
    let fill = server.data_dir.join("fill");
    let full = std::fs::write(&fill, vec![7; 8 << 20]);
    assert!(full.is_err(), "the disk is full");

    let event = json!({"event_type": "a.b", "payload": 1});
    for leaves in [true, false] {
        server.respawn();
        until(secs(10), "it says what it waits for", async || {
            let asked =
                server.client().try_send(http::Method::GET, "/readyz", None, bytes::Bytes::new()).await;
            asked.is_ok_and(|answer| answer.status == 503 && answer.text().contains("disk is full"))
        })
        .await;
        let refused = server.post("/v1/outbound-events", event.clone()).await;
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")), "{}", refused.text());
        assert_eq!(server.get("/healthz").await.status, 200);
        assert!(server.log().contains("disk is full"), "{}", server.log());
        if leaves {
            assert!(server.stop().await, "{}", server.log());
        }
    }
    std::fs::remove_file(&fill).expect("it is there");
    server.ready().await;
    server.post("/v1/outbound-events", event).await.expect(202);
    until(secs(10), "it arrives", async || receiver.count() == 1).await;
    server.kill9();
    let unmounted = Command::new("umount").arg("--lazy").arg(&server.data_dir).status();
    assert!(unmounted.is_ok_and(|status| status.success()));
}

/// Goal: whoever reads the log learns of each attempt that failed how it ended, what becomes of its delivery, and when; of
/// those that succeeded, if they ask for it. Destinations have the names that the API gives them.
#[tokio::test(flavor = "multi_thread")]
async fn each_attempt_has_a_line_with_what_follows_from_it() {
    let mut server = Server::start(&[]).await;
    let receiver = Receiver::start(|request| {
        let answers = [("/well", 200), ("/ill", 500), ("/gone", 410), ("/busy", 429)];
        let status =
            answers.iter().find(|(path, _)| request.path == *path).map_or(404, |(_, status)| *status);
        Reply::status(status).header("retry-after", "600")
    })
    .await;
    let expected = [
        ("/well", "DEBUG", "outcome=\"success\" status_code=200", "decision=\"delivered\"", ""),
        (
            "/ill",
            "INFO",
            "outcome=\"http_error\" status_code=500",
            "decision=\"retry_scheduled\"",
            "next_at=2",
        ),
        ("/gone", "INFO", "outcome=\"gone\" status_code=410", "decision=\"dead_letter\" reason=", ""),
        ("/busy", "INFO", "outcome=\"rate_limited\" status_code=429", "decision=\"queued\"", "next_at=2"),
    ];
    let mut destinations = Vec::new();
    for (path, ..) in expected {
        let url = format!("{}{path}", receiver.url);
        let made = server.post("/v1/destinations", json!({"name": path, "url": url})).await.expect(201);
        destinations.push(made["id"].as_str().expect("an id").to_owned());
    }
    for level in ["info", "info,tidegate::attempts=debug"] {
        assert!(server.stop().await);
        server.restart_with(&["--log-level", level]).await;
        let before = server.log().len();
        for destination in &destinations {
            server.post(&format!("/v1/destinations/{destination}/retry-now"), json!({})).await.expect(200);
        }
        server.post("/v1/outbound-events", json!({"event_type": "a.b", "payload": 1})).await.expect(202);
        for (destination, (path, shown_as, outcome, decision, next)) in destinations.iter().zip(expected) {
            let named = format!("destination={destination}");
            let line = || {
                let log = server.log();
                let of_it = |line: &&str| line.contains(": attempt ") && line.contains(&named);
                log[before..].lines().find(of_it).map(str::to_owned)
            };
            if shown_as.to_lowercase() != level && level == "info" {
                continue;
            }
            until(secs(10), format!("a line about {path}"), async || line().is_some()).await;
            let line = line().unwrap_or_default();
            assert!(line.contains(shown_as) && line.contains("delivery=dlv_"), "{line}");
            assert!(line.contains(outcome) && line.contains(decision) && line.contains(next), "{line}");
            assert_eq!(line.contains("next_at"), !next.is_empty(), "{line}");
        }
        if level == "info" {
            assert!(!server.log().contains("outcome=\"success\""), "{}", server.log());
        }
    }
    assert!(server.log().contains(&format!("destination={} kind=\"throttled\"", destinations[3])));
}

/// A connection that is kept from call to call.
struct Kept(BufReader<TcpStream>);

impl Kept {
    /// One that has been used already.
    async fn open(server: &Server) -> Self {
        let stream = TcpStream::connect(&server.authority).await.expect("the server listens");
        let mut kept = Self(BufReader::new(stream));
        assert_eq!(kept.ask("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await, Some((200, false)));
        kept
    }

    /// Whoever writes to a connection that was closed learns it when it reads.
    async fn send(&mut self, text: &str) {
        let _closed = self.0.write_all(text.as_bytes()).await;
    }

    /// The status of an answer, and whether the connection ends with it; `None`: it ended without one.
    async fn answer(&mut self) -> Option<(u16, bool)> {
        let (mut status, mut last, mut length) = (None, false, 0);
        loop {
            let mut line = String::new();
            let read = tokio::time::timeout(secs(20), self.0.read_line(&mut line)).await.expect("an answer");
            if !matches!(read, Ok(1..)) {
                return None;
            }
            match line.trim_end().to_ascii_lowercase().split_once(' ') {
                None => break,
                Some(("http/1.1", rest)) => status = rest[..3].parse().ok(),
                Some(("content-length:", value)) => length = value.parse().expect("a number"),
                Some((name, value)) => last |= (name, value) == ("connection:", "close"),
            }
        }
        self.0.read_exact(&mut vec![0; length]).await.ok()?;
        Some((status.expect("a status"), last))
    }

    async fn ask(&mut self, text: &str) -> Option<(u16, bool)> {
        self.send(text).await;
        self.answer().await
    }
}

/// Returns when the server says that it stops, or has closed a connection because it does.
async fn says_that_it_stops(askers: Vec<Kept>) {
    for mut asker in askers {
        loop {
            match asker.ask("GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n").await {
                Some((503, _)) | None => return,
                Some((_, true)) => break,
                Some((_, false)) => tokio::time::sleep(millis(5)).await,
            }
        }
        tokio::time::sleep(millis(10)).await;
    }
    panic!("it does not say that it stops");
}

/// Goal: a server that says that it stops takes in nothing more, whatever connections it still has.
/// Method: publish on connections that were there before, also with a body of which half came before.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_accepts_nothing_more() {
    let mut server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200).after(secs(2))).await;
    server.post("/v1/destinations", json!({"name": "a", "url": receiver.url})).await.expect(201);
    let (event, key) = (json!({"event_type": "a.b", "payload": 1}), "idempotency-key");
    server.with_header(key, "first").post("/v1/outbound-events", event.clone()).await.expect(202);
    until(secs(10), "it is under way", async || receiver.count() == 1).await;

    let batch = json!({"events": [event]}).to_string();
    let (mut half_sent, mut idle, mut askers) = (Vec::new(), Vec::new(), Vec::new());
    for (path, content_type, key, body) in [
        ("/v1/outbound-events", "application/json", "second", event.to_string()),
        ("/v1/outbound-events", "application/json", "first", event.to_string()),
        ("/v1/outbound-events/batch", "application/json", "third", batch),
        ("/v1/outbound-events/batch", "application/x-ndjson", "fourth", event.to_string()),
    ] {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\ncontent-type: {content_type}\r\n\
             idempotency-key: {key}\r\ncontent-length: {}\r\n\r\n",
            server.key,
            body.len()
        );
        let (begin, end) = body.split_at(body.len() / 2);
        let mut kept = Kept::open(&server).await;
        kept.send(&format!("{head}{begin}")).await;
        half_sent.push((kept, end.to_owned()));
        idle.push((Kept::open(&server).await, format!("{head}{body}")));
    }
    for _ in 0..20 {
        askers.push(Kept::open(&server).await);
    }
    server.ask_to_end();
    says_that_it_stops(askers).await;
    for (kept, rest) in idle.iter_mut().chain(&mut half_sent) {
        kept.send(rest).await;
    }
    for (kept, rest) in &mut half_sent {
        assert_eq!(kept.answer().await, Some((503, true)), "it ended with {rest}");
    }
    for (kept, call) in &mut idle {
        // Nobody has to answer who had not begun to ask.
        let answer = kept.answer().await;
        assert!(matches!(answer, Some((503, true)) | None), "{answer:?} to {call}");
    }
    assert!(server.ends().await, "it ends with 0");
    server.restart().await;
    let listed = server.get("/v1/deliveries").await.expect(200);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{listed}");
    assert_eq!(listed["items"][0]["status"], "delivered", "what was under way has ended: {listed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_the_same_data_is_refused() {
    let server = Server::start(&[]).await;
    let output = tidegate()
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(&server.data_dir)
        .output()
        .expect("it starts");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("in use by another process"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_server_accepts_and_sends_nothing_until_resumed() {
    let mut server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    server.post("/v1/destinations", json!({"name": "a", "url": receiver.url})).await.expect(201);
    assert!(server.stop().await);
    server.restart_with(&["--paused"]).await;
    server.post("/v1/outbound-events", json!({"event_type": "a.b", "payload": 1})).await.expect(202);
    assert_eq!(server.get("/v1/settings").await.expect(200)["paused"], true);
    let held = server.get("/v1/deliveries").await.expect(200);
    assert_eq!(held["items"][0]["hold_reason"], "paused", "{held}");
    assert_eq!(receiver.count(), 0);
    server.patch("/v1/settings", json!({"paused": false})).await.expect(200);
    until(secs(10), "it arrives", async || receiver.count() == 1).await;
    server.post("/v1/accounts", json!({"name": "later", "external_id": "later"})).await.expect(201);
    let later = server.with_header("tidegate-account", "later");
    assert_eq!(later.get("/v1/settings").await.expect(200)["paused"], true, "so does who comes later");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_key_for_secrets_is_refused_at_start() {
    let mut server = Server::start(&[]).await;
    server.post("/v1/destinations", json!({"name": "a", "url": "https://example.com/"})).await.expect(201);
    assert!(server.stop().await);
    let output = tidegate()
        .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(&server.data_dir)
        .env("TIDEGATE_SECRET_KEY", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
        .output()
        .expect("it starts");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("the secrets in the store are under key"), "{message}");
    server.restart().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn health_metrics_and_document_are_there_for_everybody() {
    let server = Server::start(&[]).await;
    let nobody = server.with_key("");
    nobody.get("/healthz").await.expect(200);
    nobody.get("/readyz").await.expect(200);
    let metrics = nobody.get("/metrics").await;
    for name in [
        "tidegate_events_accepted_total 0",
        "tidegate_attempts_total{outcome=\"success\"} 0",
        "tidegate_deliveries_final_total{status=\"expired\"} 0",
        "tidegate_held_deliveries{reason=\"quiet_hours\"} 0",
        "tidegate_oldest_held_seconds{destination=\"other\"} 0",
        "tidegate_queue_depth{destination=\"other\"} 0",
        "tidegate_inflight{destination=\"other\"} 0",
        "tidegate_concurrency_slot_denied_total{destination=\"other\"} 0",
        "tidegate_attempt_duration_seconds_count 0",
        "tidegate_delivery_latency_seconds_count 0",
        "tidegate_commit_seconds_count",
        "tidegate_schedule_errors_total 0",
    ] {
        assert!(metrics.text().contains(name), "{name} in {}", metrics.text());
    }
    let document = nobody.get("/openapi.json").await;
    assert_eq!((document.status, document.json["openapi"].as_str()), (200, Some("3.1.0")));
    for path in
        ["/v1/outbound-events", "/v1/outbound-events/batch", "/v1/settings", "/v1/accounts/{id}", "/healthz"]
    {
        assert!(document.json["paths"].get(path).is_some(), "{path}");
    }
}

#[test]
fn the_configuration_can_be_shown_and_checked() {
    let shown = tidegate().args(["config", "show", "--default"]).output().expect("it starts");
    assert!(shown.status.success() && String::from_utf8_lossy(&shown.stdout).contains("max_event_size"));
    let shown = tidegate()
        .args(["config", "show", "--listen", "127.0.0.1:1"])
        .env("TIDEGATE_RETENTION", "3d")
        .env("TIDEGATE_SECRET_KEY", "hidden-value")
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(text.contains("# --listen") && text.contains("# TIDEGATE_RETENTION"), "{text}");
    assert!(!text.contains("hidden-value"), "{text}");
    let refused = tidegate()
        .arg("serve")
        .env("TIDEGATE_RETENTION", "3")
        .env("TIDEGATE_LISTEN", "x")
        .output()
        .expect("it starts");
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        message.contains("2 problems") && message.contains("retention") && message.contains("listen"),
        "{message}"
    );
}
