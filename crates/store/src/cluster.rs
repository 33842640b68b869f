//! Several nodes on one PostgreSQL: who they are, what each of them works, and what they tell one another.
//!
//! ```text
//!   seats   31 places, one for each node at a time: a share of the numbers, rows of kept counts, the last group committed
//!   nodes   processes: each sits on a seat, and is there as long as it renews its lease
//!   slots   256 parts of all destinations: each is worked by one node, under an epoch
//!
//!   a group of A     ┌ locks A's seat ─ are these slots mine, under my epochs? ─ writes ─ commit ┐
//!   B claims from A  │                    waits (B locks A's lease, then A's seat)               └ new epochs ─ commit
//!   A renews         │ never waits for a group; waits for B, and is then shown what it has lost
//! ```
//!
//! Any node accepts for any destination. A group that has something for other nodes writes a bulletin in the same commit; then
//! these are told that there is one (`NOTIFY`), or find it when they next look ([`Cluster::news`]).
//!
//! ```text
//!   A accepts for a slot of B ─ commit, with a bulletin ─ NOTIFY ─► B reads bulletins since its last look ─► its lanes
//! ```
//!
//! Everything here happens on a thread and a connection of its own, so that a slow group never delays a renewal. What is to
//! be claimed, passed on or given up is decided elsewhere (`tidegate_core::slots`), with what [`Cluster::renew`] shows; the
//! database grants it or does not, by its own clock. A claim or a return whose answer is lost may have been made: the next
//! renewal shows that, and a slot that is shown as one's own without being held is simply claimed again.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tidegate_core::delivery::Delivery;
use tidegate_core::id::ReplayId;
use tidegate_core::lane::LastStop;
use tidegate_core::slots::{Epoch, NodeNo, Roll, SLOTS, Seat, Slot};
use tidegate_core::time::{Millis, Timestamp};
use tokio::sync::{Notify, oneshot, watch};

use crate::event::Message;
use crate::job::Job;
use crate::lane::StoredLane;
use crate::queue::Queue;
use crate::shared::{Look, Reader, Shared};
use crate::source::Result as Looked;
use crate::work::Answer;
use crate::{DestinationNo, StoreError, postgres};

/// How a node is called, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its name.
    pub name: String,
    /// Where it can be reached.
    pub address: String,
    /// Which version of the program it is.
    pub version: String,
}

/// A node, as a renewal shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRow {
    /// Which.
    pub no: NodeNo,
    /// Where it sits.
    pub seat: Seat,
    /// How it is called.
    pub identity: Identity,
    /// When it registered, by the database's clock.
    pub started_at: Timestamp,
    /// What is left of its lease, by the database's clock; zero or less: it has ended.
    pub lease_left: Millis,
    /// It is to stop and takes nothing more.
    pub leaving: bool,
}

/// What a renewal shows.
#[derive(Clone, Debug)]
pub struct Renewed {
    /// Who is there, and who has what.
    pub roll: Roll,
    /// The same nodes, with what people want to know of them.
    pub nodes: Vec<NodeRow>,
}

/// A look at the database's clock.
#[derive(Clone, Copy, Debug)]
pub struct ClockLook {
    /// What it showed, in microseconds since 1970: at some moment between the other two.
    pub micros: i64,
    /// When it was asked.
    pub sent: Instant,
    /// When the answer was there.
    pub received: Instant,
}

/// A slot that is this node's from now on.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// Which.
    pub slot: Slot,
    /// Under which epoch.
    pub epoch: Epoch,
    /// How whoever had it before left it.
    pub last_stop: LastStop,
    /// Its lanes, as they were stored last: nobody else changes them any more.
    pub lanes: Vec<StoredLane>,
}

/// What other nodes had for this one.
#[derive(Debug, Default)]
pub struct News {
    /// Deliveries that others accepted for slots that this node holds. It may know some of them already: a slot that was
    /// just claimed is read from the store.
    pub brought: Vec<Brought>,
    /// Lanes for which more was accepted than is brought: they find it in the store.
    pub behind: Vec<DestinationNo>,
    /// Orders for lanes of slots that this node holds.
    pub orders: Vec<Posted>,
    /// What owners asked for has changed.
    pub catalogue: bool,
    /// The last look was so long ago that something may have been missed: every lane looks into the store, and the catalogue
    /// is read again.
    pub missed: bool,
    /// There is more to be read at once.
    pub more: bool,
}

/// The number of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OrderNo(pub u64);

/// What somebody wants of a lane that this node works. It is open until a record has ended it, and comes again with the slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// Its number.
    pub no: OrderNo,
    /// Of which lane.
    pub destination: DestinationNo,
    /// What is wanted: the store does not look into it.
    pub body: Vec<u8>,
}

/// A delivery that another node accepted.
#[derive(Clone, Debug)]
pub struct Brought {
    /// To which destination.
    pub destination: DestinationNo,
    /// The delivery.
    pub delivery: Delivery,
    /// What it sends.
    pub message: Arc<Message>,
}

/// This node's part in the cluster. Clones are the same one.
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
    me: NodeNo,
    seat: Seat,
}

impl Cluster {
    /// The handle, where there is a cluster.
    pub(crate) fn of(shared: &Arc<Shared>) -> Option<Self> {
        let node = shared.node.as_ref()?;
        Some(Self { shared: Arc::clone(shared), me: node.me, seat: node.seat })
    }

    /// Who this node is.
    pub const fn me(&self) -> NodeNo {
        self.me
    }
    /// Where it sits: its share of the numbers.
    pub const fn seat(&self) -> Seat {
        self.seat
    }

    /// Extends the lease, also one that had ended, and shows how things are. Gives up after some 1.5 s without an answer. If
    /// this node was away for so long that its place was given to another, the store is broken.
    pub async fn renew(&self, leaving: bool) -> Result<Renewed, StoreError> {
        self.ask(|answer| Ask::Renew { leaving, answer }).await
    }

    /// Asks for slots. Those come back that were granted: they were nobody's, or their owner's lease has ended, or they are
    /// this node's own already.
    pub async fn claim(&self, slots: Vec<Slot>) -> Result<Vec<Claimed>, StoreError> {
        let granted = self.ask(|answer| Ask::Claim { slots, answer }).await?;
        if granted.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: Vec<Slot> = granted.iter().map(|granted| granted.slot).collect();
        let lanes = self.look(move |reader| postgres::lanes_of_slots(&reader.source, &wanted)).await?;
        let claimed = granted.into_iter().map(|Granted { slot, epoch, last_stop }| {
            let own = lanes.iter().filter(|lane| Slot::of(lane.destination.0) == slot);
            Claimed { slot, epoch, last_stop, lanes: own.cloned().collect() }
        });
        Ok(claimed.collect())
    }

    /// Gives slots back. `clean`: nothing of them was in flight. What is recorded of them afterwards is refused.
    pub async fn give_back(&self, slots: Vec<Slot>, clean: bool) -> Result<(), StoreError> {
        self.lose(&slots);
        self.ask(|answer| Ask::GiveBack { slots, clean, answer }).await
    }

    /// These slots are somebody else's: nothing that is recorded of them counts.
    pub fn lose(&self, slots: &[Slot]) {
        if let Some(node) = &self.shared.node {
            node.lose(slots);
        }
    }

    /// Whether a slot is this node's, as far as it knows.
    pub fn holds(&self, slot: Slot) -> bool {
        self.shared.node.as_ref().is_some_and(|node| node.epochs().of(slot).is_some())
    }

    /// Looks at the database's clock.
    pub async fn clock(&self) -> Result<ClockLook, StoreError> {
        self.run(|reader| postgres::clock(&reader.source)).await
    }

    /// What other nodes had for this one since the last call. Where the answer to a commit of its own was lost, that is found out
    /// first: whoever had no answer here may have been told elsewhere that it was made, and have published the next event there.
    pub async fn news(&self) -> Result<News, StoreError> {
        let news = self.ask(|answer| Ask::News { answer }).await?;
        self.shared.is_certain().await;
        Ok(news)
    }

    /// Orders that are still open for slots, in the order of their numbers. To be asked after a claim; what news brings is a hint.
    pub async fn orders(&self, slots: &[Slot]) -> Result<Vec<Posted>, StoreError> {
        let slots = slots.to_vec();
        self.look(move |reader| postgres::orders_of_slots(&reader.source, &slots)).await
    }

    /// Does something on the cluster's own connection.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        run: impl FnOnce(&Reader) -> Looked<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.ask(|answer| {
            Ask::Run(Box::new(move |reader: &Reader| {
                drop(answer.send(run(reader).map_err(StoreError::from)));
            }))
        })
        .await
    }

    /// Waits until another node tells that it has something. A hint: some are lost, and where the way to the database hands on
    /// none, this never returns.
    pub async fn noticed(&self) {
        match &self.shared.node {
            Some(node) => node.heard.notified().await,
            None => std::future::pending().await,
        }
    }

    /// The same for slots that were given back.
    pub async fn freed(&self) {
        match &self.shared.node {
            Some(node) => node.freed.notified().await,
            None => std::future::pending().await,
        }
    }

    /// The same for events that an application has put into the outbox and wants to be told of.
    pub async fn published(&self) {
        match &self.shared.node {
            Some(node) => node.published.notified().await,
            None => std::future::pending().await,
        }
    }

    /// The end, after the store has been closed: gives back whatever is left, and the seat. [`Store::close`](crate::Store)
    /// does that, too.
    pub async fn leave(&self) -> Result<(), StoreError> {
        if self.shared.node.as_ref().is_some_and(Node::has_left) {
            return Ok(());
        }
        self.ask(|answer| Ask::Leave { answer }).await
    }

    async fn ask<T>(&self, ask: impl FnOnce(Answer<T>) -> Ask) -> Result<T, StoreError> {
        let (answer, wait) = oneshot::channel();
        let node = self.shared.node.as_ref().ok_or(StoreError::Closed)?;
        node.asks.push(ask(answer)).map_err(|_| StoreError::Closed)?;
        wait.await.unwrap_or(Err(StoreError::Closed))
    }

    /// Before all other reads: thousands of lanes that were taken over ask for what waits, and others are still to be taken.
    async fn look<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Reader) -> Looked<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, wait) = oneshot::channel();
        let look = Box::new(move |reader: &Reader| drop(answer.send(look(reader).map_err(StoreError::from))));
        self.shared.errands.push_first(look).map_err(|_| StoreError::Closed)?;
        wait.await.unwrap_or(Err(StoreError::Closed))
    }
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("me", &self.me).field("seat", &self.seat).finish_non_exhaustive()
    }
}

/// What the thread of the cluster is asked for.
pub(crate) enum Ask {
    Renew {
        leaving: bool,
        answer: Answer<Renewed>,
    },
    Claim {
        slots: Vec<Slot>,
        answer: Answer<Vec<Granted>>,
    },
    GiveBack {
        slots: Vec<Slot>,
        clean: bool,
        answer: Answer<()>,
    },
    Leave {
        answer: Answer<()>,
    },
    News {
        answer: Answer<News>,
    },
    /// Something else, on the same connection.
    Run(Look),
    /// The others are to be told that there is something for them.
    Announce,
}

/// A slot that was granted.
pub(crate) struct Granted {
    pub(crate) slot: Slot,
    pub(crate) epoch: Epoch,
    pub(crate) last_stop: LastStop,
}

/// What handles and threads share of this node.
pub(crate) struct Node {
    pub(crate) me: NodeNo,
    pub(crate) seat: Seat,
    pub(crate) asks: Queue<Ask>,
    /// Somebody else has something.
    pub(crate) heard: Notify,
    pub(crate) published: Notify,
    pub(crate) freed: Notify,
    pub(crate) closing: watch::Sender<bool>,
    epochs: RwLock<Epochs>,
    /// Orders that this node has posted itself since it was last asked for news: it may hold their slots by now.
    posted: Mutex<Vec<OrderNo>>,
    /// Jobs that somebody here works at.
    jobs: Mutex<HashSet<ReplayId>>,
    /// The others are about to be told.
    announcing: AtomicBool,
    /// What the others have counted is being read; and how long that may rest afterwards, in milliseconds.
    counting: AtomicBool,
    /// Nodes whose leases held at the last renewal.
    members: AtomicU32,
    rest: AtomicU64,
    /// The writer has stored everything that it was given.
    clean: AtomicBool,
    left: AtomicBool,
}

/// The epochs under which this node has its slots.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epochs([Option<Epoch>; SLOTS as usize]);

impl Epochs {
    pub(crate) fn of(&self, slot: Slot) -> Option<Epoch> {
        self.0[slot.index()]
    }
    /// The slots that are held, by number.
    pub(crate) fn slots(&self) -> Vec<u8> {
        Slot::all().filter(|slot| self.of(*slot).is_some()).map(Slot::get).collect()
    }
}

impl Node {
    pub(crate) fn new(me: NodeNo, seat: Seat) -> Self {
        Self {
            me,
            seat,
            asks: Queue::new(),
            heard: Notify::new(),
            published: Notify::new(),
            freed: Notify::new(),
            closing: watch::Sender::new(false),
            epochs: RwLock::new(Epochs([None; SLOTS as usize])),
            posted: Mutex::new(Vec::new()),
            jobs: Mutex::new(HashSet::new()),
            announcing: AtomicBool::new(false),
            counting: AtomicBool::new(false),
            members: AtomicU32::new(1),
            rest: AtomicU64::new(0),
            clean: AtomicBool::new(false),
            left: AtomicBool::new(false),
        }
    }

    /// What is held at this moment.
    pub(crate) fn epochs(&self) -> Epochs {
        *self.epochs.read().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn hold(&self, granted: &[Granted]) {
        let mut epochs = self.epochs.write().unwrap_or_else(PoisonError::into_inner);
        granted.iter().for_each(|granted| epochs.0[granted.slot.index()] = Some(granted.epoch));
    }
    pub(crate) fn lose(&self, slots: &[Slot]) {
        let mut epochs = self.epochs.write().unwrap_or_else(PoisonError::into_inner);
        slots.iter().for_each(|slot| epochs.0[slot.index()] = None);
    }
    /// Loses a slot, unless it was claimed anew meanwhile.
    pub(crate) fn lose_under(&self, slot: Slot, epoch: Option<Epoch>) {
        let mut epochs = self.epochs.write().unwrap_or_else(PoisonError::into_inner);
        if epochs.0[slot.index()] == epoch {
            epochs.0[slot.index()] = None;
        }
    }

    pub(crate) fn posted(&self, orders: &[OrderNo]) {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner).extend(orders);
    }
    pub(crate) fn take_posted(&self) -> Vec<OrderNo> {
        std::mem::take(&mut *self.posted.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Somebody here works at a job.
    pub(crate) fn works_at(&self, job: ReplayId) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).insert(job);
    }
    /// Nobody here does any more.
    pub(crate) fn leaves_job(&self, job: ReplayId) {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner).remove(&job);
    }
    /// Those at which nobody here works yet; from now on somebody does.
    pub(crate) fn new_jobs(&self, jobs: Vec<Job>) -> Vec<Job> {
        let mut known = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.into_iter().filter(|job| known.insert(job.id)).collect()
    }

    /// A group has something for others.
    pub(crate) fn announce(&self) {
        if !self.announcing.swap(true, Ordering::AcqRel) && self.asks.push(Ask::Announce).is_err() {
            tracing::debug!("the others find by themselves what this node had last");
        }
    }
    /// What is committed from now on is announced anew.
    pub(crate) fn announced(&self) {
        self.announcing.store(false, Ordering::Release);
    }

    /// How many nodes there are.
    pub(crate) fn members(&self) -> u32 {
        self.members.load(Ordering::Relaxed)
    }
    pub(crate) fn set_members(&self, count: usize) {
        self.members.store(u32::try_from(count).unwrap_or(u32::MAX).max(1), Ordering::Relaxed);
    }

    /// Whether somebody else reads what the others have counted; if not, the caller does.
    pub(crate) fn is_counting(&self) -> bool {
        self.counting.swap(true, Ordering::AcqRel)
    }
    /// The others' counts were read; the next reading may wait for `rest`.
    pub(crate) fn counted(&self, rest: Duration) {
        self.rest.store(u64::try_from(rest.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.counting.store(false, Ordering::Release);
    }
    pub(crate) fn rest(&self) -> Duration {
        Duration::from_millis(self.rest.load(Ordering::Relaxed))
    }

    pub(crate) fn close(&self) {
        self.asks.close();
        self.closing.send_replace(true);
    }

    pub(crate) fn ended_clean(&self) {
        self.clean.store(true, Ordering::Release);
    }
    pub(crate) fn is_clean(&self) -> bool {
        self.clean.load(Ordering::Acquire)
    }
    pub(crate) fn has_left(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }
    pub(crate) fn set_left(&self) {
        self.left.store(true, Ordering::Release);
    }
}
