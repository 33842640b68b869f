//! What a store held when it was opened, and the threads that serve it from then on.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use tidegate_core::lane::LastStop;
use tidegate_core::sequence::Sequence;

use crate::catalogue::Catalogue;
use crate::counts::Counts;
use crate::job::Job;
use crate::lane::StoredLane;
use crate::shared::{Reader, Shared};
use crate::source::{Result, Source};
use crate::store::Inner;
use crate::{Store, StoreError, codec, load, read};

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

/// What is read before the threads start.
pub(crate) struct Loaded {
    pub(crate) last_stop: LastStop,
    pub(crate) counts: Counts,
    pub(crate) catalogue: Catalogue,
    pub(crate) lanes: Vec<StoredLane>,
    pub(crate) jobs: Vec<Job>,
}

impl Loaded {
    /// Reads what a start needs; `sequence` is the highest number that was ever given.
    pub(crate) fn read(source: &Source, last_stop: LastStop, sequence: i64) -> Result<Self> {
        let (lanes, mut counts) = load::lanes(source)?;
        counts.sequence = sequence;
        let (catalogue, jobs) = (load::catalogue(source)?, load::running_jobs(source)?);
        Ok(Self { last_stop, counts, catalogue, lanes, jobs })
    }

    /// Starts a thread for each reader, and the one that writes.
    pub(crate) fn start(
        self,
        readers: Vec<Source>,
        write: impl FnOnce(Arc<Shared>, Counts) + Send + 'static,
    ) -> std::result::Result<Opened, StoreError> {
        let Self { last_stop, counts, catalogue, lanes, jobs } = self;
        let sequence = codec::sequence(counts.sequence);
        let shared = Arc::new(Shared::new(&counts));
        let mut threads = Vec::new();
        for (number, source) in readers.into_iter().enumerate() {
            let reader = Reader::new(source, Arc::clone(&shared));
            threads.push(thread(format!("store-read-{number}"), move || read::run(&reader))?);
        }
        let own = Arc::clone(&shared);
        threads.push(thread("store-write".to_owned(), move || write(own, counts))?);
        let store = Store { inner: Arc::new(Inner::new(shared, threads)) };
        Ok(Opened { store, last_stop, sequence, catalogue, lanes, jobs })
    }
}

fn thread(
    name: String,
    run: impl FnOnce() + Send + 'static,
) -> std::result::Result<JoinHandle<()>, StoreError> {
    let started = Builder::new().name(name).spawn(run);
    started.map_err(|error| StoreError::Broken(format!("no thread could be started: {error}")))
}
