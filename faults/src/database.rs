//! Looks into a server's files while no server runs on them.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use rusqlite::Connection;

use crate::run::copy_directory;

/// The store's file in a data directory.
pub(crate) const FILE: &str = "tidegate.db";
/// Its log.
pub(crate) const LOG: &str = "tidegate.db-wal";

/// Whether the store is whole. A copy is looked at: whoever opens a store recovers it, and that is the server's to do.
pub(crate) fn check_integrity(data_dir: &Path, scratch: &Path) -> Result<()> {
    let _ = fs::remove_dir_all(scratch);
    copy_directory(data_dir, scratch)?;
    let connection = Connection::open(scratch.join(FILE))?;
    let found: String = connection.pragma_query_value(None, "integrity_check", |row| row.get(0))?;
    ensure!(found == "ok", "integrity_check: {found}");
    drop(connection);
    fs::remove_dir_all(scratch).context("the scratch directory")
}

/// Sets a number in the header of a store.
pub(crate) fn set_pragma(data_dir: &Path, name: &str, value: i64) -> Result<()> {
    Connection::open(data_dir.join(FILE))?.pragma_update(None, name, value)?;
    Ok(())
}

/// Reads one.
pub(crate) fn pragma(data_dir: &Path, name: &str) -> Result<i64> {
    Ok(Connection::open(data_dir.join(FILE))?.pragma_query_value(None, name, |row| row.get(0))?)
}
