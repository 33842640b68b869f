//! How a node registers, and under which epochs the writer writes.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_core::slots::{Epoch, LEASE, NodeNo, Seat, Slot};
use tidegate_core::time::Millis;

use super::cluster::seat;
use super::failure::Failure;
use super::link::Link;
use super::value::typed;
use super::{sql, transfer};
use crate::cluster::{Epochs, Identity};
use crate::codec;
use crate::shared::Shared;
use crate::source::params;
use crate::{DestinationNo, StoreError};

/// What a node is told whose place is taken.
pub(super) const GONE: &str = "its place in the cluster was given to another: restart it";
/// How long after the end of its lease a node's place is given to another.
pub(super) const FORGOTTEN: Millis = Millis::minutes(10);

/// A node that has just registered.
pub(super) struct Registered {
    pub(super) node: NodeNo,
    pub(super) seat: Seat,
    /// Groups that were committed from each seat.
    pub(super) groups: Vec<(Seat, i64)>,
    /// The highest number that was ever given.
    pub(super) sequence: i64,
}

/// Becomes a node, on the lowest seat that is free. It has no slots yet. Refused where what a transfer brings is not whole.
pub(super) fn register(link: &Link, identity: &Identity) -> Result<Registered, StoreError> {
    let registered = link.transact("begin", || {
        link.ask(sql::BEGIN_REGISTRATION, Vec::new())?;
        if transfer::is_unfinished(link)? {
            return Ok(Err(transfer::UNFINISHED));
        }
        // Those that were gone for long, and if that is not enough, whose lease has ended at all: a node that crashes
        // again and again must not wait for its own leftovers.
        for gone_for in [FORGOTTEN, Millis::ZERO] {
            link.ask(sql::DROP_NODES, typed(params![gone_for.get()]))?;
            if let Some(registered) = sit_down(link, identity)? {
                return Ok(Ok(registered));
            }
        }
        Ok(Err("as many nodes as there can be are there already"))
    })?;
    registered.map_err(|why| StoreError::Database(why.to_owned()))
}

fn sit_down(link: &Link, identity: &Identity) -> Result<Option<Registered>, Failure> {
    let values = params![&identity.name, &identity.address, &identity.version, LEASE.get()];
    let added = link.ask(sql::ADD_NODE, typed(values))?.rows;
    let Some(row) = added.first() else { return Ok(None) };
    let (no, column): (i64, i16) = (row.get(0), row.get(1));
    link.ask(sql::TAKE_SEAT, typed(params![i64::from(column), no]))?;
    let numbers = link.ask(sql::LAST_NUMBERS, Vec::new())?.rows;
    Ok(Some(Registered {
        node: NodeNo(codec::uncount(no)),
        seat: seat(column),
        groups: numbers.iter().map(|row| (seat(row.get(0)), row.get(2))).collect(),
        sequence: numbers.iter().map(|row| row.get(1)).max().unwrap_or(0),
    }))
}

impl Registered {
    /// Groups that were committed from its seat.
    pub(super) fn own_groups(&self) -> i64 {
        self.groups.iter().find(|(seat, _)| *seat == self.seat).map_or(0, |(_, groups)| *groups)
    }
}

/// This node, and the epochs under which it has its slots in the group that is being written.
pub(super) struct Slots {
    pub(super) node: i64,
    pub(super) seat: i64,
    shared: Arc<Shared>,
    epochs: Option<Epochs>,
}

impl Slots {
    pub(super) fn new(registered: &Registered, shared: &Arc<Shared>) -> Self {
        let (node, seat) = (codec::count(registered.node.0), i64::from(registered.seat.get()));
        Self { node, seat, shared: Arc::clone(shared), epochs: None }
    }

    /// A group begins: what is held now counts for all of it.
    pub(super) fn look(&mut self) {
        self.epochs = self.shared.node.as_ref().map(|node| node.epochs());
    }

    /// The slot of a destination, and the epoch under which this node has it; 0, which is no epoch, if it does not.
    pub(super) fn of(&self, destination: DestinationNo) -> (i64, i64) {
        let slot = Slot::of(destination.0);
        (i64::from(slot.get()), self.epoch(slot).map_or(0, |epoch| codec::count(epoch.0)))
    }

    /// Whether another node works a destination, as far as this one knows.
    pub(super) fn is_foreign(&self, destination: DestinationNo) -> bool {
        self.epoch(Slot::of(destination.0)).is_none()
    }

    /// Whether what came about under this epoch may be written: a slot that was lost and is held again is another tenure.
    pub(super) fn is_current(&self, destination: DestinationNo, epoch: Option<Epoch>) -> bool {
        epoch.is_none() || self.epoch(Slot::of(destination.0)) == epoch
    }

    fn epoch(&self, slot: Slot) -> Option<Epoch> {
        self.epochs.as_ref().and_then(|epochs| epochs.of(slot))
    }

    /// Those of which somebody else is the owner by now are not this node's any more.
    pub(super) fn lose(&self, stale: &BTreeSet<u8>) {
        let Some(node) = &self.shared.node else { return };
        stale.iter().map(|slot| Slot::new(*slot)).for_each(|slot| node.lose_under(slot, self.epoch(slot)));
    }
}

/// The slot of a destination.
pub(super) fn slot(destination: DestinationNo) -> u8 {
    Slot::of(destination.0).get()
}
