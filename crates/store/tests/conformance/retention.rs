//! Retention in PostgreSQL: partitions that are dropped, that somebody reads, that were never made, that must mostly stay.

use std::thread::JoinHandle;
use std::time::Duration;

use crate::fixture::{Bench, OK, START, later};
use crate::place::Engine;
use crate::server;

fn count(bench: &Bench, what: &str) -> String {
    server::server().sql(bench.place.name(), &format!("select count(*) from {what}")).trim_end().to_owned()
}

/// Whether the partition of the first numbers is one.
fn has_first_partition(bench: &Bench) -> bool {
    let first = tidegate_core::sequence::Sequence::at(START).get();
    count(bench, &format!("pg_class where relname = 'events_{first}' and relispartition")) == "1"
}

/// Somebody reads a table for three seconds.
async fn read_for_long(bench: &Bench, table: &str) -> JoinHandle<String> {
    let name = bench.place.name().to_owned();
    let reads = format!("begin; lock table tidegate.{table} in access share mode; select pg_sleep(3)");
    let reader = std::thread::Builder::new().spawn(move || server::server().sql(&name, &reads)).unwrap();
    while !is_read(bench) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    reader
}

fn is_read(bench: &Bench) -> bool {
    let name = bench.place.name();
    count(bench, &format!("pg_stat_activity where datname = '{name}' and wait_event = 'PgSleep'")) == "1"
}

async fn forget(bench: &Bench, steps: usize) -> u64 {
    let mut gone = 0;
    for _ in 0..steps {
        gone += bench.store.forget(later(1_000), 400).await.unwrap();
    }
    gone
}

fn assert_nothing_is_left(bench: &Bench) {
    for table in ["events", "deliveries", "attempts", "open_deliveries", "forget_later", "forget_kept"] {
        assert_eq!(count(bench, &format!("tidegate.{table}")), "0", "{table}");
    }
}

/// Goal: whoever reads for long keeps a partition from being made, and neither the writer nor retention is held up by that.
#[tokio::test]
async fn what_got_no_partition_is_forgotten_all_the_same() {
    let bench = Bench::new(Engine::Postgres).await;
    let reader = read_for_long(&bench, "events").await;
    let deliveries = bench.deliver(1, 1, 3, later(100)).await;
    assert_eq!(count(&bench, "tidegate.events_kept"), "3");
    bench.settle(1, 1, &deliveries[..2], OK, later(101)).await;
    reader.join().unwrap();
    let bench = bench.reopen(true).await;
    assert_eq!(forget(&bench, 3).await, 2, "one is still open");
    assert_eq!(bench.waiting_numbers(1, later(1_000)).await, [deliveries[2].place.sequence]);
    bench.settle(1, 1, &deliveries[2..], OK, later(999)).await;
    assert_eq!(forget(&bench, 1).await, 1);
    assert_nothing_is_left(&bench);
}

/// Goal: a partition that somebody reads for long is dropped later, and the writer does not wait for that.
#[tokio::test]
async fn nobody_waits_for_a_partition_that_is_still_read() {
    let bench = Bench::new(Engine::Postgres).await;
    let deliveries = bench.deliver(1, 1, 4, START).await;
    bench.settle(1, 1, &deliveries, OK, later(1)).await;
    let reader = read_for_long(&bench, "deliveries").await;
    assert_eq!(forget(&bench, 1).await, 0, "it is read");
    let more = bench.deliver(1, 2, 2, START).await;
    bench.settle(1, 2, &more, OK, later(2)).await;
    assert!(is_read(&bench), "the writer did not wait for the reader's end");
    reader.join().unwrap();
    assert!(has_first_partition(&bench));
    assert_eq!(forget(&bench, 2).await, 6);
    assert!(!has_first_partition(&bench));
    assert_nothing_is_left(&bench);
}

/// Goal: a partition of which much must stay is not moved in one go: what is old goes row by row, and the partition when
/// little is left.
#[tokio::test]
async fn a_partition_of_which_much_must_stay_is_forgotten_row_by_row() {
    let bench = Bench::new(Engine::Postgres).await;
    let stay = bench.deliver(1, 1, 1_500, START).await;
    let old = bench.deliver(1, 2, 500, START).await;
    bench.settle(1, 2, &old, OK, later(1)).await;
    assert_eq!(forget(&bench, 10).await, 500);
    assert!(has_first_partition(&bench));
    bench.settle(1, 1, &stay[..100], OK, later(2)).await;
    assert_eq!(forget(&bench, 2).await, 100, "noted when they ended");
    assert!(has_first_partition(&bench));
    bench.settle(1, 1, &stay[100..900], OK, later(2_000)).await;
    assert_eq!(forget(&bench, 2).await, 0, "young");
    bench.settle(1, 1, &stay[900..1_400], OK, later(3)).await;
    assert_eq!(forget(&bench, 3).await, 500);
    assert!(!has_first_partition(&bench), "little is left");
    assert_eq!(count(&bench, "tidegate.events_kept"), "900");
    assert_eq!(bench.waiting_numbers(1, later(1_000)).await.len(), 100);
    bench.settle(1, 1, &stay[1_400..], OK, later(4)).await;
    assert_eq!(forget(&bench, 1).await, 100);
    assert_eq!(bench.store.forget(later(3_000), 1_000).await.unwrap(), 800);
    assert_nothing_is_left(&bench);
}
