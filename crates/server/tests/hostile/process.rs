//! What the system knows of the server's process.

use std::collections::HashMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::kit::millis;

/// Counts the descriptors of a process all the time. Stops when it is dropped.
pub(crate) struct Gauge {
    most: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Gauge {
    pub(crate) fn of(pid: u32) -> Self {
        let most: Arc<AtomicUsize> = Arc::default();
        let highest = Arc::clone(&most);
        let task = tokio::spawn(async move {
            loop {
                // Names alone: to follow thousands of links each time would slow down what is measured.
                let count = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
                highest.fetch_max(count, Ordering::Relaxed);
                tokio::time::sleep(millis(20)).await;
            }
        });
        Self { most, task }
    }

    /// The most there were.
    pub(crate) fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

/// Open sockets by the port at their far end.
pub(crate) fn sockets_by_far_port(pid: u32) -> HashMap<u16, usize> {
    let table = fs::read_to_string(format!("/proc/{pid}/net/tcp")).expect("the process runs");
    let far_ports: HashMap<String, u16> = table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let port = u16::from_str_radix(columns.get(2)?.split(':').nth(1)?, 16).ok()?;
            Some((format!("socket:[{}]", columns.get(9)?), port))
        })
        .collect();
    let mut counts = HashMap::new();
    for link in descriptors(pid) {
        if let Some(port) = far_ports.get(&link) {
            *counts.entry(*port).or_default() += 1;
        }
    }
    counts
}

/// What its descriptors point to.
pub(crate) fn descriptors(pid: u32) -> Vec<String> {
    let all = fs::read_dir(format!("/proc/{pid}/fd")).expect("the process runs");
    let target = |entry: fs::DirEntry| fs::read_link(entry.path()).ok();
    all.filter_map(|entry| target(entry.ok()?)).map(|link| link.display().to_string()).collect()
}

/// Memory in use, and the most that ever was, in MiB.
pub(crate) fn memory_mib(pid: u32) -> (u64, u64) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok()).expect("a number of kB")
    };
    (kib("VmRSS:") / 1_024, kib("VmHWM:") / 1_024)
}
