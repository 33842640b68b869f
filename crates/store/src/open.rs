//! What a store held when it was opened, and the threads that serve it from then on.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use tidegate_core::lane::LastStop;
use tidegate_core::sequence::Sequence;

use crate::catalogue::Catalogue;
use crate::cluster::Node;
use crate::counts::Counts;
use crate::job::Job;
use crate::lane::StoredLane;
use crate::queue::Queue;
use crate::shared::{Other, Reader, Shared};
use crate::source::{Result, Source};
use crate::store::Inner;
use crate::{Store, StoreError, codec, load, read};

/// A store that is open, and what it held.
pub struct Opened {
    /// The store.
    pub store: Store,
    /// How the process before this one ended. In a cluster each slot tells that when it is claimed, and this is clean.
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
    /// What other nodes have counted.
    pub(crate) others: Vec<Other>,
    pub(crate) catalogue: Catalogue,
    pub(crate) lanes: Vec<StoredLane>,
    pub(crate) jobs: Vec<Job>,
}

/// What the threads of an engine do.
pub(crate) struct Threads {
    /// Connections to read on: for people, and for deliveries.
    pub(crate) readers: Vec<[Source; 2]>,
    pub(crate) write: Box<dyn FnOnce(Arc<Shared>, Counts) + Send>,
    /// Retention; without it, that is work for the writer.
    pub(crate) forget: Option<Box<dyn FnOnce(Arc<Shared>) + Send>>,
    /// Where there can be others.
    pub(crate) node: Option<Spoken>,
}

/// What others know this process by, and what speaks with them.
pub(crate) struct Spoken {
    pub(crate) node: Node,
    pub(crate) speak: Box<dyn FnOnce(Arc<Shared>) + Send>,
    pub(crate) listen: Box<dyn FnOnce(Arc<Shared>) + Send>,
}

impl Loaded {
    /// Reads what else a start needs.
    pub(crate) fn read(
        source: &Source,
        last_stop: LastStop,
        (lanes, counts): (Vec<StoredLane>, Counts),
        jobs: Vec<Job>,
    ) -> Result<Self> {
        let catalogue = load::catalogue(source)?;
        Ok(Self { last_stop, counts, others: Vec::new(), catalogue, lanes, jobs })
    }

    /// Starts a thread for each reader, the one that writes, and those of retention and of the cluster, if there are any.
    pub(crate) fn start(self, threads: Threads) -> std::result::Result<Opened, StoreError> {
        let Self { last_stop, counts, others, catalogue, lanes, jobs } = self;
        let Threads { readers, write, forget, node } = threads;
        let (node, speak) = match node {
            Some(Spoken { node, speak, listen }) => {
                (Some(node), vec![("store-cluster", speak), ("store-listen", listen)])
            }
            None => (None, Vec::new()),
        };
        let sequence = codec::sequence(counts.sequence);
        let shared = Arc::new(Shared::new(&counts, forget.as_ref().map(|_| Queue::new()), node));
        shared.others(&others);
        let mut threads = Vec::new();
        for (number, [looks, errands]) in readers.into_iter().enumerate() {
            let reader = Reader::new(looks, Arc::clone(&shared));
            let look = move || read::run(&reader, |shared| &shared.looks);
            threads.push(thread(format!("store-look-{number}"), look)?);
            let reader = Reader::new(errands, Arc::clone(&shared));
            let run = move || read::run(&reader, |shared| &shared.errands);
            threads.push(thread(format!("store-read-{number}"), run)?);
        }
        let own = Arc::clone(&shared);
        threads.push(thread("store-write".to_owned(), move || write(own, counts))?);
        if let Some(forget) = forget {
            let own = Arc::clone(&shared);
            threads.push(thread("store-forget".to_owned(), move || forget(own))?);
        }
        for (name, speak) in speak {
            let own = Arc::clone(&shared);
            threads.push(thread(name.to_owned(), move || speak(own))?);
        }
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
