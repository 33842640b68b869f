//! When to look at a sleeping lane again. A timer that is no longer wanted stays in the heap and is passed over: cheaper
//! than taking it out, and a lane arms at most one that counts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use tidegate_core::time::Timestamp;

use super::LaneId;

#[derive(Debug, Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(Timestamp, LaneId)>>);

impl Timers {
    pub(super) fn arm(&mut self, at: Timestamp, lane: LaneId) {
        self.0.push(Reverse((at, lane)));
    }

    /// The earliest time in the heap: perhaps of a timer that no longer counts, then the wake-up finds nothing to do.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// The next lane whose time has come, if its timer still counts: `armed` tells when it wants to be woken.
    pub(super) fn pop_due(
        &mut self,
        now: Timestamp,
        armed: impl Fn(LaneId) -> Option<Timestamp>,
    ) -> Option<LaneId> {
        while let Some(Reverse((at, lane))) = self.0.peek().copied() {
            if at > now {
                return None;
            }
            self.0.pop();
            if armed(lane) == Some(at) {
                return Some(lane);
            }
        }
        None
    }
}
