//! The schema, in versions. All that are missing run in one transaction, so that a crash leaves the old one or the new one.

use rusqlite::{Connection, TransactionBehavior};

use crate::StoreError;
use crate::sqlite::failure::of_read;

/// Marks the file as ours: "Tide" in ASCII.
const APPLICATION_ID: i64 = 0x5469_6465;

/// The steps, in order; the schema's version is how many of them ran.
const STEPS: &[&str] = &[include_str!("../../sql/migrations/0001.sql")];

/// Brings the schema to what this binary knows. Refuses a newer one, and a file that is not ours, before changing anything.
pub(super) fn run(connection: &mut Connection) -> Result<(), StoreError> {
    match version(connection)? {
        Version { found, known } if found == known => Ok(()),
        Version { found, known } => {
            apply(connection, usize::try_from(found).unwrap_or(0), known).map_err(of_read)
        }
    }
}

/// How many steps ran, and how many there are.
pub(super) struct Version {
    pub(super) found: i64,
    pub(super) known: i64,
}

/// The schema's version. Refuses a newer one, and a file that is not ours.
pub(super) fn version(connection: &Connection) -> Result<Version, StoreError> {
    let known = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    let pragma = |connection: &Connection, name| {
        connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(of_read)
    };
    let found = pragma(connection, "user_version")?;
    let owner = pragma(connection, "application_id")?;
    let tables: i64 =
        connection.query_row("select count(*) from sqlite_schema", (), |row| row.get(0)).map_err(of_read)?;
    if (tables > 0 || found > 0) && owner != APPLICATION_ID {
        return Err(StoreError::Broken(
            "the file belongs to another program; nothing was changed".to_owned(),
        ));
    }
    if found > known {
        return Err(StoreError::Newer { found, known });
    }
    Ok(Version { found, known })
}

fn apply(connection: &mut Connection, from: usize, to: i64) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for step in &STEPS[from..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", to)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.commit()
}
