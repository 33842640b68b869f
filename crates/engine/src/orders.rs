//! Wishes for destinations that another node works: posted in the store, and carried out by that node.
//!
//! ```text
//!   told (news, a claim) ─► read: all that is open for the lane, by number, and the deliveries that they name
//!                             ▲     └ failed: again after a moment, as long as the slot is this node's
//!                  told again │
//!                  meanwhile  │ ─► the driver carries them out, in this order ─► one commit: what they led to, and their ends
//!                             └────────────────────────────────────────────────────┘
//! ```
//!
//! A hint says only that there is something. A lane's orders are read, carried out and committed before they are read again: so
//! none is carried out twice or before an older one, and what could not be committed is still open for whoever has the slot then.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::slots::Slot;
use tidegate_store::cluster::{Cluster, OrderNo, Posted};
use tidegate_store::{AccountNo, DestinationNo, StoreError};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::dispatcher::LaneId;
use crate::driver::{Arrival, Asked, Order, Parts, Wishes};
use crate::handle::Stopped;
use crate::reading::Reading;
use crate::wish::{Wish, Written};

/// How long whoever posted a wish waits for it: a node that died has lost its slots by then.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long to wait before a read that failed is tried again.
const READ_AGAIN: Duration = Duration::from_secs(1);
/// Orders of a lane that are carried out at once: each may name many deliveries, and the driver does nothing else meanwhile.
const AT_ONCE: usize = 64;

/// What reaches the driver of orders that others have posted.
pub(crate) enum Step {
    /// These may be open; and how long that has been known.
    Told(Vec<Posted>, Duration),
    /// What is open for a lane was read.
    Read(OrdersOf, Read),
    /// What was carried out is committed; and whether more is known to be open.
    Committed(OrdersOf, bool),
}

/// Orders of a lane, in one tenure of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OrdersOf {
    pub(crate) lane: LaneId,
    pub(crate) tenure: u64,
    pub(crate) account: AccountNo,
    pub(crate) destination: DestinationNo,
}

/// What is open for a lane.
#[derive(Default)]
pub(crate) struct Read {
    /// By number, and what each of them wants.
    pub(crate) orders: Vec<(OrderNo, Wishes)>,
    /// There are more.
    pub(crate) more: bool,
}

/// How far the orders of a lane have got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Progress {
    /// None is known to be open.
    #[default]
    Idle,
    /// They are being read, or committed.
    Busy,
    /// The same, and others may have come meanwhile.
    Again,
}

impl Progress {
    /// There may be something. Says whether it is to be read now.
    pub(crate) fn told(&mut self) -> bool {
        let idle = *self == Self::Idle;
        *self = if idle { Self::Busy } else { Self::Again };
        idle
    }

    /// What was read is committed. Says whether to read again.
    pub(crate) fn committed(&mut self, more: bool) -> bool {
        let again = more || *self == Self::Again;
        *self = if again { Self::Busy } else { Self::Idle };
        again
    }
}

/// Posts wishes, and waits until they are fulfilled. The line in the audit log, if it is not written yet, is committed with the
/// first of them. `begun`: others that were wanted with them are carried out already.
pub(crate) async fn post(
    parts: &Parts,
    Asked { wishes, mut audit }: Asked,
    mut begun: bool,
) -> Result<(), Stopped> {
    let mut posted = Vec::with_capacity(wishes.len());
    for (destination, written) in Written::from_wishes(&wishes) {
        let body = written.to_text().into_bytes();
        match parts.store.post_order(destination, body, audit.take()).await {
            Ok(no) => posted.push(no),
            Err(error) if begun => return Err(Stopped::Unknown(error)),
            Err(error) => return Err(Stopped::Store(error)),
        }
        begun = true;
    }
    let until = Instant::now() + PATIENCE;
    while let Some(no) = posted.last().copied() {
        if !parts.store.order_is_open(no).await.map_err(Stopped::Unknown)? {
            posted.pop();
        } else if Instant::now() >= until {
            return Err(Stopped::Elsewhere);
        } else {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
    Ok(())
}

/// Finds out for which lanes of slots something is open, and tells the driver: until that is known, or they are others'.
pub(crate) fn look_for(parts: &Arc<Parts>, inbox: &mpsc::UnboundedSender<Arrival>, mut slots: Vec<Slot>) {
    let (parts, inbox) = (Arc::clone(parts), inbox.clone());
    tokio::spawn(async move {
        let Some(cluster) = parts.store.cluster() else { return };
        loop {
            slots.retain(|slot| cluster.holds(*slot));
            if slots.is_empty() {
                return;
            }
            match cluster.orders(&slots).await {
                Ok(posted) => {
                    tell(&inbox, Step::Told(posted, Duration::ZERO));
                    return;
                }
                Err(StoreError::Closed) => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot read yet what people want of these destinations");
                    tokio::time::sleep(READ_AGAIN).await;
                }
            }
        }
    });
}

/// Reads what is open for a lane, and tells the driver: until that is done, or the lane is another node's.
pub(crate) fn read(parts: &Arc<Parts>, inbox: &mpsc::UnboundedSender<Arrival>, of: OrdersOf) {
    let (parts, inbox) = (Arc::clone(parts), inbox.clone());
    tokio::spawn(async move {
        let Some(cluster) = parts.store.cluster() else { return };
        // Whoever has the slot next, and be it this node, begins anew.
        while cluster.holds(Slot::of(of.destination.0)) {
            let Some(reading) = Reading::begin(&inbox).await else { return };
            match read_open(&parts, cluster, of).await {
                Ok(read) => return tell(&inbox, Step::Read(of, read)),
                Err(StoreError::Closed) => return,
                Err(error) => not_yet(of, &error),
            }
            drop(reading);
            tokio::time::sleep(READ_AGAIN).await;
        }
    });
}

async fn read_open(parts: &Parts, cluster: &Cluster, of: OrdersOf) -> Result<Read, StoreError> {
    let mut read = Read::default();
    let mut open = cluster.orders(&[Slot::of(of.destination.0)]).await?;
    open.retain(|order| order.destination == of.destination);
    for order in open {
        let text = String::from_utf8_lossy(&order.body);
        let Some(written) = Written::parse(&text) else {
            tracing::warn!(%text, "a wish of a newer version is left to a newer node");
            continue;
        };
        if read.orders.len() == AT_ONCE {
            read.more = true;
            break;
        }
        match wishes(parts, of, written).await {
            Ok(wishes) => read.orders.push((order.no, wishes)),
            Err(error) if read.orders.is_empty() => return Err(error),
            Err(error) => {
                // Those before it need not wait; those behind it must.
                not_yet(of, &error);
                read.more = true;
                break;
            }
        }
    }
    Ok(read)
}

/// What is wanted, with the deliveries as the store has them.
async fn wishes(parts: &Parts, of: OrdersOf, written: Written) -> Result<Wishes, StoreError> {
    let (ids, withdraw) = match written {
        Written::Command(command) => return Ok(vec![(of.destination, Wish::Command(command))]),
        Written::Withdraw(by, ids) => (ids, Some(by)),
        Written::Hasten(id) => (vec![id], None),
    };
    let mut wishes = Vec::with_capacity(ids.len());
    for id in ids {
        let Some(stored) = parts.store.delivery(of.account, id).await? else { continue };
        let delivery = Box::new(stored.delivery);
        wishes.push((
            of.destination,
            match withdraw {
                Some(by) => Wish::Withdraw(delivery, by),
                None => Wish::Hasten(delivery),
            },
        ));
    }
    Ok(wishes)
}

fn not_yet(of: OrdersOf, error: &StoreError) {
    tracing::warn!(%error, destination = of.destination.0, "what a person wants cannot be done yet");
}

/// A driver that has left needs no orders.
fn tell(inbox: &mpsc::UnboundedSender<Arrival>, step: Step) {
    let _left = inbox.send(Arrival::Order(Order::Posted(step)));
}
