//! Every gate, one by one, for the person who asks why.

use super::{Decision, Gate, Hold, Question, decide};
use crate::delivery::End;
use crate::time::Timestamp;

/// What [`decide`] saw, gate by gate, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The gates in order.
    pub gates: Vec<GateView>,
    /// The answer that the dispatcher gets.
    pub decision: Decision,
}

/// One gate as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateView {
    /// Which.
    pub gate: Gate,
    /// What holds it closed; `None`: it is open. [`Hold`] shows itself as a sentence.
    pub hold: Option<Hold>,
}

impl Explanation {
    /// Whether the delivery will be stale before it can go, as things stand: it is shown as `will_expire`.
    pub const fn will_expire(&self) -> bool {
        match self.decision {
            Decision::Wait(wait) => wait.will_expire,
            Decision::Finish(End::Expired(_)) => true,
            Decision::Finish(_) | Decision::Go(_) | Decision::Nothing => false,
        }
    }
}

impl GateView {
    /// When it opens by itself, if it is closed and does.
    pub fn until(&self) -> Option<Timestamp> {
        self.hold.as_ref().and_then(Hold::until)
    }
}

/// Why is this delivery where it is?
pub fn explain(question: &Question<'_>) -> Explanation {
    let gates = Gate::ALL.into_iter().map(|gate| GateView { gate, hold: question.hold(gate) }).collect();
    Explanation { gates, decision: decide(question) }
}
