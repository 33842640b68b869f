//! What each answer becomes.

use std::time::Duration;

use tidegate_core::outcome::{NetworkFault, Outcome};
use tidegate_core::time::Millis;
use tidegate_engine::sender::{Pool, Request, Sender, SenderConfig};

use tokio::time::timeout;

use crate::kit::{attempt, config, request, sender, settings};
use crate::server::{Server, Step, status, write};

#[tokio::test]
async fn each_status_has_its_outcome() {
    let after = Millis::seconds(120);
    for (code, headers, expected) in [
        (200, "", Outcome::Success { status: 200 }),
        (204, "", Outcome::Success { status: 204 }),
        (299, "retry-after: 5\n", Outcome::Success { status: 299 }),
        (404, "", Outcome::HttpError { status: 404 }),
        (410, "", Outcome::Gone),
        (418, "", Outcome::HttpError { status: 418 }),
        (429, "", Outcome::RateLimited { retry_after: None }),
        (429, "Retry-After: 120\n", Outcome::RateLimited { retry_after: Some(after) }),
        (429, "retry-after: -5\n", Outcome::RateLimited { retry_after: None }),
        (500, "", Outcome::HttpError { status: 500 }),
        (503, "", Outcome::HttpError { status: 503 }),
        (503, "retry-after: 5\nretry-after: 120\n", Outcome::Unavailable { retry_after: after }),
        (599, "", Outcome::HttpError { status: 599 }),
    ] {
        let server = Server::start(move |_| status(code, headers)).await;
        let answer = attempt(&server.url("/")).await;
        assert_eq!(answer.report.outcome, expected, "{code} {headers}");
        assert_eq!((answer.status(), answer.error), (Some(code), None));
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn a_retry_after_date_is_taken_relative_to_their_own_clock() {
    let headers = "date: Sun, 06 Nov 1994 08:49:37 GMT\nretry-after: Sun, 06 Nov 1994 08:51:37 GMT\n";
    let server = Server::start(move |_| status(429, headers)).await;
    let expected = Outcome::RateLimited { retry_after: Some(Millis::seconds(120)) };
    assert_eq!(attempt(&server.url("/")).await.report.outcome, expected);
}

#[tokio::test]
async fn what_they_say_of_their_limits_is_reported() {
    let server = Server::start(|_| {
        status(200, "X-RateLimit-Limit: 100\nX-RateLimit-Remaining: 7\nX-RateLimit-Reset: 30\n")
    })
    .await;
    let hint = attempt(&server.url("/")).await.report.rate_hint.unwrap();
    assert_eq!((hint.limit, hint.remaining, hint.reset), (Some(100), Some(7), Some(Millis::seconds(30))));
}

#[tokio::test]
async fn a_redirect_is_a_failure_and_is_never_followed() {
    let elsewhere = Server::start(|_| status(200, "")).await;
    for code in [301, 302, 303, 307, 308] {
        let location = format!("location: {}\n", elsewhere.url("/"));
        let server = Server::start(move |_| status(code, &location)).await;
        assert_eq!(attempt(&server.url("/")).await.report.outcome, Outcome::Redirect { status: code });
    }
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn the_log_keeps_head_and_beginning_of_a_failure_and_nothing_of_a_success() {
    let long = |code: u16| {
        write(&format!("HTTP/1.1 {code} Said\nx-why: because\ncontent-length: 5000\n\n{}", "e".repeat(5_000)))
    };
    let server = Server::start(move |n| vec![long(if n == 0 { 500 } else { 200 })]).await;
    let failed = attempt(&server.url("/")).await;
    assert_eq!(failed.response_body, "e".repeat(4_096));
    assert!(failed.response_headers.contains(&("x-why".to_owned(), "because".to_owned())));
    let succeeded = attempt(&server.url("/")).await;
    assert!(succeeded.response_body.is_empty() && succeeded.response_headers.is_empty());
    let curious = Sender::new(SenderConfig { keep_success_bodies: true, ..config() });
    let kept = curious.send(&Pool::default(), request(settings(&server.url("/")))).await;
    assert_eq!(kept.response_body, "e".repeat(4_096));
}

#[tokio::test]
async fn what_came_of_a_body_is_kept_where_the_rest_does_not_come() {
    for head in ["content-length: 1000\n\n", "transfer-encoding: chunked\n\n17\n"] {
        let steps = vec![write(&format!("HTTP/1.1 500 Said\n{head}error: database is down")), Step::Hang];
        let server = Server::start(move |_| steps.clone()).await;
        let hasty = Request { timeout: Millis::new(500), ..request(settings(&server.url("/"))) };
        let answer = sender().send(&Pool::default(), hasty).await;
        assert_eq!(answer.report.outcome, Outcome::HttpError { status: 500 });
        assert_eq!(answer.response_body, "error: database is down");
    }
}

/// Goal: an outcome takes effect when the head is complete, or soon after: a body that does not come holds up neither a throttle
/// nor a retry.
#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    for (status, bound) in [("429 Slow", 400), ("503 Busy", 900), ("500 Broken", 900)] {
        let head = format!("HTTP/1.1 {status}\nretry-after: 30\ncontent-length: 50\n\nhalf");
        let server = Server::start(move |_| vec![write(&head), Step::Hang]).await;
        let request = Request { timeout: Millis::seconds(20), ..request(settings(&server.url("/"))) };
        let answer = timeout(Duration::from_millis(bound), sender().send(&Pool::default(), request)).await;
        assert_eq!(answer.expect("it is answered soon").response_body, "half", "{status}");
    }
}

/// Goal: nobody makes us unpack anything. Method: bodies that any decoder takes, and what says that it was packed several
/// times; each is kept as it came.
#[tokio::test]
async fn a_body_is_never_decompressed() {
    let gzip = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH\xcd\xc9\xc9\x07\0\x86\xa6\x106\x05\0\0\0".as_slice();
    let brotli = b"\x0b\x02\x80hello\x03".as_slice();
    let zstd = b"\x28\xb5\x2f\xfd\x20\x05\x29\0\0hello".as_slice();
    for (encoding, body) in [
        ("gzip", gzip),
        ("br", brotli),
        ("zstd", zstd),
        ("deflate", b"\x78\x9c\xcbH\xcd\xc9\xc9\x07\0\x06\x2c\x02\x15"),
        ("gzip, gzip, gzip", gzip),
        ("br, zstd, gzip", brotli),
        ("gzip\ncontent-encoding: zstd", zstd),
        ("gzip", b"\x01not gzip at all"),
    ] {
        for status in ["200 Said", "500 Said"] {
            let length = body.len();
            let head =
                format!("HTTP/1.1 {status}\ncontent-encoding: {encoding}\ncontent-length: {length}\n\n");
            let server = Server::start(move |_| vec![write(&head), Step::Write(body.to_vec())]).await;
            let sender = Sender::new(SenderConfig { keep_success_bodies: true, ..config() });
            let answer = sender.send(&Pool::default(), request(settings(&server.url("/")))).await;
            assert_eq!(answer.response_body, body, "{encoding}, {status}");
            assert_eq!(server.seen()[0].matches("accept-encoding").count(), 1);
            assert!(server.seen()[0].contains("accept-encoding: identity\r\n"), "{}", server.seen()[0]);
        }
    }
}

#[tokio::test]
async fn plain_http_is_not_dialled_where_https_is_insisted_on() {
    let server = Server::start(|_| status(200, "")).await;
    let sender = Sender::new(SenderConfig { https_only: true, ..config() });
    let answer = sender.send(&Pool::default(), request(settings(&server.url("/")))).await;
    assert_eq!(answer.report.outcome, Outcome::Blocked);
    assert_eq!(answer.error.as_deref(), Some("the URL is http, and this server sends to https alone"));
    assert_eq!(server.connections(), 0);
    let mut secure = request(settings(&server.url("/").replace("http:", "https:")));
    secure.timeout = Millis::new(300);
    let answer = sender.send(&Pool::default(), secure).await;
    assert_ne!(answer.report.outcome, Outcome::Blocked);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn nobody_listening_is_a_failed_connection() {
    let gone = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let answer = attempt(&format!("http://{gone}/")).await;
    assert_eq!(answer.report.outcome, Outcome::NetworkError(NetworkFault::Connect));
    assert_eq!(answer.error.as_deref(), Some("connection failed"));
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_head_is_complete_is_no_answer() {
    for steps in
        [vec![Step::Close], vec![Step::Reset], vec![write("HTTP/1.1 200 Said\ncontent-le"), Step::Close]]
    {
        let server = Server::start(move |_| steps.clone()).await;
        let answer = attempt(&server.url("/")).await;
        assert_eq!(answer.report.outcome, Outcome::NetworkError(NetworkFault::Reset));
    }
}

#[tokio::test]
async fn a_complete_head_stands_whatever_happens_to_the_body() {
    for steps in [
        vec![write("HTTP/1.1 200 Said\ncontent-length: 10\n\nhalf"), Step::Close],
        vec![write("HTTP/1.1 200 Said\ncontent-length: 10\n\nhalf"), Step::Reset],
        vec![write("HTTP/1.1 200 Said\ntransfer-encoding: chunked\n\nnonsense\n"), Step::Close],
    ] {
        let server = Server::start(move |_| steps.clone()).await;
        let sender = sender();
        let answer = sender.send(&Pool::default(), request(settings(&server.url("/")))).await;
        assert_eq!(answer.report.outcome, Outcome::Success { status: 200 });
        assert_eq!(sender.idle_connections(), 0, "a broken body leaves no connection to use again");
    }
}
