//! The way from one node to the database: a TCP proxy that can go silent, refuse, and cut a connection in the middle of a
//! commit.
//!
//! It has one port for each place where the database may be, the primary and the standby.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::kit::millis;

/// What happens to bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Open,
    /// They are taken and kept. Nobody is told.
    Silent,
    /// Connections are reset, new ones too.
    Refused,
}

/// How the way is.
#[derive(Clone, Copy, Debug)]
struct State {
    flow: Flow,
    /// Connections that are older stay silent for ever.
    dead_before: u64,
}

struct Shared {
    state: watch::Sender<State>,
    /// Connections made so far.
    made: AtomicU64,
    /// So many commits are still to be cut …
    to_cut: AtomicU64,
    /// … and so many were.
    cut: AtomicU64,
}

/// The way of one node. It is closed when it is dropped.
pub(crate) struct Proxy {
    /// Where the node finds the database, in the order of the targets.
    pub(crate) ports: Vec<u16>,
    shared: Arc<Shared>,
    accepting: Vec<JoinHandle<()>>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.iter().for_each(JoinHandle::abort);
        self.refuse();
    }
}

impl Proxy {
    /// Leads to these ports of this machine.
    pub(crate) async fn start(targets: &[u16]) -> Self {
        let (state, _) = watch::channel(State { flow: Flow::Open, dead_before: 0 });
        let zero = || AtomicU64::new(0);
        let shared = Arc::new(Shared { state, made: zero(), to_cut: zero(), cut: zero() });
        let (mut ports, mut accepting) = (Vec::new(), Vec::new());
        for target in targets {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            ports.push(listener.local_addr().expect("it is bound").port());
            accepting.push(tokio::spawn(accept(listener, *target, Arc::clone(&shared))));
        }
        Self { ports, shared, accepting }
    }

    /// From now on nothing passes, and nobody is told.
    pub(crate) fn silence(&self) {
        self.shared.state.send_modify(|state| state.flow = Flow::Silent);
    }

    /// From now on connections are reset.
    pub(crate) fn refuse(&self) {
        self.shared.state.send_modify(|state| state.flow = Flow::Refused);
    }

    /// Everything passes again, also what was kept.
    pub(crate) fn open(&self) {
        self.shared.state.send_modify(|state| state.flow = Flow::Open);
    }

    /// New connections pass; those that are there stay silent, as after a change of the network's ways.
    pub(crate) fn open_anew(&self) {
        let dead_before = self.shared.made.load(SeqCst);
        self.shared.state.send_modify(|state| *state = State { flow: Flow::Open, dead_before });
    }

    /// The next commits that carry something reach the database, and their answers are lost with the connection.
    pub(crate) fn cut_commits(&self, count: u64) {
        self.shared.to_cut.store(count, SeqCst);
    }

    /// So many commits were cut.
    pub(crate) fn commits_cut(&self) -> u64 {
        self.shared.cut.load(SeqCst)
    }
}

async fn accept(listener: TcpListener, target: u16, shared: Arc<Shared>) {
    while let Ok((near, _)) = listener.accept().await {
        tokio::spawn(join(near, target, Arc::clone(&shared)));
    }
}

/// One connection, to its end.
async fn join(near: TcpStream, target: u16, shared: Arc<Shared>) {
    let number = shared.made.fetch_add(1, SeqCst);
    let _ = (near.set_nodelay(true), near.set_zero_linger());
    let mut way = Way { shared: Arc::clone(&shared), state: shared.state.subscribe(), number };
    if !way.may_pass().await {
        return;
    }
    let Ok(far) = TcpStream::connect(("127.0.0.1", target)).await else { return };
    let _ = far.set_nodelay(true);
    let ((from_near, to_near), (from_far, to_far)) = (near.into_split(), far.into_split());
    let (swallow, swallowing) = watch::channel(false);
    let back = way.clone();
    tokio::select! {
        () = ask(way.clone(), from_near, to_far, &swallow) => {}
        () = answer(back, from_far, to_near, swallowing) => {}
        () = way.refused() => {}
    }
}

#[derive(Clone)]
struct Way {
    shared: Arc<Shared>,
    state: watch::Receiver<State>,
    number: u64,
}

/// A commit that comes with more bytes than these ends something that was written.
const CARRIES: usize = 400;

impl Way {
    /// Waits until bytes pass; false: they never will.
    async fn may_pass(&mut self) -> bool {
        let number = self.number;
        let passes = |state: &State| state.flow != Flow::Silent && state.dead_before <= number;
        self.state.wait_for(passes).await.is_ok_and(|state| state.flow == Flow::Open)
    }

    async fn refused(&mut self) {
        let _ = self.state.wait_for(|state| state.flow == Flow::Refused).await;
    }

    /// Whether this is a commit that is to be cut.
    fn is_to_be_cut(&self, bytes: &[u8]) -> bool {
        let commit = b"commit\0";
        let commits = bytes.windows(commit.len()).any(|window| window == commit);
        let take = |left: u64| left.checked_sub(1);
        commits && bytes.len() > CARRIES && self.shared.to_cut.fetch_update(SeqCst, SeqCst, take).is_ok()
    }
}

/// Carries what the node asks.
async fn ask(mut way: Way, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, swallow: &watch::Sender<bool>) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if !way.may_pass().await {
            return;
        }
        let cut = way.is_to_be_cut(&bytes[..count]);
        swallow.send_replace(cut);
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
        if cut {
            let cuts = way.shared.cut.fetch_add(1, SeqCst);
            // Every other time the database has answered already, and this connection ends in `answer`.
            if cuts % 2 == 1 {
                return;
            }
            tokio::time::sleep(millis(500)).await;
            return;
        }
    }
}

/// Carries what the database answers.
async fn answer(
    mut way: Way,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    swallowing: watch::Receiver<bool>,
) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if *swallowing.borrow() || !way.may_pass().await || to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
}
