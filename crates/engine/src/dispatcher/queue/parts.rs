//! The parts of a lane's queue: shelves, and lines with their heads.

use std::collections::BTreeMap;

use tidegate_core::delivery::{Delivery, Place};
use tidegate_core::id::DeliveryId;

/// Due deliveries of one group: those that keep no order, and the heads of lines.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// Bounded: the store may have more.
    pub(super) free: BTreeMap<Place, Delivery>,
    pub(super) more: bool,
    /// Bounded by the number of lines.
    pub(super) heads: BTreeMap<Place, Delivery>,
}

impl Shelf {
    pub(super) fn len(&self) -> usize {
        self.free.len() + self.heads.len()
    }
    pub(super) fn values(&self) -> impl Iterator<Item = &Delivery> {
        self.free.values().chain(self.heads.values())
    }
    pub(super) fn into_values(self) -> impl Iterator<Item = Delivery> {
        self.free.into_values().chain(self.heads.into_values())
    }
    pub(super) fn get(&self, place: Place) -> Option<&Delivery> {
        self.free.get(&place).or_else(|| self.heads.get(&place))
    }
    pub(super) fn remove(&mut self, place: Place) -> Option<Delivery> {
        self.free.remove(&place).or_else(|| self.heads.remove(&place))
    }
    /// The earliest, or with `but` the earliest that is not that one.
    pub(super) fn first(&self, but: Option<DeliveryId>) -> Option<&Delivery> {
        let other = |delivery: &&Delivery| Some(delivery.id) != but;
        let (free, head) = (self.free.values().find(other), self.heads.values().find(other));
        free.into_iter().chain(head).min_by_key(|delivery| delivery.place)
    }
}

/// Deliveries that go one after the other.
#[derive(Debug, Default)]
pub(super) struct LineQueue {
    pub(super) head: Head,
    pub(super) behind: BTreeMap<Place, Delivery>,
    pub(super) more: bool,
}

/// Who has the turn in a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Head {
    #[default]
    None,
    /// On a shelf, among the timed, or in flight. Once tried it keeps its turn until it is final.
    Exposed { id: DeliveryId, place: Place, tried: bool },
    /// It died, and the line stands until a person resumes it.
    Halted { id: DeliveryId },
}

impl LineQueue {
    /// Nobody has the turn here, but there is more in the store.
    pub(super) fn runs_dry(&self) -> bool {
        self.more && self.head == Head::None
    }
    pub(super) fn is_over(&self) -> bool {
        !self.more && self.head == Head::None && self.behind.is_empty()
    }
    pub(super) const fn is_halted(&self) -> bool {
        matches!(self.head, Head::Halted { .. })
    }
    pub(super) fn is_headed_by(&self, delivery: DeliveryId) -> bool {
        matches!(self.head, Head::Exposed { id, .. } if id == delivery)
    }
}
