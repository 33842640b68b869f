//! Readers: a few threads with a connection each, for short looks at the last commit.
mod age;
mod ahead;
mod attempts;
mod deliveries;
mod events;
mod list;
mod logs;
mod refill;
mod rows;
mod sieve;
mod walk;

pub(super) use refill::Due;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rusqlite::{CachedStatement, Params, Row};

use super::shared::{Reader, Shared};

/// Takes looks until the store is closed.
pub(super) fn run(reader: &Reader) {
    while let Some(look) = reader.shared.looks.pop() {
        // A look that panics is a fault of ours; the next one must still find a reader.
        if catch_unwind(AssertUnwindSafe(|| look(reader))).is_err() {
            tracing::error!("a look at the store ended by a panic");
        }
    }
}

impl Reader {
    pub(super) const fn new(connection: rusqlite::Connection, shared: Arc<Shared>) -> Self {
        Self { connection, shared }
    }

    fn prepare(&self, sql: &str) -> rusqlite::Result<CachedStatement<'_>> {
        self.connection.prepare_cached(sql)
    }

    /// All rows of a statement, each turned into something.
    fn all<T>(
        &self,
        sql: &str,
        params: impl Params,
        mut turn: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let mut statement = self.prepare(sql)?;
        let mut rows = statement.query(params)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(turn(row)?);
        }
        Ok(found)
    }

    /// Several looks at one and the same commit.
    fn at_once<T>(&self, look: impl FnOnce() -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        let transaction = self.connection.unchecked_transaction()?;
        let found = look()?;
        transaction.finish()?;
        Ok(found)
    }
}
