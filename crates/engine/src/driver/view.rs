//! A look at the lanes, between two steps of the machine.

use tidegate_core::time::{Now, Timestamp};
use tidegate_store::DestinationNo;

use super::lanes::Lanes;
use crate::dispatcher::{Dispatcher, Lane, Presence};
use crate::pulse::Pulse;

/// The lanes as they are now.
pub struct View<'a> {
    /// Now.
    pub now: Now,
    pub(super) dispatcher: &'a Dispatcher,
    pub(super) lanes: &'a Lanes,
    /// What happened lately.
    pub pulse: &'a Pulse,
}

impl View<'_> {
    /// The lane of a destination.
    pub fn lane(&self, destination: DestinationNo) -> Option<&Lane> {
        self.lanes.find(destination).map(|id| self.dispatcher.lane(id))
    }
    /// Whether another node works it.
    pub fn is_elsewhere(&self, destination: DestinationNo) -> bool {
        self.lane(destination).is_some_and(|lane| lane.presence() == Presence::Elsewhere)
    }
    /// Requests in flight to it; where another node works it, as that node has stored it.
    pub fn in_flight_of(&self, destination: DestinationNo) -> u32 {
        match self.lanes.find(destination) {
            Some(lane) if self.is_elsewhere(destination) => self.lanes.get(lane).shown_in_flight,
            Some(lane) => self.dispatcher.lane(lane).state().in_flight,
            None => 0,
        }
    }
    /// When what is known of it was stored, if another node works it.
    pub fn as_of(&self, destination: DestinationNo) -> Option<Timestamp> {
        let lane = self.lanes.find(destination).filter(|_| self.is_elsewhere(destination))?;
        self.lanes.get(lane).as_of
    }
    /// All lanes of destinations that were not deleted, in no order that matters.
    pub fn lanes(&self) -> impl Iterator<Item = (DestinationNo, &Lane)> {
        let lanes = self.lanes.by_destination.iter();
        let lanes = lanes.map(|(destination, id)| (*destination, self.dispatcher.lane(*id)));
        lanes.filter(|(_, lane)| !lane.is_retired())
    }
    /// Requests in flight on this node.
    pub fn in_flight(&self) -> u32 {
        self.dispatcher.in_flight()
    }
}
