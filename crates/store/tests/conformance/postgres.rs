//! What only a store in PostgreSQL can show: owners of slots, lost connections, schemas.

use tidegate_store::lane::Of;
use tidegate_store::record::Record;
use tidegate_store::{AccountNo, DestinationNo};

use crate::fixture::{Bench, Commits, OK, START, later};
use crate::place::{Engine, claim_all, end_leases, open};
use crate::server;

/// Goal: a node that others took for dead changes nothing when it comes back.
/// Method: a second node takes all slots; the first one records a result.
#[tokio::test]
async fn a_result_of_a_node_that_lost_its_slots_is_refused() {
    let bench = Bench::new(Engine::Postgres).await;
    let deliveries = bench.deliver(1, 1, 2, START).await;
    end_leases(&bench.place);
    let next = open(&bench.place, &Commits::default()).unwrap();
    claim_all(&next.store).await;
    let settled = vec![bench.settled(1, 1, &deliveries[0], OK, later(5))];
    bench.store.record(Record { now: later(5), settled, ..Record::default() });
    bench.wait_for(|commit| commit.stale == 1).await;
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
    assert!(matches!(newer, Some(tidegate_store::StoreError::Newer { found: 99, known: 2 })));
}
