//! A destination's policies over time. A change holds for certain a second after it was answered; between asking and that,
//! either may be in force, and after a change without an answer, either for good.

use serde_json::{Map, Value};

use super::{NEVER, SECOND};
use crate::history::Policy;

/// A change holds for every request that begins so long after its answer.
const EFFECT_WITHIN: u64 = SECOND;

/// What was in force, from when.
#[derive(Debug)]
pub struct Phase {
    /// It may be in force from then on.
    pub from: u64,
    /// It is, for certain, from then on; [`NEVER`] if nobody knows.
    pub certain: u64,
    /// The policies.
    pub policy: Policy,
}

/// Something that was done to a destination.
#[derive(Debug)]
pub struct Action {
    /// When it was asked for.
    pub from: u64,
    /// When it was answered.
    pub answered: u64,
    /// `patch`, or what was done.
    pub what: String,
    /// Whether it may withdraw what waits.
    pub withdraws: bool,
}

/// The policies of a destination over time.
#[derive(Debug)]
pub struct Timeline {
    document: Map<String, Value>,
    phases: Vec<Phase>,
    actions: Vec<Action>,
}

/// A change as it was recorded.
pub(super) struct Change {
    pub(super) t: u64,
    pub(super) answered: Option<u64>,
    pub(super) patch: Map<String, Value>,
    pub(super) action: Option<String>,
    pub(super) status: Option<u16>,
}

impl Timeline {
    /// As it was created.
    pub(super) fn new(document: Map<String, Value>) -> Result<Self, serde_json::Error> {
        let policy = Policy::read(&document)?;
        Ok(Self { document, phases: vec![Phase { from: 0, certain: 0, policy }], actions: Vec::new() })
    }

    /// It is changed. Refused changes change nothing.
    pub(super) fn change(&mut self, change: &Change) -> Result<(), serde_json::Error> {
        if change.status.is_some_and(|status| !(200..300).contains(&status) && status < 500) {
            return Ok(());
        }
        let known = change.answered.filter(|_| change.status.is_some_and(|status| status < 300));
        let what = change.action.clone().unwrap_or_else(|| "patch".to_owned());
        match what.as_str() {
            "pause" => drop(self.document.insert("paused".to_owned(), Value::Bool(true))),
            "resume" => drop(self.document.insert("paused".to_owned(), Value::Bool(false))),
            "patch" => self.merge(&change.patch),
            _ => {}
        }
        let answered = known.unwrap_or(NEVER);
        let disables = change.patch.get("active") == Some(&Value::Bool(false));
        let withdraws = disables || matches!(what.as_str(), "delete" | "cancel" | "disable");
        self.actions.push(Action { from: change.t, answered, what, withdraws });
        let certain = known.map_or(NEVER, |answered| answered.saturating_add(EFFECT_WITHIN));
        self.phases.push(Phase { from: change.t, certain, policy: Policy::read(&self.document)? });
        Ok(())
    }

    fn merge(&mut self, patch: &Map<String, Value>) {
        if patch.contains_key("delivery_schedule") || patch.contains_key("delivery_schedules") {
            self.document.remove("delivery_schedule");
            self.document.remove("delivery_schedules");
        }
        self.document.extend(patch.clone());
    }

    /// All of them, in order.
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }
    /// What was done to it, in order.
    pub fn actions(&self) -> &[Action] {
        &self.actions
    }
    /// The policies that may be in force at some moment between two, ends included.
    pub fn possible(&self, from: u64, to: u64) -> impl Iterator<Item = &Policy> {
        let last = self.phases.iter().rposition(|phase| phase.certain <= from).unwrap_or(0);
        self.phases[last..].iter().filter(move |phase| phase.from <= to).map(|phase| &phase.policy)
    }
    /// Whether something was done to it between two moments, ends included, also if it was only asked for.
    pub fn is_touched(&self, from: u64, to: u64) -> bool {
        let touches =
            |action: &Action| action.from <= to && action.answered.saturating_add(EFFECT_WITHIN) >= from;
        self.actions.iter().any(touches)
    }
    /// Whether somebody may have withdrawn what waits there.
    pub fn is_withdrawn(&self) -> bool {
        self.actions.iter().any(|action| action.withdraws)
    }
    /// The policies, if they were the same all the time.
    pub fn constant(&self) -> Option<&Policy> {
        (self.phases.len() == 1).then(|| &self.phases[0].policy)
    }
}
