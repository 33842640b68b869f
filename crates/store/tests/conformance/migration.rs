//! A database of an older version with data in it, brought to the newest; also where that is cut off on the way.

use std::collections::BTreeMap;

use tidegate_core::delivery::Delivery;
use tidegate_store::{AccountNo, StoreError};

use crate::fixture::{Bench, Commits, ERROR, OK, START, later};
use crate::place::{Engine, Place, open};
use crate::server::server;

const MAKE_SCHEMA: &str = include_str!("../../sql/postgres/make_schema.sql");
const FIRST: &str = include_str!("../../sql/postgres/migrations/0001.sql");
/// Takes away what the second step made. Where that makes more one day, [`Old::new`] notices.
const BACK_TO_FIRST: &str = "
    drop function tidegate.publish, tidegate.is_fine, tidegate.id_text;
    drop sequence tidegate.publish_numbers;
    drop table tidegate.outbox;
    update tidegate.versions set version = 1";

/// A database at version 1 with something of everything.
struct Old {
    place: Place,
    deliveries: Vec<Delivery>,
    /// What the newest schema looks like.
    newest: String,
}

impl Old {
    async fn new() -> Self {
        let bench = Bench::new(Engine::Postgres).await;
        let mut deliveries = bench.deliver(1, 1, 3, START).await;
        deliveries.extend(bench.deliver(2, 3, 2, later(1)).await);
        bench.settle(1, 1, &deliveries[..1], OK, later(2)).await;
        bench.settle(2, 3, &deliveries[3..4], ERROR, later(3)).await;
        bench.store.close().await;
        let Bench { place, .. } = bench;
        let newest = shape(&place);
        server().sql(place.name(), BACK_TO_FIRST);
        let first = Place::new(Engine::Postgres);
        server().sql(first.name(), MAKE_SCHEMA);
        server().sql(first.name(), FIRST);
        assert_eq!(shape(&place), shape(&first), "nothing of a later version is left");
        Self { place, deliveries, newest }
    }

    fn sql(&self, sql: &str) -> String {
        server().sql(self.place.name(), sql)
    }

    /// Opens the store, which must do, and looks whether all is there, in the newest form.
    async fn check_brought_up(self, before: BTreeMap<String, String>) {
        let Self { place, deliveries, newest } = self;
        let bench = Bench::over(place).await;
        assert_eq!(shape(&bench.place), newest);
        let versions = server().sql(bench.place.name(), "select max(version) from tidegate.versions");
        assert_eq!(versions.trim(), "2");
        let mut after = rows(&bench.place);
        after.retain(|table, _| before.contains_key(table));
        for (table, rows) in before.into_iter().filter(|(table, _)| !OF_THE_NODE.contains(&table.as_str())) {
            assert_eq!(after[&table], rows, "{table}");
        }
        for (index, delivery) in deliveries.iter().enumerate() {
            let account = AccountNo(if index < 3 { 1 } else { 2 });
            let stored = bench.store.delivery(account, delivery.id).await.unwrap().unwrap();
            assert_eq!(stored.delivery.status.is_final(), index == 0);
            let attempts = bench.store.attempts(delivery.id).await.unwrap();
            assert_eq!(attempts.len(), usize::from([0, 3].contains(&index)), "{index}");
        }
        assert_eq!(bench.waiting_numbers(1, later(9)).await.len(), 2);
        bench.settle(1, 1, &deliveries[1..2], OK, later(10)).await;
        assert_eq!(bench.waiting_numbers(1, later(11)).await.len(), 1, "it is worked on");
    }
}

/// What a start writes, whatever the schema is.
const OF_THE_NODE: &[&str] = &["nodes", "seats", "slots", "versions"];

/// Goal: nothing is lost or changed by a migration.
#[tokio::test]
async fn a_database_of_the_first_version_is_brought_up_with_all_that_is_in_it() {
    let old = Old::new().await;
    let before = rows(&old.place);
    assert!(before.values().filter(|rows| !rows.is_empty()).count() >= 8, "{before:?}");
    old.check_brought_up(before).await;
}

/// Goal: a migration that does not come to its end has changed nothing, and the next start makes it.
/// Method: its last statement fails, or its connection ends in the middle of it.
#[tokio::test]
async fn a_migration_that_is_cut_off_leaves_the_old_version_whole() {
    let in_the_way =
        "create function tidegate.publish(event_type text, payload text, options jsonb) returns text
         language sql as 'select null'";
    let cuts = "create function public.cut() returns event_trigger language plpgsql as
         'begin perform pg_terminate_backend(pg_backend_pid()); end';
         create event trigger cut on ddl_command_end when tag in ('CREATE FUNCTION') execute function public.cut()";
    for (fault, mend) in [
        (in_the_way, "drop function tidegate.publish"),
        (cuts, "drop event trigger cut; drop function public.cut"),
    ] {
        let old = Old::new().await;
        old.sql(fault);
        let (shape_before, before) = (shape(&old.place), rows(&old.place));
        let refused = open(&old.place, &Commits::default()).err();
        assert!(refused.is_some_and(|error| !matches!(error, StoreError::Newer { .. })), "{fault}");
        assert_eq!(shape(&old.place), shape_before, "{fault}");
        assert_eq!(rows(&old.place), before, "{fault}");
        old.sql(mend);
        old.check_brought_up(before).await;
    }
}

/// Tables, sequences and indexes with their columns, and functions; without the partitions, which come and go.
fn shape(place: &Place) -> String {
    server().sql(
        place.name(),
        "select format('%s.%s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull)
         from pg_class c
         join pg_attribute a on a.attrelid = c.oid
         where c.relnamespace = 'tidegate'::regnamespace and not c.relispartition and a.attnum > 0
         union all
         select p.oid::regprocedure::text from pg_proc p where p.pronamespace = 'tidegate'::regnamespace
         order by 1",
    )
}

/// All rows of all tables, as text.
fn rows(place: &Place) -> BTreeMap<String, String> {
    let tables = server().sql(
        place.name(),
        "select relname from pg_class
         where relnamespace = 'tidegate'::regnamespace and relkind in ('r', 'p') and not relispartition",
    );
    let rows = |table: &str| {
        server().sql(place.name(), &format!("select t::text from tidegate.{table} t order by 1"))
    };
    tables.lines().map(|table| (table.to_owned(), rows(table))).collect()
}
