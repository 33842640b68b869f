//! `explain` tells what the dispatcher does: its first closed gate is the hold that the decision names.

use tidegate_core::gate::Decision;

use super::Violations;
use crate::run::{Note, Observer, View};

/// How many steps lie between two looks: looking at each would take longer than the run.
const EVERY: u64 = 61;
/// How many deliveries of a lane are looked at.
const LOOKS: usize = 4;

/// Watches that explanations and decisions agree.
#[derive(Clone, Debug, Default)]
pub struct Agreement {
    steps: u64,
    looked: u64,
    violations: Violations,
}

impl Agreement {
    /// Explanations compared.
    pub const fn looked(&self) -> u64 {
        self.looked
    }
    /// What was wrong, if anything.
    pub fn violations(&self) -> &[String] {
        self.violations.kept()
    }
}

impl Observer for Agreement {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        if !matches!(note, Note::Stepped) || view.dispatcher.lanes().is_empty() {
            return;
        }
        self.steps += 1;
        if !self.steps.is_multiple_of(EVERY) {
            return;
        }
        let lanes = view.dispatcher.lanes();
        let place = usize::try_from(self.steps / EVERY).unwrap_or(0) % lanes.len();
        let lane = &lanes[place];
        for delivery in lane.deliveries().take(LOOKS) {
            self.looked += 1;
            let explanation = lane.explain(view.now, delivery);
            let first = explanation.gates.iter().find_map(|gate| gate.hold);
            let agrees = match explanation.decision {
                Decision::Wait(wait) => first == Some(wait.hold),
                Decision::Go(_) => first.is_none(),
                Decision::Finish(_) | Decision::Nothing => true,
            };
            if !agrees {
                let decision = explanation.decision;
                self.violations
                    .add(|| format!("destination {place} at {}: {first:?} but {decision:?}", view.now.wall));
            }
        }
    }
}
