//! Where a store lies: the one module that knows which engine it is.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate_core::lane::LastStop;
use tidegate_core::slots::Slot;
use tidegate_core::time::Millis;
use tidegate_store::cluster::Identity;
use tidegate_store::open::Opened;
use tidegate_store::record::Commit;
use tidegate_store::{Store, StoreError, postgres, sqlite};

use crate::fixture::Commits;
use crate::server;

/// Between two looks at whether a directory is free, and how many there are.
const PAUSE: Duration = Duration::from_millis(10);
const TRIES: u32 = 300;

/// What is inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Postgres,
}

/// A directory or a database, which goes when the test ends.
#[derive(Debug)]
pub enum Place {
    Directory(PathBuf),
    Database(String),
    /// A database of another server, by its URL: that takes it away.
    Elsewhere(String),
}

impl Place {
    pub fn new(engine: Engine) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        match engine {
            Engine::Sqlite => {
                let name = format!("tidegate-store-{}-{number}", std::process::id());
                let path = std::env::temp_dir().join(name);
                let _ = std::fs::remove_dir_all(&path);
                Self::Directory(path)
            }
            Engine::Postgres => {
                let name = format!("store_{}_{number}", std::process::id());
                server::create(&name);
                Self::Database(name)
            }
        }
    }

    pub fn directory(&self) -> &Path {
        let Self::Directory(path) = self else { panic!("{self:?} is no directory") };
        path
    }

    /// The database's name.
    pub fn name(&self) -> &str {
        let Self::Database(name) = self else { panic!("{self:?} is no database of the tests' server") };
        name
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        match self {
            Self::Directory(path) => drop(std::fs::remove_dir_all(path)),
            Self::Database(name) => server::drop(name),
            Self::Elsewhere(_) => {}
        }
    }
}

/// Opens the store in a place that nobody has open. A program that another test starts inherits the lock on a directory that
/// was let go of meanwhile, until it has become that program.
#[expect(clippy::disallowed_methods, reason = "waits for a condition that nothing announces")]
pub fn open(place: &Place, commits: &Commits) -> Result<Opened, StoreError> {
    for _ in 0..TRIES {
        match try_open(place, commits) {
            Err(StoreError::InUse(_)) => std::thread::sleep(PAUSE),
            opened => return opened,
        }
    }
    try_open(place, commits)
}

/// Opens the store in a place. In PostgreSQL, a partition holds a millisecond: much goes from one to another.
pub fn try_open(place: &Place, commits: &Commits) -> Result<Opened, StoreError> {
    let commits = Arc::clone(commits);
    let on_commit: Box<dyn Fn(Commit) + Send> = Box::new(move |commit| commits.lock().unwrap().push(commit));
    match place {
        Place::Directory(path) => {
            Store::open(sqlite::Options { data_dir: path.clone(), readers: 2, on_commit })
        }
        Place::Database(name) => connect(server::server().url(name), on_commit),
        Place::Elsewhere(url) => connect(url.clone(), on_commit),
    }
}

fn connect(url: String, on_commit: Box<dyn Fn(Commit) + Send>) -> Result<Opened, StoreError> {
    let identity = Identity::default();
    Store::connect(postgres::Options {
        url,
        listen_url: None,
        max_event_bytes: 1 << 20,
        identity,
        readers: 2,
        partition: Millis::new(1),
        on_commit,
    })
}

/// In a cluster, takes all destinations; everybody who had some is gone. Says how they left.
pub async fn claim_all(store: &Store) -> LastStop {
    let Some(cluster) = store.cluster() else { return LastStop::Clean };
    let claimed = cluster.claim(Slot::all().collect()).await.unwrap();
    assert_eq!(claimed.len(), 256, "all of them are free");
    let clean = claimed.iter().all(|claimed| claimed.last_stop == LastStop::Clean);
    if clean { LastStop::Clean } else { LastStop::Crash }
}

/// In a cluster, everybody's lease ends, as it does when nobody renews it.
pub fn end_leases(place: &Place) {
    if let Place::Database(name) = place {
        server::server().sql(name, "update tidegate.nodes set lease_until = clock_timestamp()");
    }
}

/// Runs a behaviour to its end.
pub fn run(behaviour: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(behaviour);
}
