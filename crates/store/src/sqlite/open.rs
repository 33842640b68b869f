//! Opening: lock, migrations, a look at whether the file is whole, and the threads.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;
use tidegate_core::lane::LastStop;
use tidegate_core::sequence::Sequence;

use super::connection::{self, Use};
use super::failure::of_read;
use super::shared::{Reader, Shared};
use super::{Inner, Store, codec, load, lock, migrate, read, sql, writer};
use crate::catalogue::Catalogue;
use crate::job::Job;
use crate::lane::StoredLane;
use crate::record::Commit;
use crate::{DestinationNo, StoreError};

/// The file, in the data directory.
const NAME: &str = "tidegate.db";

/// How to open a store.
pub struct Options {
    /// Where it lies; made if it is not there.
    pub data_dir: PathBuf,
    /// Threads that read, at least one.
    pub readers: usize,
    /// Called on the writer's thread after each commit, before anybody gets an answer. It must be quick and must not wait
    /// for the store.
    pub on_commit: Box<dyn Fn(Commit) + Send>,
}

/// A store that is open, and what it held.
pub struct Opened {
    /// The store.
    pub store: Store,
    /// How the process before this one ended.
    pub last_stop: LastStop,
    /// The highest number of acceptance that was ever given: the next is above it.
    pub sequence: Sequence,
    /// What owners asked for.
    pub catalogue: Catalogue,
    /// Lanes that were ever stored.
    pub lanes: Vec<StoredLane>,
    /// Jobs that were running.
    pub jobs: Vec<Job>,
    /// Destinations that are deleted and have open deliveries left: withdraw these.
    pub deleted: Vec<DestinationNo>,
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
        let mut connection = connection::open(&path, Use::Write).map_err(of_read)?;
        migrate::run(&mut connection)?;
        check(&connection).map_err(of_read)?;
        let clean = load::meta(&connection, "clean_stop").map_err(of_read)? == 1;
        connection.execute(sql::SET_META, ("clean_stop", 0)).map_err(of_read)?;
        let loaded = || -> rusqlite::Result<_> {
            let (lanes, counts) = load::lanes(&connection)?;
            let jobs = load::running_jobs(&connection)?;
            Ok((load::catalogue(&connection)?, lanes, counts, jobs, load::deleted(&connection)?))
        };
        let (catalogue, lanes, counts, jobs, deleted) = loaded().map_err(of_read)?;
        let sequence = codec::sequence(counts.sequence);
        let shared = Arc::new(Shared::new(&counts));
        let mut threads = Vec::new();
        for number in 0..readers.max(1) {
            let reader =
                Reader::new(connection::open(&path, Use::Read).map_err(of_read)?, Arc::clone(&shared));
            threads.push(thread(format!("store-read-{number}"), &data_dir, move || read::run(&reader))?);
        }
        let start = writer::Start { connection, path, shared: Arc::clone(&shared), counts, on_commit };
        threads.push(thread("store-write".to_owned(), &data_dir, move || hold(start, lock))?);
        Ok(Opened {
            store: Store { inner: Arc::new(Inner::new(shared, threads)) },
            last_stop: if clean { LastStop::Clean } else { LastStop::Crash },
            sequence,
            catalogue,
            lanes,
            jobs,
            deleted,
        })
    }
}

/// The directory is ours until the writer has ended.
fn hold(start: writer::Start, lock: File) {
    writer::run(start);
    drop(lock);
}

fn thread(
    name: String,
    data_dir: &Path,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, StoreError> {
    Builder::new()
        .name(name)
        .spawn(run)
        .map_err(|error| StoreError::Unusable { path: data_dir.to_owned(), reason: error.to_string() })
}

/// A log without its file, or an empty file where there was one: somebody took it away. Starting anew would hide that.
fn refuse_strange_files(path: &Path) -> Result<(), StoreError> {
    let length = |suffix: &str| {
        let mut name = path.to_owned().into_os_string();
        name.push(suffix);
        std::fs::metadata(name).map(|file| file.len()).ok()
    };
    if length("").unwrap_or(0) == 0 && length("-wal").unwrap_or(0) > 0 {
        let reason = format!(
            "{NAME} is missing or empty, but its log {NAME}-wal is there: put the file back, or move the log away to \
             start with an empty store"
        );
        let path = path.parent().unwrap_or(path).to_owned();
        return Err(StoreError::Unusable { path, reason });
    }
    Ok(())
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
