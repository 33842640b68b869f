//! Concurrency: a destination never has more than its `max_concurrency` of our requests, nor the node more than its slots.
//! Counted at the receiver: a request is there from when it is sent until it is answered, or cut off by a crash.

use tidegate_engine::dispatcher::LaneId;

use super::Violations;
use crate::run::{Note, Observer, Setup, View};

/// Watches the requests in flight.
#[derive(Clone, Debug)]
pub struct Concurrency {
    lanes: Vec<Lane>,
    slots: u32,
    in_flight: u32,
    violations: Violations,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    most: u32,
    in_flight: u32,
}

impl Concurrency {
    /// For the destinations and the node of `setup`.
    pub fn new(setup: &Setup) -> Self {
        let lane = |most| Lane { most, in_flight: 0 };
        let lanes = setup.destinations.iter();
        let lanes = lanes.map(|destination| lane(destination.policy.max_concurrency.get())).collect();
        Self { lanes, slots: setup.slots, in_flight: 0, violations: Violations::default() }
    }
    /// What was wrong, if anything: the first few.
    pub fn violations(&self) -> &[String] {
        self.violations.kept()
    }
    /// How often.
    pub const fn count(&self) -> u64 {
        self.violations.count()
    }
    /// A request is not at its receiver any more.
    pub(crate) fn ended(&mut self, id: LaneId) {
        let lane = &mut self.lanes[id.index()];
        lane.in_flight = lane.in_flight.saturating_sub(1);
        self.in_flight = self.in_flight.saturating_sub(1);
    }
}

impl Observer for Concurrency {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        match note {
            Note::Sent(id, _) => {
                let lane = &mut self.lanes[id.index()];
                lane.in_flight += 1;
                self.in_flight += 1;
                let (here, at) = (*lane, view.now.wall);
                if here.in_flight > here.most {
                    self.violations.add(|| {
                        let (destination, Lane { most, in_flight }) = (id.index(), here);
                        format!(
                            "destination {destination} at {at}: {in_flight} requests, {most} at most are allowed"
                        )
                    });
                }
                if self.in_flight > self.slots {
                    let (requests, slots) = (self.in_flight, self.slots);
                    self.violations.add(|| format!("the node at {at}: {requests} requests on {slots} slots"));
                }
            }
            Note::Answered(id, ..) => self.ended(*id),
            Note::Lost(id) => {
                let lost = std::mem::take(&mut self.lanes[id.index()].in_flight);
                self.in_flight -= lost;
            }
            Note::Crashed => {
                self.lanes.iter_mut().for_each(|lane| lane.in_flight = 0);
                self.in_flight = 0;
            }
            _ => {}
        }
    }
}
