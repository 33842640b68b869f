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

pub(crate) use refill::Due;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::codec;
use crate::queue::Queue;
use crate::shared::{Look, Reader, Shared};
use crate::source::{Fault, Result, Row, Source, Sql, Value};
use crate::{StoreError, sqlite};

/// Takes looks from one of the queues until the store is closed.
pub(crate) fn run(reader: &Reader, queue: impl Fn(&Shared) -> &Queue<Look>) {
    while let Some(look) = queue(&reader.shared).pop() {
        // A look that panics is a fault of ours; the next one must still find a reader.
        if catch_unwind(AssertUnwindSafe(|| look(reader))).is_err() {
            tracing::error!("a look at the store ended by a panic");
        }
    }
}

impl Reader {
    pub(crate) const fn new(source: Source, shared: Arc<Shared>) -> Self {
        Self { source, shared }
    }

    /// What it means that a look failed. Of a file that is broken in one place nobody knows where else it is: whoever finds
    /// that stops the writer, too.
    pub(crate) fn failed(&self, fault: Fault) -> StoreError {
        let of_the_file = matches!(&fault, Fault::Sqlite(error) if sqlite::is_of_the_file(error));
        let error = StoreError::from(fault);
        if let StoreError::Broken(text) = &error
            && of_the_file
            && !self.shared.is_broken()
        {
            tracing::error!(%text, "the store is broken, a reader finds: nothing is acknowledged any more");
            self.shared.break_down(text);
        }
        error
    }

    fn all<T>(
        &self,
        sql: Sql,
        values: &[Value<'_>],
        turn: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.source.all(sql, values, turn)
    }

    fn one<T>(
        &self,
        sql: Sql,
        values: &[Value<'_>],
        turn: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        self.source.one(sql, values, turn)
    }

    /// The number that a statement counts.
    fn count(&self, sql: Sql, values: &[Value<'_>]) -> Result<u64> {
        Ok(self.one(sql, values, |row| row.get(0).map(codec::uncount))?.unwrap_or(0))
    }

    fn each<T>(
        &self,
        sql: Sql,
        asked: &[Vec<Value<'_>>],
        turn: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<Vec<T>>> {
        self.source.each(sql, asked, turn)
    }

    /// Several looks at one and the same commit.
    fn at_once<T>(&self, look: impl FnOnce() -> Result<T>) -> Result<T> {
        self.source.at_once(look)
    }
}

/// How far to count to know whether there are more than `cap`.
fn beyond(cap: u64) -> i64 {
    codec::count(cap.saturating_add(1))
}
