//! The engine as the server sees it: start it, tell it of destinations, ask it anything.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tidegate_core::delivery::{Delivery, Withdrawn};
use tidegate_core::draw::Draw;
use tidegate_core::lane::LastStop;
use tidegate_core::policy::Policy;
use tidegate_core::sequence::{Sequence, Share};
use tidegate_core::time::{Millis, Now};
use tidegate_store::catalogue::{AuditEntry, Catalogue};
use tidegate_store::cluster::Identity;
use tidegate_store::job::Job;
use tidegate_store::lane::StoredLane;
use tidegate_store::open::Opened;
use tidegate_store::{DestinationNo, Store, StoreError, postgres, sqlite};
use tokio::sync::{Notify, broadcast, mpsc, oneshot, watch};

use crate::chance::Chance;
use crate::clock::Clock;
use crate::deathwatch::{self, Deathwatch};
use crate::dispatcher::Command;
use crate::driver::{Arrival, Asked, Driver, NewLane, Order, Parts, View};
use crate::membership::{self, Seen};
use crate::metrics::Metrics;
use crate::notice::Notice;
use crate::reading::Reading;
use crate::sender::{Endpoint, Sender, SenderConfig};
use crate::wish::Wish;
use crate::{keeper, orders};

/// Notices that a slow watcher may be behind before it misses some.
const NOTICES: usize = 4_096;
/// How long giving back the last slots may take.
const PASS_ON: Duration = Duration::from_secs(5);

/// Where the store lies.
#[derive(Clone, Debug)]
pub enum Place {
    /// In SQLite, in this directory: one node, alone.
    Directory(PathBuf),
    /// In PostgreSQL: one of several nodes.
    Database {
        /// `postgres://…`
        url: String,
        /// A direct connection for notices, if the other goes through a pooler.
        listen_url: Option<String>,
        /// The longest payload that is published in SQL.
        max_event_bytes: u64,
        /// What this node tells of itself.
        identity: Identity,
    },
}

/// How the engine runs.
#[derive(Debug)]
pub struct EngineConfig {
    /// Where the store lies.
    pub place: Place,
    /// What this node keeps for itself, wherever the store lies.
    pub data_dir: PathBuf,
    /// Requests in flight on this node, at most.
    pub slots: u32,
    /// Threads that read the store for people; as many again read it for deliveries.
    pub readers: usize,
    /// How long what is over is kept.
    pub retention: Millis,
    /// How requests are made.
    pub sender: SenderConfig,
}

/// What the store had when it was opened.
#[derive(Debug)]
pub struct Started {
    /// What owners asked for.
    pub catalogue: Catalogue,
    /// The lanes of all destinations.
    pub lanes: Vec<StoredLane>,
    /// Jobs that go on.
    pub jobs: Vec<Job>,
    /// How the last process ended.
    pub last_stop: LastStop,
}

/// What was asked for got no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Stopped {
    /// The engine has left: nothing more can be asked of it.
    #[error("the server is shutting down")]
    Left,
    /// Another node works the destination, and did not do it in time; it will, or whoever takes its place.
    #[error("the node that works this destination has not answered yet: it is done as soon as it does")]
    Elsewhere,
    /// The store cannot: nothing was done, unless the error says that nobody knows.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It was begun, and then the store failed: it is in force here, and stays so if it can still be written.
    #[error("unknown: it was begun, and then could not be written ({0}); look again before you repeat it")]
    Unknown(StoreError),
}

/// The running engine. Clones are the same one.
#[derive(Clone)]
pub struct Engine {
    parts: Arc<Parts>,
    inbox: mpsc::UnboundedSender<Arrival>,
    member: Option<membership::Handle>,
    /// Why the driver is gone, if it went down.
    fallen: watch::Sender<Option<String>>,
    retention: Millis,
}

/// Opens the store and starts the driver. Nothing is sent before [`Engine::go`].
pub async fn start(config: EngineConfig) -> Result<(Engine, Started), StoreError> {
    let (inbox, arrivals) = mpsc::unbounded_channel();
    let commits = inbox.clone();
    // The driver is gone only after everything was committed.
    let on_commit = Box::new(move |commit| drop(commits.send(Arrival::Commit(commit))));
    let readers = config.readers;
    let opened = match config.place {
        Place::Directory(data_dir) => Store::open(sqlite::Options { data_dir, readers, on_commit })?,
        Place::Database { url, listen_url, max_event_bytes, identity } => {
            let partition = postgres::Options::PARTITION;
            Store::connect(postgres::Options {
                url,
                listen_url,
                max_event_bytes,
                identity,
                readers,
                partition,
                on_commit,
            })?
        }
    };
    let Opened { store, last_stop, sequence, catalogue, lanes, jobs } = opened;
    let cluster = store.cluster().cloned();
    let parts = Arc::new(Parts {
        clock: Clock::new(),
        chance: Chance::new(),
        share: cluster.as_ref().map_or(Share::All, |cluster| Share::Of(cluster.seat())),
        store,
        sender: Sender::new(config.sender),
        deathwatch: Deathwatch::begin(&config.data_dir),
        metrics: Metrics::default(),
        notices: broadcast::Sender::new(NOTICES),
        sequence: AtomicU64::new(sequence.get()),
        lease_until: AtomicI64::new(i64::MAX),
        catalogue_changed: Notify::new(),
    });
    let driver = Driver::new(Arc::clone(&parts), config.slots, last_stop, arrivals, inbox.clone());
    let fallen = watch::Sender::new(None);
    tokio::spawn(supervise(driver, fallen.clone()));
    let member = match &cluster {
        None => None,
        Some(cluster) => Some(membership::start(&parts, cluster, &inbox).await?),
    };
    let started = Started { catalogue, lanes, jobs, last_stop };
    Ok((Engine { parts, inbox, member, fallen, retention: config.retention }, started))
}

/// Runs the driver. One that panics delivers nothing more, while events would still be accepted: somebody must hear of it.
async fn supervise(driver: Driver, fallen: watch::Sender<Option<String>>) {
    if let Err(panicked) = tokio::spawn(driver.run()).await {
        fallen.send_replace(Some(panicked.to_string()));
    }
}

impl Parts {
    /// The first of `count` numbers in a row.
    pub(crate) fn number(&self, count: u64) -> Sequence {
        let (_, now) = self.clock.between();
        let mut last = self.sequence.load(Relaxed);
        loop {
            let (first, end) = Sequence::from_stored(last).next(now, count, self.share);
            match self.sequence.compare_exchange_weak(last, end.get(), Relaxed, Relaxed) {
                Ok(_) => return first,
                Err(found) => last = found,
            }
        }
    }
}

impl Engine {
    /// The time.
    pub fn now(&self) -> Now {
        self.parts.clock.now()
    }
    /// A number that nobody can guess.
    pub fn draw(&self) -> Draw {
        self.parts.chance.draw()
    }
    /// The first of `count` numbers in a row, of the sequence of acceptance.
    pub fn number(&self, count: u64) -> Sequence {
        self.parts.number(count)
    }
    /// The store.
    pub fn store(&self) -> &Store {
        &self.parts.store
    }
    /// The sender, for test events.
    pub fn sender(&self) -> &Sender {
        &self.parts.sender
    }
    /// What happened so far.
    pub fn metrics(&self) -> &Metrics {
        &self.parts.metrics
    }
    /// Changes of state from now on.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Notice>> {
        self.parts.notices.subscribe()
    }

    /// A destination is there: new, or read from the store.
    pub fn open(&self, lane: NewLane) {
        self.order(Order::Open(Box::new(lane)));
    }
    /// Its policy or its endpoint changed: in force for every attempt that starts from now on.
    pub fn adopt(&self, destination: DestinationNo, policy: Arc<Policy>, endpoint: Arc<Endpoint>) {
        self.order(Order::Adopt(destination, policy, endpoint));
    }
    /// Every destination is there: begin to send. In a cluster, this node takes its part from now on.
    pub fn go(&self) {
        self.order(Order::Go);
        keeper::start(&self.parts, &self.inbox, self.retention);
        let parts = Arc::clone(&self.parts);
        tokio::spawn(async move {
            tokio::time::sleep(deathwatch::WATCHED).await;
            parts.deathwatch.rest();
        });
        if let Some(member) = &self.member {
            member.go.notify_one();
        }
    }
    /// The cluster as it was last seen; `None`: there is none.
    pub fn cluster(&self) -> Option<Seen> {
        self.member.as_ref().map(|member| member.seen.borrow().clone())
    }
    /// Why this node sends nothing although it runs, as a sentence: in a cluster it needs a lease, and a part of the slots.
    pub fn out_of_work(&self) -> Option<&'static str> {
        let standing = self.member.as_ref()?.seen.borrow().standing;
        standing.out_of_work(self.now().mono)
    }
    /// Returns when another node has changed what owners asked for.
    pub async fn catalogue_changed(&self) {
        self.parts.catalogue_changed.notified().await;
    }
    /// A person wants something of a destination. Returns when it is committed, and with it the line for the audit log.
    pub async fn command(
        &self,
        destination: DestinationNo,
        command: Command,
        audit: Option<AuditEntry>,
    ) -> Result<(), Stopped> {
        self.wish(Asked { wishes: vec![(destination, Wish::Command(command))], audit }).await
    }
    /// A destination was deleted, which is committed: nothing of it starts any more. A store that takes nothing in now is no
    /// obstacle, and whoever works it hears of it from the catalogue at the latest.
    pub async fn retire(&self, destination: DestinationNo) -> Result<(), Stopped> {
        let wishes = vec![(destination, Wish::Command(Command::Retire))];
        match self.carry_out(Asked { wishes, audit: None }).await {
            Err(Stopped::Left) => Err(Stopped::Left),
            Ok(()) | Err(Stopped::Elsewhere | Stopped::Store(_) | Stopped::Unknown(_)) => Ok(()),
        }
    }
    /// To be called before deliveries are read in order to withdraw or hasten them, and kept until that is asked for.
    pub async fn reading(&self) -> Result<Reading, Stopped> {
        Reading::begin(&self.inbox).await.ok_or(Stopped::Left)
    }
    /// Withdraws deliveries, given as the store has them. Returns when it is committed, and with it the line for the audit log.
    pub async fn withdraw(
        &self,
        deliveries: Vec<(DestinationNo, Delivery)>,
        by: Withdrawn,
        audit: Option<AuditEntry>,
    ) -> Result<(), Stopped> {
        let wish = |(destination, delivery)| (destination, Wish::Withdraw(Box::new(delivery), by));
        self.wish(Asked { wishes: deliveries.into_iter().map(wish).collect(), audit }).await
    }
    /// Sends a delivery, given as the store has it, without waiting for its own time. Returns when it is committed, and with it
    /// the line for the audit log.
    pub async fn hasten(
        &self,
        destination: DestinationNo,
        delivery: Delivery,
        audit: Option<AuditEntry>,
    ) -> Result<(), Stopped> {
        self.wish(Asked { wishes: vec![(destination, Wish::Hasten(Box::new(delivery)))], audit }).await
    }

    /// A destination was deleted on another node, which sees to what is left of it.
    pub fn retire_here(&self, destination: DestinationNo) {
        let (left, _) = oneshot::channel();
        let wishes = vec![(destination, Wish::Command(Command::Retire))];
        self.order(Order::Wishes(Asked { wishes, audit: None }, left));
    }

    /// Lanes do at once what is wanted of them and cannot take it back: so nothing is begun that could not be written.
    async fn wish(&self, asked: Asked) -> Result<(), Stopped> {
        match self.parts.store.waits() {
            Some(error) => Err(Stopped::Store(error)),
            None => self.carry_out(asked).await,
        }
    }

    /// Does what is worked here, and posts the rest for the nodes that work it. It is carried through even if the caller goes
    /// away.
    async fn carry_out(&self, asked: Asked) -> Result<(), Stopped> {
        let (left, answer) = oneshot::channel();
        let count = asked.wishes.len();
        self.order(Order::Wishes(asked, left));
        let parts = Arc::clone(&self.parts);
        let rest = tokio::spawn(async move {
            let elsewhere = tokio::select! {
                biased;
                elsewhere = answer => elsewhere.map_err(|_| Stopped::Left)?,
                why = parts.store.stalls() => return Err(Stopped::Unknown(why)),
            };
            let begun = elsewhere.wishes.len() < count;
            orders::post(&parts, elsewhere, begun).await
        });
        rest.await.unwrap_or(Err(Stopped::Left))
    }

    /// Looks at the lanes after reading anew what other nodes have stored of these destinations.
    pub async fn look_at<R: Send + 'static>(
        &self,
        destinations: impl IntoIterator<Item = DestinationNo>,
        look: impl FnOnce(&View<'_>) -> R + Send + 'static,
    ) -> Result<R, Stopped> {
        if self.member.is_some() {
            self.freshen(destinations.into_iter().collect()).await?;
        }
        self.look(look).await
    }

    /// Reads anew those of these destinations that other nodes work. They store changes within a second, so what a look then
    /// shows of them is at most that old.
    async fn freshen(&self, destinations: Vec<DestinationNo>) -> Result<(), Stopped> {
        let elsewhere = move |view: &View<'_>| {
            destinations.into_iter().filter(|no| view.is_elsewhere(*no)).collect::<Vec<_>>()
        };
        let elsewhere = self.look(elsewhere).await?;
        if elsewhere.is_empty() {
            return Ok(());
        }
        let lanes = self.parts.store.lanes(elsewhere).await?;
        self.ask(|done| Order::Show(lanes, done)).await
    }

    /// Returns when the millisecond of this number is over, whichever node one asks: what is accepted anywhere after that has
    /// a higher one, so that the order of acceptance is the order of numbers.
    pub async fn past(&self, number: Sequence) {
        if self.member.is_some() {
            while self.parts.clock.between().0 <= number.made_at() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }

    /// Runs `look` in the driver, between two steps: everything it sees belongs together. Keep it short.
    pub async fn look<R: Send + 'static>(
        &self,
        look: impl FnOnce(&View<'_>) -> R + Send + 'static,
    ) -> Result<R, Stopped> {
        let (answer, asked) = oneshot::channel();
        self.order(Order::Look(Box::new(move |view| drop(answer.send(look(view))))));
        asked.await.map_err(|_| Stopped::Left)
    }

    /// Returns when this process cannot go on: with what is broken, and what to do.
    pub async fn broken(&self) -> String {
        let mut fallen = self.fallen.subscribe();
        tokio::select! {
            // What is acknowledged is safe; only a fresh start finds out what else is.
            why = self.parts.store.broken() => {
                format!("the store is broken: {why}. Start again: that finds out what is on the disk, and says what to do")
            }
            Ok(why) = fallen.wait_for(Option::is_some) => {
                let why = why.as_deref().unwrap_or_default();
                format!("a fault of the server's own stopped all deliveries: {why}. Start again: nothing acknowledged is lost")
            }
        }
    }

    /// The process is about to end for a reason that is known: no delivery is to blame.
    pub fn blames_nobody(&self) {
        self.parts.deathwatch.rest();
    }

    /// Leaves: starts nothing more, lets attempts finish for up to `limit`, commits, closes the store.
    pub async fn shutdown(&self, limit: Duration) {
        if let Some(member) = &self.member {
            let (done, passed) = oneshot::channel();
            if member.leave.send((limit, done)).is_ok() {
                // What could not be passed on by then is taken when the lease ends.
                let _late = tokio::time::timeout(limit + PASS_ON, passed).await;
            }
        }
        // Whoever asks a second time finds it gone, which is what was wanted.
        let _left = self.ask(|done| Order::Leave(limit, done)).await;
        self.parts.store.close().await;
        if let Some(cluster) = self.parts.store.cluster()
            && let Err(error) = cluster.leave().await
        {
            tracing::warn!(%error, "the cluster was not told that this node has left");
        }
        self.parts.deathwatch.end();
    }

    async fn ask(&self, order: impl FnOnce(oneshot::Sender<()>) -> Order) -> Result<(), Stopped> {
        let (done, asked) = oneshot::channel();
        self.order(order(done));
        asked.await.map_err(|_| Stopped::Left)
    }

    /// An order to an engine that has left is answered by the silence of its channel.
    fn order(&self, order: Order) {
        let _left = self.inbox.send(Arrival::Order(order));
    }
}
