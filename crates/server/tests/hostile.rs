//! Destinations that misbehave: each leads to the outcome that it must, within its time, and none of them harms the server
//! or another destination.
//!
//! `XTASK_DESTINATIONS` says how many there are at once (nine of ten misbehave). From 2,000 on it is a measurement, and what is
//! promised about speed is checked, too.

mod kit;

#[path = "hostile/catalogue.rs"]
mod catalogue;
#[path = "hostile/crowd.rs"]
mod crowd;
#[path = "hostile/frames.rs"]
mod frames;
#[path = "hostile/http2.rs"]
mod http2;
#[path = "hostile/process.rs"]
mod process;
#[path = "hostile/tls.rs"]
mod tls;
#[path = "hostile/wire.rs"]
mod wire;
#[path = "hostile/zoo.rs"]
mod zoo;

use std::time::Duration;

use crowd::{Healthy, percentile};
use kit::millis;
use serde_json::json;
use zoo::Zoo;

/// Events for each of them: the second and third go on the connection of the first, where that is kept.
const EVENTS: usize = 3;

/// Goal: whatever a destination does, an attempt ends in time, with the outcome of the table, one request for each
/// attempt and no connection left behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_way_to_misbehave_has_its_outcome() {
    let zoo = Zoo::open().await;
    assert!(zoo.animals().count() >= 40);
    zoo.each().await;
    zoo.publish(EVENTS).await;
    let mut faults = Vec::new();
    for animal in zoo.animals() {
        faults.extend(zoo.check(animal, EVENTS).await);
    }
    faults.extend(zoo.leaks().await);
    faults.extend(zoo.busy().await);
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    zoo.server.get("/readyz").await.expect(200);
    let log = zoo.server.log();
    assert!(!log.contains("panicked"), "{log}");
}

/// Goal: however many misbehave, the others get everything, and the server stays within its bounds.
/// Method: the same traffic to the healthy ones without and with traffic to the others. In the short form these are tried again
/// and again, whatever they do; in the long one they have the usual policies, as what is promised about speed supposes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_that_misbehave_do_the_others_no_harm() {
    let count = std::env::var("XTASK_DESTINATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(200);
    let measured = count >= 2_000;
    let policies = match measured {
        true => json!({}),
        false => json!({
            "timeout_seconds": 1,
            "retry_policy": {"max_attempts": 50, "delays_seconds": [1], "jitter": "full"},
            "circuit_breaker": {"enabled": false},
        }),
    };
    let (well, bad) = (count / 10, count - count / 10);
    let (events, pace) = (well * 20, millis(10));
    let zoo = Zoo::open().await;
    let pid = zoo.server.pid();
    let healthy = Healthy::settle(&zoo.server, well).await;
    let ids = zoo.crowd(bad, &policies).await;
    healthy.serve(&zoo.server, well, pace).await;
    let alone = healthy.serve(&zoo.server, events, pace).await;
    let before = process::descriptors(pid).len();
    let gauge = process::Gauge::of(pid);

    // In the short form all at once, in the long one as steadily as those of the healthy ones.
    let (at_once, every) = if measured { (2, millis(10)) } else { (200, Duration::ZERO) };
    let trouble = zoo::publish_to(zoo.server.client(), vec![ids; 4].concat(), at_once, every);
    let trouble = tokio::spawn(trouble);
    let among = healthy.serve(&zoo.server, events, pace).await;
    trouble.await.expect("all were published");
    let (descriptors, (memory, most)) = (gauge.most(), process::memory_mib(pid));
    let (p99_alone, p99_among) = (percentile(&alone, 99), percentile(&among, 99));
    println!(
        "{count} destinations, {bad} of them bad; {events} events for the others: p50 {:?}, p99 {p99_alone:?} alone; \
         p50 {:?}, p99 {p99_among:?} among them; {before} descriptors and then {descriptors} at most; {memory} MiB, {most} at most",
        percentile(&alone, 50),
        percentile(&among, 50),
    );
    assert_eq!((alone.len(), among.len(), healthy.repeats()), (events, events, 0));
    // Those whose last attempt failed have a quarter of 2,000 requests in flight; about 1,000 connections are kept.
    assert!(descriptors < before + 500 + 1_024 + 100, "{descriptors} descriptors");
    assert!(most < 300, "{most} MiB");
    if measured {
        assert!(
            p99_among <= (p99_alone * 3 / 2).max(p99_alone + millis(5)),
            "{p99_among:?} against {p99_alone:?}"
        );
    }
    let log = zoo.server.log();
    assert!(!log.contains("panicked"), "{log}");
}
