//! What stands for PostgreSQL: seats, nodes, slots, bulletins and deliveries, in one serial history.
//!
//! A group locks its seat from its first bundle to its commit, and learns in between which of its slots are not its own any
//! more; whoever claims slots of a node whose lease has ended waits for that lock. A transaction whose client is silent for
//! five seconds is ended. As in the statements of `crates/store/sql/postgres`.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::delivery::{Delivery, Place};
use tidegate_core::lane::LastStop;
use tidegate_core::sequence::Sequence;
use tidegate_core::slots::{Epoch, Held, LEASE, Member, NodeNo, Roll, SLOTS, Seat, Slot};
use tidegate_core::time::{Millis, Timestamp};
use tidegate_engine::dispatcher::LaneId;
use tidegate_store::DestinationNo;
use tidegate_store::lane::StoredLane;

use super::work::{Accepted, Group, Settled, Work, slot};
use crate::backing::{Backing, Memory};

/// A transaction that waits for its client so long is ended.
const IDLE: i64 = 5_000_000;

pub(super) struct Database {
    pub(super) backing: Backing,
    start: Timestamp,
    seats: Vec<SeatRow>,
    nodes: BTreeMap<NodeNo, NodeRow>,
    pub(super) slots: Vec<SlotRow>,
    /// What groups had for other nodes, by seat and number of the group.
    bulletins: BTreeMap<(u8, u64), Vec<(LaneId, Place)>>,
    last_node: u64,
}

#[derive(Clone, Debug, Default)]
struct SeatRow {
    node: Option<NodeNo>,
    groups: u64,
    sequence: Sequence,
    /// The group that is being written: its token, since when its client is silent, and what is not its own.
    open: Option<(u64, i64, BTreeSet<Slot>)>,
}

#[derive(Clone, Copy, Debug)]
struct NodeRow {
    seat: Seat,
    lease_until: i64,
    leaving: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SlotRow {
    pub(super) owner: Option<NodeNo>,
    pub(super) epoch: Epoch,
    clean: bool,
}

/// A node that has just registered.
pub(super) struct Registered {
    pub(super) no: NodeNo,
    pub(super) seat: Seat,
    pub(super) own_groups: u64,
    pub(super) cursors: BTreeMap<u8, u64>,
    pub(super) sequence: Sequence,
}

/// A slot that changed hands.
pub(super) struct Granted {
    pub(super) slot: Slot,
    pub(super) epoch: Epoch,
    pub(super) last_stop: LastStop,
    pub(super) from: Option<NodeNo>,
}

/// Somebody holds a lock.
#[derive(Debug)]
pub(super) struct Busy;

/// What a commit did.
#[derive(Default)]
pub(super) struct Applied {
    pub(super) accepted: Vec<(LaneId, Delivery)>,
    pub(super) settled: Vec<(LaneId, Delivery)>,
    pub(super) kept: Vec<(LaneId, Timestamp)>,
    pub(super) refused: u64,
    /// There is something for others.
    pub(super) told: bool,
}

impl Database {
    pub(super) fn new(lanes: usize, start: Timestamp) -> Self {
        let free = SlotRow { owner: None, epoch: Epoch(0), clean: true };
        Self {
            backing: Backing::Memory(Memory::new(lanes)),
            start,
            seats: vec![SeatRow::default(); usize::from(Seat::COUNT)],
            nodes: BTreeMap::new(),
            slots: vec![free; usize::from(SLOTS)],
            bulletins: BTreeMap::new(),
            last_node: 0,
        }
    }

    pub(super) fn memory(&mut self) -> &mut Memory {
        match &mut self.backing {
            Backing::Memory(memory) => memory,
            Backing::Sqlite(_) => unreachable!("it was made in memory"),
        }
    }

    fn seat(&mut self, seat: Seat, now: i64) -> &mut SeatRow {
        let row = &mut self.seats[usize::from(seat.get())];
        row.open.take_if(|(_, since, _)| now - *since >= IDLE);
        row
    }

    /// It begins anew: what was not committed is gone.
    pub(super) fn restart(&mut self) {
        self.seats.iter_mut().for_each(|seat| seat.open = None);
    }
    /// The connection of a node's writer is closed.
    pub(super) fn close(&mut self, seat: Seat) {
        self.seats[usize::from(seat.get())].open = None;
    }

    pub(super) fn register(&mut self, now: i64) -> Option<Registered> {
        if self.nodes.len() >= self.seats.len() {
            self.nodes.retain(|_, row| row.lease_until > now);
        }
        let taken: BTreeSet<u8> = self.nodes.values().map(|row| row.seat.get()).collect();
        let seat = (0..Seat::COUNT).find(|seat| !taken.contains(seat)).and_then(Seat::new)?;
        self.last_node += 1;
        let no = NodeNo(self.last_node);
        self.nodes.insert(no, NodeRow { seat, lease_until: now + LEASE.get() * 1_000, leaving: false });
        let row = self.seat(seat, now);
        (row.node, row.open) = (Some(no), None);
        let own_groups = row.groups;
        let others = (0..Seat::COUNT).zip(&self.seats).filter(|(other, _)| *other != seat.get());
        Some(Registered {
            no,
            seat,
            own_groups,
            cursors: others.map(|(seat, row)| (seat, row.groups)).collect(),
            sequence: self.seats.iter().map(|row| row.sequence).max().unwrap_or_default(),
        })
    }

    /// Extends a lease, also one that has ended, and shows how things are; `None`: its place was given to another.
    pub(super) fn renew(&mut self, node: NodeNo, leaving: bool, now: i64) -> Option<Roll> {
        let row = self.nodes.get_mut(&node)?;
        (row.lease_until, row.leaving) = (now + LEASE.get() * 1_000, leaving);
        let member = |(node, row): (&NodeNo, &NodeRow)| Member {
            node: *node,
            lease_left: Millis::new((row.lease_until - now).div_euclid(1_000)),
            leaving: row.leaving,
        };
        let slots = self.slots.iter().map(|row| Held { by: row.owner, epoch: row.epoch }).collect();
        Some(Roll { members: self.nodes.iter().map(member).collect(), slots })
    }

    /// Slots pass to a node, if they are nobody's, its own, or their owner's lease has ended.
    pub(super) fn claim(&mut self, node: NodeNo, slots: &[Slot], now: i64) -> Result<Vec<Granted>, Busy> {
        let ended = |owner: &NodeNo| self.nodes.get(owner).is_none_or(|row| row.lease_until <= now);
        let free = |slot: &Slot| {
            self.slots[slot.index()].owner.is_none_or(|owner| owner == node || ended(&owner))
        };
        let slots: Vec<Slot> = slots.iter().copied().filter(free).collect();
        let owners: BTreeSet<NodeNo> =
            slots.iter().filter_map(|slot| self.slots[slot.index()].owner).filter(|owner| *owner != node).collect();
        let writes = |seat: &mut SeatRow| {
            seat.open.take_if(|(_, since, _)| now - *since >= IDLE);
            seat.open.is_some() && seat.node.is_some_and(|node| owners.contains(&node))
        };
        if self.seats.iter_mut().any(writes) {
            return Err(Busy);
        }
        let grant = |slot: Slot| {
            let row = &mut self.slots[slot.index()];
            let last_stop = if row.clean { LastStop::Clean } else { LastStop::Crash };
            let from = row.owner.replace(node);
            (row.epoch, row.clean) = (Epoch(row.epoch.0 + 1), false);
            Granted { slot, epoch: row.epoch, last_stop, from }
        };
        Ok(slots.into_iter().map(grant).collect())
    }

    pub(super) fn give_back(&mut self, node: NodeNo, seat: Seat, slots: &[Slot], now: i64) -> Result<(), Busy> {
        if self.seat(seat, now).open.is_some() {
            return Err(Busy);
        }
        for slot in slots {
            let row = &mut self.slots[slot.index()];
            if row.owner == Some(node) {
                (row.owner, row.clean) = (None, true);
            }
        }
        Ok(())
    }

    /// A node has left, with everything written.
    pub(super) fn leave(&mut self, node: NodeNo) {
        if let Some(row) = self.nodes.remove(&node) {
            let seat = &mut self.seats[usize::from(row.seat.get())];
            (seat.node, seat.open) = (None, None);
        }
        for row in self.slots.iter_mut().filter(|row| row.owner == Some(node)) {
            (row.owner, row.clean) = (None, true);
        }
    }

    /// The first bundle: locks the seat, and tells which slots are not the node's any more.
    pub(super) fn begin(
        &mut self,
        (node, seat): (NodeNo, Seat),
        token: u64,
        group: &Group,
        now: i64,
    ) -> Result<Option<BTreeSet<Slot>>, Busy> {
        let held = |slot: &Slot| {
            let row = self.slots[slot.index()];
            row.owner == Some(node) && group.epochs.get(slot) == Some(&row.epoch)
        };
        let stale: BTreeSet<Slot> = group.touched().into_iter().filter(|slot| !held(slot)).collect();
        let row = self.seat(seat, now);
        if row.node != Some(node) {
            return Ok(None);
        }
        if row.open.is_some() {
            return Err(Busy);
        }
        row.open = Some((token, now, stale.clone()));
        Ok(Some(stale))
    }

    /// The second bundle: writes what the node may write. `None`: the transaction was ended before.
    pub(super) fn commit(&mut self, seat: Seat, token: u64, group: &Group, now: i64) -> Option<Applied> {
        let (_, _, stale) = self.seat(seat, now).open.take_if(|(open, ..)| *open == token)?;
        // What was made in an earlier tenure is not the node's any more, even if it has the slot again.
        let is_stale = |lane: LaneId, epoch: Option<Epoch>| {
            stale.contains(&slot(lane)) || group.epochs.get(&slot(lane)) != epoch.as_ref()
        };
        let mut applied = Applied::default();
        let mut bulletin = Vec::new();
        for work in &group.works {
            match work {
                Work::Accept(Accepted { lane, delivery, .. }) => {
                    self.memory().accept(lane.index(), delivery);
                    let row = self.seat(seat, now);
                    row.sequence = row.sequence.max(delivery.id.sequence());
                    let foreign = !group.epochs.contains_key(&slot(*lane)) || stale.contains(&slot(*lane));
                    if foreign && !delivery.status.is_final() {
                        bulletin.push((*lane, delivery.place));
                    }
                    applied.accepted.push((*lane, delivery.clone()));
                }
                Work::Record(record) => {
                    for Settled { lane, epoch, delivery } in &record.settled {
                        if is_stale(*lane, *epoch) {
                            applied.refused += 1;
                        } else if self.memory().settle(lane.index(), delivery) {
                            applied.settled.push((*lane, delivery.clone()));
                        }
                    }
                    for save in record.lanes.iter().filter(|save| !is_stale(save.lane, save.epoch)) {
                        self.memory().keep(save.lane.index(), save.state.clone(), save.timeouts.clone());
                        applied.kept.push((save.lane, save.as_of));
                    }
                }
            }
        }
        let row = self.seat(seat, now);
        row.groups += 1;
        let groups = row.groups;
        applied.told = !bulletin.is_empty();
        if applied.told {
            self.bulletins.insert((seat.get(), groups), bulletin);
        }
        Some(applied)
    }

    /// Groups that were committed from a seat; waits for one that is being written.
    pub(super) fn groups(&mut self, seat: Seat, now: i64) -> Result<u64, Busy> {
        let row = self.seat(seat, now);
        if row.open.is_some() { Err(Busy) } else { Ok(row.groups) }
    }

    /// What others had for slots that a node holds, since it looked last.
    pub(super) fn news(
        &mut self,
        cursors: &mut BTreeMap<u8, u64>,
        held: &BTreeSet<Slot>,
    ) -> Vec<(usize, Delivery)> {
        let mut named = Vec::new();
        for (seat, read) in cursors.iter_mut() {
            for ((_, groups), bulletin) in self.bulletins.range((*seat, *read + 1)..=(*seat, u64::MAX)) {
                named.extend(bulletin.iter().filter(|(lane, _)| held.contains(&slot(*lane))).copied());
                *read = *groups;
            }
        }
        let memory = self.memory();
        let open = |(lane, place): (LaneId, Place)| {
            Some((lane.index(), memory.open(lane.index(), place)?.clone()))
        };
        named.into_iter().filter_map(open).collect()
    }

    /// A lane as it was last stored.
    pub(super) fn lane(&mut self, lane: usize) -> StoredLane {
        let (state, timeouts) = self.memory().stored(lane);
        let open = self.memory().open_count(lane) as u64;
        let destination = DestinationNo(u32::try_from(lane).expect("few destinations"));
        StoredLane { destination, state, timeouts, open, saved_at: Some(self.start), in_flight: 0 }
    }
}
