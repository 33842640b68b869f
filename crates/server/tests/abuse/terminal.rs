//! Text that would do something in the terminal of whoever reads the log.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::kit::{Receiver, Reply, Server, secs, until};

/// Clears the screen; sets the title; the same in one byte of Latin 1; a line that was not logged.
const EVIL: &str = "\x1b[2J\x1b]0;mine\x07\u{9b}31m\r\nINFO forged-line\x08";

/// Goal: no text of a stranger reaches a terminal by way of the log, in either format and at its most talkative.
#[tokio::test(flavor = "multi_thread")]
async fn no_text_of_a_stranger_acts_in_the_log() {
    for format in ["text", "json"] {
        let mut server = Server::start(&["--log-level", "trace", "--log-format", format]).await;
        let receiver = Receiver::start(|_| {
            Reply::status(500).body(format!("seen-{EVIL}")).header("content-type", "text/plain")
        })
        .await;
        // Headers of an answer that no library writes, and what is no answer at all.
        let raw =
            format!("HTTP/1.1 500 N\x1b[2Jo\r\nx: \u{9b}2J\r\ncontent-length: {}\r\n\r\n{EVIL}", EVIL.len());
        let odd = rude(raw.into_bytes()).await;
        let none = rude(EVIL.into()).await;
        for (index, url) in [&receiver.url, &odd, &none].into_iter().enumerate() {
            let body =
                json!({"url": url, "external_id": format!("d{index}"), "retry_policy": {"max_attempts": 1}});
            server.post("/v1/destinations", body).await.expect(201);
        }
        let texts = [
            json!({"url": receiver.url, "name": EVIL}),
            json!({"url": receiver.url, "external_id": EVIL}),
            json!({"url": format!("{}/{EVIL}", receiver.url)}),
            json!({"url": receiver.url, "event_types": [EVIL]}),
            json!({EVIL: 1}),
        ];
        for body in texts {
            let refused = server.post("/v1/destinations", body).await;
            assert_eq!(refused.status, 422, "{}", refused.text());
        }
        let event = json!({"event_type": EVIL, "payload": 1});
        server.post("/v1/outbound-events", event).await.expect_error(422, "invalid_field");
        let event = json!({"event_type": "a.b", "payload": EVIL});
        server.post("/v1/outbound-events", event).await.expect(202);
        ask_rudely(&server).await;
        until(secs(20), "all three were tried", async || {
            server.get("/v1/deliveries?status=dead_letter&total=true").await.expect(200)["total"] == 3
        })
        .await;
        assert!(server.stop().await);
        let log = server.log();
        assert!(log.contains("attempt"), "something was logged: {log:.2000}");
        let acts = |c: char| c.is_control() && c != '\n' && c != '\t';
        let bad: Vec<_> = log.lines().filter(|line| line.contains(acts)).take(3).collect();
        assert!(bad.is_empty(), "{format}: {bad:?}");
        let forged = log.lines().filter(|line| line.trim_start().starts_with("INFO forged"));
        assert_eq!(forged.count(), 0, "{format}");
        if format == "json" {
            for line in log.lines() {
                assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
            }
        }
    }
}

/// Heads that no client library writes: what a path, a header and a method may hold.
async fn ask_rudely(server: &Server) {
    for head in [
        format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "\x1b[2J"),
        format!("GET /%1b[2J?{}=1 HTTP/1.1\r\nhost: x\r\n\r\n", "%1b"),
        format!("GET /v1/stats HTTP/1.1\r\nhost: x\r\nuser-agent: {}\r\n\r\n", "\u{9b}2J\x1b[2J"),
        format!("GET /v1/stats HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer \u{9b}2J\r\n\r\n", "\u{9b}"),
        "\x1b[2J\r\n\r\n".to_owned(),
    ] {
        let mut stream = TcpStream::connect(&server.authority).await.expect("the server listens");
        stream.write_all(head.as_bytes()).await.expect("it listens");
        let mut some = [0; 64];
        let _ = tokio::time::timeout(secs(5), stream.read(&mut some)).await;
    }
}

/// A receiver that answers each request with these bytes, and closes.
async fn rude(bytes: Vec<u8>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(&bytes).await;
        }
    });
    url
}
