//! Opening: lock, migrations, a look at whether the file is whole, and the threads.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode};
use rustix::fs::statvfs;
use tidegate_core::lane::LastStop;

use super::connection::{self, Use};
use super::failure::of_read;
use super::{lock, marker, migrate, sql, writer};
use crate::counts::Counts;
use crate::lane::StoredLane;
use crate::open::{Loaded, Opened, Threads};
use crate::record::Commit;
use crate::source::{Source, all_of, params};
use crate::{Store, StoreError, codec, load};

/// The file, in the data directory.
pub(super) const NAME: &str = "tidegate.db";

/// With less than this left on it a disk is full: the log and its index, both empty, take a tenth of it.
const ROOM: u64 = 1 << 20;

/// How to open a store.
pub struct Options {
    /// Where it lies; made if it is not there.
    pub data_dir: PathBuf,
    /// Threads that read for people, at least one; as many again read for deliveries.
    pub readers: usize,
    /// Called on the writer's thread after each commit, before anybody gets an answer. It must be quick and must not wait
    /// for the store.
    pub on_commit: Box<dyn Fn(Commit) + Send>,
}

impl Store {
    /// Opens the store in a directory, or makes one there. Blocks while it recovers what a crash has left.
    pub fn open(options: Options) -> Result<Opened, StoreError> {
        let Options { data_dir, readers, on_commit } = options;
        connection::check_library()?;
        std::fs::create_dir_all(&data_dir)
            .map_err(|error| StoreError::Unusable { path: data_dir.clone(), reason: error.to_string() })?;
        let lock = lock::take(&data_dir)?;
        let path = data_dir.join(NAME);
        refuse_strange_files(&path)?;
        let (connection, loaded) = load_all(&path).map_err(|error| unusable(&data_dir, error))?;
        marker::put(&data_dir)
            .map_err(|error| StoreError::Unusable { path: data_dir.clone(), reason: error.to_string() })?;
        let read = || connection::open(&path, Use::Read).map(Source::Sqlite);
        let readers = (0..readers.max(1)).map(|_| Ok([read()?, read()?]));
        let readers = readers.collect::<rusqlite::Result<Vec<_>>>().map_err(|error| of_open(&path, error))?;
        let write = move |shared, counts| {
            writer::run(writer::Start { connection, path, shared, counts, on_commit });
            // The directory is ours until the writer has ended.
            drop(lock);
        };
        loaded.start(Threads { readers, write: Box::new(write), forget: None, node: None })
    }
}

/// Opens the file, brings its schema up to date, reads what a start needs, and takes the mark of a clean stop away.
fn load_all(path: &Path) -> Result<(Connection, Loaded), StoreError> {
    let mut connection = connection::open(path, Use::Write).map_err(|error| of_open(path, error))?;
    migrate::run(&mut connection)?;
    let (connection, loaded) = read_all(connection)?;
    connection.execute(sql::SET_META, ("clean_stop", 0)).map_err(of_read)?;
    connection::keep_log_on_close(&connection, false).map_err(of_read)?;
    Ok((connection, loaded))
}

/// The first connection makes the log and its index. Where there is no room for them, SQLite speaks of a disk that is broken.
fn of_open(path: &Path, error: rusqlite::Error) -> StoreError {
    let is_full = |path| statvfs(path).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < ROOM);
    match error.sqlite_error_code() {
        Some(ErrorCode::SystemIoFailure) if is_full(path) => StoreError::Full,
        _ => of_read(error),
    }
}

/// Reads what a start needs, and so finds out whether it can be read.
pub(super) fn read_all(connection: Connection) -> Result<(Connection, Loaded), StoreError> {
    check(&connection).map_err(of_read)?;
    let (lanes, mut counts) = lanes(&connection)?;
    let jobs = all_of(&connection, sql::RUNNING_JOBS, params![], |row| load::job(row).map(|(_, job)| job))?;
    let source = Source::Sqlite(connection);
    let clean = load::meta(&source, "clean_stop")? == 1;
    let last_stop = if clean { LastStop::Clean } else { LastStop::Crash };
    counts.sequence = load::meta(&source, "sequence")?;
    let loaded = Loaded::read(&source, last_stop, (lanes, counts), jobs)?;
    let Source::Sqlite(connection) = source else { unreachable!("it was put there above") };
    Ok((connection, loaded))
}

/// Lanes, and the counts kept with them.
fn lanes(connection: &Connection) -> Result<(Vec<StoredLane>, Counts), StoreError> {
    let mut counts = Counts::default();
    let lanes = all_of(connection, sql::LOAD_LANES, params![], |row| {
        let (destination, lane) = load::lane_counts(row)?;
        counts.lanes.insert(destination, lane);
        let open = codec::uncount(lane.open);
        let (state, timeouts) = (row.get(13)?, row.get(14)?);
        Ok(StoredLane { destination, state, timeouts, open, saved_at: None, in_flight: 0 })
    })?;
    let accounts = all_of(connection, sql::LOAD_ACCOUNT_TALLIES, params![], load::account_tally)?;
    counts.accounts.extend(accounts);
    Ok((lanes, counts))
}

/// A file that cannot be read at start is named, and left as it is.
pub(super) fn unusable(data_dir: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Broken(text) | StoreError::Refused(text) => {
            let reason = format!(
                "{NAME} cannot be read ({text}); nothing was changed: restore it from a backup, or move it and {} away to \
                 start with an empty store",
                marker::NAME
            );
            StoreError::Unusable { path: data_dir.to_owned(), reason }
        }
        other => other,
    }
}

/// No file where there was one, a log without its file, or a file that is shorter than it says: somebody took it away, or cut
/// it. Starting anew, or with what is left, would hide that.
pub(super) fn refuse_strange_files(path: &Path) -> Result<(), StoreError> {
    let data_dir = path.parent().unwrap_or(path);
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    let (file, log) = (length(path), length(&log_of(path)));
    let reason = match (file, log) {
        (0, 1..) => format!("{NAME} is missing or empty, but its log {NAME}-wal is there"),
        (0, 0) if marker::is_there(data_dir) => {
            format!("{NAME} is missing or empty, but {} says that there was one", marker::NAME)
        }
        // While there is a log, the file may be behind what its header says.
        (1.., 0) if stated_length(path).is_some_and(|stated| stated > file) => {
            format!("{NAME} has {file} bytes and says that it has more: it was cut short")
        }
        _ => return Ok(()),
    };
    let reason = format!(
        "{reason}; put the file back (from a backup, if need be), or move it, its log and {} away to start with an empty store",
        marker::NAME
    );
    Err(StoreError::Unusable { path: data_dir.to_owned(), reason })
}

/// The log of a file.
pub(super) fn log_of(path: &Path) -> PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push("-wal");
    name.into()
}

/// How long the file is by its own header, if it is SQLite's and says so: pages and their size, where both counters agree.
fn stated_length(path: &Path) -> Option<u64> {
    let mut header = [0; 100];
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).ok()?;
    if !header.starts_with(b"SQLite format 3\0") {
        return None;
    }
    let number = |at: usize| header[at..at + 4].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let page = match u64::from(header[16]) << 8 | u64::from(header[17]) {
        1 => 65_536,
        size => size,
    };
    (number(24) == number(92)).then(|| number(28) * page)
}

/// Whether the first and the last rows of the large tables can be read. A full check would take minutes on a large store.
fn check(connection: &Connection) -> rusqlite::Result<()> {
    for (table, key) in [("events", "seq"), ("deliveries", "seq"), ("attempts", "delivery_seq")] {
        for direction in ["asc", "desc"] {
            let sql = format!("select * from {table} order by {key} {direction} limit 1");
            connection.prepare(&sql)?.exists(())?;
        }
    }
    Ok(())
}
