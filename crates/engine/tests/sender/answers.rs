//! What each answer becomes.

use tidegate_core::outcome::{NetworkFault, Outcome};
use tidegate_core::time::Millis;
use tidegate_engine::sender::{Pool, Request, Sender, SenderConfig};

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

#[tokio::test]
async fn a_body_is_never_decompressed() {
    let body = "\u{1}not gzip at all";
    let head = format!("HTTP/1.1 500 Said\ncontent-encoding: gzip\ncontent-length: {}\n\n{body}", body.len());
    let server = Server::start(move |_| vec![write(&head)]).await;
    assert_eq!(attempt(&server.url("/")).await.response_body, body);
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
