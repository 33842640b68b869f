//! The plans of the statements: each uses the index that its header names, none scans or sorts.

use rusqlite::Connection;

use super::{migrate, sql};

/// Statements that may look at a whole table: what is read once at start, and the first rows of a log.
const WHOLE: &[&str] = &[
    "load_accounts",
    "load_account_tallies",
    "load_deleted",
    "load_destinations",
    "load_event_types",
    "load_keys",
    "load_lanes",
    "load_routes",
    "next_to_forget",
    "forget_holds",
    "forget_notices",
    "forget_hours",
    "put_job",
    "running_jobs",
];

/// Statements that sort: many rows in one go, so that they are written in order.
const SORT: &[&str] = &["file_attempts", "file_deliveries"];

fn plan(connection: &Connection, sql: &str) -> String {
    let mut statement = connection.prepare(&format!("explain query plan {sql}")).unwrap();
    let count = statement.parameter_count();
    let nothing = vec![rusqlite::types::Null; count];
    let rows =
        statement.query_map(rusqlite::params_from_iter(nothing), |row| row.get::<_, String>(3)).unwrap();
    rows.map(|row| row.unwrap()).collect::<Vec<_>>().join("\n")
}

fn schema() -> Connection {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate::run(&mut connection).unwrap();
    connection
}

#[test]
fn every_statement_is_served_by_the_index_that_its_header_names() {
    let connection = schema();
    let mut wrong = Vec::new();
    let looks = crate::sql::ALL.iter().map(|(name, sql)| (*name, sql.sqlite));
    for (name, sql) in sql::ALL.iter().copied().chain(looks) {
        let plan = plan(&connection, sql);
        let header = sql.lines().find_map(|line| line.strip_prefix("-- Index: ")).unwrap_or_default();
        let index = header.trim_end_matches('.');
        let named = index.contains('_').then_some(index);
        let uses = named.is_none_or(|index| {
            plan.contains(&format!("INDEX {index} ")) || plan.ends_with(&format!("INDEX {index}"))
        });
        // What a part of the statement itself has found.
        let results = ["SCAN (subquery", "SCAN keys", "SCAN CONSTANT ROW"];
        let plan = results.iter().fold(plan, |plan, own| plan.replace(own, ""));
        let scans = plan.contains("SCAN") && !WHOLE.contains(&name);
        let sorts = plan.contains("TEMP B-TREE") && !SORT.contains(&name);
        let nothing = header.is_empty();
        if !uses || scans || sorts || nothing {
            wrong.push(format!("{name} (header: {index})\n{plan}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Goal: filling a window costs the same whatever waits behind it. A plan that names the right index may still walk over all of it.
#[test]
fn a_refill_walks_over_nothing_that_it_does_not_bring() {
    const MOST_STEPS: i32 = 2_000;
    let connection = schema();
    let backlog = "with recursive n (n) as (select 1 union all select n + 1 from n where n < 20000)
        insert into deliveries
        select n, 0, n, 1, 1, 1, 1, 3, n, n, null, n, case when n > 10000 then 'key' end, 0, null, 0, 0, 0, null, null, null, null
        from n";
    connection.execute(backlog, ()).unwrap();
    let now = 30_000_i64;
    let looks: [(&str, crate::source::Sql, &[&dyn rusqlite::ToSql]); 8] = [
        ("is_due", crate::sql::IS_DUE, &[&1, &now]),
        ("timed", crate::sql::REFILL_TIMED, &[&1, &now, &16]),
        ("the first kind", crate::sql::REFILL_KINDS, &[&1, &true, &0, &0]),
        ("the next kind", crate::sql::REFILL_KINDS, &[&1, &true, &3, &1]),
        ("those of a kind", crate::sql::REFILL_READY, &[&1, &true, &3, &1, &i64::MIN, &i64::MIN, &16]),
        ("the first key", crate::sql::REFILL_FIRST_KEY, &[&1]),
        ("the next key", crate::sql::REFILL_NEXT_KEY, &[&1, &"key"]),
        ("a line", crate::sql::REFILL_LINE, &[&1, &"key", &16]),
    ];
    for (name, sql, parameters) in looks {
        let mut statement = connection.prepare(sql.sqlite).unwrap();
        let mut rows = statement.query(parameters).unwrap();
        while rows.next().unwrap().is_some() {}
        drop(rows);
        let steps = statement.get_status(rusqlite::StatementStatus::VmStep);
        assert!(steps < MOST_STEPS, "{name}: {steps} steps");
    }
}

/// Goal: a transfer of any size goes on at once where it was, and keeps nothing of a table in memory to sort it.
#[test]
fn a_transfer_walks_tables_in_the_order_of_their_keys() {
    let connection = schema();
    for table in crate::transfer::TABLES {
        let plan = plan(&connection, table.sql);
        // As many rows as there are destinations.
        let sorts = plan.contains("TEMP B-TREE") && table.name != "lanes";
        assert!(!sorts && plan.contains("SEARCH"), "{}\n{plan}", table.name);
    }
}
