//! What handles, writer and readers share: the queues, how the store does, and what waits.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use rusqlite::Connection;
use tokio::sync::watch;

use super::names::Names;
use super::queue::Queue;
use super::writer::{Counts, Work};
use crate::lane::{Of, Waiting};
use crate::stats::StoreStatus;
use crate::{AccountNo, DestinationNo};

/// A look at the store, on a reader's connection.
pub(super) type Look = Box<dyn FnOnce(&Reader) + Send>;

/// What a look may use.
pub(super) struct Reader {
    pub(super) connection: Connection,
    pub(super) shared: std::sync::Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) work: Queue<Work>,
    pub(super) looks: Queue<Look>,
    pub(super) names: Names,
    waiting: RwLock<WaitingOf>,
    commits: AtomicU64,
    events: AtomicU64,
    log_bytes: AtomicU64,
    full: AtomicBool,
    broken: watch::Sender<Option<String>>,
    /// A full disk, for tests: so many pages, and no more; 0: no limit.
    #[cfg(test)]
    pub(super) max_pages: std::sync::atomic::AtomicU32,
}

#[derive(Default)]
struct WaitingOf {
    destinations: HashMap<DestinationNo, (AccountNo, Waiting)>,
    accounts: HashMap<AccountNo, Waiting>,
}

impl Shared {
    pub(super) fn new(counts: &Counts) -> Self {
        let shared = Self {
            work: Queue::new(),
            looks: Queue::new(),
            names: Names::default(),
            waiting: RwLock::default(),
            commits: AtomicU64::new(0),
            events: AtomicU64::new(0),
            log_bytes: AtomicU64::new(0),
            full: AtomicBool::new(false),
            broken: watch::Sender::new(None),
            #[cfg(test)]
            max_pages: std::sync::atomic::AtomicU32::new(0),
        };
        let rows: Vec<_> = counts.lanes.iter().map(|(no, row)| (*no, *row)).collect();
        shared.kept(&rows);
        shared
    }

    /// The rows of a group that is committed.
    pub(super) fn kept(&self, rows: &[(DestinationNo, super::writer::LaneRow)]) {
        let mut waiting = self.waiting.write().unwrap_or_else(PoisonError::into_inner);
        let WaitingOf { destinations, accounts } = &mut *waiting;
        for (destination, row) in rows {
            let now = Waiting { deliveries: unsigned(row.open), bytes: unsigned(row.bytes) };
            let account = accounts.entry(row.account).or_default();
            let before = destinations
                .insert(*destination, (row.account, now))
                .map_or_else(Waiting::default, |(_, before)| before);
            account.deliveries = (account.deliveries + now.deliveries).saturating_sub(before.deliveries);
            account.bytes = (account.bytes + now.bytes).saturating_sub(before.bytes);
        }
    }

    pub(super) fn waiting(&self, of: Of) -> Waiting {
        let waiting = self.waiting.read().unwrap_or_else(PoisonError::into_inner);
        match of {
            Of::Destination(destination) => {
                waiting.destinations.get(&destination).map(|(_, waiting)| *waiting)
            }
            Of::Account(account) => waiting.accounts.get(&account).copied(),
        }
        .unwrap_or_default()
    }

    /// How many are open of a destination, if it belongs to this account.
    pub(super) fn open_of(&self, account: AccountNo, destination: DestinationNo) -> u64 {
        let waiting = self.waiting.read().unwrap_or_else(PoisonError::into_inner);
        let found = waiting.destinations.get(&destination).filter(|(whose, _)| *whose == account);
        found.map_or(0, |(_, waiting)| waiting.deliveries)
    }

    /// Destinations with open deliveries, of one account or of all.
    pub(super) fn with_open(&self, account: Option<AccountNo>) -> Vec<DestinationNo> {
        let waiting = self.waiting.read().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<DestinationNo> = (waiting.destinations.iter())
            .filter(|(_, (whose, waiting))| {
                waiting.deliveries > 0 && account.is_none_or(|account| account == *whose)
            })
            .map(|(destination, _)| *destination)
            .collect();
        found.sort_unstable();
        found
    }

    pub(super) fn committed(&self, events: usize) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.events.fetch_add(u64::try_from(events).unwrap_or(0), Ordering::Relaxed);
    }
    pub(super) fn log_bytes(&self) -> u64 {
        self.log_bytes.load(Ordering::Relaxed)
    }
    pub(super) fn set_log_bytes(&self, bytes: u64) {
        self.log_bytes.store(bytes, Ordering::Relaxed);
    }
    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }
    pub(super) fn set_full(&self, full: bool) {
        if self.full.swap(full, Ordering::Relaxed) != full {
            match full {
                true => tracing::error!("the disk is full: nothing is accepted until there is room"),
                false => tracing::info!("there is room on the disk again"),
            }
        }
    }

    /// Nothing is acknowledged from now on.
    pub(super) fn break_down(&self, text: &str) {
        self.broken.send_if_modified(|broken| {
            let first = broken.is_none();
            broken.get_or_insert_with(|| text.to_owned());
            first
        });
        self.work.close();
    }
    pub(super) fn is_broken(&self) -> bool {
        self.broken.borrow().is_some()
    }
    pub(super) fn what_broke(&self) -> String {
        self.broken.borrow().clone().unwrap_or_default()
    }
    pub(super) fn watch_broken(&self) -> watch::Receiver<Option<String>> {
        self.broken.subscribe()
    }

    #[cfg(test)]
    pub(super) fn limit_pages(&self, connection: &Connection) -> rusqlite::Result<()> {
        match self.max_pages.load(Ordering::Relaxed) {
            0 => connection.pragma_update(None, "max_page_count", i64::from(u32::MAX - 1)),
            pages => connection.pragma_update(None, "max_page_count", pages),
        }
    }

    pub(super) fn status(&self) -> StoreStatus {
        StoreStatus {
            commits: self.commits.load(Ordering::Relaxed),
            events: self.events.load(Ordering::Relaxed),
            wal_bytes: self.log_bytes(),
            full: self.is_full(),
            broken: self.is_broken(),
        }
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
