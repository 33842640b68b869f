//! The way from SQLite to PostgreSQL: all of it arrives, whatever cuts it off, and what does not is found.

#[path = "transfer/everything.rs"]
mod everything;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate_core::lane::LastStop;
use tidegate_core::time::Millis;
use tidegate_store::catalogue::{Changed, Edit};
use tidegate_store::event::{Accept, Accepted, Item};
use tidegate_store::transfer::{
    self, Difference, Doing, Moved, Options, Progress, Source, Task, TransferError,
};
use tidegate_store::{AccountNo, DestinationNo, StoreError};

use self::everything::{END, fill, told};
use crate::accept::{external, with_key};
use crate::fixture::{Bench, Commits, OK, START, new_account, new_destination};
use crate::place::{Engine, Place, try_open};
use crate::server;

/// Opens the source. A program that another test starts inherits its lock for a moment.
#[expect(clippy::disallowed_methods, reason = "waits for a condition that nothing announces")]
fn source(place: &Place) -> Source {
    for _ in 0..300 {
        match Source::open(place.directory()) {
            Err(TransferError::InUse(_)) => std::thread::sleep(Duration::from_millis(10)),
            opened => return opened.unwrap(),
        }
    }
    panic!("the source is not let go of");
}

fn options(target: &Place) -> Options {
    Options {
        url: server::server().url(target.name()),
        key_fingerprint: Some(b"key".to_vec()),
        task: Task::Move,
    }
}

/// One call of a transfer, on a thread without a runtime.
fn call(
    from: &Place,
    options: Options,
    mut tell: impl FnMut(Progress) + Send + 'static,
) -> Result<Moved, TransferError> {
    let mut source = source(from);
    std::thread::scope(|scope| scope.spawn(move || transfer::run(&mut source, &options, &mut tell)).join())
        .unwrap()
}

/// Lets go of a store and keeps its place.
async fn leave(mut bench: Bench, close: bool) -> Place {
    if close {
        bench.store.close().await;
    }
    bench.opened = None;
    let Bench { place, store, .. } = bench;
    drop(store);
    place
}

/// A filled store, left behind, and what it told.
async fn filled(close: bool) -> (Place, String) {
    let bench = Bench::new(Engine::Sqlite).await;
    fill(&bench).await;
    let bench = bench.reopen(close).await;
    let told = told(&bench).await;
    (leave(bench, close).await, told)
}

/// Opens the target as a server would, with all destinations.
async fn opened(target: Place) -> (Bench, LastStop) {
    let bench = Bench::over(target).await;
    let last_stop = bench.opened.as_ref().unwrap().last_stop;
    (bench, last_stop)
}

/// Goal: a server goes on with everything, whether the one before it stopped or crashed.
#[tokio::test]
async fn everything_arrives_and_goes_on_there() {
    for close in [true, false] {
        let (from, before) = filled(close).await;
        let target = Place::new(Engine::Postgres);
        let moved = call(&from, options(&target), |_| {}).unwrap();
        let empty: Vec<_> = moved.tables.iter().filter(|(_, sum)| sum.rows == 0).collect();
        assert!(empty.is_empty(), "there is something of everything: {empty:?}");
        let (bench, last_stop) = opened(target).await;
        assert_eq!(last_stop == LastStop::Clean, close);
        assert_same(&told(&bench).await, &before);
        goes_on(&bench).await;
    }
}

/// Two long texts; of those that differ, the first line is shown.
fn assert_same(found: &str, expected: &str) {
    let difference =
        found.lines().zip(expected.lines()).enumerate().find(|(_, (found, expected))| found != expected);
    assert!(difference.is_none(), "{difference:?}");
    assert_eq!(found.lines().count(), expected.lines().count());
}

/// Names, keys and numbers that were given stay given; what waits can be settled; jobs are taken over.
async fn goes_on(bench: &Bench) {
    let now = END + Millis::minutes(1);
    let keyed = bench.store.accept(with_key(vec![bench.event(1, &[1], now)], "key-1", 9, now)).await.unwrap();
    assert!(matches!(keyed, Accepted::Again(_)), "{keyed:?}");
    let other = bench.store.accept(with_key(vec![bench.event(1, &[1], now)], "key-1", 8, now)).await.unwrap();
    assert_eq!(other, Accepted::KeyReused);
    let accept = |events| bench.store.accept(Accept { now, events, idempotency: None, outbox: None });
    let same = accept(vec![external(bench.event(1, &[1], now), "order-1", 2)]).await.unwrap();
    assert!(matches!(same, Accepted::Stored(items) if matches!(items[..], [Item::Duplicate { .. }])));
    let clash = accept(vec![external(bench.event(1, &[1], now), "order-1", 1)]).await.unwrap();
    assert!(matches!(clash, Accepted::Conflict { .. }), "the first of them counts no more");

    let edits = vec![Edit::AddAccount(new_account(9)), Edit::AddDestination(new_destination(1, 9))];
    let Changed::Done { accounts, destinations } = bench.change(edits).await else {
        panic!("it can be done")
    };
    assert_eq!((accounts, destinations), (vec![AccountNo(4)], vec![DestinationNo(6)]));
    assert_eq!(bench.opened.as_ref().unwrap().jobs.len(), 1, "one was running");

    let waiting = bench.refill(1, &tidegate_core::policy::Policy::default(), now).await.refill.deliveries;
    assert!(waiting.len() > 3);
    bench.settle(1, 1, &waiting, OK, now).await;
    assert!(bench.waiting_numbers(1, now).await.is_empty());
    let mut gone = 0;
    for _ in 0..20 {
        gone += bench.store.forget(now + Millis::days(60), 100).await.unwrap();
    }
    assert!(gone > 5, "retention goes on, also with what it had passed: {gone}");
    let left = server::server().sql(
        bench.place.name(),
        "select count(*) from tidegate.events e where not exists (select from tidegate.open_deliveries o where o.event_seq = e.seq)",
    );
    assert_eq!(left.trim(), "0", "nothing that is over is forgotten by retention");
}

/// Goal: wherever it is cut off, the same call goes on, and no server starts before its end.
/// Method: the connections are ended after every few batches, of which some tables have several, and once while both sides are
/// compared.
#[tokio::test]
async fn what_is_cut_off_goes_on_where_it_was() {
    let bench = Bench::new(Engine::Sqlite).await;
    fill(&bench).await;
    for _ in 0..6 {
        bench.deliver(2, 4, 2_000, END).await;
    }
    let bench = bench.reopen(true).await;
    let before = told(&bench).await;
    let from = leave(bench, true).await;
    let target = Place::new(Engine::Postgres);
    let (mut calls, mut furthest, compared) = (0, 0, Arc::new(AtomicBool::new(false)));
    loop {
        calls += 1;
        let (name, wanted, comparison) = (target.name().to_owned(), 1 + calls % 3, compared.clone());
        let (tell, heard) = std::sync::mpsc::channel();
        let mut batches = 0;
        let ended = call(&from, options(&target), move |progress| {
            if progress.doing == Doing::Moving {
                batches += 1;
                let _ = tell.send(progress.all_rows);
            }
            let is_first = progress.doing == Doing::Comparing && !comparison.swap(true, Ordering::Relaxed);
            if is_first || progress.doing == Doing::Moving && batches == wanted {
                cut(&name);
            }
        });
        let rows: Vec<u64> = heard.iter().collect();
        assert!(rows.first().is_none_or(|first| *first > furthest), "{rows:?} after {furthest}");
        match ended {
            Ok(moved) => {
                assert!(moved.before > 12_000);
                break;
            }
            Err(TransferError::Target(_) | TransferError::Store(StoreError::Unavailable(_))) => {}
            Err(other) => panic!("{other}"),
        }
        furthest = rows.iter().copied().max().unwrap_or(furthest).max(furthest);
        let refused = try_open(&target, &Commits::default()).err();
        let Some(StoreError::Database(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains("tidegate migrate"), "{why}");
        assert!(calls < 60, "it does not come to an end");
    }
    assert!(calls > 5, "it was cut off {calls} times");
    let already = call(&from, options(&target), |_| {}).unwrap();
    assert!(already.already);
    let (bench, _) = opened(target).await;
    assert_same(&told(&bench).await, &before);
}

/// Ends every connection to a database.
fn cut(database: &str) {
    let sql = format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{database}'");
    server::server().sql("postgres", &sql);
}

/// Goal: whatever was changed, is missing or too much in the target is found, by the name of its table.
#[tokio::test]
async fn a_row_that_was_changed_is_found() {
    let (from, _) = filled(true).await;
    let target = Place::new(Engine::Postgres);
    call(&from, options(&target), |_| {}).unwrap();
    for (change, undo, table) in [
        (
            "update tidegate.accounts set version = version + 1 where no = 2",
            "update tidegate.accounts set version = version - 1 where no = 2",
            "accounts",
        ),
        (
            "update tidegate.events set payload = payload || 'x'",
            "update tidegate.events set payload = substr(payload, 1, length(payload) - 1)",
            "events",
        ),
        (
            "update tidegate.open_deliveries set ordering_key = '' where ordering_key is null",
            "update tidegate.open_deliveries set ordering_key = null where ordering_key = ''",
            "open_deliveries",
        ),
        (
            "create table kept as select * from tidegate.attempts limit 1; delete from tidegate.attempts a using kept k where a.seq = k.seq",
            "insert into tidegate.attempts select * from kept",
            "attempts",
        ),
        (
            "insert into tidegate.forget_later values (1, 1)",
            "delete from tidegate.forget_later where at = 1",
            "forget_later",
        ),
        (
            "update tidegate.seats set sequence = sequence + 1 where seat = 0",
            "update tidegate.seats set sequence = sequence - 1 where seat = 0",
            "sequence",
        ),
    ] {
        server::server().sql(target.name(), change);
        let compared = call(&from, Options { task: Task::Verify, ..options(&target) }, |_| {});
        let Err(TransferError::Differ(differences)) = compared else { panic!("{table}: {compared:?}") };
        let named = |difference: &Difference| match difference {
            Difference::Rows { table, .. } => (*table).to_owned(),
            Difference::Number { name, .. } => name.clone(),
        };
        assert_eq!(differences.iter().map(named).collect::<Vec<_>>(), [table]);
        server::server().sql(target.name(), undo);
    }
    call(&from, Options { task: Task::Verify, ..options(&target) }, |_| {}).unwrap();
}

/// Goal: what is not the same at the end of a transfer keeps servers away.
#[tokio::test]
async fn a_target_that_differs_is_no_place_for_a_server() {
    let (from, _) = filled(true).await;
    let target = Place::new(Engine::Postgres);
    let name = target.name().to_owned();
    let ended = call(&from, options(&target), move |progress| {
        if progress.table == "holds" {
            server::server().sql(&name, "update tidegate.accounts set document = '!'");
        }
    });
    assert!(matches!(ended, Err(TransferError::Differ(_))), "{ended:?}");
    assert!(matches!(try_open(&target, &Commits::default()).err(), Some(StoreError::Database(_))));
    let verify = call(&from, Options { task: Task::Verify, ..options(&target) }, |_| {});
    assert!(matches!(verify, Err(TransferError::Unfinished)), "{verify:?}");
}

/// Goal: nobody's data are mixed, and nobody reads what another still writes.
#[tokio::test]
async fn what_is_in_use_or_not_empty_is_refused() {
    let running = Bench::new(Engine::Sqlite).await;
    let in_use = Source::open(running.place.directory()).err();
    assert!(matches!(in_use, Some(TransferError::InUse(_))), "{in_use:?}");
    let nowhere = Source::open(std::path::Path::new("/proc/none")).err();
    assert!(matches!(nowhere, Some(TransferError::Source { .. })), "{nowhere:?}");
    let from = leave(running, true).await;

    let busy = Bench::new(Engine::Postgres).await;
    let live = call(&from, options(&busy.place), |_| {});
    assert!(matches!(live, Err(TransferError::Live(_))), "{live:?}");
    let full = leave(busy, true).await;
    let full = call(&from, options(&full), |_| {});
    assert!(matches!(&full, Err(TransferError::NotEmpty(tables)) if tables.contains(&"accounts".to_owned())));

    let target = Place::new(Engine::Postgres);
    let name = target.name().to_owned();
    let mut once = false;
    let ended = call(&from, options(&target), move |_| {
        if !std::mem::replace(&mut once, true) {
            cut(&name);
        }
    });
    assert!(ended.is_err());
    let bench = Bench::over(from).await;
    bench.deliver(1, 1, 1, START).await;
    let from = leave(bench, true).await;
    let changed = call(&from, options(&target), |_| {});
    assert!(matches!(changed, Err(TransferError::OtherSource)), "{changed:?}");
}

/// Goal: a table or a column that a later schema brings is not left behind by an oversight.
/// Method: every column of a target that is filled is one that the source fills; every table of the source is known.
#[tokio::test]
async fn no_column_and_no_table_is_left_behind() {
    let (from, _) = filled(true).await;
    let target = Place::new(Engine::Postgres);
    let moved = call(&from, options(&target), |_| {}).unwrap();
    let filled: Vec<&str> = moved.tables.iter().map(|(table, _)| *table).collect();
    let of_nodes = [
        "bulletins",
        "forget_kept",
        "marks",
        "meta",
        "nodes",
        "orders",
        "outbox",
        "seats",
        "slots",
        "versions",
    ];
    let sql = "select relname from pg_class where relnamespace = 'tidegate'::regnamespace and relkind in ('r', 'p') and not \
               relispartition";
    let tables = server::server().sql(target.name(), sql);
    for table in tables.lines() {
        assert!(filled.contains(&table) || of_nodes.contains(&table), "nothing is moved to {table}");
    }
    let sources: Vec<String> = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/transfer"))
        .unwrap()
        .flatten()
        .map(|file| std::fs::read_to_string(file.path()).unwrap())
        .collect();
    let derived = ["deliveries_filed", "attempts_filed"];
    let schema = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/sql/migrations")).unwrap().flatten();
    let schema: String = schema.map(|file| std::fs::read_to_string(file.path()).unwrap()).collect();
    for table in schema.lines().filter_map(|line| line.strip_prefix("create table ")) {
        let table = table.trim_end_matches(" (");
        let read =
            |sql: &String| ["from", "join"].iter().any(|word| sql.contains(&format!("{word} {table}")));
        assert!(derived.contains(&table) || sources.iter().any(read), "nothing is read of {table}");
    }
    let null = "select table_name || '.' || column_name from information_schema.columns where table_schema = 'tidegate'";
    for column in server::server().sql(target.name(), null).lines() {
        let Some((table, column)) = column.split_once('.').filter(|(table, _)| filled.contains(table)) else {
            continue;
        };
        let sql = std::fs::read_to_string(format!("{}/sql/transfer/{table}.sql", env!("CARGO_MANIFEST_DIR")))
            .unwrap();
        assert!(sql.contains(column), "{table}.{column} is not filled");
    }
}
