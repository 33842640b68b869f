//! Opening: lock, migrations, a look at whether the file is whole, and the threads.

use std::fs::File;
use std::io::Read;
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
use crate::StoreError;
use crate::catalogue::Catalogue;
use crate::job::Job;
use crate::lane::StoredLane;
use crate::record::Commit;

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
        let Loaded { clean, counts, catalogue, lanes, jobs } = loaded;
        let sequence = codec::sequence(counts.sequence);
        let shared = Arc::new(Shared::new(&counts));
        let mut threads = Vec::new();
        for number in 0..readers.max(1) {
            let connection = connection::open(&path, Use::Read).map_err(of_read)?;
            let reader = Reader::new(connection, Arc::clone(&shared));
            threads.push(thread(format!("store-read-{number}"), &data_dir, move || read::run(&reader))?);
        }
        let start = writer::Start { connection, path, shared: Arc::clone(&shared), counts, on_commit };
        threads.push(thread("store-write".to_owned(), &data_dir, move || hold(start, lock))?);
        Ok(Opened {
            store: Self { inner: Arc::new(Inner::new(shared, threads)) },
            last_stop: if clean { LastStop::Clean } else { LastStop::Crash },
            sequence,
            catalogue,
            lanes,
            jobs,
        })
    }
}

/// What is read before the threads start.
struct Loaded {
    clean: bool,
    counts: writer::Counts,
    catalogue: Catalogue,
    lanes: Vec<StoredLane>,
    jobs: Vec<Job>,
}

/// Opens the file, brings its schema up to date, reads what a start needs, and takes the mark of a clean stop away.
fn load_all(path: &Path) -> Result<(Connection, Loaded), StoreError> {
    let mut connection = connection::open(path, Use::Write).map_err(of_read)?;
    migrate::run(&mut connection)?;
    let loaded = load(&connection).map_err(of_read)?;
    Ok((connection, loaded))
}

fn load(connection: &Connection) -> rusqlite::Result<Loaded> {
    check(connection)?;
    let clean = load::meta(connection, "clean_stop")? == 1;
    let (lanes, counts) = load::lanes(connection)?;
    let loaded = Loaded {
        clean,
        counts,
        catalogue: load::catalogue(connection)?,
        lanes,
        jobs: load::running_jobs(connection)?,
    };
    connection.execute(sql::SET_META, ("clean_stop", 0))?;
    Ok(loaded)
}

/// A file that cannot be read at start is named, and left as it is.
fn unusable(data_dir: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Broken(text) | StoreError::Refused(text) => {
            let reason = format!(
                "{NAME} cannot be read ({text}); nothing was changed: restore it from a backup, or move it away to start \
                 with an empty store"
            );
            StoreError::Unusable { path: data_dir.to_owned(), reason }
        }
        other => other,
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

/// A log without its file, or a file that is shorter than it says: somebody took it away, or cut it. Starting anew, or with
/// what is left, would hide that.
fn refuse_strange_files(path: &Path) -> Result<(), StoreError> {
    let length = |suffix: &str| {
        let mut name = path.to_owned().into_os_string();
        name.push(suffix);
        std::fs::metadata(name).map_or(0, |file| file.len())
    };
    let (file, log) = (length(""), length("-wal"));
    let reason = match (file, log) {
        (0, 1..) => format!("{NAME} is missing or empty, but its log {NAME}-wal is there"),
        // While there is a log, the file may be behind what its header says.
        (1.., 0) if stated_length(path).is_some_and(|stated| stated > file) => {
            format!("{NAME} has {file} bytes and says that it has more: it was cut short")
        }
        _ => return Ok(()),
    };
    let reason = format!("{reason}; put the file back, or move both away to start with an empty store");
    Err(StoreError::Unusable { path: path.parent().unwrap_or(path).to_owned(), reason })
}

/// How long the file is by its own header, if that says so: pages and their size, where both counters agree.
fn stated_length(path: &Path) -> Option<u64> {
    let mut header = [0; 100];
    File::open(path).and_then(|mut file| file.read_exact(&mut header)).ok()?;
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
