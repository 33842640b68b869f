//! Faults, and what is allowed because of them.

use std::time::{Duration, Instant};

use crate::kit::{Dice, Received, millis, now, secs};
use crate::node::{Cluster, NODES, Needs};

/// How long a lease holds.
const LEASE: Duration = secs(10);
/// Deliveries go on so long after the lease of a lost node has ended …
const AFTER_LEASE: Duration = secs(2);
/// … and so long after the database is back.
const AFTER_DATABASE: Duration = secs(5);
/// Results are committed within this time: what was received before a fault is not in flight any more.
const COMMITTED_WITHIN: Duration = secs(2);
/// A node notices within this time that nothing comes through to the database, and starts nothing more.
const NOTICED_WITHIN: Duration = secs(4);
/// A request may be seen so much later than it was sent, on a busy machine.
pub(crate) const LATE: Duration = millis(300);

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `kill -9` of a node; it comes back.
    Kill,
    /// A node is frozen for three leases.
    Pause,
    /// Nothing passes between a node and the database, and nobody is told. Afterwards what was kept passes.
    Silence,
    /// The same; connections from before never pass anything again.
    SilenceForGood,
    /// A node's connections to the database are reset.
    Reset,
    /// `kill -9` of the database, and an immediate restart.
    KillDatabase,
    /// `kill -9` of the database; its synchronous standby takes over.
    Promote,
    /// Connections are cut between a commit and its answer.
    CutCommits,
    /// Clocks of the nodes an hour apart, and a node is killed.
    ClocksApart,
    /// Each node is stopped and started, one after the other.
    RollingRestart,
}

/// All of them, in the order in which runs have them.
pub(crate) const ALL: [Kind; 10] = [
    Kind::Kill,
    Kind::RollingRestart,
    Kind::KillDatabase,
    Kind::Silence,
    Kind::CutCommits,
    Kind::Pause,
    Kind::ClocksApart,
    Kind::Promote,
    Kind::Reset,
    Kind::SilenceForGood,
];

/// A fault that has happened.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    pub(crate) from: Instant,
    /// When what was broken was whole again.
    pub(crate) until: Instant,
    /// Everything that waits is delivered by then.
    pub(crate) delivers_by: Instant,
}

impl Kind {
    /// What a run with this fault needs.
    pub(crate) fn needs(self) -> Needs {
        Needs { standby: self == Self::Promote, clocks_apart: self == Self::ClocksApart }
    }

    /// Does it.
    pub(crate) async fn happen(self, cluster: &mut Cluster, dice: &mut Dice) -> Fault {
        let victim = usize::try_from(dice.below(NODES as u64)).unwrap_or(0);
        println!("  {self:?}, node {victim}");
        let from = now();
        let mut cut = 0;
        match self {
            Self::Kill | Self::ClocksApart => {
                cluster.nodes[victim].server.kill9();
                tokio::time::sleep(millis(500 + dice.below(8_000))).await;
                cluster.nodes[victim].server.restart().await;
            }
            Self::Pause => {
                cluster.nodes[victim].server.pause();
                tokio::time::sleep(3 * LEASE).await;
                cluster.nodes[victim].server.wake();
            }
            Self::Silence | Self::SilenceForGood | Self::Reset => {
                let proxy = &cluster.nodes[victim].proxy;
                if self == Self::Reset {
                    proxy.refuse();
                } else {
                    proxy.silence();
                }
                tokio::time::sleep(LEASE + millis(2_000 + dice.below(5_000))).await;
                if self == Self::SilenceForGood { proxy.open_anew() } else { proxy.open() }
            }
            Self::KillDatabase | Self::Promote => tokio::task::block_in_place(|| {
                cluster.primary.kill9();
                // One that was promoted before has no standby of its own.
                match cluster.standby.take_if(|_| self == Self::Promote) {
                    Some(standby) => {
                        standby.promote();
                        cluster.primary = standby;
                    }
                    None => cluster.primary.up(),
                }
            }),
            Self::CutCommits => {
                for _ in 0..5 {
                    cluster.nodes.iter().for_each(|node| node.proxy.cut_commits(2));
                    tokio::time::sleep(secs(1)).await;
                }
                cluster.nodes.iter().for_each(|node| node.proxy.cut_commits(0));
                cut = cluster.nodes.iter().map(|node| node.proxy.commits_cut()).sum();
                assert!(cut > 0, "no commit was cut");
            }
            Self::RollingRestart => {
                for node in &mut cluster.nodes {
                    assert!(node.server.stop().await, "it did not end well");
                    node.server.restart().await;
                    tokio::time::sleep(millis(1_000 + dice.below(2_000))).await;
                }
            }
        }
        let until = now();
        println!(
            "  over after {:.1} s{}",
            (until - from).as_secs_f64(),
            if cut > 0 { format!(", {cut} commits cut") } else { String::new() }
        );
        let fault = Fault { kind: self, from, until, delivers_by: until };
        Fault { delivers_by: fault.recovered(), ..fault }
    }
}

impl Fault {
    /// The machine stood still meanwhile, and with it everybody's clocks but the database's.
    pub(crate) fn standstill(from: Instant, until: Instant) -> Self {
        Self { kind: Kind::Pause, from, until, delivers_by: until + LEASE + AFTER_LEASE }
    }

    fn recovered(&self) -> Instant {
        match self.kind {
            Kind::Kill | Kind::ClocksApart | Kind::Pause => self.from + LEASE + AFTER_LEASE,
            Kind::Silence | Kind::SilenceForGood | Kind::Reset => self.from + LEASE + AFTER_LEASE,
            Kind::KillDatabase | Kind::Promote | Kind::CutCommits => self.until + AFTER_DATABASE,
            Kind::RollingRestart => self.until,
        }
    }

    /// Whether a request may have been in flight in a node that was lost: sent, but its result not yet committed.
    pub(crate) fn may_have_lost(&self, request: &Received) -> bool {
        let lost = match self.kind {
            Kind::Kill | Kind::ClocksApart | Kind::Pause => self.from + LATE,
            Kind::Silence | Kind::SilenceForGood | Kind::Reset => self.from + NOTICED_WITHIN,
            Kind::KillDatabase | Kind::Promote | Kind::CutCommits | Kind::RollingRestart => return false,
        };
        let ended_at = request.ended_at.unwrap_or(request.began_at);
        self.from - COMMITTED_WITHIN <= ended_at && request.began_at <= lost
    }

    /// Whether a node was frozen with a request that began then.
    pub(crate) fn froze(&self, began_at: Instant) -> bool {
        self.kind == Kind::Pause && began_at <= self.from + LATE && self.from - secs(15) <= began_at
    }
}
