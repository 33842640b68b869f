//! Names and addresses: what is resolved is vetted, what is refused is never dialled.

use std::net::Ipv4Addr;
use std::time::Duration;

use tidegate_core::dial::{Guard, Host};
use tidegate_core::outcome::{Bearing, NetworkFault, Outcome};
use tidegate_core::time::Millis;
use tidegate_engine::resolver::{ResolveFault, Resolver};
use tidegate_engine::sender::{Answer, Pool, Sender, SenderConfig};
use tokio::time::Instant;

use crate::dns::{NameServer, Say};
use crate::kit::{attempt, config, loopback, request, settings};
use crate::server::{Server, status};

const DONE: Outcome = Outcome::Success { status: 200 };

async fn send_by(resolver: Resolver, url: &str) -> Answer {
    let mut request = request(settings(url));
    request.timeout = Millis::seconds(5);
    Sender::new(SenderConfig::new(resolver)).send(&Pool::default(), request).await
}

#[tokio::test]
async fn a_refused_address_is_not_dialled_however_it_is_spelt() {
    let server = Server::start(|_| status(200, "")).await;
    let port = server.address.port();
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "localhost", "0"] {
        let resolver = Resolver::system(Guard::default()).unwrap();
        let answer = send_by(resolver, &format!("http://{host}:{port}/")).await;
        assert_eq!(answer.report.outcome, Outcome::Blocked, "{host}");
        assert_eq!(answer.error.as_deref(), Some("address not allowed"));
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn one_refused_address_spoils_the_whole_answer() {
    let names = NameServer::start(vec![
        ("mixed.example", Say::Addresses(vec!["93.184.215.14", "127.0.0.1"])),
        ("mixed6.example", Say::Addresses(vec!["127.0.0.1", "fd00::1"])),
    ])
    .await;
    let server = Server::start(|_| status(200, "")).await;
    let url = |name| format!("http://{name}:{}/", server.address.port());
    let blocked = send_by(names.resolver(Guard::default()), &url("mixed.example")).await;
    assert_eq!(blocked.report.outcome, Outcome::Blocked);
    let blocked = send_by(names.resolver(loopback()), &url("mixed6.example")).await;
    assert_eq!(blocked.report.outcome, Outcome::Blocked);
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_name_is_resolved_dialled_and_named_in_the_request() {
    let names = NameServer::start(vec![("hooks.example", Say::Addresses(vec!["127.0.0.1"]))]).await;
    let server = Server::start(|_| status(200, "")).await;
    let url = format!("http://hooks.example:{}/", server.address.port());
    assert_eq!(send_by(names.resolver(loopback()), &url).await.report.outcome, DONE);
    let host = format!("host: hooks.example:{}\r\n", server.address.port());
    assert!(server.seen()[0].contains(&host), "{}", server.seen()[0]);
}

#[tokio::test]
async fn the_next_address_is_tried_where_one_does_not_answer() {
    let names =
        NameServer::start(vec![("two.example", Say::Addresses(vec!["127.0.0.2", "127.0.0.3"]))]).await;
    let server = Server::start_at("127.0.0.3:0", |_| status(200, "")).await;
    let url = format!("http://two.example:{}/", server.address.port());
    assert_eq!(send_by(names.resolver(loopback()), &url).await.report.outcome, DONE);
}

#[tokio::test]
async fn answers_are_kept_and_cut_to_four_addresses() {
    let many = vec!["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "::1"];
    let names = NameServer::start(vec![("many.example", Say::Addresses(many))]).await;
    let resolver = names.resolver(loopback());
    let host = Host::Name("many.example".to_owned());
    let deadline = Instant::now() + Duration::from_secs(5);
    let found = resolver.resolve(&host, deadline).await.unwrap();
    assert_eq!((found.len(), found.iter().all(|address| address.is_ipv4())), (4, true));
    let asked = names.asked();
    resolver.resolve(&host, deadline).await.unwrap();
    assert_eq!(names.asked(), asked);
}

#[tokio::test]
async fn no_such_name_and_no_verdict_are_told_apart() {
    let names = NameServer::start(vec![("broken.example", Say::Refused)]).await;
    for (name, fault) in
        [("missing.example", NetworkFault::NameNotFound), ("broken.example", NetworkFault::ResolverDown)]
    {
        let answer = send_by(names.resolver(loopback()), &format!("http://{name}/")).await;
        assert_eq!(answer.report.outcome, Outcome::NetworkError(fault), "{name}");
    }
}

/// Goal: an answer as long as one can be costs no more than its bytes, and is judged to its last address.
/// Method: the answer is cut off by UDP and whole by TCP: a thousand addresses, and as many as 64 KiB hold.
#[tokio::test]
async fn an_answer_of_thousands_of_addresses_is_vetted_whole_and_cut_to_four() {
    let (well, inside) = (Ipv4Addr::new(127, 0, 0, 9), Ipv4Addr::new(10, 0, 0, 1));
    let names = NameServer::start(vec![
        ("thousand.example", Say::Many(999, well)),
        ("huge.example", Say::Many(4_089, well)),
        ("spoilt.example", Say::Many(4_089, inside)),
    ])
    .await;
    let resolver = names.resolver(loopback());
    let deadline = Instant::now() + Duration::from_secs(10);
    let found = async |name: &str| resolver.resolve(&Host::Name(name.to_owned()), deadline).await;
    assert_eq!(found("thousand.example").await.map(|found| found.len()), Ok(4));
    assert_eq!(found("huge.example").await.map(|found| found.len()), Ok(4));
    assert_eq!(found("spoilt.example").await, Err(ResolveFault::Blocked), "the last of 4,090 counts");
    assert!(names.asked_by_tcp() >= 3, "{}", names.asked_by_tcp());
}

/// Goal: names that stand for each other end at once, as a fault of the name and not of the name server.
#[tokio::test]
async fn names_that_stand_for_each_other_are_no_name() {
    let names = NameServer::start(vec![
        ("one.example", Say::Alias("other.example")),
        ("other.example", Say::Alias("one.example")),
        ("itself.example", Say::Alias("itself.example")),
        ("alias.example", Say::Alias("real.example")),
        ("real.example", Say::Addresses(vec!["127.0.0.1"])),
    ])
    .await;
    let resolver = names.resolver(loopback());
    let began = Instant::now();
    let found = async |name: &str| {
        resolver.resolve(&Host::Name(name.to_owned()), began + Duration::from_secs(10)).await
    };
    assert_eq!(found("one.example").await, Err(ResolveFault::NameNotFound));
    assert_eq!(found("itself.example").await, Err(ResolveFault::NameNotFound));
    assert_eq!(found("alias.example").await.map(|found| found.len()), Ok(1));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(names.asked() < 100, "{}", names.asked());
}

/// A destination with a short timeout must not be blamed for what one with a long timeout is not.
#[tokio::test]
async fn a_silent_name_server_ends_at_the_deadline_and_is_no_fault_of_the_destination() {
    let names = NameServer::start(vec![("hangs.example", Say::Nothing)]).await;
    let resolver = names.resolver(loopback());
    let started = Instant::now();
    let host = Host::Name("hangs.example".to_owned());
    let fault = resolver.resolve(&host, started + Duration::from_millis(200)).await.unwrap_err();
    assert_eq!(fault, ResolveFault::ResolverDown);
    assert!(started.elapsed() < Duration::from_secs(5), "sooner than it is asked three times");
    let mut request = request(settings("http://hangs.example/"));
    request.timeout = Millis::new(200);
    let answer = Sender::new(SenderConfig::new(resolver)).send(&Pool::default(), request).await;
    assert_eq!(answer.report.outcome, Outcome::NetworkError(NetworkFault::ResolverDown));
    assert_eq!(answer.report.outcome.bearing(), Bearing::Neutral);
}

#[tokio::test]
async fn localhost_and_an_ipv6_literal_are_reached() {
    let server = Server::start(|_| status(200, "")).await;
    let url = format!("http://localhost:{}/", server.address.port());
    assert_eq!(attempt(&url).await.report.outcome, DONE);
    let server = Server::start_at("[::1]:0", |_| status(200, "")).await;
    assert_eq!(attempt(&server.url("/")).await.report.outcome, DONE);
    assert!(server.seen()[0].contains(&format!("host: [::1]:{}\r\n", server.address.port())));
}

/// The resolver answers this name with both loopback addresses by itself: an operator may have allowed one of them.
#[tokio::test]
async fn localhost_is_reached_where_one_of_its_addresses_is_allowed() {
    let server = Server::start(|_| status(200, "")).await;
    let url = format!("http://localhost:{}/", server.address.port());
    for (range, expected) in [("127.0.0.0/8", DONE), ("10.0.0.0/8", Outcome::Blocked)] {
        let resolver = Resolver::system(Guard::new(vec![range.parse().unwrap()])).unwrap();
        let answer =
            Sender::new(SenderConfig::new(resolver)).send(&Pool::default(), request(settings(&url))).await;
        assert_eq!(answer.report.outcome, expected, "{range}");
    }
}

#[tokio::test]
async fn our_own_listener_is_no_destination() {
    let server = Server::start_at("0.0.0.0:0", |_| status(200, "")).await;
    let port = server.address.port();
    for own in [server.address, format!("127.0.0.1:{port}").parse().unwrap()] {
        let sender = Sender::new(SenderConfig { own_addresses: vec![own], ..config() });
        let url = format!("http://127.0.0.1:{port}/");
        let answer = sender.send(&Pool::default(), request(settings(&url))).await;
        assert_eq!(answer.report.outcome, Outcome::Blocked);
    }
    assert_eq!(server.seen().len(), 0);
    assert_eq!(attempt(&format!("http://127.0.0.1:{port}/")).await.report.outcome, DONE);
}
