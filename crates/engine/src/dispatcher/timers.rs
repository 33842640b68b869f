//! When to look at a sleeping lane again: at most one timer per lane.

use std::collections::BTreeSet;

use tidegate_core::time::Timestamp;

use super::LaneId;

#[derive(Debug, Default)]
pub(super) struct Timers(BTreeSet<(Timestamp, LaneId)>);

impl Timers {
    /// Wakes `lane` at `at`, and no longer at the time it was to be woken `before`.
    pub(super) fn arm(&mut self, lane: LaneId, before: Option<Timestamp>, at: Timestamp) {
        if let Some(before) = before {
            self.0.remove(&(before, lane));
        }
        self.0.insert((at, lane));
    }

    /// The earliest time.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.0.first().map(|(at, _)| *at)
    }

    /// The next lane whose time has come.
    pub(super) fn pop_due(&mut self, now: Timestamp) -> Option<LaneId> {
        let (at, lane) = *self.0.first()?;
        (at <= now && self.0.remove(&(at, lane))).then_some(lane)
    }
}
