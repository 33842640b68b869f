//! Lists and counts: by filter, newest first, page by page, and never another account's.

use std::sync::Arc;

use tidegate_core::delivery::Delivery;
use tidegate_core::order::Ordering;
use tidegate_core::outcome::Outcome;
use tidegate_core::pattern::EventType;
use tidegate_core::policy::Policy;
use tidegate_core::sequence::Sequence;
use tidegate_store::event::ExternalId;
use tidegate_store::list::{DeliveryFilter, EventFilter, Open, PageQuery, Stage};
use tidegate_store::record::Record;
use tidegate_store::{AccountNo, DestinationNo};

use crate::fixture::{Bench, ERROR, OK, START, later, priority};
use crate::place::Engine;

on_both! {
    deliveries_are_listed_by_destination_and_stage;
    what_is_open_is_listed_by_what_it_waits_for;
    deliveries_are_listed_by_what_their_event_is;
    events_are_listed_page_by_page;
    what_goes_before_a_delivery_is_counted;
    the_lists_of_a_destination_are_whole_however_many_there_are;
    counts_are_exact_however_many_must_be_looked_at;
}

async fn listed(bench: &Bench, account: u32, filter: &DeliveryFilter, limit: usize) -> Vec<u64> {
    let mut all = Vec::new();
    let mut before = None;
    loop {
        let page = PageQuery { account: AccountNo(account), before, limit, oldest_first: false };
        let page = bench.store.deliveries(page, filter.clone()).await.unwrap();
        all.extend(page.items.iter().map(|stored| stored.delivery.place.sequence));
        before = page.next;
        if before.is_none() {
            let mut oldest_first = Vec::new();
            let page =
                PageQuery { account: AccountNo(account), before: None, limit: 1_000, oldest_first: true };
            let found = bench.store.deliveries(page, filter.clone()).await.unwrap();
            oldest_first.extend(found.items.iter().map(|stored| stored.delivery.place.sequence));
            oldest_first.reverse();
            assert_eq!(all, oldest_first, "the same, from the other end");
            let count =
                bench.store.count_deliveries(AccountNo(account), filter.clone(), 1_000).await.unwrap();
            assert_eq!(count, Some(all.len() as u64));
            return all;
        }
    }
}

fn newest_first(deliveries: &[&[Delivery]]) -> Vec<u64> {
    let mut numbers: Vec<u64> =
        deliveries.iter().flat_map(|part| part.iter()).map(|delivery| delivery.place.sequence).collect();
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    numbers
}

async fn deliveries_are_listed_by_destination_and_stage(engine: Engine) {
    let bench = Bench::new(engine).await;
    let one = bench.deliver(1, 1, 9, START).await;
    let two = bench.deliver(1, 2, 4, later(5)).await;
    let other = bench.deliver(2, 3, 3, later(6)).await;
    bench.settle(1, 1, &one[..3], OK, later(10)).await;
    bench.settle(1, 1, &one[3..5], Outcome::Gone, later(10)).await;
    bench.settle(1, 1, &one[5..6], ERROR, later(10)).await;
    bench.settle(1, 2, &two[..1], Outcome::Gone, later(10)).await;

    let filter = |destinations: Option<&[u32]>, stages: Option<&[Stage]>| DeliveryFilter {
        destinations: destinations.map(|several| several.iter().map(|no| DestinationNo(*no)).collect()),
        stages: stages.map(<[Stage]>::to_vec),
        ..DeliveryFilter::default()
    };
    for limit in [1, 2, 3, 100] {
        assert_eq!(listed(&bench, 1, &filter(None, None), limit).await, newest_first(&[&one, &two]));
        assert_eq!(listed(&bench, 2, &filter(None, None), limit).await, newest_first(&[&other]));
        assert_eq!(listed(&bench, 1, &filter(Some(&[1]), None), limit).await, newest_first(&[&one]));
        let open = Some(&[Stage::Open][..]);
        assert_eq!(
            listed(&bench, 1, &filter(None, open), limit).await,
            newest_first(&[&one[5..], &two[1..]])
        );
        assert_eq!(listed(&bench, 1, &filter(Some(&[2]), open), limit).await, newest_first(&[&two[1..]]));
        let dead = Some(&[Stage::DeadLetter][..]);
        assert_eq!(
            listed(&bench, 1, &filter(None, dead), limit).await,
            newest_first(&[&one[3..5], &two[..1]])
        );
        assert_eq!(listed(&bench, 1, &filter(Some(&[1]), dead), limit).await, newest_first(&[&one[3..5]]));
        let both = Some(&[Stage::Open, Stage::DeadLetter][..]);
        assert_eq!(listed(&bench, 1, &filter(None, both), limit).await, newest_first(&[&one[3..], &two]));
        let done = Some(&[Stage::Delivered][..]);
        assert_eq!(listed(&bench, 1, &filter(Some(&[1, 2]), done), limit).await, newest_first(&[&one[..3]]));
    }
    for stages in [None, Some(&[Stage::Open][..]), Some(&[Stage::DeadLetter][..])] {
        let elsewhere = listed(&bench, 1, &filter(Some(&[3]), stages), 10).await;
        assert!(elsewhere.is_empty(), "another account's destination");
    }
    assert_eq!(bench.store.count_deliveries(AccountNo(1), filter(None, None), 12).await.unwrap(), None);
}

async fn what_is_open_is_listed_by_what_it_waits_for(engine: Engine) {
    let bench = Bench::new(engine).await;
    let one = bench.deliver(1, 1, 6, START).await;
    let two = bench.deliver(1, 2, 2, later(1)).await;
    bench.settle(1, 1, &one[..2], ERROR, later(10)).await;
    bench.settle(1, 1, &one[2..3], Outcome::Gone, later(10)).await;
    let stale = bench.event_of(1, &[1], later(11), |incoming| incoming.expires_at = Some(later(5_000)));
    let stale_one = [stale.deliveries[0].1.clone()];
    bench.accept(vec![stale], later(11)).await;

    let day = 24 * 60 * 60 * 1_000;
    let to = |no| Open::To(vec![DestinationNo(no)]);
    let these = Open::These(vec![one[4].id.sequence(), two[0].id.sequence(), one[2].id.sequence()]);
    for (open, expected) in [
        (Open::Ready(later(20)), newest_first(&[&one[3..], &two, &stale_one])),
        (Open::Ready(later(day)), newest_first(&[&one[..2], &one[3..], &two, &stale_one])),
        (Open::Waiting(later(20)), newest_first(&[&one[..2]])),
        (Open::Waiting(later(day)), vec![]),
        (Open::Overdue(later(4_999)), vec![]),
        (Open::Overdue(later(5_000)), newest_first(&[&stale_one])),
        (Open::Overdue(later(8 * day)), newest_first(&[&one[..2], &one[3..], &two, &stale_one])),
        (to(2), newest_first(&[&two])),
        (these, newest_first(&[&one[4..5], &two[..1]])),
    ] {
        let filter = |stages: &[Stage]| DeliveryFilter {
            stages: Some(stages.to_vec()),
            open: Some(open.clone()),
            ..DeliveryFilter::default()
        };
        for limit in [1, 3, 100] {
            assert_eq!(listed(&bench, 1, &filter(&[Stage::Open]), limit).await, expected, "{open:?}");
            assert!(listed(&bench, 2, &filter(&[Stage::Open]), limit).await.is_empty());
            let mut with_dead = [expected.clone(), newest_first(&[&one[2..3]])].concat();
            with_dead.sort_unstable_by(|a, b| b.cmp(a));
            let both = filter(&[Stage::Open, Stage::DeadLetter]);
            assert_eq!(listed(&bench, 1, &both, limit).await, with_dead, "{open:?}");
            let all = filter(&[Stage::Open, Stage::DeadLetter, Stage::Delivered]);
            assert_eq!(listed(&bench, 1, &all, limit).await, with_dead, "by the whole history: {open:?}");
        }
    }
    let both = vec![DestinationNo(1), DestinationNo(2)];
    assert_eq!(bench.store.still_open(both.clone(), later(4_999)).await.unwrap(), [6, 2]);
    assert_eq!(bench.store.still_open(both, later(5_000)).await.unwrap(), [5, 2]);
}

async fn deliveries_are_listed_by_what_their_event_is(engine: Engine) {
    let bench = Bench::new(engine).await;
    let named = |name: &str, key: Option<&str>, at| {
        bench.event_of(1, &[1, 2], later(at), |incoming| {
            incoming.event_type = EventType::parse(name).unwrap();
            incoming.ordering_key = key.map(Arc::from);
        })
    };
    let mut first = named("order.paid", Some("a"), 0);
    first.external_id = Some(ExternalId { id: "o-1".into(), payload_hash: [1; 32] });
    let second = named("user.new", Some("b"), 1_000);
    let third = named("order.paid", None, 2_000);
    let numbers = |event: &tidegate_store::event::NewEvent| {
        let parts: Vec<Delivery> = event.deliveries.iter().map(|(_, delivery)| delivery.clone()).collect();
        newest_first(&[&parts])
    };
    let (a, b, c) = (numbers(&first), numbers(&second), numbers(&third));
    let (id, kept) = (first.message.id, second.message.id);
    for (event, at) in [(first, 0), (second, 1_000), (third, 2_000)] {
        bench.accept(vec![event], later(at)).await;
    }
    let any = DeliveryFilter::default;
    let paid = EventType::parse("order.paid").ok();
    for (filter, expected) in [
        (DeliveryFilter { event: Some(id), ..any() }, a.clone()),
        (DeliveryFilter { external_event_id: Some("o-1".into()), ..any() }, a.clone()),
        (DeliveryFilter { external_event_id: Some("o-2".into()), ..any() }, vec![]),
        (DeliveryFilter { event_type: paid.clone(), ..any() }, [c.clone(), a.clone()].concat()),
        (DeliveryFilter { event_type: EventType::parse("no.such").ok(), ..any() }, vec![]),
        (DeliveryFilter { ordering_key: Some("b".into()), ..any() }, b.clone()),
        (DeliveryFilter { from: Some(later(1_000)), ..any() }, [c.clone(), b.clone()].concat()),
        (DeliveryFilter { to: Some(later(1_000)), ..any() }, a.clone()),
        (DeliveryFilter { from: Some(later(1)), to: Some(later(1_001)), event_type: paid, ..any() }, vec![]),
    ] {
        assert_eq!(listed(&bench, 1, &filter, 1).await, expected, "{filter:?}");
        assert!(listed(&bench, 2, &filter, 1).await.is_empty(), "not another account's: {filter:?}");
    }
    let event = bench.store.event(AccountNo(1), kept).await.unwrap().unwrap();
    assert_eq!((event.routed, event.ordering_key.as_deref()), (2, Some("b")));
    assert!(bench.store.event(AccountNo(2), kept).await.unwrap().is_none());
    assert_eq!(bench.store.deliveries_of(kept).await.unwrap().len(), 2);
    let guessed = tidegate_core::id::EventId::from_parts(kept.sequence(), kept.salt() ^ 1);
    assert!(bench.store.event(AccountNo(1), guessed).await.unwrap().is_none());
    assert!(bench.store.deliveries_of(guessed).await.unwrap().is_empty());
}

async fn events_are_listed_page_by_page(engine: Engine) {
    let bench = Bench::new(engine).await;
    let mut ids = Vec::new();
    for at in 0..7 {
        let event = bench.event_of(1, &[], later(at), |incoming| {
            let name = if at % 2 == 0 { "order.paid" } else { "user.new" };
            incoming.event_type = EventType::parse(name).unwrap();
        });
        ids.insert(0, event.message.id);
        bench.accept(vec![event], later(at)).await;
    }
    bench.deliver(2, 3, 1, START).await;
    let all = |filter: EventFilter| {
        let store = bench.store.clone();
        async move {
            let (mut found, mut before): (Vec<_>, Option<Sequence>) = (Vec::new(), None);
            loop {
                let page = PageQuery { account: AccountNo(1), before, limit: 2, oldest_first: false };
                let page = store.events(page, filter.clone()).await.unwrap();
                found.extend(page.items.iter().map(|event| event.message.id));
                before = page.next;
                if before.is_none() {
                    return found;
                }
            }
        }
    };
    assert_eq!(all(EventFilter::default()).await, ids);
    let paid = EventFilter { event_type: EventType::parse("order.paid").ok(), ..EventFilter::default() };
    assert_eq!(all(paid.clone()).await, [ids[0], ids[2], ids[4], ids[6]]);
    let some = EventFilter { from: Some(later(2)), to: Some(later(5)), ..EventFilter::default() };
    assert_eq!(all(some).await, ids[2..5]);
    assert_eq!(bench.store.count_events(AccountNo(1), paid.clone(), 4).await.unwrap(), Some(4));
    assert_eq!(bench.store.count_events(AccountNo(1), paid, 3).await.unwrap(), None);
}

async fn what_goes_before_a_delivery_is_counted(engine: Engine) {
    let bench = Bench::new(engine).await;
    let with = |level: u64, key: Option<&str>| {
        let event = bench.event_of(1, &[1], START, |incoming| {
            incoming.priority = priority(level);
            incoming.ordering_key = key.map(Arc::from);
        });
        (event.deliveries[0].1.clone(), event)
    };
    let parts = [(3, Some("a")), (3, None), (1, Some("a")), (4, None), (3, Some("a")), (3, None)];
    let (deliveries, events): (Vec<_>, Vec<_>) =
        parts.map(|(level, key)| with(level, key)).into_iter().unzip();
    bench.accept(events, START).await;
    bench.deliver(1, 2, 3, START).await;
    for (ordering, expected) in [
        (Ordering::None, [1, 2, 0, 5, 3, 4]),
        (Ordering::Fifo, [0, 1, 2, 3, 4, 5]),
        (Ordering::Key, [0, 0, 1, 2, 2, 1]),
    ] {
        let policy = Policy { ordering, ..Policy::default() };
        for (delivery, expected) in deliveries.iter().zip(expected) {
            let ahead = bench.store.ahead(DestinationNo(1), delivery, &policy, START, 100).await.unwrap();
            assert_eq!(ahead, expected, "{ordering:?} {:?}", delivery.place);
            let capped = bench.store.ahead(DestinationNo(1), delivery, &policy, START, 2).await.unwrap();
            assert_eq!(capped, expected.min(2));
        }
    }

    // The first three fail and wait for their retries: once these are due, they go before what comes after them.
    bench.settle(1, 1, &deliveries[..3], ERROR, START).await;
    let last = &deliveries[5];
    let retried = START + tidegate_core::time::Millis::hours(1);
    for (ordering, before, after) in [(Ordering::None, 1, 4), (Ordering::Fifo, 5, 5)] {
        let policy = Policy { ordering, ..Policy::default() };
        for (at, expected) in [(START, before), (retried, after)] {
            let ahead = bench.store.ahead(DestinationNo(1), last, &policy, at, 100).await.unwrap();
            assert_eq!(ahead, expected, "{ordering:?} at {at}");
        }
    }
}

/// All deliveries and all attempts of a destination, newest first, page by page; the deliveries also from the other end.
async fn of_destination(bench: &Bench, destination: u32) -> (Vec<u64>, Vec<u64>) {
    let mut ends = Vec::new();
    for oldest_first in [false, true] {
        let (mut all, mut before) = (Vec::new(), None);
        loop {
            let page = PageQuery { account: AccountNo(1), before, limit: 700, oldest_first };
            let filter = DeliveryFilter {
                destinations: Some(vec![DestinationNo(destination)]),
                ..DeliveryFilter::default()
            };
            let found = bench.store.deliveries(page, filter).await.unwrap();
            all.extend(found.items.iter().map(|stored| stored.delivery.place.sequence));
            before = found.next;
            if before.is_none() {
                break;
            }
        }
        ends.push(all);
    }
    ends[1].reverse();
    assert_eq!(ends[0], ends[1], "the same, from the other end");
    let (mut attempts, mut before) = (Vec::new(), None);
    loop {
        let page = bench.store.destination_attempts(DestinationNo(destination), before, 700).await.unwrap();
        attempts.extend(page.items.iter().map(|attempt| attempt.delivery.sequence().get()));
        before = page.next;
        if before.is_none() {
            let count = async |cap| {
                bench.store.count_destination_attempts(DestinationNo(destination), cap).await.unwrap()
            };
            assert_eq!(count(10_000).await, attempts.len() as u64);
            assert!(count(10).await > 10, "not counted out, but known to be more");
            return (ends.swap_remove(0), attempts);
        }
    }
}

/// Thousands, so that most are in lists of their own and some are not yet.
async fn the_lists_of_a_destination_are_whole_however_many_there_are(engine: Engine) {
    let mut bench = Bench::new(engine).await;
    // It has its numbers first and is stored last.
    let late = bench.event(1, &[1], START);
    let late_delivery = late.deliveries[0].1.clone();
    let late_attempt = bench.settled(1, 1, &late_delivery, OK, START);
    let mut expected = [Vec::new(), Vec::new()];
    for wave in 0..8 {
        let now = later(wave);
        for (destination, count) in [(1, 700), (2, 150)] {
            let deliveries = bench.deliver(1, destination, count, now).await;
            bench.settle(1, destination, &deliveries, OK, now).await;
            expected[destination as usize - 1].extend(deliveries);
        }
        if wave == 5 {
            bench = bench.reopen(false).await;
        }
    }
    bench.accept(vec![late], later(9)).await;
    bench.record(Record { now: later(9), settled: vec![late_attempt], ..Record::default() }).await;
    expected[0].insert(0, late_delivery);
    for (destination, expected) in [(1, &expected[0]), (2, &expected[1])] {
        let numbers = newest_first(&[expected]);
        assert_eq!(of_destination(&bench, destination).await, (numbers.clone(), numbers), "{destination}");
    }

    // Retention takes them out again: all but the last wave.
    while bench.store.forget(later(7), 500).await.unwrap() > 0 {}
    for (destination, expected, left) in [(1, &expected[0], 700), (2, &expected[1], 150)] {
        let late = if destination == 1 { &expected[..1] } else { &[] };
        let numbers = newest_first(&[late, &expected[expected.len() - left..]]);
        assert_eq!(of_destination(&bench, destination).await, (numbers.clone(), numbers), "{destination}");
    }
}

/// A count looks at some rows in one go: here what fits stands at the end of more than two goes.
async fn counts_are_exact_however_many_must_be_looked_at(engine: Engine) {
    let bench = Bench::new(engine).await;
    let rare = |event_type| {
        bench.event_of(1, &[1], START, |incoming| incoming.event_type = EventType::parse(event_type).unwrap())
    };
    bench.accept(vec![rare("rare.one"), rare("rare.one"), rare("rare.two")], START).await;
    bench.deliver(1, 1, 10_500, START).await;
    let event_type = EventType::parse("rare.one").ok();
    let store = &bench.store;
    let events = EventFilter { event_type: event_type.clone(), ..EventFilter::default() };
    assert_eq!(store.count_events(AccountNo(1), events.clone(), 10_000).await.unwrap(), Some(2));
    assert_eq!(store.count_events(AccountNo(1), events, 1).await.unwrap(), None);
    let all = EventFilter::default();
    assert_eq!(store.count_events(AccountNo(1), all.clone(), 20_000).await.unwrap(), Some(10_503));
    assert_eq!(store.count_events(AccountNo(1), all, 10_502).await.unwrap(), None);
    for stages in [None, Some(vec![Stage::Open])] {
        let filter = DeliveryFilter { event_type: event_type.clone(), stages, ..DeliveryFilter::default() };
        assert_eq!(store.count_deliveries(AccountNo(1), filter.clone(), 10_000).await.unwrap(), Some(2));
        assert_eq!(store.count_deliveries(AccountNo(1), filter, 1).await.unwrap(), None);
    }
    let all = DeliveryFilter::default();
    assert_eq!(store.count_deliveries(AccountNo(1), all.clone(), 20_000).await.unwrap(), Some(10_503));
    assert_eq!(store.count_deliveries(AccountNo(1), all, 10_502).await.unwrap(), None);
}
