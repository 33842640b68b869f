//! Results: attempt, new state and counts change together; what is final stays so.

use tidegate_core::delivery::{Delivery, End, OwnTimes, Priority, Status, Withdrawn};
use tidegate_core::outcome::Outcome;
use tidegate_core::pattern::EventType;
use tidegate_core::policy::Policy;
use tidegate_core::time::{Millis, Timestamp};
use tidegate_store::catalogue::AuditEntry;
use tidegate_store::lane::Of;
use tidegate_store::record::{LaneSave, NoticeRow, Record, Settled};
use tidegate_store::stats::Tally;
use tidegate_store::{AccountNo, DestinationNo};

use crate::fixture::{Bench, ERROR, OK, START, later};
use crate::place::Engine;

on_both! {
    a_failed_one_waits_for_its_retry_and_then_has_its_place_again;
    what_is_final_stays_so_but_its_attempt_is_written_down;
    a_result_that_brings_its_event_counts_once;
    attempts_keep_what_was_answered_by_failures;
    what_happened_is_counted_by_the_hour;
    what_is_stale_or_too_old_is_found;
    a_survey_tells_of_each_its_oldest_and_what_happened;
    a_row_that_cannot_be_stored_costs_nothing_but_itself;
    a_record_of_which_nothing_can_be_stored_ends_all_the_same;
    a_deed_and_its_line_in_the_audit_log_are_one_commit;
}

async fn a_failed_one_waits_for_its_retry_and_then_has_its_place_again(engine: Engine) {
    let bench = Bench::new(engine).await;
    let deliveries = bench.deliver(1, 1, 3, START).await;
    let retried = bench.settle(1, 1, &deliveries[..1], ERROR, later(10)).await.remove(0);
    let Status::RetryScheduled { at, .. } = retried.status else { panic!("{:?}", retried.status) };
    let refilled = bench.refill(1, &Policy::default(), later(11)).await.refill.deliveries;
    assert!(refilled.contains(&retried), "it waits for its own time");
    let due = bench.refill(1, &Policy::default(), at).await.refill.deliveries;
    assert_eq!(due[0].id, retried.id, "the first in its place");
    assert_eq!((due[0].status, due[0].attempts_made), (Status::Queued, 1));
    let stored = bench.store.delivery(AccountNo(1), retried.id).await.unwrap().unwrap();
    assert_eq!(stored.delivery, due[0]);
}

async fn what_is_final_stays_so_but_its_attempt_is_written_down(engine: Engine) {
    let bench = Bench::new(engine).await;
    let delivery = bench.deliver(1, 1, 1, START).await.remove(0);
    let mut withdrawn = delivery.clone();
    withdrawn.status = Status::Final(End::Cancelled(Withdrawn::ByRequest));
    let settled = Settled {
        account: AccountNo(1),
        destination: DestinationNo(1),
        delivery: Box::new(withdrawn.clone()),
        event: None,
        attempt: None,
        epoch: None,
    };
    bench.record(Record { now: later(5), settled: vec![settled], ..Record::default() }).await;
    bench.settle(1, 1, std::slice::from_ref(&delivery), OK, later(9)).await;

    let stored = bench.store.delivery(AccountNo(1), delivery.id).await.unwrap().unwrap();
    assert_eq!((stored.delivery.status, stored.finished_at), (withdrawn.status, Some(later(5))));
    let attempts = bench.store.attempts(delivery.id).await.unwrap();
    assert_eq!(attempts.len(), 1);
    assert_eq!(bench.store.waiting(Of::Destination(DestinationNo(1))).deliveries, 0);
    assert_eq!(bench.store.waiting(Of::Destination(DestinationNo(1))).bytes, 0);
}

/// The engine knows the event of what it has sent; the store need not look for it, and must not take its word that it is open.
async fn a_result_that_brings_its_event_counts_once(engine: Engine) {
    let bench = Bench::new(engine).await;
    let event = bench.event(1, &[1], START);
    let brought = Some((event.message.id, event.message.payload.len()));
    let delivery = event.deliveries[0].1.clone();
    bench.accept(vec![event], START).await;
    bench.deliver(1, 1, 1, START).await;
    let one = bench.store.waiting(Of::Destination(DestinationNo(1))).bytes / 2;
    for again in [later(5), later(9)] {
        let settled = Settled { event: brought, ..bench.settled(1, 1, &delivery, OK, again) };
        bench.record(Record { now: again, settled: vec![settled], ..Record::default() }).await;
        let waiting = bench.store.waiting(Of::Destination(DestinationNo(1)));
        assert_eq!((waiting.deliveries, waiting.bytes), (1, one));
    }
    let stored = bench.store.delivery(AccountNo(1), delivery.id).await.unwrap().unwrap();
    assert_eq!(stored.finished_at, Some(later(5)));
}

async fn attempts_keep_what_was_answered_by_failures(engine: Engine) {
    let bench = Bench::new(engine).await;
    let delivery = bench.deliver(1, 1, 1, START).await.remove(0);
    bench.deliver(1, 2, 1, START).await;
    let mut first = bench.settled(1, 1, &delivery, ERROR, later(10));
    let retried = (*first.delivery).clone();
    let attempt = first.attempt.as_mut().unwrap();
    attempt.error = Some("the body broke off".to_owned());
    attempt.response_headers = vec![("server".to_owned(), "x".to_owned())];
    attempt.response_body = b"\0no".to_vec();
    let expected = format!("{attempt:?}");
    bench.record(Record { now: later(10), settled: vec![first], ..Record::default() }).await;
    bench.settle(1, 1, &[retried], Outcome::Timeout, later(20)).await;

    let attempts = bench.store.attempts(delivery.id).await.unwrap();
    assert_eq!(attempts.iter().map(|attempt| attempt.number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(format!("{:?}", attempts[0]), expected);
    let page = bench.store.destination_attempts(DestinationNo(1), None, 1).await.unwrap();
    assert_eq!((page.items[0].number, page.items[0].outcome), (2, Outcome::Timeout));
    let rest = bench.store.destination_attempts(DestinationNo(1), page.next, 5).await.unwrap();
    assert_eq!((rest.items.len(), rest.items[0].number, rest.next), (1, 1, None));
    let none = bench.store.destination_attempts(DestinationNo(2), None, 5).await.unwrap();
    assert_eq!((none.items.len(), none.next), (0, None));
}

async fn what_happened_is_counted_by_the_hour(engine: Engine) {
    let bench = Bench::new(engine).await;
    let hour = Timestamp::from_millis(START.as_millis() / 3_600_000 * 3_600_000);
    let next = hour + Millis::hours(1);
    let deliveries = bench.deliver(1, 1, 3, hour).await;
    bench.deliver(1, 2, 1, hour).await;
    bench.settle(1, 1, &deliveries[..1], OK, hour + Millis::minutes(5)).await;
    bench.settle(1, 1, &deliveries[1..2], Outcome::Timeout, next).await;
    bench.settle(1, 1, &deliveries[2..], Outcome::Gone, next).await;
    // The clock is set back: what happens then belongs to an hour that is over.
    bench.deliver(1, 1, 1, hour).await;

    let before = Tally { accepted: 4, delivered: 1, attempts: 1, successes: 1, ..Tally::ZERO };
    let after = Tally { dead_letter: 1, attempts: 2, timeouts: 1, ..Tally::ZERO };
    let bench = bench.reopen(false).await;
    let hours = bench.store.hours(Of::Destination(DestinationNo(1)), hour).await.unwrap();
    assert_eq!(
        hours.iter().map(|hour| (hour.start, hour.tally)).collect::<Vec<_>>(),
        [(hour, before), (next, after)]
    );
    let account = bench.store.hours(Of::Account(AccountNo(1)), hour).await.unwrap();
    assert_eq!(account[0].tally, Tally { accepted: 5, ..before });
    assert_eq!(bench.store.hours(Of::Account(AccountNo(1)), next).await.unwrap().len(), 1);
    assert_eq!(bench.store.hours(Of::Account(AccountNo(2)), hour).await.unwrap(), []);
}

async fn what_is_stale_or_too_old_is_found(engine: Engine) {
    let bench = Bench::new(engine).await;
    let stale = bench.event_of(1, &[1], START, |incoming| incoming.expires_at = Some(later(60_000)));
    let stale_id = stale.deliveries[0].1.id;
    let later_one = bench.event_of(1, &[2], START, |incoming| incoming.expires_at = Some(later(90_000)));
    bench.accept(vec![stale, later_one, bench.event(2, &[3], START)], START).await;
    assert!(bench.store.overdue(later(59_999), 10).await.unwrap().is_empty());
    let found = bench.store.overdue(later(60_000), 10).await.unwrap();
    assert_eq!(found.iter().map(|overdue| overdue.delivery.id).collect::<Vec<_>>(), [stale_id]);
    assert_eq!(found[0].destination, DestinationNo(1));

    let ended = async |at, limit| -> Vec<u32> {
        let found = bench.store.overdue(at, limit).await.unwrap();
        found.iter().map(|overdue| overdue.destination.0).collect()
    };
    let old_at = START + Millis::days(7);
    assert_eq!(
        ended(old_at - Millis::new(1), 10).await,
        [1, 2],
        "the third has no expiry, and is not too old"
    );
    assert_eq!(ended(old_at, 10).await, [1, 2, 3], "by the time of their ends");
    assert_eq!(ended(old_at, 2).await, [1, 2]);
    let asked = [3, 4, 1].map(DestinationNo).to_vec();
    let oldest = bench.store.survey(asked, START).await.unwrap();
    assert_eq!(
        oldest.iter().map(|one| one.oldest_open).collect::<Vec<_>>(),
        [Some(START), None, Some(START)]
    );
}

async fn a_survey_tells_of_each_its_oldest_and_what_happened(engine: Engine) {
    let bench = Bench::new(engine).await;
    // One of several priorities and types, with and without a key; the oldest is neither the first of an index nor the last.
    let of = |destination: u32, ms: i64, name: &'static str, priority: u64, key: Option<&'static str>| {
        bench.event_of(1, &[destination], later(ms), |incoming| {
            incoming.event_type = EventType::parse(name).unwrap();
            incoming.priority = Priority::new(priority).unwrap();
            incoming.ordering_key = key.map(Into::into);
        })
    };
    for (ms, name, priority, key) in
        [(5_000, "a", 1, None), (3_000, "b", 2, Some("k")), (4_000, "a", 2, Some("l")), (6_000, "c", 3, None)]
    {
        bench.accept(vec![of(1, ms, name, priority, key)], later(ms)).await;
    }
    // One waits for its retry before others came; one for its `deliver_at`, which does not make it old.
    let tried = bench.deliver(1, 2, 1, later(1_000)).await;
    bench.settle(1, 2, &tried, ERROR, later(1_010)).await;
    bench.deliver(1, 2, 1, later(7_000)).await;
    let scheduled = bench.event_of(1, &[3], later(500), |incoming| incoming.deliver_at = Some(later(90_000)));
    bench.accept(vec![scheduled], later(500)).await;
    let done = bench.deliver(2, 4, 2, later(2_000)).await;
    bench.settle(2, 4, &done, OK, later(2_010)).await;

    let asked = [4, 3, 2, 1, 9].map(DestinationNo).to_vec();
    let surveyed = bench.store.survey(asked, START).await.unwrap();
    let oldest: Vec<_> = surveyed.iter().map(|one| one.oldest_open).collect();
    assert_eq!(oldest, [None, None, Some(later(1_000)), Some(later(3_000)), None]);
    let done = Tally { accepted: 2, delivered: 2, attempts: 2, successes: 2, ..Tally::ZERO };
    assert_eq!((surveyed[0].tally, surveyed[4].tally), (done, Tally::ZERO));
    assert_eq!((surveyed[2].tally.attempts, surveyed[2].tally.successes), (1, 0));
    let flights = [
        (DestinationNo(1), vec![]),
        (DestinationNo(2), vec![tried[0].id.sequence()]),
        (DestinationNo(9), vec![]),
    ];
    let queued = bench.store.oldest_queued(flights.into()).await.unwrap();
    let waits = [(DestinationNo(1), later(3_000)), (DestinationNo(2), later(7_000))];
    assert_eq!(queued, waits.into(), "what is in flight does not wait");
    let own = bench
        .store
        .waiting_for_own_time([1, 2, 3, 9].map(DestinationNo).to_vec(), later(7_000))
        .await
        .unwrap();
    let times = |scheduled, retries| OwnTimes { scheduled, retries };
    assert_eq!(own, [times(0, 0), times(0, 1), times(1, 0), times(0, 0)]);
    let later_on = bench.store.waiting_for_own_time(vec![DestinationNo(3)], later(90_000)).await.unwrap();
    assert_eq!(later_on, [times(0, 0)], "what is due waits no more");
    let next = bench.store.survey(vec![DestinationNo(4)], START + Millis::hours(2)).await.unwrap();
    assert_eq!(next[0].tally, Tally::ZERO, "what was before is left out");
}

/// More attempts counted than made: the schema has no such delivery.
fn impossible(bench: &Bench, delivery: &Delivery, now: Timestamp) -> Settled {
    let mut settled = bench.settled(1, 1, delivery, OK, now);
    settled.delivery.attempts_used = settled.delivery.attempts_made + 1;
    settled
}

fn lane(destination: u32) -> LaneSave {
    LaneSave {
        destination: DestinationNo(destination),
        state: Some(b"state".to_vec()),
        timeouts: None,
        in_flight: 0,
        epoch: None,
    }
}

/// Goal: a record whose rows are of many destinations loses none but those that cannot be stored, and ends.
async fn a_row_that_cannot_be_stored_costs_nothing_but_itself(engine: Engine) {
    let bench = Bench::new(engine).await;
    let deliveries = bench.deliver(1, 1, 9, START).await;
    let other = bench.deliver(2, 3, 1, START).await.remove(0);
    let now = later(5);
    let result = |place: usize| match place {
        2 | 7 => impossible(&bench, &deliveries[place], now),
        _ => bench.settled(1, 1, &deliveries[place], OK, now),
    };
    let mut settled: Vec<Settled> = (0..9).map(result).collect();
    settled.push(bench.settled(2, 3, &other, OK, now));
    let notice = |destination| NoticeRow {
        destination: DestinationNo(destination),
        at: now,
        kind: "throttled".to_owned(),
        detail: String::new(),
    };
    let (lanes, notices) = (vec![lane(1), lane(3)], vec![notice(1), notice(3)]);
    bench.record(Record { now, settled, lanes, notices, ..Record::default() }).await;

    assert_eq!(bench.store.status().refused, 2);
    assert_eq!(bench.commits.lock().unwrap().iter().map(|commit| commit.refused).sum::<usize>(), 2);
    for (place, delivery) in deliveries.iter().enumerate() {
        let stored = bench.store.delivery(AccountNo(1), delivery.id).await.unwrap().unwrap();
        assert_eq!(stored.delivery.status.is_final(), ![2, 7].contains(&place), "{place}");
        let attempts = bench.store.attempts(delivery.id).await.unwrap();
        assert_eq!(attempts.len(), usize::from(![2, 7].contains(&place)), "{place}");
    }
    let stored = bench.store.delivery(AccountNo(2), other.id).await.unwrap().unwrap();
    assert!(stored.delivery.status.is_final());
    assert_eq!(bench.store.waiting(Of::Destination(DestinationNo(1))).deliveries, 2);
    let lanes = bench.store.lanes(vec![DestinationNo(1), DestinationNo(3)]).await.unwrap();
    assert!(lanes.iter().all(|lane| lane.state.as_deref() == Some(b"state")), "{lanes:?}");
    for destination in [1, 3] {
        let notices = bench.store.notices(DestinationNo(destination), START, later(9), 9).await.unwrap();
        assert_eq!(notices.len(), 1);
    }
    bench.settle(1, 1, &deliveries[2..3], OK, later(6)).await;
    assert_eq!(bench.store.waiting(Of::Destination(DestinationNo(1))).deliveries, 1);
}

async fn a_record_of_which_nothing_can_be_stored_ends_all_the_same(engine: Engine) {
    let bench = Bench::new(engine).await;
    let deliveries = bench.deliver(1, 1, 2, START).await;
    for some in [&deliveries[..1], &deliveries[..]] {
        let settled = some.iter().map(|delivery| impossible(&bench, delivery, later(5))).collect();
        bench.record(Record { now: later(5), settled, ..Record::default() }).await;
    }
    assert_eq!(bench.store.status().refused, 3);
    let tickets: Vec<u64> = bench.commits.lock().unwrap().iter().flat_map(|c| c.recorded.clone()).collect();
    assert_eq!(tickets.len(), 2, "each once: {tickets:?}");
    assert_eq!(bench.store.waiting(Of::Destination(DestinationNo(1))).deliveries, 2);
}

fn line(account: u32, action: &str) -> AuditEntry {
    AuditEntry {
        account: AccountNo(account),
        at: START,
        actor: None,
        action: action.to_owned(),
        subject: "it".to_owned(),
        detail: "{}".to_owned(),
    }
}

/// Goal: who asked for what is in the log exactly where that is in, also where other rows of the record are refused.
async fn a_deed_and_its_line_in_the_audit_log_are_one_commit(engine: Engine) {
    let bench = Bench::new(engine).await;
    let actions = async |account| {
        let found = bench.store.audit_log(AccountNo(account), None, 9).await.unwrap();
        found.items.into_iter().map(|(_, entry)| entry.action).collect::<Vec<_>>()
    };
    let audit = vec![line(1, "pause"), line(2, "resume")];
    let record = Record { now: later(1), lanes: vec![lane(1), lane(3)], audit, ..Record::default() };
    bench.record(record).await;
    assert_eq!((actions(1).await, actions(2).await), (vec!["pause".to_owned()], vec!["resume".to_owned()]));
    let stored = bench.store.lanes(vec![DestinationNo(1)]).await.unwrap();
    assert_eq!(stored[0].state.as_deref(), Some(&b"state"[..]));

    let deliveries = bench.deliver(1, 1, 2, START).await;
    let good = bench.settled(1, 1, &deliveries[0], OK, later(5));
    let settled = vec![good, impossible(&bench, &deliveries[1], later(5))];
    let record = Record { now: later(5), settled, audit: vec![line(1, "cancel")], ..Record::default() };
    bench.record(record).await;
    assert_eq!((actions(1).await, bench.store.status().refused), (vec!["cancel".into(), "pause".into()], 1));
    let stored = bench.store.delivery(AccountNo(1), deliveries[0].id).await.unwrap().unwrap();
    assert!(stored.delivery.status.is_final());

    bench.store.accept_replays(Vec::new(), None, Some(line(2, "replay"))).await.unwrap();
    assert_eq!(actions(2).await, ["replay", "resume"]);
}
