//! The source of a transfer: a store in a directory, locked against servers, and read as it is, without a change.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, params_from_iter};
use sha2::{Digest, Sha256};

use super::open::{NAME, refuse_strange_files};
use super::{connection, lock, migrate};
use crate::StoreError;
use crate::source::{Fault, Result, Row, Value};
use crate::transfer::{Key, Plan, Table, TransferError};

const MARK: &str = include_str!("../../sql/transfer/mark.sql");
const NUMBERS: &str = include_str!("../../sql/transfer/numbers.sql");
const SEALED: &str = include_str!("../../sql/transfer/sealed.sql");

/// Pages that are kept in memory: rows are walked in order, what belongs to them is looked up about in order.
const CACHE_KIB: i32 = 32 * 1_024;

/// A store that is moved away.
pub(crate) struct Origin {
    /// One look at one commit, from the beginning to the end.
    connection: Connection,
    directory: PathBuf,
    /// No server starts here as long as this is held.
    _lock: File,
}

impl Origin {
    /// Opens the store in a data directory, or in a file.
    pub(crate) fn open(path: &Path) -> std::result::Result<Self, TransferError> {
        let here = || path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let (directory, file) = match path.is_dir() {
            true => (path, path.join(NAME)),
            false => (here(), path.to_owned()),
        };
        let wrong = |reason: String| TransferError::Source { path: path.to_owned(), reason };
        let refused = |error: StoreError| match error {
            StoreError::InUse(path) => TransferError::InUse(path),
            StoreError::Unusable { path, reason } => TransferError::Source { path, reason },
            other => wrong(other.to_string()),
        };
        if !file.is_file() {
            return Err(wrong(format!("there is no {}: is this the data directory?", file.display())));
        }
        connection::check_library().map_err(refused)?;
        let lock = lock::take(directory).map_err(refused)?;
        refuse_strange_files(&file).map_err(refused)?;
        let connection = look(&file).map_err(|error| wrong(error.to_string()))?;
        match migrate::version(&connection).map_err(refused)? {
            migrate::Version { found, known } if found < known => Err(TransferError::Older { found, known }),
            _ => Ok(Self { connection, directory: directory.to_owned(), _lock: lock }),
        }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The columns of a table.
    pub(crate) fn columns(&self, table: &Table) -> std::result::Result<Vec<String>, TransferError> {
        let statement =
            self.connection.prepare(table.sql).map_err(|error| self.broken(Fault::Sqlite(error)))?;
        Ok(statement.column_names().map(str::to_owned).collect())
    }

    /// How many rows a table has.
    pub(crate) fn count(&self, plan: &Plan) -> std::result::Result<u64, TransferError> {
        let sql = format!("select count(*) from ({})", plan.table.sql);
        let mut count = 0;
        self.each(&sql, &plan.before_all(), &mut |row| {
            count = crate::codec::uncount(row.get(0)?);
            Ok(true)
        })?;
        Ok(count)
    }

    /// The rows of a table after a key, until `each` has enough.
    pub(crate) fn walk(
        &self,
        plan: &Plan,
        after: &[Key],
        each: &mut dyn FnMut(&Row<'_>) -> Result<bool>,
    ) -> std::result::Result<(), TransferError> {
        self.each(plan.table.sql, after, each)
    }

    /// Single numbers, by their names.
    pub(crate) fn numbers(&self) -> std::result::Result<BTreeMap<String, i64>, TransferError> {
        let mut numbers = BTreeMap::new();
        self.each(NUMBERS, &[], &mut |row| {
            numbers.insert(row.get(0)?, row.get(1)?);
            Ok(true)
        })?;
        Ok(numbers)
    }

    /// What is sealed.
    pub(crate) fn sealed(&self) -> std::result::Result<Vec<Vec<u8>>, TransferError> {
        let mut sealed = Vec::new();
        self.each(SEALED, &[], &mut |row| {
            sealed.push(row.get(0)?);
            Ok(true)
        })?;
        Ok(sealed)
    }

    /// What this source is known by: another one, or this one after anything happened in it, has another mark.
    pub(crate) fn mark(&self) -> std::result::Result<String, TransferError> {
        let mut hash = Sha256::new();
        self.each(MARK, &[], &mut |row| {
            for place in 0..4 {
                hash.update(format!("{:?}\n", row.cell(place)?));
            }
            Ok(true)
        })?;
        Ok(hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
    }

    fn each(
        &self,
        sql: &str,
        after: &[Key],
        each: &mut dyn FnMut(&Row<'_>) -> Result<bool>,
    ) -> std::result::Result<(), TransferError> {
        let mut walk = || -> Result<()> {
            let mut statement = self.connection.prepare(sql).map_err(Fault::Sqlite)?;
            let mut rows =
                statement.query(params_from_iter(after.iter().map(Value::from))).map_err(Fault::Sqlite)?;
            while let Some(row) = rows.next().map_err(Fault::Sqlite)? {
                if !each(&Row::Sqlite(row))? {
                    break;
                }
            }
            Ok(())
        };
        walk().map_err(|fault| self.broken(fault))
    }

    fn broken(&self, fault: Fault) -> TransferError {
        let reason = match fault {
            Fault::Sqlite(error) => error.to_string(),
            fault => StoreError::from(fault).to_string(),
        };
        TransferError::Source { path: self.directory.clone(), reason }
    }
}

/// Opens the file and begins to look: what is seen from now on is one commit.
fn look(file: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    connection.execute_batch("begin")?;
    connection.query_row("select count(*) from sqlite_schema", (), |_| Ok(()))?;
    Ok(connection)
}
