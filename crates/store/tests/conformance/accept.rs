//! Acceptance: all or none, once per key and external id, and handed to the engine before the answer.

use std::sync::Arc;

use tidegate_core::policy::Policy;
use tidegate_core::time::Millis;
use tidegate_store::event::{Accept, Accepted, ExternalId, IdempotencyKey, Item, NewEvent};
use tidegate_store::lane::{Of, Waiting};
use tidegate_store::record::Record;
use tidegate_store::{AccountNo, DestinationNo};

use crate::fixture::{Bench, OK, START, later};
use crate::place::Engine;

on_both! {
    what_was_accepted_is_waiting_for_its_destination_and_no_other;
    a_delivered_one_waits_no_longer;
    the_same_key_gives_the_first_answer_again_for_a_day;
    an_external_id_is_taken_once_per_account_and_type;
}

fn key(text: &str, hash: u8) -> IdempotencyKey {
    IdempotencyKey { account: AccountNo(1), endpoint: "events", key: text.to_owned(), body_hash: [hash; 32] }
}

pub fn with_key(events: Vec<NewEvent>, text: &str, hash: u8, now: tidegate_core::time::Timestamp) -> Accept {
    let render = Box::new(|items: &[Item]| format!("{items:?}").into_bytes());
    Accept { now, events, idempotency: Some((key(text, hash), render)), outbox: None }
}

pub fn external(mut event: NewEvent, id: &str, hash: u8) -> NewEvent {
    event.external_id = Some(ExternalId { id: id.into(), payload_hash: [hash; 32] });
    event
}

async fn what_was_accepted_is_waiting_for_its_destination_and_no_other(engine: Engine) {
    let bench = Bench::new(engine).await;
    let event = bench.event(1, &[1, 2], START);
    let [first, second] = [0, 1].map(|index| event.deliveries[index].1.clone());
    let message = Arc::clone(&event.message);
    bench.accept(vec![event], START).await;
    bench.accept(vec![bench.event(2, &[3], START)], START).await;

    let refilled = bench.refill(1, &Policy::default(), START).await;
    assert_eq!(refilled.refill.deliveries, std::slice::from_ref(&first));
    assert_eq!(bench.refill(2, &Policy::default(), START).await.refill.deliveries, [second]);
    assert_eq!(bench.refill(4, &Policy::default(), START).await.refill.deliveries, []);
    assert_eq!(bench.store.message(first.id).await.unwrap(), Some(message.clone()));
    let bytes = message.payload.len() as u64;
    assert_eq!(bench.store.waiting(Of::Account(AccountNo(1))), Waiting { deliveries: 2, bytes: 2 * bytes });
    assert_eq!(bench.store.waiting(Of::Destination(DestinationNo(4))), Waiting::default());
}

async fn a_delivered_one_waits_no_longer(engine: Engine) {
    let bench = Bench::new(engine).await;
    let deliveries = bench.deliver(1, 1, 3, START).await;
    bench.settle(1, 1, &deliveries[..2], OK, later(10)).await;
    assert_eq!(bench.waiting_numbers(1, later(10)).await, [deliveries[2].place.sequence]);
    assert_eq!(bench.store.waiting(Of::Destination(DestinationNo(1))).deliveries, 1);
    bench.record(Record { now: START, ..Record::default() }).await;
}

async fn the_same_key_gives_the_first_answer_again_for_a_day(engine: Engine) {
    let bench = Bench::new(engine).await;
    let first = vec![bench.event(1, &[1], START)];
    let id = first[0].message.id;
    let stored = bench.store.accept(with_key(first, "k", 1, START)).await.unwrap();
    assert_eq!(stored, Accepted::Stored(vec![Item::New(id)]));
    let again =
        bench.store.accept(with_key(vec![bench.event(1, &[1], START)], "k", 1, later(1))).await.unwrap();
    assert_eq!(again, Accepted::Again(format!("{:?}", [Item::New(id)]).into_bytes()));
    let other =
        bench.store.accept(with_key(vec![bench.event(1, &[1], START)], "k", 2, later(2))).await.unwrap();
    assert_eq!(other, Accepted::KeyReused);
    assert_eq!(bench.waiting_numbers(1, later(9)).await.len(), 1);

    let next_day = START + Millis::hours(24);
    let late =
        bench.store.accept(with_key(vec![bench.event(1, &[1], next_day)], "k", 2, next_day)).await.unwrap();
    assert!(matches!(late, Accepted::Stored(_)));
}

async fn an_external_id_is_taken_once_per_account_and_type(engine: Engine) {
    let bench = Bench::new(engine).await;
    let first = external(bench.event(1, &[1], START), "order-1", 1);
    let id = first.message.id;
    bench.accept(vec![first], START).await;
    let accept = |events, now| bench.store.accept(Accept { now, events, idempotency: None, outbox: None });

    let same = external(bench.event(1, &[1], START), "order-1", 1);
    let fresh = bench.event(1, &[1], START);
    let fresh_id = fresh.message.id;
    let answer = accept(vec![same, fresh], later(1)).await.unwrap();
    assert_eq!(answer, Accepted::Stored(vec![Item::Duplicate(id), Item::New(fresh_id)]));
    let clash = vec![bench.event(1, &[1], START), external(bench.event(1, &[1], START), "order-1", 2)];
    assert_eq!(accept(clash, later(2)).await.unwrap(), Accepted::Conflict { index: 1, first: id });
    assert_eq!(bench.waiting_numbers(1, later(9)).await.len(), 2, "a conflict adds nothing of its request");

    let elsewhere = external(bench.event(2, &[3], START), "order-1", 2);
    assert!(matches!(accept(vec![elsewhere], later(3)).await.unwrap(), Accepted::Stored(_)));
    let twice = || external(bench.event(1, &[1], START), "order-2", 1);
    let answer = accept(vec![twice(), twice()], later(4)).await.unwrap();
    assert!(
        matches!(answer, Accepted::Stored(items) if matches!(items[..], [Item::New(a), Item::Duplicate(b)] if a == b))
    );
    let next_day = START + Millis::hours(24);
    let late = external(bench.event(1, &[1], next_day), "order-1", 2);
    assert!(
        matches!(accept(vec![late], next_day).await.unwrap(), Accepted::Stored(items) if matches!(items[..], [Item::New(_)]))
    );
}
