//! Retention: what is over and old goes, with all that belongs to it, and nothing else does.

use tidegate_core::delivery::{Delivery, HoldReason, Status};
use tidegate_core::id::ReplayId;
use tidegate_core::policy::Policy;
use tidegate_core::settle::{self, ReplayAs, ReplayTtl, Terms};
use tidegate_core::time::{Millis, Timestamp};
use tidegate_store::event::{Accept, Accepted, Item, NewReplay};
use tidegate_store::job::{Job, JobKind, JobState};
use tidegate_store::record::{HoldRow, LogPlace, NoticeRow, Record};
use tidegate_store::{AccountNo, DestinationNo};

use crate::accept::external;
use crate::fixture::{Bench, ERROR, OK, START, delivery_id, later, priority};
use crate::place::Engine;

on_both! {
    old_events_go_and_open_ones_stay_until_they_are_old;
    a_replay_keeps_its_event;
    a_name_is_known_for_a_day_however_short_the_retention;
    logs_are_read_newest_first_and_forgotten_oldest_first;
    logs_are_read_page_by_page_though_times_are_the_same;
}

const DAY: Millis = Millis::days(1);

pub fn replay_of(bench: &Bench, original: &Delivery, now: Timestamp) -> Delivery {
    let sequence = bench.numbers(now, 1);
    let new = ReplayAs { id: delivery_id(sequence), sequence, priority: priority(4) };
    settle::replay(now, original, new, ReplayTtl::None, &Policy::default(), &Terms::default())
}

async fn forget_all(bench: &Bench, before: Timestamp, step: usize) -> u64 {
    let mut gone = 0;
    for _ in 0..50 {
        gone += bench.store.forget(before, step).await.unwrap();
    }
    gone
}

async fn old_events_go_and_open_ones_stay_until_they_are_old(engine: Engine) {
    for step in [1, 2, 3, 100] {
        let bench = Bench::new(engine).await;
        let one = bench.deliver(1, 1, 10, START).await;
        let two = bench.deliver(1, 2, 2, later(1)).await;
        bench.settle(1, 1, &one[..4], OK, later(10)).await;
        bench.settle(1, 1, &one[5..], OK, later(10)).await;
        let failed = bench.settle(1, 2, &two[..1], ERROR, later(10)).await;
        assert!(matches!(failed[0].status, Status::RetryScheduled { .. }));
        bench.settle(1, 2, &two[1..], OK, START + DAY).await;

        assert_eq!(forget_all(&bench, START + Millis::hours(1), step).await, 9, "in steps of {step}");
        assert_eq!(bench.waiting_numbers(1, later(20)).await, [one[4].place.sequence]);
        assert!(bench.store.message(one[0].id).await.unwrap().is_none());
        assert!(bench.store.attempts(one[0].id).await.unwrap().is_empty());
        assert!(bench.store.message(two[1].id).await.unwrap().is_some(), "it is over, but young");

        bench.settle(1, 1, &one[4..5], OK, START + DAY).await;
        bench.settle(1, 2, &failed, OK, START + DAY + DAY).await;
        assert_eq!(forget_all(&bench, START + DAY, step).await, 0);
        assert_eq!(forget_all(&bench, START + DAY + Millis::new(1), step).await, 2);
        assert_eq!(forget_all(&bench, START + DAY + DAY + DAY, step).await, 1);
        assert!(bench.store.delivery(AccountNo(1), two[0].id).await.unwrap().is_none());
    }
}

/// Goal: within a day a repeat of a publisher's own id is known, also where what is over goes after a minute.
async fn a_name_is_known_for_a_day_however_short_the_retention(engine: Engine) {
    let bench = Bench::new(engine).await;
    let named = external(bench.event(1, &[1], START), "order-1", 1);
    let id = named.message.id;
    let (before, after) = (bench.event(1, &[1], START), bench.event(1, &[1], START));
    let deliveries: Vec<_> = [&before, &named, &after].map(|event| event.deliveries[0].1.clone()).into();
    bench.accept(vec![before, named, after], START).await;
    bench.settle(1, 1, &deliveries, OK, later(1)).await;
    let minute = Millis::minutes(1);
    let cases = [(7, Millis::hours(1), true), (8, Millis::hours(23), true), (9, DAY + minute, false)];
    for (ticket, after, known) in cases {
        let now = START + after;
        // The store goes by what it saw last.
        bench.store.record(Record { now, ticket, ..Record::default() });
        bench.wait_for(|commit| commit.recorded.contains(&ticket)).await;
        forget_all(&bench, now - minute, 10).await;
        let again = external(bench.event(1, &[1], now), "order-1", 1);
        let again = Accept { now, events: vec![again], idempotency: None, outbox: None };
        let told = bench.store.accept(again).await.unwrap();
        let Accepted::Stored(items) = told else { panic!("{told:?}") };
        assert_eq!(
            matches!(items[..], [Item::Duplicate { first, .. }] if first == id),
            known,
            "after {after}: {items:?}"
        );
    }
    for delivery in &deliveries {
        assert!(bench.store.delivery(AccountNo(1), delivery.id).await.unwrap().is_none(), "gone by now");
    }
}

async fn a_replay_keeps_its_event(engine: Engine) {
    let bench = Bench::new(engine).await;
    let event = bench.event(1, &[1, 2], START);
    let (id, originals) = (event.message.id, event.deliveries.clone());
    bench.accept(vec![event], START).await;
    for (destination, delivery) in &originals {
        bench.settle(1, destination.0, std::slice::from_ref(delivery), OK, later(5)).await;
    }
    let now = START + DAY;
    let before = bench.deliver(1, 1, 1, now).await;
    let replay = replay_of(&bench, &originals[0].1, now);
    let new = |event| NewReplay {
        destination: DestinationNo(1),
        replay_of: originals[0].1.id,
        event,
        delivery: replay.clone(),
    };
    let nowhere = tidegate_core::id::EventId::from_parts(id.sequence(), id.salt() ^ 1);
    let job = Job {
        id: ReplayId::from_bits(9),
        account: AccountNo(1),
        kind: JobKind::Replay,
        request: "{}".to_owned(),
        created_at: now,
        state: JobState::Running,
        position: Some(replay.id.sequence()),
        total: Some(1),
        done: 1,
        skipped: 0,
        finished_at: None,
    };
    bench.store.accept_replays(vec![new(nowhere)], None, None).await.unwrap();
    bench.store.accept_replays(vec![new(id)], Some(job.clone()), None).await.unwrap();
    bench.wait_for(|commit| commit.replays.len() == 1).await;
    let fresh = bench.deliver(1, 1, 1, now).await;

    let all = bench.store.deliveries_of(id).await.unwrap();
    assert_eq!(all.len(), 3);
    assert_eq!((all[2].delivery.id, all[2].replay_of), (replay.id, Some(originals[0].1.id)));
    assert_eq!(bench.store.job(AccountNo(1), job.id).await.unwrap().unwrap().done, 1);
    assert!(bench.store.job(AccountNo(2), job.id).await.unwrap().is_none());
    assert_eq!(forget_all(&bench, now, 10).await, 0, "its replay is open");
    bench.settle(1, 1, &before, OK, now).await;
    bench.settle(1, 1, &fresh, OK, now).await;
    let gone = forget_all(&bench, now + DAY, 10).await;
    assert_eq!(gone, 2, "the fresh ones alone, though the replay lies between them");
    assert_eq!(bench.store.deliveries_of(id).await.unwrap().len(), 3);
    bench.settle(1, 1, &[replay], OK, now + DAY).await;
    assert_eq!(forget_all(&bench, now + DAY + DAY, 10).await, 1);
    assert!(bench.store.deliveries_of(id).await.unwrap().is_empty());
    let bench = bench.reopen(true).await;
    assert_eq!(bench.opened.as_ref().unwrap().jobs.len(), 1);
}

async fn logs_are_read_newest_first_and_forgotten_oldest_first(engine: Engine) {
    let bench = Bench::new(engine).await;
    let hold = |no: u32, from: i64, to: i64| HoldRow {
        destination: DestinationNo(no),
        reason: HoldReason::QuietHours,
        since: later(from),
        until: later(to),
    };
    let notice = |no: u32, at: i64| NoticeRow {
        destination: DestinationNo(no),
        at: later(at),
        kind: "circuit_opened".to_owned(),
        detail: at.to_string(),
    };
    let holds = vec![hold(1, 0, 10), hold(2, 5, 50), hold(1, 20, 30), hold(1, 40, 50)];
    let notices = vec![notice(1, 1), notice(2, 2), notice(1, 3)];
    bench.record(Record { now: START, holds, notices, ..Record::default() }).await;
    let (one, long) = (DestinationNo(1), later(1_000));
    let held = |from: i64, to: i64, limit| bench.store.holds(one, later(from), later(to), limit);
    assert_eq!(held(0, 100, 10).await.unwrap(), [hold(1, 40, 50), hold(1, 20, 30), hold(1, 0, 10)]);
    assert_eq!(held(10, 40, 10).await.unwrap(), [hold(1, 20, 30)]);
    assert_eq!(held(0, 100, 1).await.unwrap(), [hold(1, 40, 50)]);
    assert_eq!(bench.store.notices(one, START, long, 9).await.unwrap(), [notice(1, 3), notice(1, 1)]);
    forget_all(&bench, later(31), 2).await;
    assert_eq!(held(0, 100, 10).await.unwrap(), [hold(1, 40, 50)]);
    assert!(bench.store.notices(one, START, long, 9).await.unwrap().is_empty());
}

async fn logs_are_read_page_by_page_though_times_are_the_same(engine: Engine) {
    let bench = Bench::new(engine).await;
    let one = DestinationNo(1);
    let (mut holds, mut notices) = (Vec::new(), Vec::new());
    for (at, name) in [(1, "a"), (2, "b"), (2, "c"), (2, "d"), (3, "e")] {
        let (kind, detail) = ("circuit_opened".to_owned(), name.to_owned());
        notices.push(NoticeRow { destination: one, at: later(at), kind, detail });
        let until = later(at + i64::from(name.as_bytes()[0]));
        holds.push(HoldRow { destination: one, reason: HoldReason::Paused, since: later(at), until });
    }
    bench.record(Record { now: START, holds, notices, ..Record::default() }).await;
    for limit in 1..6 {
        let (mut seen, mut place) = (String::new(), LogPlace::before(later(100)));
        loop {
            let page = bench.store.notices_before(one, START, place, limit).await.unwrap();
            let Some((last, _)) = page.last() else { break };
            place = *last;
            seen.extend(page.iter().map(|(_, notice)| notice.detail.as_str()));
        }
        assert_eq!(seen, "edcba", "{limit} at a time");
        let (mut seen, mut place) = (Vec::new(), LogPlace::before(later(100)));
        loop {
            let page = bench.store.holds_before(one, START, place, limit).await.unwrap();
            let Some((last, _)) = page.last() else { break };
            place = *last;
            seen.extend(page.iter().map(|(_, hold)| hold.until));
        }
        assert_eq!(seen, [104, 102, 101, 100, 98].map(later), "{limit} at a time");
    }
}
