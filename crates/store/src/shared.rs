//! What handles and threads share: the queues, how the store does, and what waits.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use tidegate_core::time::Timestamp;
use tokio::sync::watch;

use crate::cluster::Node;
use crate::counts::{Counts, LaneRow};
use crate::lane::{Of, Waiting};
use crate::names::Names;
use crate::queue::Queue;
use crate::source::Source;
use crate::stats::StoreStatus;
use crate::work::{Forgetting, Work};
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
    /// What people wait for: lists and counts, which may take a while.
    pub(crate) looks: Queue<Look>,
    /// What deliveries wait for. It has readers of its own, so that no list stands before it.
    pub(crate) errands: Queue<Look>,
    /// Steps of retention, where that has a thread of its own; elsewhere they are work for the writer.
    pub(crate) retention: Option<Queue<Forgetting>>,
    pub(crate) names: Names,
    /// This node's part in a cluster, where there can be one.
    pub(crate) node: Option<Node>,
    waiting: RwLock<WaitingOf>,
    commits: AtomicU64,
    events: AtomicU64,
    /// The time that somebody told us last.
    latest: RwLock<Option<Timestamp>>,
    log_bytes: AtomicU64,
    stale: AtomicU64,
    refused: AtomicU64,
    /// Writes wait, and this is why.
    waits: watch::Sender<Option<StoreError>>,
    /// The answer to a commit was lost, and it is not known yet whether it was made.
    in_doubt: watch::Sender<bool>,
    broken: watch::Sender<Option<String>>,
    /// A full disk, for tests: so many pages, and no more; 0: no limit.
    #[cfg(test)]
    pub(crate) max_pages: std::sync::atomic::AtomicU32,
}

#[derive(Default)]
struct WaitingOf {
    destinations: HashMap<DestinationNo, Kept>,
    accounts: HashMap<AccountNo, Sum>,
}

/// What waits of a destination, as this node has counted it and as all others have: what one accepts another may end, so
/// only the sum is known not to be negative.
struct Kept {
    account: AccountNo,
    own: Sum,
    others: Sum,
}

/// Deliveries and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) open: i64,
    pub(crate) bytes: i64,
}

impl Sum {
    const fn change(&mut self, from: Self, to: Self) {
        self.open += to.open - from.open;
        self.bytes += to.bytes - from.bytes;
    }
    fn waiting(self) -> Waiting {
        Waiting { deliveries: unsigned(self.open), bytes: unsigned(self.bytes) }
    }
}

impl Kept {
    const fn sum(&self) -> Sum {
        Sum { open: self.own.open + self.others.open, bytes: self.own.bytes + self.others.bytes }
    }
}

/// What waits of a destination, as all other nodes have counted it.
pub(crate) struct Other {
    pub(crate) destination: DestinationNo,
    pub(crate) account: AccountNo,
    pub(crate) sum: Sum,
}

impl WaitingOf {
    fn kept(&mut self, destination: DestinationNo, account: AccountNo) -> (&mut Kept, &mut Sum) {
        let new = Kept { account, own: Sum::default(), others: Sum::default() };
        let kept = self.destinations.entry(destination).or_insert(new);
        let account = self.accounts.entry(kept.account).or_default();
        (kept, account)
    }
}

impl Shared {
    pub(crate) fn new(counts: &Counts, retention: Option<Queue<Forgetting>>, node: Option<Node>) -> Self {
        let shared = Self {
            work: Queue::new(),
            looks: Queue::new(),
            errands: Queue::new(),
            retention,
            names: Names::default(),
            node,
            waiting: RwLock::default(),
            commits: AtomicU64::new(0),
            events: AtomicU64::new(0),
            latest: RwLock::default(),
            log_bytes: AtomicU64::new(0),
            stale: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            waits: watch::Sender::new(None),
            in_doubt: watch::Sender::new(false),
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
        for (destination, row) in rows {
            let now = Sum { open: row.open, bytes: row.bytes };
            let (kept, account) = waiting.kept(*destination, row.account);
            account.change(std::mem::replace(&mut kept.own, now), now);
        }
    }

    /// What all other nodes have counted by now.
    pub(crate) fn others(&self, others: &[Other]) {
        let mut waiting = self.waiting.write().unwrap_or_else(PoisonError::into_inner);
        let WaitingOf { destinations, accounts } = &mut *waiting;
        for kept in destinations.values_mut().filter(|kept| kept.others != Sum::default()) {
            let before = std::mem::take(&mut kept.others);
            accounts.entry(kept.account).or_default().change(before, Sum::default());
        }
        for other in others {
            let (kept, account) = waiting.kept(other.destination, other.account);
            account.change(std::mem::replace(&mut kept.others, other.sum), other.sum);
        }
    }

    pub(crate) fn waiting(&self, of: Of) -> Waiting {
        let waiting = self.waiting.read().unwrap_or_else(PoisonError::into_inner);
        match of {
            Of::Destination(destination) => waiting.destinations.get(&destination).map(Kept::sum),
            Of::Account(account) => waiting.accounts.get(&account).copied(),
        }
        .unwrap_or_default()
        .waiting()
    }

    /// How many are open of a destination, if it belongs to this account.
    pub(crate) fn open_of(&self, account: AccountNo, destination: DestinationNo) -> u64 {
        let waiting = self.waiting.read().unwrap_or_else(PoisonError::into_inner);
        let found = waiting.destinations.get(&destination).filter(|kept| kept.account == account);
        found.map_or(0, |kept| kept.sum().waiting().deliveries)
    }

    /// Destinations with open deliveries, of one account or of all.
    pub(crate) fn with_open(&self, account: Option<AccountNo>) -> Vec<DestinationNo> {
        let waiting = self.waiting.read().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<DestinationNo> = (waiting.destinations.iter())
            .filter(|(_, kept)| kept.sum().open > 0 && account.is_none_or(|account| account == kept.account))
            .map(|(destination, _)| *destination)
            .collect();
        found.sort_unstable();
        found
    }

    /// Nothing but the writer's work is taken in any more.
    pub(crate) fn close_rest(&self) {
        self.looks.close();
        self.errands.close();
        self.retention.iter().for_each(Queue::close);
        self.node.iter().for_each(Node::close);
    }

    /// Sees a time that somebody told us.
    pub(crate) fn saw(&self, now: Timestamp) {
        *self.latest.write().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }
    pub(crate) fn latest(&self) -> Option<Timestamp> {
        *self.latest.read().unwrap_or_else(PoisonError::into_inner)
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
    /// A row of a record that cannot be stored.
    pub(crate) fn refused_row(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
    /// Why writes wait, if they do.
    pub(crate) fn waits(&self) -> Option<StoreError> {
        self.waits.borrow().clone()
    }
    pub(crate) fn set_waits(&self, why: Option<StoreError>) {
        match (&why, self.waits.borrow().is_some()) {
            (Some(error), false) => tracing::error!(%error, "nothing is accepted for now"),
            (None, true) => tracing::info!("the store takes in what comes again"),
            _ => {}
        }
        self.waits.send_replace(why);
    }

    /// Waits until nothing is written any more, be it for now, and says why.
    pub(crate) async fn stalls(&self) -> StoreError {
        let (mut waits, mut broken) = (self.waits.subscribe(), self.broken.subscribe());
        tokio::select! {
            Ok(why) = waits.wait_for(Option::is_some) => why.clone().unwrap_or(StoreError::Closed),
            Ok(why) = broken.wait_for(Option::is_some) => StoreError::Broken(why.clone().unwrap_or_default()),
            // Neither is closed while it is borrowed here.
            else => StoreError::Closed,
        }
    }

    /// Whether a commit was made is not known any more, or is known.
    pub(crate) fn set_in_doubt(&self, in_doubt: bool) {
        self.in_doubt.send_if_modified(|doubt| std::mem::replace(doubt, in_doubt) != in_doubt);
    }
    /// Waits until it is known of every commit whether it was made, and whoever goes on with it has been told.
    pub(crate) async fn is_certain(&self) {
        let mut doubt = self.in_doubt.subscribe();
        // It is never closed while it is borrowed here.
        let _known = doubt.wait_for(|in_doubt| !in_doubt).await;
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
            refused: self.refused.load(Ordering::Relaxed),
            waits: self.waits().is_some(),
            broken: self.is_broken(),
        }
    }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
