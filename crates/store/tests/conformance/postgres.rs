//! What only a store in PostgreSQL can show: owners of slots, lost connections, partitions.

use tidegate_store::lane::Of;
use tidegate_store::record::Record;
use tidegate_store::{AccountNo, DestinationNo};

use crate::fixture::{Bench, Commits, OK, START, later};
use crate::place::{Engine, open};
use crate::server;

/// Goal: a node that others took for dead changes nothing when it comes back.
/// Method: a second node takes all slots; the first one records a result.
#[tokio::test]
async fn a_result_of_a_node_that_lost_its_slots_is_refused() {
    let bench = Bench::new(Engine::Postgres).await;
    let deliveries = bench.deliver(1, 1, 2, START).await;
    let next = open(&bench.place, &Commits::default()).unwrap();
    let settled = vec![bench.settled(1, 1, &deliveries[0], OK, later(5))];
    let ticket = 77;
    bench.store.record(Record { now: later(5), ticket, settled, ..Record::default() });
    bench.wait_for(|commit| commit.stale.contains(&ticket)).await;
    assert_eq!(bench.store.status().stale, 1);
    assert!(next.store.attempts(deliveries[0].id).await.unwrap().is_empty());
    let stored = next.store.delivery(AccountNo(1), deliveries[0].id).await.unwrap().unwrap();
    assert_eq!(stored.delivery, deliveries[0]);
    let settled = vec![bench.settled(1, 1, &deliveries[0], OK, later(6))];
    next.store.record(Record { now: later(6), settled, ..Record::default() });
    next.store.close().await;
    assert_eq!(next.store.waiting(Of::Destination(DestinationNo(1))).deliveries, 1);
}

/// Goal: a connection that ends while nothing is in flight is not noticed by anybody.
#[tokio::test]
async fn connections_that_were_cut_are_made_anew() {
    let bench = Bench::new(Engine::Postgres).await;
    let deliveries = bench.deliver(1, 1, 3, START).await;
    cut(&bench);
    bench.settle(1, 1, &deliveries[..1], OK, later(1)).await;
    cut(&bench);
    assert_eq!(bench.waiting_numbers(1, later(2)).await.len(), 2);
    cut(&bench);
    bench.deliver(1, 1, 1, later(3)).await;
    assert_eq!(bench.waiting_numbers(1, later(4)).await.len(), 3);
}

/// Ends every connection of the store's database.
fn cut(bench: &Bench) {
    let name = bench.place.name();
    let sql = format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'");
    server::server().sql("postgres", &sql);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let bench = Bench::new(Engine::Postgres).await;
    bench.store.close().await;
    server::server().sql(bench.place.name(), "insert into tidegate.versions (version) values (99)");
    let newer = open(&bench.place, &Commits::default()).err();
    assert!(matches!(newer, Some(tidegate_store::StoreError::Newer { found: 99, known: 1 })));
}

/// Goal: whoever reads for long keeps a partition from being made, and neither the writer nor retention is held up by that.
#[tokio::test]
async fn what_got_no_partition_is_forgotten_all_the_same() {
    let bench = Bench::new(Engine::Postgres).await;
    let name = bench.place.name().to_owned();
    let count =
        |what: &str| server::server().sql(bench.place.name(), &format!("select count(*) from {what}"));
    let reads = "begin; lock table tidegate.events in access share mode; select pg_sleep(3)";
    let reader = std::thread::Builder::new().spawn(move || server::server().sql(&name, reads)).unwrap();
    while count("pg_stat_activity where query like '%pg_sleep(3)' and wait_event = 'PgSleep'") != "1\n" {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let deliveries = bench.deliver(1, 1, 3, later(100)).await;
    assert_eq!(count("tidegate.events_kept"), "3\n");
    bench.settle(1, 1, &deliveries[..2], OK, later(101)).await;
    reader.join().unwrap();
    let bench = bench.reopen(true).await;
    let mut gone = 0;
    for _ in 0..3 {
        gone += bench.store.forget(later(1_000), 10).await.unwrap();
    }
    assert_eq!(gone, 2, "one is still open");
    assert_eq!(bench.waiting_numbers(1, later(1_000)).await, [deliveries[2].place.sequence]);
    bench.settle(1, 1, &deliveries[2..], OK, later(2_000)).await;
    assert_eq!(bench.store.forget(later(3_000), 10).await.unwrap(), 1);
    let left = |what: &str| server::server().sql(bench.place.name(), &format!("select count(*) from {what}"));
    for table in ["events", "deliveries", "attempts", "open_deliveries", "forget_later"] {
        assert_eq!(left(&format!("tidegate.{table}")), "0\n", "{table}");
    }
}
