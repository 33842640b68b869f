//! The engine as the server sees it: start it, tell it of destinations, ask it anything.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tidegate_core::delivery::{Delivery, Withdrawn};
use tidegate_core::draw::Draw;
use tidegate_core::lane::LastStop;
use tidegate_core::policy::Policy;
use tidegate_core::sequence::Sequence;
use tidegate_core::time::{Millis, Now};
use tidegate_store::catalogue::Catalogue;
use tidegate_store::job::Job;
use tidegate_store::lane::StoredLane;
use tidegate_store::sqlite::{Opened, Options};
use tidegate_store::{DestinationNo, Store, StoreError};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::chance::Chance;
use crate::clock::Clock;
use crate::dispatcher::Command;
use crate::driver::{Arrival, Driver, NewLane, Order, Parts, View};
use crate::keeper;
use crate::metrics::Metrics;
use crate::notice::Notice;
use crate::sender::{Endpoint, Sender, SenderConfig};

/// Notices that a slow watcher may be behind before it misses some.
const NOTICES: usize = 4_096;

/// How the engine runs.
#[derive(Debug)]
pub struct EngineConfig {
    /// Where the store lies.
    pub data_dir: PathBuf,
    /// Requests in flight on this node, at most.
    pub slots: u32,
    /// Threads that read the store.
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

/// The engine has left: nothing more can be asked of it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the server is shutting down")]
pub struct Stopped;

/// The running engine. Clones are the same one.
#[derive(Clone)]
pub struct Engine {
    parts: Arc<Parts>,
    inbox: mpsc::UnboundedSender<Arrival>,
}

/// Opens the store and starts the driver. Nothing is sent before [`Engine::go`]. Must be called on a tokio runtime.
pub fn start(config: EngineConfig) -> Result<(Engine, Started), StoreError> {
    let (inbox, arrivals) = mpsc::unbounded_channel();
    let commits = inbox.clone();
    let opened = Store::open(Options {
        data_dir: config.data_dir,
        readers: config.readers,
        // The driver is gone only after everything was committed.
        on_commit: Box::new(move |commit| drop(commits.send(Arrival::Commit(commit)))),
    })?;
    let Opened { store, last_stop, sequence, catalogue, lanes, jobs } = opened;
    let parts = Arc::new(Parts {
        clock: Clock::new(),
        chance: Chance::new(),
        store,
        sender: Sender::new(config.sender),
        metrics: Metrics::default(),
        notices: broadcast::Sender::new(NOTICES),
        sequence: AtomicU64::new(sequence.get()),
    });
    let driver = Driver::new(Arc::clone(&parts), config.slots, last_stop, arrivals, inbox.clone());
    tokio::spawn(driver.run());
    keeper::start(&parts, &inbox, config.retention);
    let started = Started { catalogue, lanes, jobs, last_stop };
    Ok((Engine { parts, inbox }, started))
}

impl Parts {
    /// The first of `count` numbers in a row.
    pub(crate) fn number(&self, count: u64) -> Sequence {
        let now = self.clock.now().wall;
        let mut last = self.sequence.load(Relaxed);
        loop {
            let (first, end) = Sequence::from_stored(last).next(now, count);
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
    /// Every destination is there: begin to send.
    pub fn go(&self) {
        self.order(Order::Go);
    }
    /// A person wants something of a destination. Returns when it is committed.
    pub async fn command(&self, destination: DestinationNo, command: Command) -> Result<(), Stopped> {
        self.ask(|done| Order::Command(destination, command, done)).await
    }
    /// Withdraws deliveries, given as the store has them. Returns when it is committed.
    pub async fn withdraw(
        &self,
        deliveries: Vec<(DestinationNo, Delivery)>,
        by: Withdrawn,
    ) -> Result<(), Stopped> {
        self.ask(|done| Order::Withdraw(deliveries, by, done)).await
    }
    /// Sends a delivery, given as the store has it, without waiting for its own time. Returns when it is committed.
    pub async fn hasten(&self, destination: DestinationNo, delivery: Delivery) -> Result<(), Stopped> {
        self.ask(|done| Order::Hasten(destination, Box::new(delivery), done)).await
    }
    /// Runs `look` in the driver, between two steps: everything it sees belongs together. Keep it short.
    pub async fn look<R: Send + 'static>(
        &self,
        look: impl FnOnce(&View<'_>) -> R + Send + 'static,
    ) -> Result<R, Stopped> {
        let (answer, asked) = oneshot::channel();
        self.order(Order::Look(Box::new(move |view| drop(answer.send(look(view))))));
        asked.await.map_err(|_| Stopped)
    }

    /// Leaves: starts nothing more, lets attempts finish for so long, commits, closes the store.
    pub async fn shutdown(&self, limit: Duration) {
        // Whoever asks a second time finds it gone, which is what was wanted.
        let _left = self.ask(|done| Order::Leave(limit, done)).await;
        self.parts.store.close().await;
    }

    async fn ask(&self, order: impl FnOnce(oneshot::Sender<()>) -> Order) -> Result<(), Stopped> {
        let (done, asked) = oneshot::channel();
        self.order(order(done));
        asked.await.map_err(|_| Stopped)
    }

    /// An order to an engine that has left is answered by the silence of its channel.
    fn order(&self, order: Order) {
        let _left = self.inbox.send(Arrival::Order(order));
    }
}
