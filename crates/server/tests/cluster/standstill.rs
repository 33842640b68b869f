//! Moments at which this machine gave the test no time to run: they explain what would otherwise be a fault of a node.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::kit::{millis, now, secs};
use crate::nemesis::Fault;

const TICK: Duration = millis(100);
/// From this length on it matters.
const LONG: Duration = secs(2);

/// Watches for them until it is dropped.
pub(crate) struct Standstills {
    seen: Arc<Mutex<Vec<Fault>>>,
    watching: JoinHandle<()>,
}

impl Drop for Standstills {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

impl Standstills {
    pub(crate) fn watch() -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let watching = tokio::spawn(async move {
            loop {
                let before = now();
                tokio::time::sleep(TICK).await;
                if before.elapsed() > TICK + LONG {
                    println!("  the machine stood still for {:.1} s", before.elapsed().as_secs_f64());
                    let fault = Fault::standstill(before, now());
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(fault);
                }
            }
        });
        Self { seen, watching }
    }

    pub(crate) fn seen(&self) -> Vec<Fault> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
