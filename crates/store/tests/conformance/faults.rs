//! What a store in PostgreSQL does when the database, or the way to it, does not do its part.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use tidegate_core::slots::Slot;
use tidegate_core::time::Millis;
use tidegate_store::cluster::Identity;
use tidegate_store::event::{Accept, Accepted};
use tidegate_store::record::{NoticeRow, Record};
use tidegate_store::{AccountNo, DestinationNo, Store, StoreError, postgres};

use crate::fixture::{Bench, Commits, OK, START, later};
use crate::place::{Engine, Place, claim_all, end_leases};
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
    let accept = |event| Accept { now: START, events: vec![event], idempotency: None, outbox: None };
    for _ in 0..2 {
        let asked = bench.store.accept(accept(bench.event(1, &[1], START)));
        let answer = tokio::time::timeout(Duration::from_secs(4), asked).await.expect("at once");
        assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    }
    assert!(bench.store.status().waits && !bench.store.status().broken);
    assert!(matches!(
        bench.store.survey(vec![DestinationNo(1)], START).await,
        Err(StoreError::Unavailable(_))
    ));
    bench.store.record(notice(3));
    server.up();
    until("all records are in", || tickets(&bench.commits).len() == 3).await;
    assert_eq!(tickets(&bench.commits), [1, 2, 3]);
    bench.deliver(1, 1, 1, later(2)).await;
    let waiting = bench.waiting_numbers(1, later(3)).await;
    assert_eq!((waiting.len(), waiting[0]), (2, kept[0].place.sequence));
    bench.store.close().await;
}

/// What a proxy does with the next group: nothing, or it cuts the connection behind the answer to its first bundle, before its
/// commit, or behind that. The next claim can be cut behind its commit, too; and a group can be held up before its commit.
const PASS: u8 = 0;
const CUT_BETWEEN: u8 = 1;
const CUT_BEFORE: u8 = 2;
const CUT_AFTER: u8 = 3;
const CUT_CLAIM: u8 = 4;
const HOLD_UP: u8 = 5;

/// A socket between the store and the server.
struct Proxy {
    directory: PathBuf,
    next_group: Arc<AtomicU8>,
}

/// One connection through it.
#[derive(Default)]
struct Passage {
    /// Answers that are awaited before it is cut.
    awaited: AtomicUsize,
}

impl Proxy {
    fn new(server: &std::path::Path, name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("tidegate-proxy-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let listener = UnixListener::bind(directory.join(".s.PGSQL.5432")).unwrap();
        let next_group = Arc::new(AtomicU8::new(PASS));
        let (to, mode) = (server.join(".s.PGSQL.5432"), Arc::clone(&next_group));
        std::thread::Builder::new()
            .spawn(move || {
                for client in listener.incoming().flatten() {
                    let Ok(server) = UnixStream::connect(&to) else { continue };
                    let (answers, client_again) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                    let (modes, passage) = (Arc::clone(&mode), Arc::new(Passage::default()));
                    let same = Arc::clone(&passage);
                    std::thread::Builder::new().spawn(move || up(client, server, &modes, &same)).unwrap();
                    std::thread::Builder::new().spawn(move || down(answers, client_again, &passage)).unwrap();
                }
            })
            .unwrap();
        Self { directory, next_group }
    }

    /// Statements are sent whole, so that the proxy can see what passes.
    fn url(&self, database: &str) -> String {
        let host = self.directory.to_string_lossy().replace('/', "%2F");
        format!("postgres://postgres@{host}/{database}?sslmode=disable&prepare=no")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// From the store to the server. A commit is cut off before the server sees it, or before the store sees the answer.
fn up(mut client: UnixStream, mut server: UnixStream, mode: &AtomicU8, passage: &Passage) {
    let mut buffer = vec![0; 1 << 20];
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        let sent = &buffer[..count];
        let (commits, inserts) = (times(sent, b"commit\0") > 0, times(sent, b"insert into") > 0);
        let claims = times(sent, b"update tidegate.slots") > 0;
        match mode.load(Ordering::SeqCst) {
            CUT_BETWEEN if times(sent, b"update tidegate.seats") > 0 => {
                mode.store(PASS, Ordering::SeqCst);
                passage.awaited.store(times(sent, b"S\0\0\0\x04"), Ordering::SeqCst);
            }
            CUT_BEFORE if commits && inserts => {
                mode.store(PASS, Ordering::SeqCst);
                break;
            }
            HOLD_UP if commits && inserts => hold_up(mode),
            now @ (CUT_AFTER | CUT_CLAIM)
                if commits && (inserts || claims) && claims == (now == CUT_CLAIM) =>
            {
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

/// As a node that is frozen: until it is let go on.
#[expect(clippy::disallowed_methods, reason = "waits for a condition that nothing announces")]
fn hold_up(mode: &AtomicU8) {
    while mode.load(Ordering::SeqCst) == HOLD_UP {
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// From the server to the store. Answers are taken from the server also when the store is gone: it gives up a session whose
/// other side takes none, with what was sent before.
fn down(mut server: UnixStream, mut client: UnixStream, passage: &Passage) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(count @ 1..) = server.read(&mut buffer) {
        let _ = client.write_all(&buffer[..count]);
        let awaited = passage.awaited.load(Ordering::SeqCst);
        if awaited > 0 {
            let left = awaited.saturating_sub(times(&buffer[..count], b"Z\0\0\0\x05"));
            passage.awaited.store(left, Ordering::SeqCst);
            if left == 0 {
                break;
            }
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

fn times(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).filter(|window| *window == part).count()
}

/// Opens a store behind a proxy.
async fn connect(bench: &Bench, proxy: &Proxy, commits: &Commits) -> Store {
    let seen = Arc::clone(commits);
    let on_commit = Box::new(move |commit| seen.lock().unwrap().push(commit));
    let url = proxy.url(bench.place.name());
    let identity = Identity::default();
    let options = postgres::Options {
        url,
        listen_url: None,
        max_event_bytes: 1 << 20,
        identity,
        readers: 1,
        partition: Millis::new(1),
        on_commit,
    };
    let store = Store::connect(options).unwrap().store;
    claim_all(&store).await;
    store
}

/// Goal: a group whose connection is lost on its way is written whole or not at all.
/// Method: a proxy cuts the connection when the results are settled and their attempts are still to be added.
#[tokio::test]
async fn a_group_is_not_finished_on_another_connection() {
    let bench = Bench::new(Engine::Postgres).await;
    let delivery = bench.deliver(1, 1, 1, START).await.swap_remove(0);
    bench.store.close().await;
    let proxy = Proxy::new(crate::server::server().directory(), "between");
    let commits = Commits::default();
    let store = connect(&bench, &proxy, &commits).await;
    proxy.next_group.store(CUT_BETWEEN, Ordering::SeqCst);
    let settled = vec![bench.settled(1, 1, &delivery, OK, later(1))];
    store.record(Record { now: later(1), ticket: 9, settled, ..Record::default() });
    until("the record is in", || tickets(&commits) == [9]).await;
    assert_eq!(proxy.next_group.load(Ordering::SeqCst), PASS, "it was cut");
    let stored = store.delivery(AccountNo(1), delivery.id).await.unwrap().unwrap();
    assert!(stored.finished_at.is_some());
    assert_eq!(store.attempts(delivery.id).await.unwrap().len(), 1);
    store.close().await;
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
        let store = connect(&bench, &proxy, &commits).await;
        let accept = |event| Accept { now: START, events: vec![event], idempotency: None, outbox: None };
        store.accept(accept(bench.event(1, &[1], START))).await.unwrap();

        let (event, later_one) = (bench.event(1, &[1], START), bench.event(1, &[1], START));
        let id = event.message.id;
        proxy.next_group.store(mode, Ordering::SeqCst);
        let answer = store.accept(accept(event)).await;
        assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
        let handed_on = || {
            let commits = commits.lock().unwrap();
            commits.iter().flat_map(|commit| &commit.accepted).filter(|event| event.message.id == id).count()
        };
        store.cluster().unwrap().news().await.unwrap();
        assert_eq!(handed_on(), usize::from(made), "before what others have accepted since");
        store.record(notice(9));
        until("the record is in", || tickets(&commits) == [9]).await;
        assert!(matches!(store.accept(accept(later_one)).await, Ok(Accepted::Stored(_))));
        assert_eq!(handed_on(), usize::from(made), "to the engine, once");
        assert_eq!(store.event(AccountNo(1), id).await.unwrap().is_some(), made);
        assert_eq!(
            store.waiting(tidegate_store::lane::Of::Account(AccountNo(1))).deliveries,
            2 + u64::from(made)
        );
        store.close().await;
    }
}

/// Goal: a claim that was made, and whose answer was lost, is shown by the next renewal, and can be made again.
#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_made_again() {
    let bench = Bench::new(Engine::Postgres).await;
    bench.store.close().await;
    let proxy = Proxy::new(crate::server::server().directory(), "claim");
    let store = connect(&bench, &proxy, &Commits::default()).await;
    let cluster = store.cluster().unwrap();
    let slot = Slot::new(9);
    cluster.give_back(vec![slot], true).await.unwrap();
    proxy.next_group.store(CUT_CLAIM, Ordering::SeqCst);
    let lost = cluster.claim(vec![slot]).await;
    assert!(matches!(lost, Err(StoreError::Unavailable(_))), "{lost:?}");
    // The server may still be at it.
    let mut shown = cluster.renew(false).await.unwrap().roll.slots[9];
    for _ in 0..500 {
        if shown.by.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        shown = cluster.renew(false).await.unwrap().roll.slots[9];
    }
    assert_eq!(shown.by, Some(cluster.me()));
    let again = cluster.claim(vec![slot]).await.unwrap();
    assert_eq!(again[0].epoch.0, shown.epoch.0 + 1);
}

/// Goal: a node that is frozen in the middle of a group keeps nobody from its slots, and changes nothing when it wakes up.
/// Method: a proxy holds the group up before its commit; another node claims its slot until it is granted.
#[tokio::test]
async fn a_node_that_is_frozen_within_a_group_loses_its_slots_and_the_group() {
    let bench = Bench::new(Engine::Postgres).await;
    let delivery = bench.deliver(1, 1, 1, START).await.swap_remove(0);
    bench.store.close().await;
    let proxy = Proxy::new(crate::server::server().directory(), "frozen");
    let commits = Commits::default();
    let frozen = connect(&bench, &proxy, &commits).await;
    proxy.next_group.store(HOLD_UP, Ordering::SeqCst);
    let settled = vec![bench.settled(1, 1, &delivery, OK, later(1))];
    frozen.record(Record { now: later(1), ticket: 9, settled, ..Record::default() });
    let held = "select count(*) from pg_stat_activity where state = 'idle in transaction' and datname = current_database()";
    let server = crate::server::server();
    until("the group waits", || server.sql(bench.place.name(), held) == "1\n").await;

    end_leases(&bench.place);
    let next = crate::place::open(&bench.place, &Commits::default()).unwrap().store;
    let cluster = next.cluster().unwrap();
    let mut granted = Vec::new();
    for _ in 0..20 {
        cluster.renew(false).await.unwrap();
        // It waits for the group, and gives up soon.
        match cluster.claim(vec![Slot::new(1)]).await {
            Ok(claimed) => {
                granted = claimed;
                break;
            }
            Err(error) => assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}"),
        }
    }
    assert_eq!(granted.len(), 1, "within twenty tries of a second");
    assert_eq!(granted[0].lanes[0].open, 1);
    proxy.next_group.store(PASS, Ordering::SeqCst);
    until("the record is refused", || commits.lock().unwrap().iter().any(|commit| commit.stale == 1)).await;
    let stored = next.delivery(AccountNo(1), delivery.id).await.unwrap().unwrap();
    assert!(stored.finished_at.is_none());
    assert!(next.attempts(delivery.id).await.unwrap().is_empty());
}

/// Goal: a transaction that the database gave up for the sake of another (a deadlock, a conflict, a lock that took too long)
/// is made again, whole, and nobody hears of it.
/// Method: a trigger gives up the first tries of whatever is stored, with each of these errors in turn.
#[tokio::test]
async fn what_the_database_gave_up_for_another_is_made_again() {
    let bench = Bench::new(Engine::Postgres).await;
    let delivery = bench.deliver(1, 1, 1, START).await.swap_remove(0);
    let (server, name) = (crate::server::server(), bench.place.name());
    let trip = "create sequence tries;
        create function trip() returns trigger language plpgsql as $$ begin
          if nextval('public.tries') <= 1 then raise exception 'given up' using errcode = tg_argv[0]; end if;
          return new;
        end $$;";
    server.sql(name, trip);
    for (index, code) in ["40001", "40P01", "55P03"].into_iter().enumerate() {
        for table in ["events", "attempts"] {
            let trigger = format!(
                "create trigger trip before insert on tidegate.{table} for each row execute function public.trip('{code}')"
            );
            server.sql(name, &format!("alter sequence tries restart; {trigger}"));
            let id = match table {
                "events" => bench.deliver(1, 1, 1, later(1)).await[0].id,
                _ => {
                    let at = later(2 + i64::try_from(index).unwrap());
                    let again = bench.deliver(1, 1, 1, later(1)).await.swap_remove(0);
                    let settled = vec![bench.settled(1, 1, &again, OK, at)];
                    let ticket = 10 + index as u64;
                    bench.store.record(Record { now: at, ticket, settled, ..Record::default() });
                    until("the result is in", || tickets(&bench.commits).contains(&ticket)).await;
                    again.id
                }
            };
            let tried = server.sql(name, "select last_value from tries");
            assert!(tried.trim().parse::<u64>().unwrap() >= 2, "{code} in {table}: tried {tried} times");
            server.sql(name, &format!("drop trigger trip on tidegate.{table}"));
            let stored = bench.store.delivery(AccountNo(1), id).await.unwrap().unwrap();
            assert_eq!(stored.finished_at.is_some(), table == "attempts", "{code}");
            assert_eq!(
                bench.store.attempts(id).await.unwrap().len(),
                usize::from(table == "attempts"),
                "{code}"
            );
        }
    }
    assert!(bench.store.delivery(AccountNo(1), delivery.id).await.unwrap().is_some());
    assert!(!bench.store.status().waits && !bench.store.status().broken);
}

/// Goal: a database in which nothing may be changed for a while (a person's order, a standby) loses nothing: publishers hear so
/// at once, results wait, and it goes on by itself.
#[tokio::test]
async fn a_database_that_is_read_only_for_a_while_loses_nothing() {
    let bench = Bench::new(Engine::Postgres).await;
    let delivery = bench.deliver(1, 1, 1, START).await.swap_remove(0);
    let (server, name) = (crate::server::server(), bench.place.name());
    let turn = |value: &str| {
        server.sql("postgres", &format!("alter database {name} set default_transaction_read_only = {value}"));
        let sessions = format!("from pg_stat_activity where datname = '{name}'");
        server.sql("postgres", &format!("select pg_terminate_backend(pid) {sessions}"));
    };
    turn("on");
    let settled = vec![bench.settled(1, 1, &delivery, OK, later(1))];
    bench.store.record(Record { now: later(1), ticket: 7, settled, ..Record::default() });
    let accept =
        Accept { now: START, events: vec![bench.event(1, &[1], START)], idempotency: None, outbox: None };
    let asked = bench.store.accept(accept);
    let answer = tokio::time::timeout(Duration::from_secs(4), asked).await.expect("at once");
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    assert!(bench.store.status().waits && !bench.store.status().broken);
    assert!(tickets(&bench.commits).is_empty());
    assert!(bench.store.delivery(AccountNo(1), delivery.id).await.unwrap().is_some(), "it can be looked at");
    turn("off");
    until("the result is in", || tickets(&bench.commits) == [7]).await;
    bench.deliver(1, 1, 1, later(2)).await;
    let stored = bench.store.delivery(AccountNo(1), delivery.id).await.unwrap().unwrap();
    assert!(stored.finished_at.is_some());
}

/// Goal: whoever waits for a commit hears at once that a full disk holds it up; and that there is room again is found out
/// although nobody writes.
#[tokio::test]
async fn a_full_disk_is_told_of_at_once_and_its_end_found_out() {
    let bench = Bench::new(Engine::Postgres).await;
    let (server, name) = (crate::server::server(), bench.place.name());
    server.sql(
        name,
        "create function full_disk() returns trigger language plpgsql as $$
         begin raise exception 'no room' using errcode = '53100'; end $$;
         create trigger full_disk before update on tidegate.seats execute function public.full_disk()",
    );
    bench.store.record(notice(7));
    let stalls = tokio::time::timeout(Duration::from_secs(4), bench.store.stalls()).await.expect("at once");
    assert!(matches!(stalls, StoreError::Full), "{stalls:?}");
    server.sql(name, "drop trigger full_disk on tidegate.seats");
    until("the record is in", || tickets(&bench.commits) == [7]).await;

    server.sql(
        name,
        "create trigger full_disk before update on tidegate.seats execute function public.full_disk()",
    );
    let accept =
        Accept { now: START, events: vec![bench.event(1, &[1], START)], idempotency: None, outbox: None };
    assert!(matches!(bench.store.accept(accept).await, Err(StoreError::Full)));
    assert!(bench.store.status().waits);
    server.sql(name, "drop trigger full_disk on tidegate.seats");
    until("the room is found", || !bench.store.status().waits).await;
    bench.deliver(1, 1, 1, later(2)).await;
}
