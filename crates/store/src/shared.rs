//! What handles, writer and readers share: the queues, how the store does, and what waits.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use tokio::sync::watch;

use crate::counts::{Counts, LaneRow};
use crate::lane::{Of, Waiting};
use crate::names::Names;
use crate::queue::Queue;
use crate::source::Source;
use crate::stats::StoreStatus;
use crate::work::Work;
use crate::{AccountNo, DestinationNo, StoreError};

/// A look at the store, on a reader's connection.
pub(crate) type Look = Box<dyn FnOnce(&Reader) + Send>;

/// What a look may use.
pub(crate) struct Reader {
    pub(crate) source: Source,
    pub(crate) shared: std::sync::Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) work: Queue<Work>,
    pub(crate) looks: Queue<Look>,
    pub(crate) names: Names,
    waiting: RwLock<WaitingOf>,
    commits: AtomicU64,
    events: AtomicU64,
    log_bytes: AtomicU64,
    stale: AtomicU64,
    /// Writes wait, and this is why.
    waits: RwLock<Option<StoreError>>,
    broken: watch::Sender<Option<String>>,
    /// A full disk, for tests: so many pages, and no more; 0: no limit.
    #[cfg(test)]
    pub(crate) max_pages: std::sync::atomic::AtomicU32,
}

#[derive(Default)]
struct WaitingOf {
    destinations: HashMap<DestinationNo, (AccountNo, Waiting)>,
    accounts: HashMap<AccountNo, Waiting>,
}

impl Shared {
    pub(crate) fn new(counts: &Counts) -> Self {
        let shared = Self {
            work: Queue::new(),
            looks: Queue::new(),
            names: Names::default(),
            waiting: RwLock::default(),
            commits: AtomicU64::new(0),
            events: AtomicU64::new(0),
            log_bytes: AtomicU64::new(0),
            stale: AtomicU64::new(0),
            waits: RwLock::default(),
            broken: watch::Sender::new(None),
            #[cfg(test)]
            max_pages: std::sync::atomic::AtomicU32::new(0),
        };
        let rows: Vec<_> = counts.lanes.iter().map(|(no, row)| (*no, *row)).collect();
        shared.kept(&rows);
        shared
    }

    /// The rows of a group that is committed.
    pub(crate) fn kept(&self, rows: &[(DestinationNo, LaneRow)]) {
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

    pub(crate) fn waiting(&self, of: Of) -> Waiting {
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
    pub(crate) fn open_of(&self, account: AccountNo, destination: DestinationNo) -> u64 {
        let waiting = self.waiting.read().unwrap_or_else(PoisonError::into_inner);
        let found = waiting.destinations.get(&destination).filter(|(whose, _)| *whose == account);
        found.map_or(0, |(_, waiting)| waiting.deliveries)
    }

    /// Destinations with open deliveries, of one account or of all.
    pub(crate) fn with_open(&self, account: Option<AccountNo>) -> Vec<DestinationNo> {
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

    pub(crate) fn committed(&self, events: usize) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.events.fetch_add(u64::try_from(events).unwrap_or(0), Ordering::Relaxed);
    }
    pub(crate) fn log_bytes(&self) -> u64 {
        self.log_bytes.load(Ordering::Relaxed)
    }
    pub(crate) fn set_log_bytes(&self, bytes: u64) {
        self.log_bytes.store(bytes, Ordering::Relaxed);
    }
    /// Results that came too late.
    pub(crate) fn refused_stale(&self, results: u64) {
        self.stale.fetch_add(results, Ordering::Relaxed);
    }
    /// Why writes wait, if they do.
    pub(crate) fn waits(&self) -> Option<StoreError> {
        self.waits.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
    pub(crate) fn set_waits(&self, why: Option<StoreError>) {
        let mut waits = self.waits.write().unwrap_or_else(PoisonError::into_inner);
        match (&why, waits.is_some()) {
            (Some(error), false) => tracing::error!(%error, "nothing is accepted for now"),
            (None, true) => tracing::info!("the store takes in what comes again"),
            _ => {}
        }
        *waits = why;
    }

    /// Nothing is acknowledged from now on.
    pub(crate) fn break_down(&self, text: &str) {
        self.broken.send_if_modified(|broken| {
            let first = broken.is_none();
            broken.get_or_insert_with(|| text.to_owned());
            first
        });
        self.work.close();
    }
    pub(crate) fn is_broken(&self) -> bool {
        self.broken.borrow().is_some()
    }
    pub(crate) fn what_broke(&self) -> String {
        self.broken.borrow().clone().unwrap_or_default()
    }
    pub(crate) fn watch_broken(&self) -> watch::Receiver<Option<String>> {
        self.broken.subscribe()
    }

    #[cfg(test)]
    pub(crate) fn limit_pages(&self, connection: &rusqlite::Connection) -> rusqlite::Result<()> {
        match self.max_pages.load(Ordering::Relaxed) {
            0 => connection.pragma_update(None, "max_page_count", i64::from(u32::MAX - 1)),
            pages => connection.pragma_update(None, "max_page_count", pages),
        }
    }

    pub(crate) fn status(&self) -> StoreStatus {
        StoreStatus {
            commits: self.commits.load(Ordering::Relaxed),
            events: self.events.load(Ordering::Relaxed),
            wal_bytes: self.log_bytes(),
            stale: self.stale.load(Ordering::Relaxed),
            full: self.waits().is_some(),
            broken: self.is_broken(),
        }
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
