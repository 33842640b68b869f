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

use super::{Opened, Options};
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

/// An open store with one destination.
async fn new() -> (Store, Tickets, Directory) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("tidegate-disk-{}-{number}", std::process::id());
    let (directory, tickets) = (Directory(std::env::temp_dir().join(name)), Tickets::default());
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
    assert!(store.status().full);
    (1..=3).for_each(|ticket| store.record(record(ticket, 100_000)));
    assert!(matches!(store.accept(event(3, 1 << 20)).await, Err(StoreError::Full)), "at once");
    assert!(tickets.lock().unwrap().is_empty());

    // Room again: nobody says so, the next try finds it.
    max_pages(&store, 0);
    until(|| *tickets.lock().unwrap() == [1, 2, 3]).await;
    assert!(!store.status().full);
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
    until(|| store.status().full).await;
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
