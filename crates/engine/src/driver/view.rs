//! A look at the lanes, between two steps of the machine.

use std::collections::HashMap;

use tidegate_core::time::Now;
use tidegate_store::DestinationNo;

use crate::dispatcher::{Dispatcher, Lane, LaneId};

/// The lanes as they are now.
pub struct View<'a> {
    /// Now.
    pub now: Now,
    pub(super) dispatcher: &'a Dispatcher,
    pub(super) by_destination: &'a HashMap<DestinationNo, LaneId>,
}

impl View<'_> {
    /// The lane of a destination.
    pub fn lane(&self, destination: DestinationNo) -> Option<&Lane> {
        self.by_destination.get(&destination).map(|id| self.dispatcher.lane(*id))
    }
    /// All lanes of destinations that were not deleted, in no order that matters.
    pub fn lanes(&self) -> impl Iterator<Item = (DestinationNo, &Lane)> {
        let lanes = self.by_destination.iter();
        let lanes = lanes.map(|(destination, id)| (*destination, self.dispatcher.lane(*id)));
        lanes.filter(|(_, lane)| !lane.is_retired())
    }
    /// Requests in flight on this node.
    pub fn in_flight(&self) -> u32 {
        self.dispatcher.in_flight()
    }
}
