//! What may go, goes: no delivery that every gate lets through is left waiting.
//!
//! The first open delivery of a lane, as the store has it, is shown to the gates from time to time. If they let it through
//! at two looks some seconds apart, and the lane sent nothing in between although the node had room, it was forgotten.

use tidegate_core::gate::Decision;
use tidegate_core::time::{Millis, Mono};

use super::Violations;
use crate::run::{Note, Observer, Setup, View};

/// How many steps lie between two looks at a lane.
const EVERY: u64 = 17;
/// How many of a lane's open deliveries are shown to the gates at a look.
const LOOKS: usize = 32;
/// How long a delivery may be let through and still wait: a lost wake-up costs a second, a look into the store less.
const PATIENCE: Millis = Millis::seconds(5);

/// Watches that nothing is forgotten.
#[derive(Clone, Debug)]
pub struct Liveness {
    lanes: Vec<Option<Waiting>>,
    slots: u32,
    steps: u64,
    down: bool,
    violations: Violations,
}

/// A delivery that could go, and since when it was seen so.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    sequence: u64,
    since: Mono,
}

impl Liveness {
    /// For the destinations and the node of `setup`.
    pub fn new(setup: &Setup) -> Self {
        let lanes = vec![None; setup.destinations.len()];
        Self { lanes, slots: setup.slots, steps: 0, down: false, violations: Violations::default() }
    }
    /// What was wrong, if anything.
    pub fn violations(&self) -> &[String] {
        self.violations.kept()
    }

    /// Looks at one lane, as the node that works it sees it.
    pub(crate) fn look(&mut self, view: &View<'_>, index: usize) {
        let lane = &view.dispatcher.lanes()[index];
        // Half of the node may be denied to a lane that has not proved itself.
        let room = view.dispatcher.in_flight() < self.slots / 4;
        let first = view.backing.find_open(lane.id(), LOOKS, |delivery| {
            let explanation = lane.explain(view.now, delivery);
            !lane.in_flight().any(|(flying, _)| flying.id == delivery.id)
                && matches!(explanation.decision, Decision::Go(_))
        });
        let Some(first) = first.filter(|_| room) else {
            self.lanes[index] = None;
            return;
        };
        let sequence = first.place.sequence;
        match self.lanes[index] {
            Some(seen) if seen.sequence == sequence => {
                if view.now.mono.since(seen.since) > PATIENCE {
                    let at = view.now.wall;
                    self.violations.add(|| {
                        format!("destination {index} at {at}: {sequence} may go, but is left waiting")
                    });
                    self.lanes[index] = None;
                }
            }
            _ => self.lanes[index] = Some(Waiting { sequence, since: view.now.mono }),
        }
    }
}

impl Observer for Liveness {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        match note {
            Note::Sent(lane, _) => self.lanes[lane.index()] = None,
            Note::Crashed => {
                self.down = true;
                self.lanes.fill(None);
            }
            Note::Lost(lane) => self.lanes[lane.index()] = None,
            Note::Restarted => self.down = false,
            Note::ClockSet => self.lanes.fill(None),
            Note::Stepped if !self.down => {
                self.steps += 1;
                if self.steps.is_multiple_of(EVERY) {
                    let place = usize::try_from(self.steps / EVERY).unwrap_or(0) % self.lanes.len().max(1);
                    self.look(view, place);
                }
            }
            _ => {}
        }
    }
}
