//! I10: a destination with work and no limit of its own is served at once, also while a crowd waits for others, and equal
//! backlogs are served evenly.
//!
//! Judged in calm times, for deliveries with nothing of their own destination before them.

mod evenness;

use super::waits::waited;
use crate::run::{MILLI, Run};
use crate::verdict::Verdict;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I10", "fairness");
    let mut lengths = Vec::new();
    let (waited, crowds) = waited(run);
    for waited in waited.iter().filter(|waited| waited.crowded) {
        verdict.judge();
        lengths.push(waited.length());
        if waited.is_late(run) {
            verdict.wrong(|| format!("{}, while others had a crowd", waited.show(run)));
        }
    }
    lengths.sort_unstable();
    if let Some(longest) = lengths.last() {
        let p99 = lengths[lengths.len() * 99 / 100];
        verdict.notes.push(format!("beside a crowd: p99 {} ms, longest {} ms", p99 / MILLI, longest / MILLI));
    }
    evenness::judge(run, &crowds, &mut verdict);
    verdict
}
