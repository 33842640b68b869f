//! This node's part in a cluster: renews its lease, claims slots, passes them on, and tells the driver.
//!
//! ```text
//!            ┌── every 2 s, more often while slots are missing, when a lease ends ──┐
//!            ▼                                                                      │
//!   renew ──► clock, `Work until` ──► Membership::renewed ──► lost: `Lose`          │
//!   failed: `OutOfReach`                                                            │
//!                                                         ──► pass: `Pass` ──► empty and committed ──► give back, notice
//!                                                         ──► claim ──► `Take` ─────┘
//! ```
//!
//! All decisions are made by `core::slots`; this carries them out.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::slots::{DRAIN, LOOK_FOR_SHARE, Membership, RENEW_EVERY, Roll, Slot, Tenure};
use tidegate_core::time::{Millis, Mono};
use tidegate_store::StoreError;
use tidegate_store::cluster::{Cluster, NodeRow, Renewed};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::driver::{Arrival, Order, Parts};
use crate::orders;

/// After a renewal that failed.
const AGAIN_AFTER: Duration = Duration::from_millis(250);
/// How often news is read even without a notice: one may be lost.
const READ_EVERY: Duration = Duration::from_millis(200);
/// How often to look at the database's clock: meanwhile clocks drift apart by at most a quarter of a millisecond.
const LOOK_AT_CLOCK_EVERY: Duration = Duration::from_millis(500);
/// A look at a lease that ends comes a moment after its end.
const AFTER_END: Duration = Duration::from_millis(20);

/// What the last renewal showed, for people.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// All nodes.
    pub nodes: Vec<NodeRow>,
    /// Who holds each slot, by its number.
    pub holders: Vec<Option<tidegate_core::slots::NodeNo>>,
    /// This one.
    pub me: Option<tidegate_core::slots::NodeNo>,
    /// Why slots moved, the last of them: what, how many, when.
    pub moves: Vec<(tidegate_core::time::Timestamp, &'static str, usize)>,
    /// How many moved so far, by what it was.
    pub moved: std::collections::BTreeMap<&'static str, u64>,
    /// Whether it may work.
    pub(crate) standing: Standing,
}

/// How this node stands in the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has had no part in it yet.
    #[default]
    Joining,
    /// It has had one, and may work until then unless it renews its lease. That slots come and go changes nothing.
    Joined {
        /// By its own clock, since a renewal may hang without an end.
        until: Mono,
    },
}

impl Standing {
    /// A renewal was answered: the lease holds until then.
    const fn renewed(self, until: Mono, has_part: bool) -> Self {
        match self {
            Self::Joining if !has_part => Self::Joining,
            Self::Joining | Self::Joined { .. } => Self::Joined { until },
        }
    }

    /// Why this node sends nothing, as a sentence, if that is so.
    pub(crate) fn out_of_work(self, now: Mono) -> Option<&'static str> {
        match self {
            Self::Joining => Some("this node has just joined the cluster, and works no slots yet"),
            Self::Joined { until } if now < until => None,
            Self::Joined { .. } => {
                Some("this node could not renew its lease in time: it sends nothing until it can")
            }
        }
    }
}

/// Moves that are remembered.
const MOVES: usize = 32;

/// Asks the task to leave; answered when everything was passed on.
pub(crate) type Leave = (Duration, oneshot::Sender<()>);

/// What the task works with.
pub(crate) struct Member {
    parts: Arc<Parts>,
    cluster: Cluster,
    inbox: mpsc::UnboundedSender<Arrival>,
    membership: Membership,
    seen: watch::Sender<Seen>,
    passed: mpsc::UnboundedSender<Slot>,
    leaving: Option<Leave>,
    drain: Duration,
}

/// The task, to those who have the engine.
#[derive(Clone)]
pub(crate) struct Handle {
    /// What it sees.
    pub(crate) seen: watch::Receiver<Seen>,
    /// Where it is asked to leave.
    pub(crate) leave: mpsc::UnboundedSender<Leave>,
    /// All lanes are there: it may claim slots.
    pub(crate) go: Arc<Notify>,
}

/// Learns the database's time, and starts the task. It claims nothing before it may go.
pub(crate) async fn start(
    parts: &Arc<Parts>,
    cluster: &Cluster,
    inbox: &mpsc::UnboundedSender<Arrival>,
) -> Result<Handle, StoreError> {
    parts.clock.follow(&cluster.clock().await?);
    let sent = parts.clock.now().mono;
    cluster.renew(false).await?;
    let (seen, seeing) = watch::channel(Seen::default());
    let (leave, leaves) = mpsc::unbounded_channel();
    let (passed, emptied) = mpsc::unbounded_channel();
    let member = Member {
        parts: Arc::clone(parts),
        cluster: cluster.clone(),
        inbox: inbox.clone(),
        membership: Membership::new(cluster.me(), sent),
        seen,
        passed,
        leaving: None,
        drain: millis(DRAIN),
    };
    let go = Arc::new(Notify::new());
    let may_go = Arc::clone(&go);
    let (cluster, inbox, clock_of) = (cluster.clone(), inbox.clone(), Arc::clone(parts));
    tokio::spawn(async move {
        may_go.notified().await;
        tokio::spawn(listen(cluster.clone(), inbox));
        tokio::spawn(follow_clock(clock_of, cluster));
        member.run(leaves, emptied).await;
    });
    Ok(Handle { seen: seeing, leave, go })
}

/// Tells the driver that there may be news: when a notice came, and now and then.
async fn listen(cluster: Cluster, inbox: mpsc::UnboundedSender<Arrival>) {
    loop {
        let _slow = tokio::time::timeout(READ_EVERY, cluster.noticed()).await;
        if inbox.send(Arrival::Noticed).is_err() {
            return;
        }
    }
}

/// Looks at the database's clock, so that this node's is never far from it.
async fn follow_clock(parts: Arc<Parts>, cluster: Cluster) {
    loop {
        tokio::time::sleep(LOOK_AT_CLOCK_EVERY).await;
        match cluster.clock().await {
            Ok(look) => parts.clock.follow(&look),
            Err(StoreError::Closed) => return,
            Err(error) => tracing::debug!(%error, "the database's clock was not seen"),
        }
    }
}

impl Member {
    async fn run(
        mut self,
        mut leaves: mpsc::UnboundedReceiver<Leave>,
        mut emptied: mpsc::UnboundedReceiver<Slot>,
    ) {
        let mut empty = Vec::new();
        loop {
            let next = self.round().await;
            if self.has_left() {
                return;
            }
            let wake = Instant::now() + next;
            loop {
                tokio::select! {
                    () = tokio::time::sleep_until(wake) => break,
                    () = self.cluster.freed() => break,
                    Some(leave) = leaves.recv() => {
                        self.leave(leave);
                        break;
                    }
                    count = emptied.recv_many(&mut empty, 256) => {
                        if count == 0 { return; }
                        if self.give_back(std::mem::take(&mut empty)).await { return; }
                    }
                }
            }
        }
    }

    fn leave(&mut self, leave: Leave) {
        self.membership.leave();
        self.drain = leave.0;
        self.leaving = Some(leave);
    }

    /// One renewal, and what follows from it; how long to wait for the next.
    async fn round(&mut self) -> Duration {
        let sent = self.parts.clock.now().mono;
        let renewed = match self.cluster.renew(self.leaving.is_some()).await {
            Ok(renewed) => renewed,
            Err(StoreError::Closed) => return Duration::from_secs(1),
            Err(error) => {
                tracing::warn!(%error, "the lease is not renewed: nothing starts until it is");
                self.order(Order::OutOfReach);
                return AGAIN_AFTER;
            }
        };
        let plan = self.membership.renewed(sent, &renewed.roll);
        // First what is lost, then that work may go on: whoever was away for long must not start anything in between.
        if !plan.lost.is_empty() {
            tracing::warn!(slots = plan.lost.len(), "another node holds these by now");
            self.cluster.lose(&plan.lost);
            self.moved("lost", plan.lost.len());
            self.order(Order::Lose(plan.lost));
        }
        self.order(Order::Work(self.membership.stops_at()));
        if !plan.pass.is_empty() {
            self.moved("passing", plan.pass.len());
            self.order(Order::Pass(plan.pass, self.drain, self.passed.clone()));
        }
        self.show(&renewed);
        let got_all = plan.claim.is_empty() || self.claim(plan.claim).await;
        self.stand(&renewed.roll);
        let again = (!got_all).then_some(LOOK_FOR_SHARE);
        let lease = plan.look_after.into_iter().chain(again).min().map(|left| millis(left) + AFTER_END);
        let spent = Duration::from_millis(self.parts.clock.now().mono.since(sent).get().unsigned_abs());
        lease.into_iter().fold(millis(RENEW_EVERY).saturating_sub(spent), Duration::min)
    }

    /// Says whether it got them all.
    async fn claim(&mut self, slots: Vec<Slot>) -> bool {
        let wanted = slots.len();
        match self.cluster.claim(slots).await {
            Ok(claimed) if claimed.is_empty() => false,
            Ok(claimed) => {
                let held: Vec<Slot> = claimed.iter().map(|claimed| claimed.slot).collect();
                for claimed in &claimed {
                    self.membership.granted(claimed.slot, claimed.epoch);
                }
                self.moved("claimed", claimed.len());
                self.show_claimed(&held);
                self.order(Order::Take(claimed));
                let got_all = held.len() == wanted;
                orders::look_for(&self.parts, &self.inbox, held);
                got_all
            }
            Err(error) => {
                tracing::warn!(%error, "slots could not be claimed");
                false
            }
        }
    }

    /// Slots are empty, and everything of them is committed: whoever wants them may have them. Says whether this was the last
    /// thing to do here.
    async fn give_back(&mut self, slots: Vec<Slot>) -> bool {
        let passing = |slot: &Slot| matches!(self.membership.tenure(*slot), Tenure::Passing(..));
        let slots: Vec<Slot> = slots.into_iter().filter(passing).collect();
        for slot in &slots {
            self.membership.given_back(*slot);
        }
        self.moved("given back", slots.len());
        if let Err(error) = self.cluster.give_back(slots, true).await {
            tracing::warn!(%error, "slots could not be given back: others take them when the lease ends");
        }
        self.has_left()
    }

    fn has_left(&mut self) -> bool {
        if self.leaving.is_none() || self.membership.held().next().is_some() {
            return false;
        }
        if let Some((_, done)) = self.leaving.take() {
            let _gone = done.send(());
        }
        true
    }

    /// Notes until when it may work, and whether it has a part by now.
    fn stand(&self, roll: &Roll) {
        let (until, has_part) = (self.membership.stops_at(), self.membership.has_part(roll));
        self.seen.send_modify(|seen| seen.standing = seen.standing.renewed(until, has_part));
    }

    fn show(&self, renewed: &Renewed) {
        self.stand(&renewed.roll);
        let me = self.membership.me();
        self.seen.send_modify(|seen| {
            seen.nodes.clone_from(&renewed.nodes);
            seen.holders = renewed.roll.slots.iter().map(|held| held.by).collect();
            seen.me = Some(me);
        });
    }

    /// What the next renewal will show.
    fn show_claimed(&self, slots: &[Slot]) {
        let me = self.membership.me();
        self.seen.send_modify(|seen| {
            for slot in slots {
                if let Some(holder) = seen.holders.get_mut(slot.index()) {
                    *holder = Some(me);
                }
            }
        });
    }

    fn moved(&self, what: &'static str, slots: usize) {
        tracing::info!(slots, "slots: {what}");
        let now = self.parts.clock.now().wall;
        self.seen.send_modify(|seen| {
            seen.moves.push((now, what, slots));
            *seen.moved.entry(what).or_default() += slots as u64;
            let surplus = seen.moves.len().saturating_sub(MOVES);
            seen.moves.drain(..surplus);
        });
    }

    /// A driver that has left needs no orders.
    fn order(&self, order: Order) {
        let _left = self.inbox.send(Arrival::Order(order));
    }
}

fn millis(length: Millis) -> Duration {
    Duration::from_millis(length.get().max(0).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_out_of_work_until_it_has_a_part_and_when_its_lease_is_over() {
        let at = Mono::from_millis;
        let joining = Standing::default().renewed(at(100), false);
        assert!(joining.out_of_work(at(0)).is_some_and(|why| why.contains("joined")));
        let joined = joining.renewed(at(100), true);
        assert_eq!(joined.out_of_work(at(99)), None);
        assert!(joined.out_of_work(at(100)).is_some_and(|why| why.contains("lease")));
        let without_slots = joined.renewed(at(200), false);
        assert_eq!(without_slots.out_of_work(at(199)), None, "others may take all that it had");
    }
}
