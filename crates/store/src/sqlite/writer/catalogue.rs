//! How a change is made here: with statements that stay prepared.

use rusqlite::{ErrorCode, params_from_iter};

use super::Writer;
use crate::source::{Sql, Value};
use crate::sqlite::failure::Failure;
use crate::writer::change::{Editor, Unless, Unmade};

impl Editor for Writer<'_> {
    type Failure = Failure;

    fn execute(&self, sql: Sql, values: &[Value<'_>]) -> Unless<u64, Failure> {
        let mut statement = self.connection.prepare_cached(sql.sqlite).map_err(unmade)?;
        let changed = statement.execute(params_from_iter(values)).map_err(unmade)?;
        Ok(u64::try_from(changed).unwrap_or(u64::MAX))
    }
    fn exists(&self, sql: Sql, values: &[Value<'_>]) -> Unless<bool, Failure> {
        let mut statement = self.connection.prepare_cached(sql.sqlite).map_err(unmade)?;
        statement.exists(params_from_iter(values)).map_err(unmade)
    }
    fn insert(&self, sql: Sql, values: &[Value<'_>]) -> Unless<u32, Failure> {
        let mut statement = self.connection.prepare_cached(sql.sqlite).map_err(unmade)?;
        let number = statement.insert(params_from_iter(values)).map_err(unmade)?;
        let refused = |_| Failure::Refused("no number is left for another".to_owned());
        Ok(u32::try_from(number).map_err(refused)?)
    }
    fn mark(&self, sql: &'static str) -> Result<(), Failure> {
        Ok(self.connection.execute_batch(sql)?)
    }
}

fn unmade(error: rusqlite::Error) -> Unmade<Failure> {
    match error.sqlite_error_code() {
        Some(ErrorCode::ConstraintViolation) => Unmade::Taken,
        _ => Unmade::Failed(error.into()),
    }
}
