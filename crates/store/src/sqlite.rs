//! The store on SQLite: one writer thread that commits in groups, and a few readers.
//!
//! A handle puts work into a queue and waits for the answer, or does not wait: [`Store::record`]. How it is opened is in
//! [`open`], how a group is committed in `writer`, how a question is answered in `read`.

mod codec;
mod connection;
mod failure;
mod load;
mod lock;
mod migrate;
mod names;
pub mod open;
#[cfg(test)]
mod plans;
mod queue;
mod read;
mod shared;
mod sql;
#[cfg(test)]
mod tests;
mod verbs;
mod writer;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

pub use open::{Opened, Options};
use shared::Shared;

/// The store. A handle is cheap to clone; the last one that goes takes the threads with it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Inner {
    const fn new(shared: Arc<Shared>, threads: Vec<JoinHandle<()>>) -> Self {
        Self { shared, threads: Mutex::new(threads) }
    }

    /// Lets the threads finish what they were given, and waits for them.
    fn join(&self) {
        self.shared.work.close();
        self.shared.looks.close();
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
