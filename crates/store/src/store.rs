//! The handle that everybody has: it puts work into a queue and waits for the answer, or does not wait
//! ([`Store::record`]).

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::cluster::Cluster;
use crate::shared::Shared;

/// The store. A handle is cheap to clone; the last one that goes takes the threads with it.
#[derive(Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) cluster: Option<Cluster>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Inner {
    pub(crate) fn new(shared: Arc<Shared>, threads: Vec<JoinHandle<()>>) -> Self {
        let cluster = Cluster::of(&shared);
        Self { shared, cluster, threads: Mutex::new(threads) }
    }

    /// Lets the threads finish what they were given, and waits for them.
    pub(crate) fn join(&self) {
        self.shared.work.close();
        self.shared.close_rest();
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // The last handle may go with something that the writer itself drops.
            if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
                tracing::error!("a thread of the store ended by a panic");
            }
        }
    }
}

/// Without [`Store::close`] there is no mark of a clean stop; everything that was committed is there all the same.
impl Drop for Inner {
    fn drop(&mut self) {
        self.join();
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("status", &self.inner.shared.status()).finish_non_exhaustive()
    }
}
