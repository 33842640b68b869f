//! What only a store in a directory can show: who may open it, and what a broken file does.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tidegate_store::StoreError;
use tidegate_store::event::{Accept, Accepted};

use crate::fixture::{Bench, Commits, START};
use crate::place::{Engine, Place, open, try_open};

#[tokio::test]
async fn a_second_process_is_refused_while_the_first_has_the_directory() {
    let bench = Bench::new(Engine::Sqlite).await;
    let second = try_open(&bench.place, &Commits::default());
    assert!(matches!(second.err(), Some(StoreError::InUse(path)) if path == bench.place.directory()));
    bench.deliver(1, 1, 1, START).await;
}

/// Goal: whoever publishes is answered when the event is on the disk, and not before.
/// Method: somebody else holds the file's lock, so that nothing can be committed.
#[tokio::test]
async fn nobody_is_answered_before_the_commit() {
    let bench = Bench::new(Engine::Sqlite).await;
    let event = bench.event(1, &[1], START);
    let id = event.message.id;
    let is_committed = || {
        let commits = bench.commits.lock().unwrap();
        commits.iter().flat_map(|commit| &commit.accepted).any(|accepted| accepted.message.id == id)
    };
    let other = rusqlite::Connection::open(bench.place.directory().join("tidegate.db")).unwrap();
    other.busy_timeout(Duration::from_secs(10)).unwrap();
    other.execute_batch("begin immediate").unwrap();
    let accept = Accept { now: START, events: vec![event], idempotency: None, outbox: None };
    let mut accepting = pin!(bench.store.accept(accept));
    let answered = tokio::time::timeout(Duration::from_millis(300), &mut accepting).await;
    assert!(answered.is_err() && !is_committed(), "nothing can be committed: {answered:?}");
    other.execute_batch("rollback").unwrap();
    let answered = accepting.await.unwrap();
    assert!(matches!(answered, Accepted::Stored(_)) && is_committed());
}

#[tokio::test]
async fn a_broken_or_missing_file_is_refused_and_left_as_it_is() {
    let bench = Bench::new(Engine::Sqlite).await;
    bench.deliver(1, 1, 50, START).await;
    bench.store.close().await;
    let Bench { place, store, opened, .. } = bench;
    drop((store, opened));
    let file = place.directory().join("tidegate.db");
    let whole = std::fs::read(&file).unwrap();

    let mut garbled = whole.clone();
    garbled[..100].fill(0x55);
    std::fs::write(&file, &garbled).unwrap();
    assert!(matches!(open(&place, &Commits::default()).err(), Some(StoreError::Unusable { .. })));
    assert_eq!(std::fs::read(&file).unwrap(), garbled);

    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let cut = open(&place, &Commits::default()).err();
    assert!(matches!(cut, Some(StoreError::Unusable { .. })), "cut in half: {cut:?}");

    std::fs::remove_file(&file).unwrap();
    std::fs::write(place.directory().join("tidegate.db-wal"), b"something").unwrap();
    assert!(matches!(open(&place, &Commits::default()).err(), Some(StoreError::Unusable { .. })));
    assert!(!file.exists());
}

/// Goal: somebody's long read makes the log grow, which is told, and no longer than it lasts.
/// Method: a tool of an operator that reads from one moment on, beside large events.
#[tokio::test]
async fn a_long_read_lets_the_log_grow_in_sight_and_no_longer_than_it_lasts() {
    // What is left of a log after it was emptied, and more than that.
    const LEFT: u64 = 96 << 20;
    const ROUND: u64 = 16 << 20;
    let bench = Bench::new(Engine::Sqlite).await;
    let file = bench.place.directory().join("tidegate.db");
    let length = || std::fs::metadata(&file).unwrap().len();
    let told = || bench.store.status().wal_bytes;
    let publish = async || {
        let large = |_| {
            let mut event = bench.event(1, &[1], START);
            Arc::get_mut(&mut event.message).unwrap().payload = vec![b'7'; 1 << 20].into();
            event
        };
        bench.accept((0..ROUND >> 20).map(large).collect(), START).await;
    };
    // The log is emptied when there is nothing else to do: then the file has everything.
    let publish_and_rest = async || {
        let before = length();
        publish().await;
        until("the log is emptied", || length() >= before + ROUND).await;
    };
    for _ in 0..3 {
        publish_and_rest().await;
    }
    until("its length is told", || (ROUND..2 * ROUND).contains(&told())).await;

    let reader = rusqlite::Connection::open(&file).unwrap();
    reader.execute_batch("begin").unwrap();
    reader.query_row("select count(*) from events", (), |row| row.get::<_, i64>(0)).unwrap();
    for _ in 0..LEFT / ROUND + 2 {
        publish().await;
    }
    until("its length is told", || told() > LEFT + ROUND).await;

    let before = length();
    reader.execute_batch("rollback").unwrap();
    bench.deliver(1, 1, 1, START).await;
    until("the log is emptied", || length() >= before + LEFT + ROUND).await;
    for _ in 0..2 {
        publish_and_rest().await;
        until("it is short again", || told() <= LEFT).await;
    }
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    for _ in 0..3_000 {
        if condition() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("within 30 s: {what}");
}

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let place = Place::Directory(std::path::PathBuf::from("/proc/none/such"));
    let refused = open(&place, &Commits::default()).err();
    assert!(matches!(refused, Some(StoreError::Unusable { path, .. }) if path == place.directory()));
}
