//! What the store does when the disk does not do its part.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::delivery::Priority;
use tidegate_core::draw::Draw;
use tidegate_core::id::{AccountId, DeliveryId, DestinationId, EventId};
use tidegate_core::lane::LastStop;
use tidegate_core::pattern::EventType;
use tidegate_core::policy::Policy;
use tidegate_core::sequence::Sequence;
use tidegate_core::settle::{self, Incoming, Terms};
use tidegate_core::time::Timestamp;

use super::{Opened, Options, Pages};
use crate::Store;
use crate::catalogue::{Account, Change, Destination, Edit};
use crate::event::{Accept, Accepted, Body, Message, NewEvent};
use crate::lane::Of;
use crate::record::{LaneSave, NoticeRow, Record};
use crate::{AccountNo, DestinationNo, StoreError};

const START: Timestamp = Timestamp::from_millis(1_790_000_000_000);

struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

type Tickets = Arc<Mutex<Vec<u64>>>;

fn open(directory: &Directory, tickets: &Tickets) -> Opened {
    let tickets = Arc::clone(tickets);
    let on_commit =
        Box::new(move |commit: crate::record::Commit| tickets.lock().unwrap().extend(commit.recorded));
    Store::open(Options { data_dir: directory.0.clone(), readers: 1, on_commit }).unwrap()
}

/// The name of a directory that is not there yet.
fn fresh_directory() -> Directory {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Directory(std::env::temp_dir().join(format!("tidegate-disk-{}-{number}", std::process::id())))
}

/// An open store with one destination.
async fn new() -> (Store, Tickets, Directory) {
    let (directory, tickets) = (fresh_directory(), Tickets::default());
    let store = open(&directory, &tickets).store;
    let account = Account {
        no: AccountNo(0),
        id: AccountId::from_bits(1),
        external_id: None,
        document: String::new(),
        settings: String::new(),
        version: 1,
        created_at: START,
    };
    let destination = Destination {
        no: DestinationNo(0),
        id: DestinationId::from_bits(1),
        account: AccountNo(1),
        external_id: None,
        document: String::new(),
        secrets: Vec::new(),
        version: 1,
        created_at: START,
        updated_at: START,
    };
    let edits = vec![Edit::AddAccount(account), Edit::AddDestination(destination)];
    store.change(Change { edits, audit: None }).await.unwrap();
    (store, tickets, directory)
}

/// An event of some size for the one destination.
fn event(number: u64, bytes: usize) -> Accept {
    let number = 10 * number;
    let id = DeliveryId::numbered(Sequence::from_stored(number + 1), Draw(number));
    let incoming = Incoming::new(id, number + 1, EventType::parse("a.b").unwrap());
    let delivery = settle::accept(START, incoming, &Policy::default(), &Terms::default());
    let message = Message {
        id: EventId::numbered(Sequence::from_stored(number), Draw(number)),
        event_type: EventType::parse("a.b").unwrap(),
        accepted_at: START,
        payload: Bytes::from(vec![b'x'; bytes]),
        body: Body::Json,
    };
    let event = NewEvent {
        account: AccountNo(1),
        message: Arc::new(message),
        occurred_at: START,
        expires_at: None,
        deliver_at: None,
        ordering_key: None,
        priority: Priority::NORMAL,
        external_id: None,
        deliveries: vec![(DestinationNo(1), delivery)],
    };
    Accept { now: START, events: vec![event], idempotency: None, outbox: None }
}

fn open_deliveries(store: &Store) -> u64 {
    store.waiting(Of::Destination(DestinationNo(1))).deliveries
}

fn record(ticket: u64, bytes: usize) -> Record {
    let notice = NoticeRow {
        destination: DestinationNo(1),
        at: START,
        kind: "throttled".to_owned(),
        detail: "x".repeat(bytes),
    };
    let lane = LaneSave {
        in_flight: 0,
        destination: DestinationNo(1),
        state: Some(ticket.to_be_bytes().to_vec()),
        timeouts: None,
        epoch: None,
    };
    Record { now: START, ticket, notices: vec![notice], lanes: vec![lane], ..Record::default() }
}

async fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if is_so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("not within ten seconds");
}

/// The disk holds no page more than there are; 0: it has room again.
fn max_pages(store: &Store, pages: u32) {
    store.inner.shared.max_pages.store(pages, Ordering::Relaxed);
}

#[tokio::test]
async fn on_a_full_disk_records_wait_in_order_and_all_goes_on_by_itself() {
    let (store, tickets, directory) = new().await;
    assert!(matches!(store.accept(event(1, 100)).await, Ok(Accepted::Stored(_))));
    max_pages(&store, 1);
    assert!(matches!(store.accept(event(2, 1 << 20)).await, Err(StoreError::Full)));
    assert!(store.status().waits);
    (1..=3).for_each(|ticket| store.record(record(ticket, 100_000)));
    assert!(matches!(store.accept(event(3, 1 << 20)).await, Err(StoreError::Full)), "at once");
    assert!(tickets.lock().unwrap().is_empty());

    // Room again: nobody says so, the next try finds it.
    max_pages(&store, 0);
    until(|| *tickets.lock().unwrap() == [1, 2, 3]).await;
    assert!(!store.status().waits);
    assert!(matches!(store.accept(event(4, 1 << 20)).await, Ok(Accepted::Stored(_))));
    assert_eq!(store.notices(DestinationNo(1), START, Timestamp::MAX, 9).await.unwrap().len(), 3);
    assert_eq!(open_deliveries(&store), 2, "nothing is counted of what was refused");
    store.close().await;
    let opened = open(&directory, &tickets);
    assert_eq!((opened.last_stop, opened.lanes[0].open), (LastStop::Clean, 2));
    assert_eq!(opened.lanes[0].state.as_deref(), Some(&3_u64.to_be_bytes()[..]));
}

#[tokio::test]
async fn a_full_disk_at_the_end_is_no_clean_stop() {
    let (store, tickets, directory) = new().await;
    max_pages(&store, 1);
    store.record(record(1, 1 << 20));
    until(|| store.status().waits).await;
    store.close().await;
    assert!(tickets.lock().unwrap().is_empty());
    assert_eq!(open(&directory, &tickets).last_stop, LastStop::Crash);
}

#[tokio::test]
async fn a_fault_of_one_request_is_no_fault_of_the_others() {
    let (store, _, _directory) = new().await;
    store.accept(event(7, 10)).await.unwrap();
    let requests = [event(8, 10), event(7, 10), event(9, 10)].map(|accept| {
        let store = store.clone();
        tokio::spawn(async move { store.accept(accept).await })
    });
    let mut refused = 0;
    for request in requests {
        match request.await.unwrap() {
            Ok(Accepted::Stored(_)) => {}
            Err(StoreError::Refused(_)) => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(refused, 1, "the number was given twice");
    assert_eq!(open_deliveries(&store), 3);
    assert!(!store.status().broken);
}

#[tokio::test]
async fn a_file_that_was_taken_away_stops_everything() {
    let (store, _, directory) = new().await;
    let file = directory.0.join("tidegate.db");
    std::fs::rename(&file, directory.0.join("elsewhere.db")).unwrap();
    let waited = tokio::time::timeout(Duration::from_secs(10), store.broken()).await.unwrap();
    assert!(waited.contains("was removed or replaced"), "{waited}");
    assert!(matches!(store.accept(event(1, 10)).await, Err(StoreError::Broken(_))));
    assert!(store.status().broken);
    store.close().await;
    assert!(!file.exists(), "nothing is made anew in its place");
}

#[tokio::test]
async fn a_store_that_is_gone_or_empty_is_missed_and_not_made_anew() {
    let (store, tickets, directory) = new().await;
    let there = super::inspect(&directory.0).unwrap();
    assert!(there.in_use && there.contents.is_some(), "{there:?}");
    store.close().await;
    drop(store);
    let there = super::inspect(&directory.0).unwrap();
    assert!(!there.in_use && there.contents.is_some_and(|contents| contents.pages == Pages::Whole));
    let (file, aside) = (directory.0.join("tidegate.db"), directory.0.join("aside"));
    std::fs::rename(&file, &aside).unwrap();
    let refused = || {
        let options = Options { data_dir: directory.0.clone(), readers: 1, on_commit: Box::new(|_| {}) };
        let (opened, seen) = (Store::open(options).err(), super::inspect(&directory.0).err());
        for error in [opened, seen] {
            let text = error.expect("it is missed").to_string();
            assert!(text.contains("is missing or empty") && text.contains("tidegate.made"), "{text}");
        }
    };
    refused();
    assert!(!file.exists());
    std::fs::write(&file, b"").unwrap();
    refused();
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 0);
    std::fs::rename(&aside, &file).unwrap();
    assert_eq!(open(&directory, &tickets).last_stop, LastStop::Clean, "it was left as it was");
}

/// The names of what is in a directory.
fn names(directory: &Directory) -> std::collections::BTreeSet<std::ffi::OsString> {
    let entries = std::fs::read_dir(&directory.0).unwrap();
    entries.map(|entry| entry.unwrap().file_name()).collect()
}

/// Goal: whatever a start refuses is seen from outside, and looking leaves no trace.
/// Method: one store, damaged in several ways, looked at and opened each time.
#[tokio::test]
async fn what_a_start_would_refuse_is_seen_from_outside() {
    let (store, tickets, directory) = new().await;
    for number in 1..200 {
        store.accept(event(number, 400)).await.unwrap();
    }
    store.close().await;
    drop(store);
    let file = directory.0.join("tidegate.db");
    let whole = std::fs::read(&file).unwrap();
    let look = || {
        let before = names(&directory);
        let seen = super::inspect(&directory.0);
        assert_eq!(names(&directory), before, "nothing is left beside it");
        seen
    };
    assert!(
        look()
            .unwrap()
            .contents
            .is_some_and(|contents| contents.pages == Pages::Whole && contents.sealed.is_some())
    );
    let random: Vec<u8> = (0_u8..251).map(|byte| byte.wrapping_mul(37)).cycle().take(whole.len()).collect();
    let mut newer = whole.clone();
    newer[60..64].copy_from_slice(&99_u32.to_be_bytes());
    let mut foreign = whole.clone();
    foreign[68..72].copy_from_slice(&7_u32.to_be_bytes());
    let mut holed = whole.clone();
    holed[8_192..].fill(0);
    for damaged in [&whole[..whole.len() / 2], &random, &newer, &foreign, &holed] {
        std::fs::write(&file, damaged).unwrap();
        let seen = look().err().map(|error| error.to_string());
        let options = Options { data_dir: directory.0.clone(), readers: 1, on_commit: Box::new(|_| {}) };
        let opened = Store::open(options).err().map(|error| error.to_string());
        assert!(seen.is_some() && opened.is_some(), "{seen:?}, {opened:?}");
        assert_eq!(std::fs::read(&file).unwrap(), damaged, "not touched");
        let _ = std::fs::remove_file(directory.0.join("tidegate.db-shm"));
        let _ = std::fs::remove_file(directory.0.join("tidegate.db-wal"));
    }
    std::fs::write(&file, &whole).unwrap();
    look().unwrap();
    assert_eq!(open(&directory, &tickets).last_stop, LastStop::Clean);
}

/// Goal: of a store with a hole, whoever looks says rightly whether a server starts with it.
/// Method: a hole at every page in turn.
#[tokio::test]
async fn a_hole_that_no_start_comes_by_is_told_apart() {
    let (store, tickets, directory) = new().await;
    for number in 1..200 {
        store.accept(event(number, 400)).await.unwrap();
    }
    store.close().await;
    drop(store);
    let file = directory.0.join("tidegate.db");
    let whole = std::fs::read(&file).unwrap();
    let (mut starts, mut refused) = (0, 0);
    for hole in (4_096..whole.len()).step_by(4_096) {
        let mut holed = whole.clone();
        holed[hole..hole + 4_096].fill(0xff);
        std::fs::write(&file, &holed).unwrap();
        let seen = super::inspect(&directory.0).map(|seen| seen.contents.map(|contents| contents.pages));
        let on_commit = Box::new(|_| {});
        let opened = Store::open(Options { data_dir: directory.0.clone(), readers: 1, on_commit });
        match (seen, opened) {
            (Ok(Some(Pages::Damaged(_))), Ok(opened)) => {
                starts += 1;
                opened.store.close().await;
            }
            (Err(_), Err(_)) => refused += 1,
            (seen, opened) => panic!("page {}: {seen:?}, {:?}", hole / 4_096, opened.err()),
        }
        for end in ["-shm", "-wal"] {
            let _ = std::fs::remove_file(directory.0.join(format!("tidegate.db{end}")));
        }
    }
    assert!(starts > 0 && refused > 0, "{starts} start, {refused} do not");
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(open(&directory, &tickets).last_stop, LastStop::Clean);
}

/// Goal: what a crash has left can be looked at, with what is only in the log, and the next start finds it as it was.
/// Method: the files of a store that runs, copied.
#[tokio::test]
async fn what_a_crash_has_left_is_looked_at_with_its_log() {
    let (store, tickets, directory) = new().await;
    store.accept(event(1, 400)).await.unwrap();
    let crashed = fresh_directory();
    std::fs::create_dir_all(&crashed.0).unwrap();
    for name in ["tidegate.db", "tidegate.db-wal", "tidegate.lock", "tidegate.made"] {
        std::fs::copy(directory.0.join(name), crashed.0.join(name)).unwrap();
    }
    let log = crashed.0.join("tidegate.db-wal");
    let length = std::fs::metadata(&log).unwrap().len();
    let seen = super::inspect(&crashed.0).unwrap();
    assert!(
        !seen.in_use && seen.contents.is_some_and(|contents| contents.pages == Pages::Whole),
        "all is in the log"
    );
    assert_eq!(std::fs::metadata(&log).unwrap().len(), length, "the log is left for the start");
    let opened = open(&crashed, &tickets);
    assert_eq!((opened.last_stop, opened.lanes[0].open), (LastStop::Crash, 1));
}

/// Goal: who looks at a directory keeps no server from starting, but lets none start on what it reads.
#[tokio::test]
async fn a_start_waits_for_those_who_only_look() {
    let (store, tickets, directory) = new().await;
    store.close().await;
    drop(store);
    let mut looking = Some(super::lock::look(&directory.0));
    let started = super::lock::take_after(&directory.0, || drop(looking.take()));
    assert!(started.is_ok() && looking.is_none(), "it waited, and went on");
    drop(started);
    let opened = open(&directory, &tickets);
    let second = super::lock::take_after(&directory.0, || panic!("one that runs is not waited for"));
    assert!(matches!(second, Err(StoreError::InUse(_))));
    drop(opened);
}

#[tokio::test]
async fn a_newer_schema_is_refused_and_not_touched() {
    let (store, tickets, directory) = new().await;
    store.close().await;
    drop(store);
    let file = directory.0.join("tidegate.db");
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    connection.close().unwrap();
    let on_commit = Box::new(|_| {});
    let newer = Store::open(Options { data_dir: directory.0.clone(), readers: 1, on_commit }).err();
    assert!(matches!(newer, Some(StoreError::Newer { found: 99, known: 1 })));
    let connection = rusqlite::Connection::open(&file).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    connection.close().unwrap();
    assert_eq!(open(&directory, &tickets).last_stop, LastStop::Clean, "it was left as it was");
}

#[tokio::test]
async fn a_writer_that_panics_leaves_nobody_waiting() {
    let (store, _, directory) = new().await;
    store.close().await;
    drop(store);
    let on_commit =
        Box::new(|commit: crate::record::Commit| assert!(commit.accepted.is_empty(), "on purpose"));
    let opened = Store::open(Options { data_dir: directory.0.clone(), readers: 1, on_commit }).unwrap();
    let store = opened.store;
    assert!(matches!(store.accept(event(1, 10)).await, Err(StoreError::Broken(_))));
    assert!(matches!(store.accept(event(2, 10)).await, Err(StoreError::Broken(_))));
    assert!(store.broken().await.contains("panic"));
}

/// Retention leaves nothing behind in the lists of destinations, where nobody would see it but the disk.
#[tokio::test]
async fn what_is_forgotten_is_taken_out_of_every_table() {
    let (store, tickets, directory) = new().await;
    for wave in 0..6 {
        let events: Vec<NewEvent> =
            (0..1_000).flat_map(|number| event(wave * 1_000 + number + 1, 1).events).collect();
        let settled = events.iter().map(|event| {
            let (destination, mut delivery) = event.deliveries[0].clone();
            let outcome = tidegate_core::outcome::Outcome::Gone;
            settle::settle(START, &mut delivery, &Policy::default(), outcome, Draw(0));
            let number = delivery.id.sequence().get() + 1;
            let attempt = crate::delivery::StoredAttempt {
                id: tidegate_core::id::AttemptId::numbered(Sequence::from_stored(number), Draw(0)),
                delivery: delivery.id,
                destination,
                number: 1,
                started_at: START,
                response_time: tidegate_core::time::Millis::new(1),
                timeout: tidegate_core::time::Millis::new(1),
                outcome,
                error: Some("gone".to_owned()),
                response_headers: Vec::new(),
                response_body: Vec::new(),
                probe: None,
            };
            let (delivery, attempt) = (Box::new(delivery), Some(attempt));
            crate::record::Settled {
                account: AccountNo(1),
                destination,
                delivery,
                event: None,
                attempt,
                epoch: None,
            }
        });
        let settled = settled.collect();
        store.accept(Accept { now: START, events, idempotency: None, outbox: None }).await.unwrap();
        store.record(Record { now: START, ticket: wave, settled, ..Record::default() });
    }
    until(|| tickets.lock().unwrap().len() == 6).await;
    let connection = rusqlite::Connection::open(directory.0.join("tidegate.db")).unwrap();
    let rows = |table: &str| -> i64 {
        connection.query_row(&format!("select count(*) from {table}"), (), |row| row.get(0)).unwrap()
    };
    assert!(rows("deliveries_filed") > 2_000 && rows("attempts_filed") > 2_000);
    let after = START + tidegate_core::time::Millis::new(1);
    while store.forget(after, 1_000).await.unwrap() > 0 {}
    for table in ["events", "deliveries", "attempts", "answers", "deliveries_filed", "attempts_filed"] {
        assert_eq!(rows(table), 0, "{table}");
    }
    store.close().await;
}

/// Goal: a reader that comes upon damage stops everything, as the writer does: what else is damaged nobody knows.
/// Method: pages of payloads between the oldest and the newest, which no start reads, hold something else.
#[tokio::test]
async fn damage_that_a_reader_finds_stops_everything() {
    const PAGE: usize = 4_096;
    let (store, tickets, directory) = new().await;
    for number in 1..50 {
        store.accept(event(number, 1_000)).await.unwrap();
    }
    store.close().await;
    drop(store);
    let file = directory.0.join("tidegate.db");
    let mut pages = std::fs::read(&file).unwrap();
    let of_payloads =
        |page: &&mut [u8]| page.windows(900).any(|bytes| bytes.iter().all(|byte| *byte == b'x'));
    pages.chunks_mut(PAGE).filter(of_payloads).skip(2).take(3).for_each(|page| page.fill(0xff));
    std::fs::write(&file, &pages).unwrap();

    let store = open(&directory, &tickets).store;
    store.accept(event(60, 100)).await.unwrap();
    let delivery = DeliveryId::numbered(Sequence::from_stored(101), Draw(100));
    let found = store.message(delivery).await;
    assert!(matches!(found, Err(StoreError::Broken(_))), "{found:?}");
    let why = tokio::time::timeout(Duration::from_secs(10), store.broken()).await.expect("everybody is told");
    assert!(why.contains("malformed"), "{why}");
    assert!(store.status().broken);
    assert!(matches!(store.accept(event(61, 10)).await, Err(StoreError::Broken(_))), "nothing is accepted");
    store.close().await;
}
