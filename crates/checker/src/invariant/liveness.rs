//! I15: what may go goes: within two seconds where nothing holds it and no crowd waits, once faults are over. Nothing stays
//! open for ever, and queues that nobody adds to do not grow.

use super::waits::waited;
use crate::run::{Ending, MILLI, Receipt, Run, SECOND};
use crate::verdict::Verdict;

/// No attempt may take longer, whatever its policy.
const LONGEST_ATTEMPT: u64 = 120 * SECOND;
/// How long it may take until a receiver sees that the sender went away.
const SEEN_WITHIN: u64 = 2 * SECOND;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I15", "liveness");
    let mut longest = 0;
    for waited in waited(run).0.iter().filter(|waited| !waited.crowded) {
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
        let most = longest_attempt(run, receipt).saturating_add(if run.is_virtual() {
            0
        } else {
            SEEN_WITHIN + run.jitter
        });
        if open_for > most && !run.faults.is_hit(receipt.t, receipt.end.min(last)) {
            verdict.wrong(|| format!("{} is open for {} s", run.show(receipt), open_for / SECOND));
        }
    }
    queues_fall(run, &mut verdict);
    verdict
}

/// How long an attempt may take: what its destination pins, else what the API says was in force.
fn longest_attempt(run: &Run, receipt: &Receipt) -> u64 {
    let pinned = receipt.destination.and_then(|place| {
        let mut all = run.policies(place, receipt).map(|policy| policy.timeout_seconds);
        all.try_fold(0.0, |most: f64, pinned| Some(most.max(pinned?)))
    });
    let told = || run.attempt(receipt.delivery, receipt.attempt).and_then(|attempt| attempt.timeout_ms);
    let millis = pinned.map_or_else(
        || told().and_then(|ms| u64::try_from(ms).ok()),
        |seconds| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "minutes at most")]
            let millis = (seconds * 1_000.0) as u64;
            Some(millis)
        },
    );
    millis.map_or(LONGEST_ATTEMPT, |millis| millis.saturating_mul(MILLI).min(LONGEST_ATTEMPT))
}

fn queues_fall(run: &Run, verdict: &mut Verdict) {
    let published =
        run.publications.iter().map(|one| if one.answered == u64::MAX { one.t } else { one.answered });
    let published = published.max().unwrap_or(0);
    let (calm_from, calm_until) = run.faults.last_calm();
    for queue in run.queues.chunk_by(|one, other| one.destination == other.destination) {
        let is_quiet = |at: u64| at > published.max(calm_from) && at < calm_until;
        let seen: Vec<_> = queue.iter().filter(|one| is_quiet(one.t)).collect();
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
