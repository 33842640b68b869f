//! Looks at what the server takes of the machine, a few times a second.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use serde_json::json;

use crate::clock::{millis, nanos, pass};
use crate::history::{Book, History, NODE};
use crate::server::server_pid;

/// Stops when it is dropped.
pub(crate) struct Sampler {
    most: Arc<(AtomicU64, AtomicU64)>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Sampler {
    /// `process` holds the id of the process that was started last; 0 while there is none.
    pub(crate) fn start(history: &Arc<History>, process: Arc<AtomicU32>) -> Self {
        let most: Arc<(AtomicU64, AtomicU64)> = Arc::default();
        let (history, highest) = (history.clone(), most.clone());
        let task = tokio::spawn(async move {
            loop {
                if let Some((rss, fds)) = look(process.load(Ordering::Relaxed)) {
                    highest.0.fetch_max(rss, Ordering::Relaxed);
                    highest.1.fetch_max(fds, Ordering::Relaxed);
                    let line = json!({"t": nanos(), "node": NODE, "rss_bytes": rss, "fds": fds});
                    history.write(Book::Resources, &line);
                }
                pass(millis(250)).await;
            }
        });
        Self { most, task }
    }

    /// The most memory in bytes, and the most descriptors.
    pub(crate) fn most(&self) -> (u64, u64) {
        (self.most.0.load(Ordering::Relaxed), self.most.1.load(Ordering::Relaxed))
    }
}

fn look(first: u32) -> Option<(u64, u64)> {
    if first == 0 {
        return None;
    }
    let pid = server_pid(first)?.as_raw_nonzero();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
    Some((kib << 10, fds as u64))
}
