//! What a store in PostgreSQL does when the database, or the way to it, does not do its part.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tidegate_core::time::Millis;
use tidegate_store::event::{Accept, Accepted};
use tidegate_store::record::{NoticeRow, Record};
use tidegate_store::{AccountNo, DestinationNo, Store, StoreError, postgres};

use crate::fixture::{Bench, Commits, START, later};
use crate::place::{Engine, Place};
use crate::server::Server;

fn notice(ticket: u64) -> Record {
    let detail = ticket.to_string();
    let kind = "throttled".to_owned();
    let notices = vec![NoticeRow { destination: DestinationNo(1), at: later(1), kind, detail }];
    Record { now: later(1), ticket, notices, ..Record::default() }
}

async fn until(what: &str, done: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within twenty seconds: {what}");
}

fn tickets(commits: &Commits) -> Vec<u64> {
    commits
        .lock()
        .unwrap()
        .iter()
        .flat_map(|commit| commit.recorded.clone())
        .filter(|ticket| *ticket < 1_000)
        .collect()
}

/// Goal: while the database is away publishers hear so at once, and afterwards everything goes on by itself, in order.
#[tokio::test]
async fn a_database_that_went_away_and_came_back_loses_nothing() {
    let server = Server::start("restart");
    server.sql("postgres", "create database tidegate");
    let bench = Bench::at(Place::Elsewhere(server.url("tidegate"))).await;
    let kept = bench.deliver(1, 1, 1, START).await;
    server.down();
    for ticket in 1..=2 {
        bench.store.record(notice(ticket));
    }
    let accept = |event| Accept { now: START, events: vec![event], idempotency: None };
    for _ in 0..2 {
        let asked = bench.store.accept(accept(bench.event(1, &[1], START)));
        let answer = tokio::time::timeout(Duration::from_secs(4), asked).await.expect("at once");
        assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    }
    assert!(bench.store.status().full && !bench.store.status().broken);
    assert!(matches!(bench.store.oldest_open(DestinationNo(1)).await, Err(StoreError::Unavailable(_))));
    bench.store.record(notice(3));
    server.up();
    until("all records are in", || tickets(&bench.commits).len() == 3).await;
    assert_eq!(tickets(&bench.commits), [1, 2, 3]);
    bench.deliver(1, 1, 1, later(2)).await;
    let waiting = bench.waiting_numbers(1, later(3)).await;
    assert_eq!((waiting.len(), waiting[0]), (2, kept[0].place.sequence));
    bench.store.close().await;
}

/// What a proxy does with the next commit.
const PASS: u8 = 0;
const CUT_BEFORE: u8 = 1;
const CUT_AFTER: u8 = 2;

/// A socket between the store and the server.
struct Proxy {
    directory: PathBuf,
    next_commit: Arc<AtomicU8>,
}

impl Proxy {
    fn new(server: &std::path::Path, name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("tidegate-proxy-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let listener = UnixListener::bind(directory.join(".s.PGSQL.5432")).unwrap();
        let next_commit = Arc::new(AtomicU8::new(PASS));
        let (to, mode) = (server.join(".s.PGSQL.5432"), Arc::clone(&next_commit));
        std::thread::Builder::new()
            .spawn(move || {
                for client in listener.incoming().flatten() {
                    let Ok(server) = UnixStream::connect(&to) else { continue };
                    let (answers, client_again) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                    let modes = Arc::clone(&mode);
                    std::thread::Builder::new().spawn(move || up(client, server, &modes)).unwrap();
                    std::thread::Builder::new().spawn(move || down(answers, client_again)).unwrap();
                }
            })
            .unwrap();
        Self { directory, next_commit }
    }

    fn url(&self, database: &str) -> String {
        let host = self.directory.to_string_lossy().replace('/', "%2F");
        format!("postgres://postgres@{host}/{database}?sslmode=disable")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// From the store to the server. A commit is cut off before the server sees it, or before the store sees the answer.
fn up(mut client: UnixStream, mut server: UnixStream, mode: &AtomicU8) {
    let mut buffer = vec![0; 1 << 20];
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        let commits = buffer[..count].windows(7).any(|part| part == b"commit\0");
        let inserts = buffer[..count].windows(11).any(|part| part == b"insert into");
        match mode.load(Ordering::SeqCst) {
            CUT_BEFORE if commits && inserts => {
                mode.store(PASS, Ordering::SeqCst);
                break;
            }
            CUT_AFTER if commits && inserts => {
                mode.store(PASS, Ordering::SeqCst);
                let _ = client.shutdown(Shutdown::Write);
                let _ = server.write_all(&buffer[..count]);
                // The server ends the session once it has done all that came before this.
                let _ = server.write_all(b"X\0\0\0\x04");
                return;
            }
            _ => {}
        }
        if server.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

fn down(mut server: UnixStream, mut client: UnixStream) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = server.read(&mut buffer) {
        if client.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}

/// Goal: a commit whose answer was lost is found out: what was committed goes on its way once, what was not is told so.
/// Method: a proxy cuts the connection before the server sees a commit, and after it made one.
#[tokio::test]
async fn a_commit_whose_answer_was_lost_is_found_out() {
    for (mode, made) in [(CUT_BEFORE, false), (CUT_AFTER, true)] {
        let bench = Bench::new(Engine::Postgres).await;
        bench.store.close().await;
        let proxy = Proxy::new(crate::server::server().directory(), &mode.to_string());
        let commits = Commits::default();
        let seen = Arc::clone(&commits);
        let on_commit = Box::new(move |commit| seen.lock().unwrap().push(commit));
        let url = proxy.url(bench.place.name());
        let opened =
            Store::connect(postgres::Options { url, readers: 1, partition: Millis::new(1), on_commit });
        let store = opened.unwrap().store;
        let accept = |event| Accept { now: START, events: vec![event], idempotency: None };
        store.accept(accept(bench.event(1, &[1], START))).await.unwrap();

        let (event, later_one) = (bench.event(1, &[1], START), bench.event(1, &[1], START));
        let id = event.message.id;
        proxy.next_commit.store(mode, Ordering::SeqCst);
        let answer = store.accept(accept(event)).await;
        assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
        store.record(notice(9));
        until("the record is in", || tickets(&commits) == [9]).await;
        assert!(matches!(store.accept(accept(later_one)).await, Ok(Accepted::Stored(_))));
        let handed_on = commits
            .lock()
            .unwrap()
            .iter()
            .flat_map(|commit| &commit.accepted)
            .filter(|event| event.message.id == id)
            .count();
        assert_eq!(handed_on, usize::from(made), "to the engine, once");
        assert_eq!(store.event(AccountNo(1), id).await.unwrap().is_some(), made);
        assert_eq!(
            store.waiting(tidegate_store::lane::Of::Account(AccountNo(1))).deliveries,
            2 + u64::from(made)
        );
        store.close().await;
    }
}
