//! Kept connections: used again, never trusted too far.

use std::time::Duration;

use tidegate_core::outcome::{NetworkFault, Outcome};
use tidegate_engine::sender::{Answer, Pool, Sender, SenderConfig};

use crate::kit::{config, request, sender, settings, until};
use crate::server::{Server, Step, status, write};

const DONE: Outcome = Outcome::Success { status: 200 };

async fn send(sender: &Sender, pool: &Pool, server: &Server) -> Answer {
    sender.send(pool, request(settings(&server.url("/")))).await
}

#[tokio::test]
async fn one_connection_carries_one_attempt_after_the_other() {
    let server = Server::start(|n| match n % 3 {
        0 => status(200, ""),
        1 => vec![write("HTTP/1.1 500 Said\ncontent-length: 5\n\nwrong")],
        _ => vec![write("HTTP/1.1 200 Said\ntransfer-encoding: chunked\n\n2\nok\n0\n\n")],
    })
    .await;
    let (sender, pool) = (sender(), Pool::default());
    for _ in 0..30 {
        assert!(send(&sender, &pool, &server).await.status().is_some());
        assert_eq!(sender.idle_connections(), 1);
    }
    assert_eq!((server.seen().len(), server.connections()), (30, 1));
}

#[tokio::test]
async fn another_pool_never_gets_the_connection() {
    let server = Server::start(|_| status(200, "")).await;
    let sender = sender();
    send(&sender, &Pool::default(), &server).await;
    send(&sender, &Pool::default(), &server).await;
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn attempts_at_the_same_time_have_a_connection_each() {
    let server = Server::start(|_| status(200, "")).await;
    let (sender, pool) = (sender(), Pool::default());
    let both = tokio::join!(send(&sender, &pool, &server), send(&sender, &pool, &server));
    assert_eq!((both.0.report.outcome, both.1.report.outcome), (DONE, DONE));
    assert_eq!((server.connections(), sender.idle_connections()), (2, 2));
}

#[tokio::test]
async fn a_connection_that_they_closed_meanwhile_costs_no_attempt() {
    let server = Server::start(|_| [status(200, ""), vec![Step::Close]].concat()).await;
    let (sender, pool) = (sender(), Pool::default());
    for n in 1..=5 {
        assert_eq!(send(&sender, &pool, &server).await.report.outcome, DONE);
        until("the server closed", || server.closed() == n).await;
    }
    assert_eq!(server.seen().len(), 5);
}

#[tokio::test]
async fn a_connection_that_they_close_as_we_send_costs_one_attempt_and_no_second_request() {
    let server = Server::start(|n| if n == 1 { vec![Step::Close] } else { status(200, "") }).await;
    let (sender, pool) = (sender(), Pool::default());
    assert_eq!(send(&sender, &pool, &server).await.report.outcome, DONE);
    let closed = send(&sender, &pool, &server).await.report.outcome;
    assert_eq!(closed, Outcome::NetworkError(NetworkFault::ReusedConnectionClosed));
    assert_eq!(server.seen().len(), 2, "no hidden second try");
    assert_eq!(send(&sender, &pool, &server).await.report.outcome, DONE);
}

#[tokio::test]
async fn what_they_ask_to_close_is_not_kept() {
    for head in [
        "HTTP/1.1 200 Said\nconnection: close\ncontent-length: 0\n\n",
        "HTTP/1.0 200 Said\ncontent-length: 0\n\n",
        "HTTP/1.1 200 Said\ncontent-length: 0\n\ntrailing garbage",
        "HTTP/1.1 101 Switching\nupgrade: x\nconnection: upgrade\n\n",
    ] {
        let server = Server::start(move |_| vec![write(head)]).await;
        let (sender, pool) = (sender(), Pool::default());
        for _ in 0..2 {
            assert!(send(&sender, &pool, &server).await.status().is_some(), "{head}");
        }
        assert_eq!(server.connections(), 2, "{head}");
    }
}

#[tokio::test]
async fn idle_connections_are_closed_in_time_and_counted_over_all_pools() {
    let server = Server::start(|_| status(200, "")).await;
    let sender = Sender::new(SenderConfig { idle_limit: 3, ..config() });
    let pools: Vec<Pool> = (0..5).map(|_| Pool::default()).collect();
    for pool in &pools {
        send(&sender, pool, &server).await;
    }
    assert_eq!(sender.idle_connections(), 3);
    until("the two oldest are closed", || server.closed() == 2).await;
    until("all are closed", || {
        sender.close_idle();
        sender.idle_connections() == 0
    })
    .await;
    until("all are closed at the other end, too", || server.closed() == 5).await;
    tokio::time::timeout(Duration::from_secs(5), send(&sender, &pools[4], &server)).await.unwrap();
    assert_eq!(server.connections(), 6);
}
