//! Slots: destinations by their number modulo 256, each owned by one node under an epoch that grows with every owner.

use std::collections::BTreeSet;

use tokio_postgres::Row;

use super::failure::Failure;
use super::link::Link;
use super::sql;
use super::value::{Rows, row, typed};
use crate::DestinationNo;
use crate::source::params;

/// How many there are.
const SLOTS: usize = 256;

/// This node, and the epochs under which it owns its slots.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) node: i64,
    epochs: [Option<i64>; SLOTS],
}

/// What a node starts from.
pub(super) struct Taken {
    pub(super) slots: Slots,
    /// Every slot was given up by its owner before, with nothing in flight.
    pub(super) clean: bool,
    /// The highest number that was ever given.
    pub(super) sequence: i64,
}

impl Slots {
    /// Becomes a node and takes every slot. Whoever had them writes no result any more.
    pub(super) fn take_all(link: &Link) -> Result<Taken, Failure> {
        link.batch("begin")?;
        let nodes = link.ask(sql::LOCK_NODES, Vec::new())?.rows;
        let sequence = nodes.iter().map(|node| node.get::<_, i64>(1)).max().unwrap_or(0);
        let node: i64 = one(&link.ask(sql::ADD_NODE, typed(params![sequence]))?.rows)?;
        let mut ended = Rows::of("i");
        nodes.iter().for_each(|node| ended.push(row![node.get::<_, i64>(0)]));
        link.ask(sql::DROP_NODES, ended.values())?;
        let taken = link.ask(sql::TAKE_SLOTS, typed(params![node]))?.rows;
        link.batch("commit")?;
        let mut epochs = [None; SLOTS];
        for row in &taken {
            let place = usize::try_from(row.get::<_, i16>(0)).unwrap_or(SLOTS);
            if let Some(epoch) = epochs.get_mut(place) {
                *epoch = Some(row.get(1));
            }
        }
        let clean = taken.iter().all(|row| row.get(2));
        Ok(Taken { slots: Self { node, epochs }, clean, sequence })
    }

    /// The slot of a destination, and the epoch under which this node owns it; 0, which is no epoch, if it does not.
    pub(super) fn of(&self, destination: DestinationNo) -> (i64, i64) {
        let slot = slot(destination);
        (i64::from(slot), self.epochs[usize::from(slot)].unwrap_or(0))
    }

    /// Those of which somebody else is the owner by now are not this node's any more.
    pub(super) fn lose(&mut self, stale: &BTreeSet<u8>) {
        stale.iter().for_each(|slot| self.epochs[usize::from(*slot)] = None);
    }
}

/// The slot of a destination.
pub(super) fn slot(destination: DestinationNo) -> u8 {
    destination.0.to_le_bytes()[0]
}

fn one(rows: &[Row]) -> Result<i64, Failure> {
    let number = rows.first().and_then(|row| row.try_get(0).ok());
    number.ok_or_else(|| Failure::Refused("a new node got no number".to_owned()))
}
