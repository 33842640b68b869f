//! 410: that delivery is never sent again, and after three of them without a success between, nothing is.

use std::collections::HashMap;

use crate::names::Name;
use crate::run::{Ending, Receipt, Run, SECOND};
use crate::verdict::Verdict;

/// So many different deliveries disable a destination.
const DISABLES: usize = 3;
/// It is disabled within this time.
const WITHIN: u64 = SECOND;

#[derive(Default)]
pub(super) struct Gone {
    /// Deliveries that were answered so, and when.
    ended: HashMap<Name, u64>,
    /// Since the last success.
    run: Vec<Name>,
    disabled_at: Option<u64>,
}

impl Gone {
    pub(super) fn begins(&mut self, run: &Run, place: u32, receipt: &Receipt, verdict: &mut Verdict) {
        let timeline = &run.destinations[place as usize].timeline;
        if let Some(at) = self.disabled_at {
            verdict.judge();
            if timeline.is_touched(at, receipt.t) || run.faults.may_forget(at, receipt.t) {
                (self.disabled_at, self.run) = (None, Vec::new());
            } else if receipt.t > at.saturating_add(WITHIN) {
                verdict.wrong(|| {
                    format!(
                        "{} began, though the third 410 was answered at {}",
                        run.show(receipt),
                        run.at(at)
                    )
                });
            }
        }
        if let Some(at) = self.ended.get(&receipt.delivery).copied() {
            verdict.judge();
            if receipt.t > at && !run.faults.may_forget(at, receipt.t) {
                verdict
                    .wrong(|| format!("{} began, though answered 410 at {}", run.show(receipt), run.at(at)));
            }
        }
    }

    pub(super) fn ends(&mut self, run: &Run, place: u32, receipt: &Receipt) {
        if receipt.succeeded() {
            self.run.clear();
        }
        if receipt.ending != Ending::Answered || receipt.status != 410 {
            return;
        }
        self.ended.insert(receipt.delivery, receipt.end);
        if !self.run.contains(&receipt.delivery) {
            self.run.push(receipt.delivery);
        }
        let touched = run.destinations[place as usize].timeline.is_touched(receipt.t, receipt.end);
        if self.run.len() >= DISABLES && self.disabled_at.is_none() && !touched {
            self.disabled_at = Some(receipt.end);
        }
    }
}
