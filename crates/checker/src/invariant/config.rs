//! I14: what begins more than a second after a change was answered obeys it: nothing to a destination that is paused or
//! switched off, every request to the newest URL, and signed with the newest secret. From the question on until then, the
//! old value and the new one are both right.
//!
//! Changed rates, limits and windows are held to by the judges of those, who know each destination's policies over time.

use crate::history::Policy;
use crate::run::{Run, SECOND, Signed};
use crate::verdict::Verdict;

/// A frozen node may have decided so long before it sent.
const FROZEN_FOR: u64 = 120 * SECOND;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I14", "changes take effect");
    let mut unsaid = 0;
    for (place, destination) in run.places() {
        let changed = !destination.timeline.actions().is_empty();
        let phases = destination.timeline.phases();
        let moved = phases.iter().any(|phase| phase.policy.url != phases[0].policy.url);
        for receipt in run.requests_at(place).filter(|_| changed) {
            let excused = || run.faults.is_frozen(receipt.t.saturating_sub(FROZEN_FOR), receipt.t);
            verdict.judge();
            let off = run.policies(place, receipt).all(|policy| policy.paused || !policy.active);
            if off && !excused() {
                verdict
                    .wrong(|| format!("{} began though the destination is paused or off", run.show(receipt)));
            }
            if let Some(path) = receipt.path.map(|path| run.text(path)) {
                let fits = |policy: &Policy| policy.url.as_deref().is_none_or(|url| path_of(url) == path);
                if !run.policies(place, receipt).any(fits) && !excused() {
                    verdict.wrong(|| format!("{} asks for {path}, not for its URL", run.show(receipt)));
                }
            } else {
                unsaid += u64::from(moved);
            }
            let Signed::With(used) = receipt.signed else { continue };
            let began = receipt.t.saturating_sub(run.jitter);
            let needed = destination.secrets.iter().rposition(|secret| secret.needed_from <= began);
            // A newer one may have taken its place already.
            let misses = needed
                .is_some_and(|bit| u32::try_from(bit).is_ok_and(|bit| used.checked_shr(bit) == Some(0)));
            // What is signed with nothing valid at all is another promise's matter.
            if misses && used != 0 && !excused() {
                verdict.wrong(|| {
                    format!("{} is not signed with the secret that was set before", run.show(receipt))
                });
            }
        }
    }
    verdict.note(unsaid, "to a URL that was changed, without their path in the history: not judged");
    verdict
}

/// What a request for this URL asks for in its first line.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find(['/', '?']).map_or("/", |from| &rest[from..])
}
