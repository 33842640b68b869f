//! I14: what begins more than a second after a change was answered obeys it: nothing to a destination that is paused or
//! switched off, and every request signed with the newest secret.
//!
//! Changed rates, limits and windows are held to by the judges of those, who know each destination's policies over time.

use crate::run::{Run, SECOND, Signed};
use crate::verdict::Verdict;

/// A frozen node may have decided so long before it sent.
const FROZEN_FOR: u64 = 120 * SECOND;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I14", "changes take effect");
    for (place, destination) in run.places() {
        let changed = !destination.timeline.actions().is_empty();
        for receipt in run.requests_at(place).filter(|_| changed) {
            let excused = || run.faults.is_frozen(receipt.t.saturating_sub(FROZEN_FOR), receipt.t);
            let t = receipt.t.saturating_sub(run.jitter);
            verdict.judge();
            let off = destination.timeline.possible(t).all(|policy| policy.paused || !policy.active);
            if off && !excused() {
                verdict
                    .wrong(|| format!("{} began though the destination is paused or off", run.show(receipt)));
            }
            let Signed::With(used) = receipt.signed else { continue };
            let newest = (0..).zip(&destination.secrets).filter(|(_, secret)| secret.needed_from <= t).last();
            let misses = newest.is_some_and(|(bit, _)| used & 1_u8.checked_shl(bit).unwrap_or(0) == 0);
            // What is signed with nothing valid at all is another promise's matter.
            if misses && used != 0 && !excused() {
                verdict.wrong(|| {
                    format!("{} is not signed with the secret that was set before", run.show(receipt))
                });
            }
        }
    }
    verdict
}
