//! A look at a data directory from outside, for those who want to know whether a server could use it. It changes nothing, and a
//! server may be using it.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::connection::check_library;
use super::failure::of_read;
use super::lock::{self, Look};
use super::migrate;
use super::open::{NAME, log_of, read_all, refuse_strange_files, unusable};
use crate::StoreError;

/// Stores up to this size are read as a whole; of larger ones, what a start reads.
const READ_WHOLE: u64 = 256 << 20;
/// A server that recovers its log locks the file for a moment.
const PATIENCE: Duration = Duration::from_secs(5);

/// What was found.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// Whether a process uses the directory.
    pub in_use: bool,
    /// What is in it, if there is a store.
    pub contents: Option<Contents>,
}

/// A store that a server could use.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The version of the schema, and the newest that this binary knows.
    pub schema: (i64, i64),
    /// What a start does not read.
    pub pages: Pages,
    /// What is sealed, if that was read: the secrets of destinations.
    pub sealed: Option<Vec<Vec<u8>>>,
}

/// The pages that a start does not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pages {
    /// They were not looked at: there are too many, or an older binary made them.
    Unread,
    /// Like all others, they are whole.
    Whole,
    /// One of them is not, and this is what is wrong with it.
    Damaged(String),
}

/// Looks at a data directory: refuses what [`Store::open`](crate::Store::open) would refuse.
pub fn inspect(data_dir: &Path) -> Result<Inspection, StoreError> {
    check_library()?;
    // Kept to the end, so that nobody starts on what is being read.
    let free = lock::look(data_dir);
    let in_use = matches!(free, Look::InUse);
    let path = data_dir.join(NAME);
    refuse_strange_files(&path)?;
    let size = std::fs::metadata(&path).map_or(0, |file| file.len());
    let contents = match size {
        0 => None,
        _ => Some(look(&path, in_use, size).map_err(|error| unusable(data_dir, error))?),
    };
    drop(free);
    Ok(Inspection { in_use, contents })
}

fn look(path: &Path, in_use: bool, size: u64) -> Result<Contents, StoreError> {
    let connection = open(path, in_use).map_err(of_read)?;
    let migrate::Version { found, known } = migrate::version(&connection)?;
    // Statements are made for the newest schema; a start brings an older one there first.
    if found < known {
        return Ok(Contents { schema: (found, known), pages: Pages::Unread, sealed: None });
    }
    let (connection, loaded) = read_all(connection)?;
    let pages = if size <= READ_WHOLE { check_pages(&connection)? } else { Pages::Unread };
    let secrets = loaded.catalogue.destinations.into_iter().map(|destination| destination.secrets);
    let sealed = secrets.filter(|secrets| !secrets.is_empty()).collect();
    Ok(Contents { schema: (found, known), pages, sealed: Some(sealed) })
}

/// Whatever a check finds after a start's own reads went well lies where no start reads.
fn check_pages(connection: &Connection) -> Result<Pages, StoreError> {
    match connection.query_row("pragma quick_check(1)", (), |row| row.get::<_, String>(0)) {
        Ok(verdict) if verdict == "ok" => Ok(Pages::Whole),
        Ok(verdict) => Ok(Pages::Damaged(verdict.trim_start_matches("*** ").to_owned())),
        Err(error) => match of_read(error) {
            StoreError::Broken(text) => Ok(Pages::Damaged(text)),
            error => Err(error),
        },
    }
}

/// Opens the file to read. Where nobody uses it and there is no log, nobody can change it: then no file is made beside it.
fn open(path: &Path, in_use: bool) -> rusqlite::Result<Connection> {
    let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let has_log = std::fs::metadata(log_of(path)).is_ok_and(|log| log.len() > 0);
    let plain = path.to_str().filter(|text| !text.contains(['?', '#', '%']));
    let connection = match plain {
        Some(text) if !in_use && !has_log => {
            let unchanging = format!("file:{text}?immutable=1");
            Connection::open_with_flags(unchanging, read_only | OpenFlags::SQLITE_OPEN_URI)
        }
        _ => Connection::open_with_flags(path, read_only),
    }?;
    connection.busy_timeout(PATIENCE)?;
    Ok(connection)
}
