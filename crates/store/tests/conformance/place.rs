//! Where a store lies: the one module that knows which engine it is.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_core::time::Millis;
use tidegate_store::open::Opened;
use tidegate_store::record::Commit;
use tidegate_store::{Store, StoreError, postgres, sqlite};

use crate::fixture::Commits;
use crate::server;

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

/// Opens the store in a place. In PostgreSQL, a partition holds a millisecond: much goes from one to another.
pub fn open(place: &Place, commits: &Commits) -> Result<Opened, StoreError> {
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
    Store::connect(postgres::Options { url, readers: 2, partition: Millis::new(1), on_commit })
}

/// Runs a behaviour to its end.
pub fn run(behaviour: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(behaviour);
}
