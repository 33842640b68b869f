//! What keeps the deliveries of a lane waiting, and how many each, for figures.

use tidegate_core::delivery::{HoldReason, OwnTimes};
use tidegate_core::order::Ordering;

use super::Lane;

/// How many wait for what, as far as it is in memory.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// For a time of their own.
    own: OwnTimes,
    /// Due, and first of their line if they keep an order.
    ready: u64,
    /// In memory at all.
    known: u64,
    /// What holds the lane.
    held: Option<HoldReason>,
    /// Whether deliveries wait for one another.
    ordered: bool,
}

impl Lane {
    /// What its deliveries wait for, as far as they are in memory.
    pub fn waits(&self) -> Waits {
        let [scheduled, retries, behind] = self.queue.waits().map(|count| count as u64);
        let known = self.queue.len() as u64;
        Waits {
            own: OwnTimes { scheduled, retries },
            ready: known - scheduled - retries - behind,
            known,
            held: self.held().map(|(reason, _)| reason),
            ordered: self.policy.ordering != Ordering::None,
        }
    }
}

impl Waits {
    /// Whether this tells of all of `queued` deliveries, so that the store need not be asked.
    pub const fn is_whole(&self, queued: u64) -> bool {
        queued <= self.known
    }

    /// What holds `queued` deliveries: their own time, as the store counts it where it was asked, then what holds their
    /// destination, or those before them in their line.
    pub fn by_reason(
        &self,
        queued: u64,
        counted: Option<OwnTimes>,
    ) -> impl Iterator<Item = (HoldReason, u64)> + use<> {
        let OwnTimes { scheduled, retries } = counted.unwrap_or(self.own);
        let rest = queued.saturating_sub(scheduled + retries);
        let rest = match self.held {
            Some(reason) => (reason, rest),
            None if self.ordered => (HoldReason::OrderBlocked, rest.saturating_sub(self.ready)),
            // They go, one after the other.
            None => (HoldReason::OrderBlocked, 0),
        };
        let all = [(HoldReason::Scheduled, scheduled), (HoldReason::RetryBackoff, retries), rest];
        let mut left = queued;
        let part = all.into_iter().map(move |(reason, count)| {
            let count = count.min(left);
            left -= count;
            (reason, count)
        });
        part.filter(|(_, count)| *count > 0)
    }
}
