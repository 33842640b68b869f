//! What reaches the driver from outside: commits, answers, and what people want.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::id::DeliveryId;
use tidegate_core::policy::Policy;
use tidegate_core::slots::Slot;
use tidegate_core::time::Mono;
use tidegate_store::catalogue::AuditEntry;
use tidegate_store::cluster::{Claimed, News};
use tidegate_store::lane::{Overdue, Refilled, StoredLane};
use tidegate_store::record::Commit;
use tidegate_store::{DestinationNo, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::lanes::NewLane;
use super::view::View;
use crate::dispatcher::{LaneId, Sending};
use crate::orders::Step;
use crate::sender::{Answer, Endpoint};
use crate::wish::Wish;

/// One thing that happened.
pub(crate) enum Arrival {
    /// The writer thread has committed.
    Commit(Commit),
    /// An attempt that was started in this tenure of the lane is over.
    Landed { lane: LaneId, tenure: u64, landing: Landing },
    /// The store answered a refill that was asked for in this tenure of the lane.
    Refilled { lane: LaneId, tenure: u64, refilled: Box<Refilled> },
    /// Other nodes may have committed something for this one.
    Noticed,
    /// What they committed.
    News(Result<News, StoreError>),
    /// The sweeper found these.
    Overdue(Vec<Overdue>),
    /// Somebody wants something.
    Order(Order),
}

/// How an attempt ended.
pub(crate) enum Landing {
    /// It was made.
    Answered(Box<Sending>, Box<Answer>),
    /// It was not made: the delivery is to ask its gates again.
    NotSent(DeliveryId),
    /// It was not made, and never will be: the delivery kills the process.
    PutAside(DeliveryId),
}

/// What somebody wants of the driver.
pub(crate) enum Order {
    /// A destination is there.
    Open(Box<NewLane>),
    /// It changed.
    Adopt(DestinationNo, Arc<Policy>, Arc<Endpoint>),
    /// People want something of destinations. What is for other nodes comes back when the rest is committed.
    Wishes(Asked, oneshot::Sender<Asked>),
    /// Have a look.
    Look(Box<dyn FnOnce(&View<'_>) + Send>),
    /// Somebody begins to read open deliveries in order to withdraw or hasten them.
    Reads(Done),
    /// That has been asked for by now, or never will be.
    HasRead,
    /// Begin to send.
    Go,
    /// Leave: start nothing more, wait for what is out, but not longer than this.
    Leave(Duration, Done),
    /// These slots are this node's now.
    Take(Vec<Claimed>),
    /// Start nothing more in these slots. Send each to the channel once nothing of it is in flight and everything is committed;
    /// after this time, cut off what is still in flight.
    Pass(Vec<Slot>, Duration, mpsc::UnboundedSender<Slot>),
    /// How far what others have posted for destinations of this node has got.
    Posted(Step),
    /// These are somebody else's.
    Lose(Vec<Slot>),
    /// The lease holds: work until then, unless told otherwise before.
    Work(Mono),
    /// The lease could not be renewed: start nothing until it is.
    OutOfReach,
    /// What others have stored of lanes that they work.
    Show(Vec<StoredLane>, Done),
}

/// What is wanted of which destinations.
pub(crate) type Wishes = Vec<(DestinationNo, Wish)>;

/// What somebody wants, and the line that the audit log gets in the same commit, wherever the first of it is carried out.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) wishes: Wishes,
    pub(crate) audit: Option<AuditEntry>,
}

/// Told when what was asked for is done.
pub(crate) type Done = oneshot::Sender<()>;
