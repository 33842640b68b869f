//! The schema, in versions. All that are missing run in one transaction, under a lock that ends with it: of several nodes
//! that start together one migrates, and the others find it done.

use super::failure::Failure;
use super::link::Link;
use super::sql;
use super::value::typed;
use crate::StoreError;
use crate::source::params;

/// The steps, in order; the schema's version is how many of them ran.
const STEPS: &[&str] = &[
    include_str!("../../sql/postgres/migrations/0001.sql"),
    include_str!("../../sql/postgres/migrations/0002.sql"),
];

/// Brings the schema to what this binary knows. Refuses a newer one before changing anything.
pub(super) fn run(link: &Link) -> Result<(), StoreError> {
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    match version(link)? {
        Some(found) if found > known => return Err(StoreError::Newer { found, known }),
        Some(found) if found == known => return Ok(()),
        _ => {}
    }
    Ok(link.transact(sql::BEGIN_MIGRATION, || migrate(link, known))?)
}

fn migrate(link: &Link, known: i64) -> Result<(), Failure> {
    let found = match version(link)? {
        Some(found) => found,
        None => {
            link.batch(sql::MAKE_SCHEMA)?;
            0
        }
    };
    if found < known {
        let missing = STEPS.iter().skip(usize::try_from(found).unwrap_or(0));
        missing.into_iter().try_for_each(|step| link.batch(step))?;
        link.ask(sql::ADD_VERSION, typed(params![known]))?;
    }
    Ok(())
}

/// The version that is there, and the newest that this binary knows.
pub(super) fn versions(link: &Link) -> Result<(Option<i64>, i64), StoreError> {
    Ok((version(link)?, i64::try_from(STEPS.len()).unwrap_or(i64::MAX)))
}

/// How many steps ran; `None` if there is no schema.
fn version(link: &Link) -> Result<Option<i64>, Failure> {
    let made = link.ask(sql::IS_MADE, Vec::new())?;
    if !made.rows.first().is_some_and(|row| row.get(0)) {
        return Ok(None);
    }
    let found = link.ask(sql::GET_VERSION, Vec::new())?;
    Ok(found.rows.first().map(|row| row.get(0)))
}
