//! I15: what may go goes: within two seconds where nothing holds it and no crowd waits, once faults are over. Nothing stays
//! open for ever, and queues that nobody adds to do not grow.

use super::waits::waited;
use crate::run::{Ending, MILLI, Run, SECOND};
use crate::verdict::Verdict;

/// No attempt may take longer, whatever its policy.
const LONGEST_ATTEMPT: u64 = 120 * SECOND;
/// For what is seen late, and for slots that move.
const LATE: u64 = 15 * SECOND;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I15", "liveness");
    let mut longest = 0;
    for waited in waited(run).iter().filter(|waited| !waited.crowded) {
        verdict.judge();
        longest = longest.max(waited.length());
        if waited.is_late(run) {
            verdict.wrong(|| waited.show(run));
        }
    }
    if verdict.checked > 0 {
        verdict.notes.push(format!("the longest wait that nothing held: {} ms", longest / MILLI));
    }
    let ends =
        run.receipts.iter().filter(|receipt| receipt.ending != Ending::Open).map(|receipt| receipt.end);
    let last = ends.chain(run.receipts.iter().map(|receipt| receipt.t)).max().unwrap_or(0);
    for receipt in &run.receipts {
        let open_for = receipt.end.min(last).saturating_sub(receipt.t);
        if open_for > LONGEST_ATTEMPT + LATE && !run.faults.is_hit(receipt.t, receipt.end.min(last)) {
            verdict.wrong(|| format!("{} is open for {} s", run.show(receipt), open_for / SECOND));
        }
    }
    queues_fall(run, &mut verdict);
    verdict
}

fn queues_fall(run: &Run, verdict: &mut Verdict) {
    let published =
        run.publications.iter().map(|one| if one.answered == u64::MAX { one.t } else { one.answered });
    let quiet_since = published.max().unwrap_or(0).max(run.faults.calm_since());
    for queue in run.queues.chunk_by(|one, other| one.destination == other.destination) {
        let seen: Vec<_> = queue.iter().filter(|one| one.t > quiet_since).collect();
        let (Some(first), Some(last)) = (seen.first(), seen.last()) else { continue };
        verdict.judge();
        if last.queued + last.in_flight > first.queued + first.in_flight {
            let name = run.name_of(last.destination);
            let (from, to) = (first.queued + first.in_flight, last.queued + last.in_flight);
            let (began, ended) = (run.at(first.t), run.at(last.t));
            verdict.wrong(|| {
                format!("{name}: {from} waited at {began}, {to} at {ended}, with nothing published")
            });
        }
    }
}
