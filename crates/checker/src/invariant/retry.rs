//! I11: retries come when their policy says, no more often than it allows, and the API's log is what receivers saw.

mod log;
pub(super) mod plan;

use crate::history::Outcome;
use crate::history::policy::Ordering;
use crate::run::{Attempt, Delivery, Ending, Receipt, Run, SECOND};
use crate::verdict::Verdict;
use plan::Plan;

/// A retry that nothing holds begins so long after its time at the latest.
const PUNCTUAL: u64 = 2 * SECOND;
/// With so many requests open, a node may have no slot left for it.
const BUSY: usize = 16;

/// Judges it.
pub(super) fn judge(run: &Run) -> Verdict {
    let mut verdict = Verdict::new("I11", "retry schedule, log");
    if run.deliveries.is_empty() {
        verdict.notes.push("there is no API dump".to_owned());
        return verdict;
    }
    let mut judged = Judged::default();
    for delivery in &run.deliveries {
        let requests: Vec<&Receipt> = run.requests_of(delivery.id).collect();
        let attempts = run.attempts_of(delivery.id);
        verdict.judge();
        log::judge(run, delivery, &requests, attempts, &mut verdict, &mut judged.lost);
        if let Some(what) = too_often(run, delivery, &requests, attempts) {
            verdict.wrong(|| format!("{} {what}", run.text(delivery.id)));
        }
        gaps(run, delivery, &requests, attempts, &mut verdict, &mut judged);
    }
    log::all_are_told(run, &mut verdict);
    verdict.note(judged.gaps, "gaps between attempts");
    verdict.note(judged.lost, "requests that are not in the log: a fault took their result");
    verdict
}

#[derive(Default)]
struct Judged {
    gaps: u64,
    lost: u64,
}

/// Whether more attempts count than may, as receivers saw them: of several requests with one number a fault took all but the
/// last, and only a 429, or what was called off before it was answered, is free.
fn too_often(run: &Run, delivery: &Delivery, requests: &[&Receipt], attempts: &[Attempt]) -> Option<String> {
    let answered = |attempt: &Attempt| {
        let mut same = requests.iter().rev().filter(|request| request.attempt == attempt.number);
        same.next().filter(|request| request.ending == Ending::Answered).copied()
    };
    let hit = |request: &Receipt| run.faults.is_hit(request.t, request.end.saturating_add(run.late()));
    let is_free = |attempt: &Attempt| match (attempt.counted, answered(attempt)) {
        (true, _) => false,
        (false, Some(request)) => request.status == 429 || hit(request),
        (false, None) => matches!(attempt.outcome, Outcome::RateLimited | Outcome::Cancelled),
    };
    let counted = attempts.iter().filter(|attempt| !is_free(attempt)).count();
    if delivery.max_attempts.is_some_and(|most| counted > most as usize) {
        return Some(format!("has used {counted} attempts, more than it may"));
    }
    let told = delivery.attempts_used as usize;
    (counted != told).then(|| format!("says that {told} attempts count, but {counted} do"))
}

fn gaps(
    run: &Run,
    delivery: &Delivery,
    requests: &[&Receipt],
    attempts: &[Attempt],
    verdict: &mut Verdict,
    judged: &mut Judged,
) {
    let Some(place) = delivery.destination else { return };
    let timeline = &run.destinations[place as usize].timeline;
    let Some(plan) = timeline.constant().and_then(|policy| Plan::of(policy, delivery)) else { return };
    for pair in requests.windows(2) {
        let (before, next) = (pair[0], pair[1]);
        let followed = next.attempt == before.attempt + 1;
        let Some(attempt) = attempts.iter().find(|one| one.number == before.attempt).filter(|_| followed)
        else {
            continue;
        };
        let untouched = !timeline.is_touched(before.t, next.t) && !run.faults.clock_was_set(before.t, next.t);
        // A 503 says itself when to come again: that has a judge of its own.
        let planned = attempt.counted && !matches!(attempt.outcome, Outcome::Success | Outcome::Unavailable);
        if !planned || !untouched {
            continue;
        }
        let used =
            attempts.iter().take_while(|one| one.number <= before.attempt).filter(|one| one.counted).count();
        let (least, most) = plan.delay(used);
        judged.gaps += 1;
        let gap = next.t.saturating_sub(before.end);
        // That the sender went away may be noted late; an answer is noted before it is written.
        let slack = if before.ending == Ending::Answered { 0 } else { run.jitter };
        if gap.saturating_add(slack + run.rounded()) < least {
            let (wanted, after) = (least / 1_000_000, gap / 1_000_000);
            verdict.wrong(|| {
                format!("{} began {after} ms after the attempt before, not {wanted}", run.show(next))
            });
        }
        let due = before.end.saturating_add(most);
        let late = next.t > due.saturating_add(PUNCTUAL).saturating_add(run.late());
        if late && is_free(run, place, before.t, due) {
            verdict.wrong(|| format!("{} was due by {}, and nothing held it", run.show(next), run.at(due)));
        }
    }
}

/// Whether nothing could hold a retry that is due: no gate of its destination, no fault, no busy node.
fn is_free(run: &Run, place: u32, from: u64, due: u64) -> bool {
    let until = due.saturating_add(PUNCTUAL);
    let open = run.destinations[place as usize].timeline.constant().is_some_and(|policy| {
        policy.active
            && !policy.paused
            && policy.rate_limit.is_none()
            && policy.delivery_schedules.is_empty()
            && policy.ordering == Ordering::None
            && !policy.circuit_breaker.enabled
    });
    if !open || !run.faults.is_calm(from, until) {
        return false;
    }
    let told =
        |receipt: &Receipt| receipt.ending == Ending::Answered && matches!(receipt.status, 410 | 429 | 503);
    let busy = |receipt: &&Receipt| receipt.t <= until && receipt.end >= due;
    !run.requests_at(place).any(|receipt| told(receipt) || busy(&receipt))
        && run.receipts.iter().filter(busy).take(BUSY).count() < BUSY
}
