//! Peers that waste time or memory: one deadline and a few limits end it all.

use std::time::Duration;

use tidegate_core::outcome::{NetworkFault, Outcome};
use tidegate_core::time::Millis;
use tidegate_engine::sender::{Answer, Pool};
use tokio::time::{Instant, timeout};

use crate::kit::{attempt, request, sender, settings, until};
use crate::server::{Server, Step, full, silent, write};

/// Well above any timeout here: whatever lasts so long hangs.
const BOUND: Duration = Duration::from_secs(8);

/// One attempt with `ms` to spend, and how long it took in all.
async fn within(url: &str, ms: i64) -> (Answer, Duration) {
    let mut request = request(settings(url));
    request.timeout = Millis::new(ms);
    let started = Instant::now();
    let answer = timeout(BOUND, sender().send(&Pool::default(), request)).await.expect("it ends by itself");
    (answer, started.elapsed())
}

fn assert_timeout(answer: &Answer, ms: i64) {
    assert_eq!(answer.report.outcome, Outcome::Timeout);
    assert!(answer.report.elapsed >= Millis::new(ms), "{}", answer.report.elapsed);
    assert_eq!(answer.error.as_deref(), Some("no answer in time"));
}

#[tokio::test]
async fn silence_ends_at_the_deadline_and_the_connection_is_closed() {
    let server = Server::start(|_| vec![Step::Hang]).await;
    let (answer, _) = within(&server.url("/"), 100).await;
    assert_timeout(&answer, 100);
    until("the connection is closed", || server.closed() == 1).await;
    let never_accepted = silent().await;
    assert_timeout(&within(&format!("http://{never_accepted}/"), 100).await.0, 100);
}

/// Goal: where the first packet is dropped, as behind a firewall, the deadline ends it.
#[tokio::test]
async fn a_dropped_first_packet_ends_at_the_deadline() {
    let full = full();
    let (answer, took) = within(&format!("http://{}/", full.address), 300).await;
    assert_timeout(&answer, 300);
    assert!(took < Duration::from_secs(2), "{took:?}");
    let (answer, _) = within(&format!("https://{}/", full.address), 300).await;
    assert_timeout(&answer, 300);
}

#[tokio::test]
async fn a_head_that_never_ends_is_no_head() {
    for trickle in ["HTTP/1.1 200 Said\nx: 1\n", "HTTP/1.1 103 Early\nlink: x\n\nHTTP/1.1 100 Continue\n\n"] {
        let server = Server::start(move |_| vec![write(trickle), Step::Hang]).await;
        assert_timeout(&within(&server.url("/"), 100).await.0, 100);
    }
}

#[tokio::test]
async fn a_flood_of_interim_answers_is_a_bad_answer() {
    let flood = b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n".to_vec();
    let server = Server::start(move |_| vec![Step::WriteForEver(flood.clone())]).await;
    let answer = attempt(&server.url("/")).await;
    assert_eq!(answer.report.outcome, Outcome::NetworkError(NetworkFault::BadResponse));
}

#[tokio::test]
async fn a_head_beyond_its_limits_is_a_bad_answer() {
    let many: String = (0..101).map(|n| format!("x-{n}: 1\n")).collect();
    for steps in [
        vec![write("HTTP/1.1 200 Said\n"), Step::WriteForEver(b"x-again: and again\r\n".to_vec())],
        vec![write("HTTP/1.1 200 Said\nx: "), Step::WriteForEver(vec![b'x'; 4096])],
        vec![write(&format!("HTTP/1.1 200 Said\n{many}\n"))],
    ] {
        let server = Server::start(move |_| steps.clone()).await;
        let answer = attempt(&server.url("/")).await;
        assert_eq!(answer.report.outcome, Outcome::NetworkError(NetworkFault::BadResponse));
    }
}

#[tokio::test]
async fn what_is_not_http_is_a_bad_answer() {
    for text in [
        "SSH-2.0-OpenSSH_9.2\n",
        "HTTP/3 200 Said\n\n",
        "HTTP/1.1 2000 Said\n\n",
        "HTTP/1.1 200 Said\nx\0: y\n\n",
        "HTTP/1.1 200 Said\ncontent-length: 1\ncontent-length: 2\n\n",
        "<html>hello</html>\n\n",
    ] {
        let server = Server::start(move |_| vec![write(text), Step::Close]).await;
        let answer = attempt(&server.url("/")).await;
        assert_eq!(answer.report.outcome, Outcome::NetworkError(NetworkFault::BadResponse), "{text:?}");
    }
}

#[tokio::test]
async fn a_slow_body_changes_neither_outcome_nor_time_and_is_bounded() {
    let head = "HTTP/1.1 500 Said\ncontent-length: 100\n\nbegin";
    let server = Server::start(move |_| vec![write(head), Step::Hang]).await;
    let (answer, took) = within(&server.url("/"), 30_000).await;
    assert_eq!(answer.report.outcome, Outcome::HttpError { status: 500 });
    let elapsed = Duration::from_millis(answer.report.elapsed.get().unsigned_abs());
    assert!(elapsed + Duration::from_millis(450) <= took, "{elapsed:?} of {took:?}: the body does not count");
    assert!(
        took < Duration::from_secs(20),
        "{took:?}: nor is it waited for to the end of the attempt's time"
    );
    until("the connection is closed", || server.closed() == 1).await;
}

#[tokio::test]
async fn the_body_of_a_success_is_not_waited_for_long() {
    let server =
        Server::start(|_| vec![write("HTTP/1.1 200 Said\ncontent-length: 100\n\nbegin"), Step::Hang]).await;
    let (answer, took) = within(&server.url("/"), 7_000).await;
    assert_eq!(answer.report.outcome, Outcome::Success { status: 200 });
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[tokio::test]
async fn an_endless_body_is_read_to_its_limit_and_the_connection_closed() {
    for head in ["HTTP/1.1 500 Said\n\n", "HTTP/1.1 500 Said\ncontent-length: 10000000000\n\n"] {
        let server = Server::start(move |_| vec![write(head), Step::WriteForEver(vec![b'x'; 4096])]).await;
        let answer = attempt(&server.url("/")).await;
        assert_eq!(answer.report.outcome, Outcome::HttpError { status: 500 });
        assert_eq!(answer.response_body.len(), 4_096);
        until("the connection is closed", || server.closed() == 1).await;
    }
}

/// Goal: of a body at most 64 KiB are read.
/// Method: a connection on which something is left unread carries no second request.
#[tokio::test]
async fn a_body_beyond_the_limit_is_left_unread() {
    for (length, connections) in [(64 * 1024, 1), (64 * 1024 + 1, 2)] {
        let head = format!("HTTP/1.1 500 Said\ncontent-length: {length}\n\n");
        let body = vec![b'x'; length];
        let server = Server::start(move |_| vec![write(&head), Step::Write(body.clone())]).await;
        let (sender, pool) = (sender(), Pool::default());
        for _ in 0..2 {
            let answer = sender.send(&pool, request(settings(&server.url("/")))).await;
            assert_eq!(answer.report.outcome, Outcome::HttpError { status: 500 });
        }
        assert_eq!(server.connections(), connections, "{length} bytes");
    }
}

#[tokio::test]
async fn a_dropped_attempt_closes_its_connection() {
    let server = Server::start(|_| vec![Step::Hang]).await;
    let (sender, pool, request) = (sender(), Pool::default(), request(settings(&server.url("/"))));
    {
        let mut attempt = std::pin::pin!(sender.send(&pool, request));
        tokio::select! {
            _ = &mut attempt => panic!("nobody answers"),
            () = until("it was sent", || server.seen().len() == 1) => {}
        }
    }
    until("the connection is closed", || server.closed() == 1).await;
    assert_eq!(sender.idle_connections(), 0);
}
