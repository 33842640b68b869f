//! Connections: how the file is opened, and what each connection is told and asked back.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, Row, ToSql};

use crate::StoreError;
use crate::source::{Cell, Value};

/// The first version without the bug by which two connections could corrupt a write-ahead log.
const OLDEST_SQLITE: i32 = 3_051_003;
/// Pages that the writer keeps in memory: what a day's busy part of the indexes needs.
const WRITER_CACHE_KIB: i32 = 64 * 1_024;
/// The same for each reader; their looks are short.
const READER_CACHE_KIB: i32 = 8 * 1_024;
/// What is left of the write-ahead log's file after it was emptied.
const LOG_LEFT: i64 = 96 << 20;
/// How long to wait for a lock that only a tool of an operator can hold.
const BUSY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// FULL: a commit is on the disk before anybody hears of it.
const SYNCHRONOUS: i64 = if cfg!(feature = "planted-weak-sync") { 1 } else { 2 };

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Write,
    Read,
}

/// Refuses a library that may lose data.
pub(super) fn check_library() -> Result<(), StoreError> {
    if rusqlite::version_number() < OLDEST_SQLITE {
        let version = rusqlite::version();
        return Err(StoreError::Broken(format!("SQLite {version} may corrupt the log; 3.51.3 is needed")));
    }
    Ok(())
}

/// Opens a connection and makes sure that a commit on it is durable.
pub(super) fn open(path: &Path, purpose: Use) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let create = if purpose == Use::Write { OpenFlags::SQLITE_OPEN_CREATE } else { OpenFlags::empty() };
    let connection = Connection::open_with_flags(path, flags | create)?;
    if purpose == Use::Write {
        keep_log_on_close(&connection, true)?;
    }
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(128);
    connection.pragma_update(None, "page_size", PAGE_SIZE)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", SYNCHRONOUS)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "temp_store", "memory")?;
    let cache = if purpose == Use::Write { WRITER_CACHE_KIB } else { READER_CACHE_KIB };
    connection.pragma_update(None, "cache_size", -cache)?;
    // The writer empties the log between two groups; nobody else does.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", LOG_LEFT)?;
    if purpose == Use::Read {
        connection.pragma_update(None, "query_only", true)?;
    }
    check_durable(&connection)?;
    Ok(connection)
}

/// Until a store is known to be whole: who refuses it must not copy its log into it on the way out.
pub(super) fn keep_log_on_close(connection: &Connection, keep: bool) -> rusqlite::Result<()> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, keep).map(|_| ())
}

/// Small pages: a commit writes each page that it touched in whole.
const PAGE_SIZE: i32 = 4_096;

/// Reads back what makes a commit durable: a setting that was not taken would lose acknowledged events.
fn check_durable(connection: &Connection) -> rusqlite::Result<()> {
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let synchronous: i64 = connection.pragma_query_value(None, "synchronous", |row| row.get(0))?;
    if mode != "wal" || synchronous != SYNCHRONOUS {
        let text =
            format!("journal_mode is {mode}, synchronous is {synchronous}; wal and {SYNCHRONOUS} are needed");
        return Err(rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, text.into()));
    }
    Ok(())
}

/// A column as it lies in a row.
pub(crate) fn cell<'a>(row: &'a Row<'_>, place: usize) -> rusqlite::Result<Cell<'a>> {
    let value = row.get_ref(place)?;
    Ok(match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Integer(number),
        ValueRef::Text(_) => Cell::Text(value.as_str()?),
        ValueRef::Blob(bytes) => Cell::Blob(bytes),
        ValueRef::Real(_) => {
            return Err(rusqlite::Error::InvalidColumnType(place, String::new(), value.data_type()));
        }
    })
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}
