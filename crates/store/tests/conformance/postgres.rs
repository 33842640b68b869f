//! What only a store in PostgreSQL can show: owners of slots, lost connections, schemas.

use tidegate_store::lane::Of;
use tidegate_store::record::{NoticeRow, Record};
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

/// Goal: an attempt that cannot be stored does not keep its delivery open: that would be sent again.
#[tokio::test]
async fn a_delivery_ends_even_if_its_attempt_cannot_be_stored() {
    let bench = Bench::new(Engine::Postgres).await;
    let delivery = bench.deliver(1, 1, 1, START).await.remove(0);
    let mut settled = bench.settled(1, 1, &delivery, OK, later(5));
    settled.attempt.as_mut().unwrap().number = u32::MAX;
    bench.record(Record { now: later(5), settled: vec![settled], ..Record::default() }).await;
    let stored = bench.store.delivery(AccountNo(1), delivery.id).await.unwrap().unwrap();
    assert!(stored.delivery.status.is_final());
    assert!(bench.store.attempts(delivery.id).await.unwrap().is_empty());
    assert_eq!(bench.store.status().refused, 0);
}

/// Goal: what is tried one by one, because something among it was refused, still waits in its order when the database goes away
/// in the middle of it.
#[tokio::test]
async fn records_that_are_tried_one_by_one_wait_in_their_order() {
    let bench = Bench::new(Engine::Postgres).await;
    let delivery = bench.deliver(1, 1, 1, START).await.remove(0);
    // Whoever has seen the impossible one fails from then on as if others were in the way.
    let sql = |sql: &str| server::server().sql(bench.place.name(), sql);
    sql(
        "create sequence tidegate.seen;
         create function tidegate.deny() returns trigger language plpgsql as $$
         begin
           if new.detail = 'impossible' then
             perform nextval('tidegate.seen');
             raise exception 'no' using errcode = '23514';
           end if;
           if (select is_called from tidegate.seen) and new.detail <> '1' then
             raise exception 'later' using errcode = '40001';
           end if;
           return new;
         end $$;
         create trigger deny before insert on tidegate.notices for each row execute function tidegate.deny()",
    );
    let notice = |detail: &str| NoticeRow {
        destination: DestinationNo(1),
        at: later(1),
        kind: "throttled".to_owned(),
        detail: detail.to_owned(),
    };
    let one = ["1", "impossible", "2", "3", "4", "5"].map(notice).to_vec();
    bench.store.record(Record { now: later(1), ticket: 1, notices: one, ..Record::default() });
    for ticket in 2..5 {
        let notices = vec![notice(&(ticket + 10).to_string())];
        bench.store.record(Record { now: later(1), ticket, notices, ..Record::default() });
    }
    for _ in 0..400 {
        if bench.store.waits().is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(bench.store.waits().is_some(), "the rest waits");
    sql("drop trigger deny on tidegate.notices");
    bench.wait_for(|commit| commit.recorded.contains(&4)).await;
    let tickets: Vec<u64> = bench.commits.lock().unwrap().iter().flat_map(|c| c.recorded.clone()).collect();
    assert_eq!(tickets, [1, 2, 3, 4]);
    let kept = sql("select string_agg(detail, ' ' order by no) from tidegate.notices");
    assert_eq!(kept.trim(), "1 2 3 4 5 12 13 14");
    bench.settle(1, 1, &[delivery], OK, later(9)).await;
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
