//! The plans of PostgreSQL's statements: each can be served by the index that its header names.
//!
//! The tables are empty here, and on those a planner would rather read everything; so that is forbidden, and what is shown
//! is which index serves a statement, as it would on tables that are large.

use std::path::Path;

use crate::fixture::Bench;
use crate::place::Engine;
use crate::server;

/// Statements that look into no table of ours, or into no table at all.
const NONE: &[&str] = &[
    "begin_migration",
    "begin_partition",
    "durability",
    "is_made",
    "make_schema",
    "partitions",
    "wait_briefly",
];

#[tokio::test]
async fn every_statement_is_served_by_the_index_that_its_header_names() {
    let bench = Bench::new(Engine::Postgres).await;
    bench.deliver(1, 1, 1, crate::fixture::START).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql/postgres");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if path.is_dir() || NONE.contains(&&*name) {
            continue;
        }
        let sql = std::fs::read_to_string(&path).unwrap();
        // These name tables that come and go.
        if sql.contains("{first}") {
            continue;
        }
        seen += 1;
        let header = sql.lines().find_map(|line| line.strip_prefix("-- Index: ")).unwrap_or_default();
        let plan = explain(&bench, &sql);
        let named = header.trim_end_matches('.').split(", ").filter(|index| index.contains('_'));
        let uses = named.clone().all(|index| names_of(&bench, index).iter().any(|name| plan.contains(name)));
        if header.is_empty() || !uses || plan.contains("Seq Scan") && named.count() > 0 {
            wrong.push(format!("{name} (header: {header})\n{plan}"));
        }
    }
    assert!(seen > 100, "only {seen} statements were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn explain(bench: &Bench, sql: &str) -> String {
    let count = (1..=30).rev().find(|number| sql.contains(&format!("${number}"))).unwrap_or(0);
    // A text that any type of column takes.
    let value = |number: usize| {
        let is_array =
            ["bigint", "text", "bytea"].iter().any(|kind| sql.contains(&format!("${number}::{kind}[]")));
        if is_array { "'{5}'" } else { "'5'" }
    };
    let values: Vec<&str> = (1..=count).map(value).collect();
    let values = if count == 0 { String::new() } else { format!("({})", values.join(", ")) };
    let settings = "set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set enable_bitmapscan = off; \
                    set enable_sort = off; set enable_hashjoin = off; set enable_mergejoin = off;";
    let text = format!("{settings} prepare asked as {sql}; explain (costs off) execute asked {values}");
    server::server().sql(bench.place.name(), &text)
}

/// An index, or those of its partitions.
fn names_of(bench: &Bench, index: &str) -> Vec<String> {
    let sql = format!(
        "select relname from pg_class where relname = '{index}' union all select c.relname from pg_inherits i \
         join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent where p.relname = '{index}'"
    );
    let found = server::server().sql(bench.place.name(), &sql);
    found
        .lines()
        .map(|name| format!("{name} "))
        .chain(found.lines().map(|name| format!("{name}\n")))
        .collect()
}
