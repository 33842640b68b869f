//! What only a store in a directory can show: who may open it, and what a broken file does.

use std::pin::pin;
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

#[test]
fn a_directory_that_cannot_be_made_is_named() {
    let place = Place::Directory(std::path::PathBuf::from("/proc/none/such"));
    let refused = open(&place, &Commits::default()).err();
    assert!(matches!(refused, Some(StoreError::Unusable { path, .. }) if path == place.directory()));
}
