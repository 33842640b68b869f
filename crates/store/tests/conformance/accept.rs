//! Acceptance: all or none, once per key and external id, and handed to the engine before the answer.

use std::sync::Arc;

use tidegate_core::pattern::EventType;
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
    a_key_is_an_accounts_own;
    an_external_id_is_taken_once_per_account_and_type;
    what_belongs_to_another_account_is_not_found;
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

async fn a_key_is_an_accounts_own(engine: Engine) {
    let bench = Bench::new(engine).await;
    let accept = async |account: u32, destination: u32| {
        let events = vec![bench.event(account, &[destination], START)];
        let mut accept = with_key(events, "k", 1, START);
        accept.idempotency.iter_mut().for_each(|(key, _)| key.account = AccountNo(account));
        bench.store.accept(accept).await.unwrap()
    };
    assert!(matches!(accept(1, 1).await, Accepted::Stored(_)));
    assert!(matches!(accept(2, 3).await, Accepted::Stored(_)), "another account knows nothing of it");
    assert!(matches!(accept(1, 1).await, Accepted::Again(_)));
    assert_eq!(bench.waiting_numbers(3, later(9)).await.len(), 1);
}

async fn what_belongs_to_another_account_is_not_found(engine: Engine) {
    let bench = Bench::new(engine).await;
    let event = bench.event(1, &[1], START);
    let (event_id, delivery_id) = (event.message.id, event.deliveries[0].1.id);
    bench.accept(vec![event], START).await;
    for (account, is_its_own) in [(1, true), (2, false)] {
        let account = AccountNo(account);
        assert_eq!(bench.store.event(account, event_id).await.unwrap().is_some(), is_its_own);
        assert_eq!(bench.store.delivery(account, delivery_id).await.unwrap().is_some(), is_its_own);
    }
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
    assert_eq!(
        answer,
        Accepted::Stored(vec![Item::Duplicate { first: id, routed: Some(1) }, Item::New(fresh_id)])
    );
    let clash = vec![bench.event(1, &[1], START), external(bench.event(1, &[1], START), "order-1", 2)];
    assert_eq!(accept(clash, later(2)).await.unwrap(), Accepted::Conflict { index: 1, first: id });
    assert_eq!(bench.waiting_numbers(1, later(9)).await.len(), 2, "a conflict adds nothing of its request");

    let elsewhere = external(bench.event(2, &[3], START), "order-1", 2);
    assert!(matches!(accept(vec![elsewhere], later(3)).await.unwrap(), Accepted::Stored(_)));
    let of_another_type = bench.event_of(1, &[1], START, |event| {
        event.event_type = EventType::parse("order.refunded").unwrap();
    });
    let of_another_type = external(of_another_type, "order-1", 2);
    let answer = accept(vec![of_another_type], later(3)).await.unwrap();
    assert!(matches!(answer, Accepted::Stored(items) if matches!(items[..], [Item::New(_)])));
    let twice = || external(bench.event(1, &[1], START), "order-2", 1);
    let answer = accept(vec![twice(), twice()], later(4)).await.unwrap();
    assert!(
        matches!(answer, Accepted::Stored(items) if matches!(items[..], [Item::New(a), Item::Duplicate { first: b, .. }] if a == b))
    );
    let next_day = START + Millis::hours(24);
    let late = external(bench.event(1, &[1], next_day), "order-1", 2);
    assert!(
        matches!(accept(vec![late], next_day).await.unwrap(), Accepted::Stored(items) if matches!(items[..], [Item::New(_)]))
    );
}
