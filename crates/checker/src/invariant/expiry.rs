//! I7: nothing begins when it is stale, no request outlives its event, and what goes stale says so.

use crate::history::State;
use crate::run::{Delivery, MILLI, Receipt, Run, SECOND};
use crate::verdict::Verdict;

/// How long it may take until a receiver sees that the sender went away.
const SEEN_WITHIN: u64 = 2 * SECOND;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I7", "expiry");
    for receipt in &run.receipts {
        let Some((expiry, true_ms)) = run.expiry(receipt).zip(receipt.wall_ms) else { continue };
        verdict.judge();
        // By the clock that says most is left.
        let left =
            run.walls(receipt.t, true_ms).into_iter().map(|wall| expiry - wall).max().unwrap_or(i64::MAX);
        let jitter = i64::try_from(run.jitter / MILLI).unwrap_or(0);
        if left + jitter < 0 {
            verdict.wrong(|| format!("{} began {} ms after its expiry", run.show(receipt), -left));
        } else if outlives(run, receipt, left) {
            verdict.wrong(|| {
                format!(
                    "{} was open until {}, with {left} ms to live at first",
                    run.show(receipt),
                    run.at(receipt.end)
                )
            });
        }
    }
    for delivery in run.deliveries.iter().filter(|delivery| delivery.state == State::Expired) {
        verdict.judge();
        if delivery.expires_at.is_none() || !delivery.has_reason {
            verdict.wrong(|| format!("{} is expired and does not say when or why", run.text(delivery.id)));
        }
    }
    for delivery in run.deliveries.iter().filter(|delivery| is_stale_and_unsent(run, delivery)) {
        verdict.judge();
        if delivery.state == State::DeadLetter {
            verdict.wrong(|| {
                format!("{} was stale before it was ever sent, and is dead_letter", run.text(delivery.id))
            });
        }
    }
    verdict
}

/// Whether it ended after its expiry, and was never sent.
fn is_stale_and_unsent(run: &Run, delivery: &Delivery) -> bool {
    let stale = delivery.finished_at.zip(delivery.expires_at).is_some_and(|(ended, expiry)| ended >= expiry);
    stale
        && !delivery.is_put_aside
        && run.attempts_of(delivery.id).is_empty()
        && run.requests_of(delivery.id).next().is_none()
}

/// Whether it was not cut off when its event went stale. A node that is frozen cannot.
fn outlives(run: &Run, receipt: &Receipt, left_ms: i64) -> bool {
    let left = u64::try_from(left_ms).unwrap_or(0).saturating_mul(MILLI);
    let seen = if run.is_virtual() { 0 } else { run.jitter + SEEN_WITHIN };
    let until = receipt.t.saturating_add(left).saturating_add(seen);
    receipt.end > until && !run.faults.is_hit(receipt.t, receipt.end)
}
