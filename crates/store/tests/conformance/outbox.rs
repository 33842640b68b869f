//! Publishing from SQL: in the application's own transaction, once, and with the id that it was told.

use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::id::EventId;
use tidegate_core::slots::Seat;
use tidegate_store::event::{Accept, Accepted, Message, NewEvent};
use tidegate_store::outbox::Outboxed;
use tidegate_store::{AccountNo, Store};

use crate::fixture::{Bench, Commits, START};
use crate::place::{Engine, open};
use crate::server;

fn sql(bench: &Bench, sql: &str) -> String {
    server::server().sql(bench.place.name(), sql)
}

/// What a server makes of an event in the outbox.
fn event(bench: &Bench, outboxed: &Outboxed) -> NewEvent {
    let event = bench.event(1, &[1], START);
    let message =
        Message { id: outboxed.event, payload: outboxed.payload.clone(), ..(*event.message).clone() };
    NewEvent { message: Arc::new(message), ..event }
}

async fn accept(store: &Store, event: NewEvent, outboxed: &Outboxed) -> Accepted {
    let accept = Accept { now: START, events: vec![event], idempotency: None, outbox: Some(outboxed.no) };
    store.accept(accept).await.unwrap()
}

#[tokio::test]
async fn what_is_published_from_sql_is_accepted_with_its_id() {
    let bench = Bench::new(Engine::Postgres).await;
    // Big numbers, duplicate keys, NUL and the order of keys survive.
    let payload = r#" {"b": 123456789012345678901234567890, "a": 1, "a": 2, "n": "\u0000"} "#;
    let call = format!(
        "select tidegate.publish('order.paid', '{payload}', '{{\"priority\": 1, \"notify\": true}}')"
    );
    let told = EventId::parse(sql(&bench, &call).trim()).unwrap();
    assert_eq!(told.sequence().get() >> 15 & 31, u64::from(Seat::COUNT - 1), "of the share that no node has");

    let waiting = bench.store.outbox(10).await.unwrap();
    assert_eq!(waiting.len(), 1);
    let outboxed = &waiting[0];
    assert_eq!((outboxed.event, &*outboxed.event_type), (told, "order.paid"));
    assert_eq!(outboxed.payload, Bytes::from(payload.trim().to_owned()));
    assert_eq!(outboxed.options, r#"{"priority": 1}"#);
    assert!(told.made_at().as_millis().abs_diff(outboxed.created_at.as_millis()) < 1_000);

    assert!(matches!(accept(&bench.store, event(&bench, outboxed), outboxed).await, Accepted::Stored(_)));
    assert!(bench.store.outbox(10).await.unwrap().is_empty());
    let stored = bench.store.event(AccountNo(1), told).await.unwrap().unwrap();
    assert_eq!(stored.message.payload, outboxed.payload);
    assert_eq!(accept(&bench.store, event(&bench, outboxed), outboxed).await, Accepted::Taken);
}

/// Goal: what two nodes take from the outbox at the same moment is accepted once.
#[tokio::test]
async fn two_nodes_accept_an_event_of_the_outbox_once() {
    let bench = Bench::new(Engine::Postgres).await;
    let second = open(&bench.place, &Commits::default()).unwrap().store;
    sql(&bench, "select tidegate.publish('a', n::text) from generate_series(1, 20) n");
    let (one, other) = (bench.store.outbox(100).await.unwrap(), second.outbox(100).await.unwrap());
    assert_eq!(one.len() + other.len(), 20, "they share the work");
    let mut accepted = 0;
    for outboxed in one.iter().chain(&other) {
        let (ours, theirs) = (event(&bench, outboxed), event(&bench, outboxed));
        let (ours, theirs) =
            tokio::join!(accept(&bench.store, ours, outboxed), accept(&second, theirs, outboxed));
        match (ours, theirs) {
            (Accepted::Stored(_), Accepted::Taken) | (Accepted::Taken, Accepted::Stored(_)) => accepted += 1,
            both => panic!("{both:?}"),
        }
    }
    assert_eq!((accepted, sql(&bench, "select count(*) from tidegate.events")), (20, "20\n".to_owned()));
}

#[tokio::test]
async fn what_was_rolled_back_was_never_published() {
    let bench = Bench::new(Engine::Postgres).await;
    sql(&bench, "begin; select tidegate.publish('a', '1'); rollback");
    assert!(bench.store.outbox(10).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_the_rules_refuse_is_kept_with_the_reason() {
    let bench = Bench::new(Engine::Postgres).await;
    sql(&bench, "select tidegate.publish('a', '1'), tidegate.publish('b', '2')");
    let waiting = bench.store.outbox(1).await.unwrap();
    bench.store.refuse_outbox(waiting[0].no, "no such destination".to_owned()).await.unwrap();
    assert_eq!(bench.store.outbox(10).await.unwrap().len(), 1);
    let refused = bench.store.refused_outbox(10).await.unwrap();
    assert_eq!((&refused[0].outboxed, &*refused[0].error), (&waiting[0], "no such destination"));
    assert_eq!(bench.store.count_refused_outbox(10).await.unwrap(), 1);
    assert_eq!(accept(&bench.store, event(&bench, &waiting[0]), &waiting[0]).await, Accepted::Taken);
}

/// Goal: an application hears at once of what could never be an event.
#[tokio::test]
async fn what_has_no_shape_is_refused_at_once() {
    let bench = Bench::new(Engine::Postgres).await;
    let refusal = |arguments: &str| {
        server::server().try_sql(bench.place.name(), &format!("select tidegate.publish({arguments})")).err()
    };
    for (arguments, part) in [
        ("null, '1'", "event_type is null"),
        ("'', '1'", "event_type is ;"),
        ("'a..b', '1'", "segments"),
        ("'a b', '1'", "segments"),
        ("E'a\\n', '1'", "segments"),
        ("repeat('a', 129), '1'", "128"),
        ("'a', null", "payload is null"),
        ("'a', ''", "payload is not JSON"),
        ("'a', '{'", "payload is not JSON"),
        ("'a', '\"' || repeat('x', 1048576) || '\"'", "1048578 bytes"),
        ("'a', '1', '[]'", "allowed: an object"),
        ("'a', '1', '{\"prio\": 1}'", "options.prio is 1"),
        ("'a', '1', '{\"priority\": 5}'", "options.priority is 5"),
        ("'a', '1', '{\"priority\": \"1\"}'", "options.priority"),
        ("'a', '1', '{\"ttl_seconds\": 0}'", "options.ttl_seconds"),
        ("'a', '1', '{\"ttl_seconds\": 2592001}'", "options.ttl_seconds"),
        ("'a', '1', '{\"external_event_id\": \"\"}'", "options.external_event_id"),
        ("'a', '1', '{\"ordering_key\": 7}'", "options.ordering_key"),
        ("'a', '1', '{\"deliver_at\": \"tomorrow\"}'", "options.deliver_at"),
        ("'a', '1', '{\"destination_ids\": []}'", "options.destination_ids"),
        ("'a', '1', '{\"destination_ids\": [1]}'", "options.destination_ids"),
        ("'a', '1', '{\"account_id\": \"acc_1\"}'", "options.account_id"),
        ("'a', '1', '{\"notify\": 1}'", "options.notify"),
    ] {
        let why = refusal(arguments);
        assert!(why.as_ref().is_some_and(|why| why.contains(part)), "{arguments}: {why:?}");
    }
    for fine in [
        "'a', '\"\\u0000\"'",
        "'a-b_c.D9', ' [1] ', null",
        "'a', 'null', '{\"priority\": null, \"ttl_seconds\": 2592000, \"ordering_key\": \"k\"}'",
        "'a', '1', '{\"deliver_at\": \"2030-01-01T00:00:00.5Z\", \"expires_at\": \"2031-01-01 00:00:00+01:00\"}'",
        "'a', '1', '{\"destination_ids\": [\"x\"], \"account_id\": \"acc_01KPXTQ4Z0E9GZ3V8QH5X7N2RD\"}'",
    ] {
        assert_eq!(refusal(fine), None, "{fine}");
    }
    assert_eq!(bench.store.outbox(100).await.unwrap().len(), 5);
}

/// Goal: an application needs no right but to use the schema.
#[tokio::test]
async fn an_application_needs_no_rights_on_tables() {
    let bench = Bench::new(Engine::Postgres).await;
    let role = format!("app_{}", bench.place.name());
    sql(&bench, &format!("create role {role}; grant usage on schema tidegate to {role}"));
    let id = sql(&bench, &format!("set role {role}; select tidegate.publish('a', '1')"));
    assert!(EventId::parse(id.trim()).is_ok());
    let look = format!("set role {role}; select count(*) from tidegate.outbox");
    assert!(server::server().try_sql(bench.place.name(), &look).is_err());
    sql(&bench, &format!("revoke usage on schema tidegate from {role}; drop role {role}"));
}
