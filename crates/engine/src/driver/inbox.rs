//! What reaches the driver from outside: commits, answers, and what people want.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::delivery::{Delivery, Withdrawn};
use tidegate_core::policy::Policy;
use tidegate_store::DestinationNo;
use tidegate_store::lane::{Overdue, Refilled};
use tidegate_store::record::Commit;
use tokio::sync::oneshot;

use super::lanes::NewLane;
use super::view::View;
use crate::dispatcher::{Command, LaneId, Sending};
use crate::sender::{Answer, Endpoint};

/// One thing that happened.
pub(crate) enum Arrival {
    /// The writer thread has committed.
    Commit(Commit),
    /// An attempt ended.
    Answered { lane: LaneId, sending: Box<Sending>, answer: Box<Answer> },
    /// The store answered a refill.
    Refilled { lane: LaneId, refilled: Box<Refilled> },
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
    /// A person wants something of it.
    Command(DestinationNo, Command, Done),
    /// Withdraw these, as the store has them.
    Withdraw(Vec<(DestinationNo, Delivery)>, Withdrawn, Done),
    /// Send this one without waiting for its own time.
    Hasten(DestinationNo, Box<Delivery>, Done),
    /// Have a look.
    Look(Box<dyn FnOnce(&View<'_>) + Send>),
    /// Begin to send.
    Go,
    /// Leave: start nothing more, wait for what is out, but not longer than this.
    Leave(Duration, Done),
}

/// Told when what was asked for is committed.
pub(crate) type Done = oneshot::Sender<()>;
