//! A store with something of everything in it, and all that a store tells of what it holds.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use tidegate_core::delivery::{Delivery, End, HoldReason, Status, Withdrawn};
use tidegate_core::id::{KeyId, ReplayId, RouteId};
use tidegate_core::outcome::Outcome;
use tidegate_core::policy::Policy;
use tidegate_core::time::{Millis, Timestamp};
use tidegate_store::catalogue::{ApiKey, AuditEntry, Change, Edit, EventTypeRow, Route};
use tidegate_store::event::{Body, Message, NewEvent, NewReplay};
use tidegate_store::job::{Job, JobKind, JobState};
use tidegate_store::lane::Of;
use tidegate_store::list::{DeliveryFilter, EventFilter, PageQuery};
use tidegate_store::record::{HoldRow, LaneSave, NoticeRow, Record, Settled};
use tidegate_store::{AccountNo, DestinationNo};

use crate::accept::{external, with_key};
use crate::fixture::{Bench, ERROR, OK, START, later, new_account, new_destination, priority};
use crate::forget::replay_of;

/// When all of it has happened: into the next hour, so that one hour is over, and after a day, so that there are partitions.
pub const END: Timestamp = Timestamp::from_millis(START.as_millis() + Millis::hours(30).get());

/// Fills a store that has its accounts and destinations.
pub async fn fill(bench: &Bench) {
    ask_for(bench).await;
    old_ones(bench).await;
    publish(bench).await;
    results(bench).await;
    jobs(bench).await;
    logs_and_lanes(bench).await;
    bench.store.forget(START + Millis::hours(1), 100).await.unwrap();
}

/// What owners ask for; numbers of accounts and destinations that are gone are not given again.
async fn ask_for(bench: &Bench) {
    let key = |number: u8, account| ApiKey {
        id: KeyId::from_bits(u128::from(number) << 90 | 7),
        account: AccountNo(account),
        hash: [number; 32],
        document: format!("{{\"key\":{number}}}"),
        created_at: START,
        expires_at: (number == 1).then_some(later(5)),
    };
    let route = |number: u128, account, destination| Route {
        id: RouteId::from_bits(number),
        account: AccountNo(account),
        destination: DestinationNo(destination),
        document: "{\"a\":\"ä\"}".to_owned(),
        created_at: START,
    };
    let event_type = |account, name: &str| EventTypeRow {
        account: AccountNo(account),
        event_type: name.to_owned(),
        document: "{}".to_owned(),
        version: 1,
        updated_at: START,
    };
    let edits = vec![
        Edit::AddKey(key(1, 1)),
        Edit::AddKey(key(2, 2)),
        Edit::AddRoute(route(1, 1, 1)),
        Edit::AddRoute(route(2, 2, 3)),
        Edit::SetEventType(event_type(1, "order.*")),
        Edit::SetEventType(event_type(1, "Order.paid")),
        Edit::SetEventType(event_type(2, "order.*")),
        Edit::AddDestination(new_destination(1, 5)),
        Edit::AddAccount(new_account(3)),
    ];
    let audit = |account, actor| AuditEntry {
        account: AccountNo(account),
        at: later(3),
        actor,
        action: "route.create".to_owned(),
        subject: "rte_1".to_owned(),
        detail: "{\"from\":null}".to_owned(),
    };
    bench.store.change(Change { edits, audit: Some(audit(1, Some(KeyId::from_bits(4)))) }).await.unwrap();
    bench.deliver(1, 5, 2, START).await;
    let edits = vec![Edit::DropDestination(DestinationNo(5)), Edit::DropAccount(AccountNo(3))];
    bench.store.change(Change { edits, audit: Some(audit(2, None)) }).await.unwrap();
}

/// What retention looks at: one goes, one is young, one is open.
async fn old_ones(bench: &Bench) {
    let old = bench.deliver(1, 1, 3, START).await;
    bench.settle(1, 1, &old[..1], OK, later(10)).await;
    bench.settle(1, 1, &old[1..2], OK, START + Millis::hours(2)).await;
}

/// Events of all kinds.
async fn publish(bench: &Bench) {
    let now = START + Millis::hours(2);
    let mut events: Vec<NewEvent> = vec![
        bench.event_of(1, &[1, 2], now, |incoming| incoming.ordering_key = Some("kunde-ä".into())),
        bench.event_of(1, &[1], now, |incoming| incoming.ordering_key = Some("Kunde".into())),
        bench.event_of(1, &[2], now, |incoming| incoming.deliver_at = Some(END + Millis::hours(9))),
        bench.event_of(2, &[3, 4], now, |incoming| incoming.expires_at = Some(now + Millis::days(2))),
        bench.event_of(2, &[3], now, |incoming| incoming.expires_at = Some(START)),
        bench.event_of(2, &[3], now, |incoming| incoming.priority = priority(1)),
        bench.event_of(1, &[], now, |_| {}),
    ];
    for (event, body) in events.iter_mut().zip([
        Body::Text(Some("text/plain".into())),
        Body::JsonAs("application/cloudevents+json".into()),
        Body::Text(None),
    ]) {
        let message =
            Message { body, payload: Bytes::from_static(b"\0\xff raw"), ..(*event.message).clone() };
        event.message = Arc::new(message);
    }
    bench.accept(events, now).await;
    // Two share an external id, a day apart: the later one counts.
    bench.accept(vec![external(bench.event(1, &[1], now), "order-1", 1)], now).await;
    bench.accept(vec![external(bench.event(2, &[3], now), "order-1", 3)], now).await;
    let later = END - Millis::hours(1);
    bench.accept(vec![external(bench.event(1, &[1], later), "order-1", 2)], later).await;
    let keyed = with_key(vec![bench.event(1, &[1], later)], "key-1", 9, later);
    bench.store.accept(keyed).await.unwrap();
}

/// Ends and attempts of all kinds.
async fn results(bench: &Bench) {
    let now = END - Millis::minutes(30);
    let some = bench.deliver(1, 1, 6, now).await;
    bench.settle(1, 1, &some[..2], OK, now).await;
    bench.settle(1, 1, &some[2..3], Outcome::Gone, now).await;
    bench.settle(1, 1, &some[3..4], Outcome::Timeout, now).await;
    let mut answered = bench.settled(1, 1, &some[4], ERROR, now);
    let attempt = answered.attempt.as_mut().unwrap();
    attempt.error = Some("the body\0broke off".to_owned());
    attempt.response_headers = vec![("server".to_owned(), "x".to_owned())];
    attempt.response_body = b"\0no".to_vec();
    attempt.probe = Some(tidegate_core::gate::Probe::Throttle);
    let mut withdrawn: Delivery = some[5].clone();
    withdrawn.status = Status::Final(End::Cancelled(Withdrawn::ByRequest));
    let withdrawn = Settled {
        account: AccountNo(1),
        destination: DestinationNo(1),
        delivery: Box::new(withdrawn),
        event: None,
        attempt: None,
        epoch: None,
    };
    bench.record(Record { now, settled: vec![answered, withdrawn], ..Record::default() }).await;
}

/// A replay with its job, and jobs that are over.
async fn jobs(bench: &Bench) {
    let event = bench.event(1, &[2], END);
    let (id, original) = (event.message.id, event.deliveries[0].1.clone());
    bench.accept(vec![event], END).await;
    bench.settle(1, 2, std::slice::from_ref(&original), OK, END).await;
    let delivery = replay_of(bench, &original, END);
    let replay = NewReplay { destination: DestinationNo(2), replay_of: original.id, event: id, delivery };
    let job = |number: u128, kind, state| Job {
        id: ReplayId::from_bits(number << 80),
        account: AccountNo(1),
        kind,
        request: "{}".to_owned(),
        created_at: END,
        state,
        position: Some(original.id.sequence()),
        total: Some(3),
        done: 1,
        skipped: 1,
        finished_at: (state != JobState::Running).then_some(END),
    };
    let running = job(9, JobKind::Replay, JobState::Running);
    bench.store.accept_replays(vec![replay], Some(running), None).await.unwrap();
    bench.store.put_job(job(3, JobKind::Cancellation, JobState::Done)).await.unwrap();
    bench.store.put_job(job(5, JobKind::Replay, JobState::Stopped)).await.unwrap();
}

async fn logs_and_lanes(bench: &Bench) {
    let hold = |no, reason| HoldRow { destination: DestinationNo(no), reason, since: START, until: END };
    let notice = |no| NoticeRow {
        destination: DestinationNo(no),
        at: END,
        kind: "circuit_opened".to_owned(),
        detail: "{}".to_owned(),
    };
    let lane = |no, state: &[u8], timeouts: Option<&[u8]>| LaneSave {
        destination: DestinationNo(no),
        state: Some(state.to_vec()),
        timeouts: timeouts.map(<[u8]>::to_vec),
        in_flight: 0,
        epoch: None,
    };
    let record = Record {
        now: END,
        holds: vec![hold(1, HoldReason::QuietHours), hold(3, HoldReason::Paused)],
        notices: vec![notice(1), notice(3)],
        lanes: vec![lane(1, b"\0one", Some(b"slow\xff")), lane(3, b"three", None)],
        ..Record::default()
    };
    bench.record(record).await;
}

/// All that a store tells, as text to be compared.
pub async fn told(bench: &Bench) -> String {
    let (store, opened) = (&bench.store, bench.opened.as_ref().unwrap());
    let mut text = format!("{:#?}\n{:?}\n", store.catalogue().await.unwrap(), opened.sequence);
    for account in 1..=2 {
        account_tells(bench, AccountNo(account), &mut text).await;
    }
    for number in 1..=5 {
        let destination = DestinationNo(number);
        let attempts = store.destination_attempts(destination, None, 100).await.unwrap();
        let holds = store.holds(destination, START, END, 100).await.unwrap();
        let notices = store.notices(destination, START, END, 100).await.unwrap();
        let hours = store.hours(Of::Destination(destination), START).await.unwrap();
        let waiting = store.waiting(Of::Destination(destination));
        let refilled = bench.refill(number, &Policy::default(), START).await.refill.deliveries;
        let _ = writeln!(
            text,
            "{number}: {attempts:#?} {holds:?} {notices:?} {hours:?} {waiting:?} {refilled:#?}"
        );
    }
    for lane in store.lanes((1..=5).map(DestinationNo).collect()).await.unwrap() {
        let _ = writeln!(text, "{:?} {:?} {:?} {}", lane.destination, lane.state, lane.timeouts, lane.open);
    }
    let overdue = store.overdue(END + Millis::days(30), 100).await.unwrap();
    let _ = writeln!(text, "{overdue:?}");
    // Text in PostgreSQL has no NUL.
    text.replace("the body\\0broke off", "the body broke off")
}

async fn account_tells(bench: &Bench, account: AccountNo, text: &mut String) {
    let store = &bench.store;
    let page = PageQuery { account, before: None, limit: 1_000, oldest_first: false };
    let deliveries = store.deliveries(page, DeliveryFilter::default()).await.unwrap();
    for delivery in &deliveries.items {
        let message = store.message(delivery.delivery.id).await.unwrap();
        let attempts = store.attempts(delivery.delivery.id).await.unwrap();
        let siblings: Vec<_> = store.deliveries_of(delivery.event).await.unwrap();
        let _ = writeln!(text, "{delivery:#?} {message:?} {attempts:?} {siblings:?}");
    }
    let events = store.events(page, EventFilter::default()).await.unwrap();
    let filter = EventFilter { external_event_id: Some("order-1".into()), ..EventFilter::default() };
    let named = store.events(page, filter).await.unwrap();
    let audit = store.audit_log(account, None, 100).await.unwrap();
    let hours = store.hours(Of::Account(account), START).await.unwrap();
    let waiting = store.waiting(Of::Account(account));
    let _ = writeln!(text, "{events:#?} {named:?} {audit:?} {hours:?} {waiting:?}");
    for kind in [JobKind::Replay, JobKind::Cancellation] {
        let _ = writeln!(text, "{:?}", store.jobs(page, kind).await.unwrap());
    }
}
