//! How a change is made here: a statement at a time, each with its own round trip, for changes are rare.

use super::{Answer, Writer};
use crate::postgres::failure::Failure;
use crate::postgres::value::typed;
use crate::source::{Sql, Value};
use crate::writer::change::{Editor, Unless, Unmade};

impl Writer {
    fn ask(&self, sql: Sql, values: &[Value<'_>]) -> Unless<Answer, Failure> {
        match self.link.ask(sql.postgres, typed(values)) {
            Err(Failure::Taken(_)) => Err(Unmade::Taken),
            answer => Ok(answer?),
        }
    }
}

impl Editor for Writer {
    type Failure = Failure;

    fn execute(&self, sql: Sql, values: &[Value<'_>]) -> Unless<u64, Failure> {
        Ok(self.ask(sql, values)?.changed)
    }
    fn exists(&self, sql: Sql, values: &[Value<'_>]) -> Unless<bool, Failure> {
        Ok(!self.ask(sql, values)?.rows.is_empty())
    }
    fn insert(&self, sql: Sql, values: &[Value<'_>]) -> Unless<u32, Failure> {
        let added = self.ask(sql, values)?;
        let number = added.rows.first().and_then(|row| u32::try_from(row.get::<_, i32>(0)).ok());
        Ok(number.ok_or_else(|| Failure::Refused("no number is left for another".to_owned()))?)
    }
    fn mark(&self, sql: &'static str) -> Result<(), Failure> {
        self.link.batch(sql)
    }
    fn node(&self) -> Option<i64> {
        Some(self.slots.node)
    }
}
