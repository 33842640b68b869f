//! What reaches the driver from outside: commits, answers, and what people want.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::id::DeliveryId;
use tidegate_core::policy::Policy;
use tidegate_core::slots::Slot;
use tidegate_core::time::Mono;
use tidegate_store::cluster::{Claimed, News, Posted};
use tidegate_store::lane::{Overdue, Refilled, StoredLane};
use tidegate_store::record::Commit;
use tidegate_store::{DestinationNo, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::lanes::NewLane;
use super::view::View;
use crate::dispatcher::{LaneId, Sending};
use crate::sender::{Answer, Endpoint};
use crate::wish::Wish;

/// One thing that happened.
pub(crate) enum Arrival {
    /// The writer thread has committed.
    Commit(Commit),
    /// An attempt ended.
    Answered { lane: LaneId, sending: Box<Sending>, answer: Box<Answer> },
    /// One was not sent, and never will be: it kills the process.
    PutAside { lane: LaneId, delivery: DeliveryId },
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

/// What somebody wants of the driver.
pub(crate) enum Order {
    /// A destination is there.
    Open(Box<NewLane>),
    /// It changed.
    Adopt(DestinationNo, Arc<Policy>, Arc<Endpoint>),
    /// People want something of destinations.
    Wishes(Wishes, oneshot::Sender<Wishes>),
    /// Have a look.
    Look(Box<dyn FnOnce(&View<'_>) + Send>),
    /// Somebody begins to read open deliveries of which something is wanted.
    Reads(Done),
    /// They have come, or never will.
    HasRead,
    /// Begin to send.
    Go,
    /// Leave: start nothing more, wait for what is out, but not longer than this.
    Leave(Duration, Done),
    /// These slots are this node's now.
    Take(Vec<Claimed>),
    /// Start nothing more in these, and tell of each when it is empty and everything of it is committed; at the latest then.
    Pass(Vec<Slot>, Duration, mpsc::UnboundedSender<Slot>),
    /// What others have posted for destinations of this node.
    Posted(Vec<Posted>),
    /// These are somebody else's.
    Lose(Vec<Slot>),
    /// The lease holds: work until then, unless told otherwise before.
    Work(Mono),
    /// The lease could not be renewed: start nothing until it is.
    OutOfReach,
    /// What others have stored of lanes that they work.
    Show(Vec<StoredLane>, Done),
}

/// What is wanted of which destinations. Those that are worked elsewhere come back, when the others are committed.
pub(crate) type Wishes = Vec<(DestinationNo, Wish)>;

/// Told when what was asked for is done.
pub(crate) type Done = oneshot::Sender<()>;
