//! The attempts that the API tells are the requests that receivers saw, but for those whose result a fault took.
//!
//! An attempt's number is one more than the attempts that are stored. A number that comes again tells that the request
//! before was never stored; of several with one number the log has the last.

use crate::history::Outcome;
use crate::run::{Attempt, Delivery, Ending, NEVER, Publication, Receipt, Run};
use crate::verdict::Verdict;

pub(super) fn judge(
    run: &Run,
    delivery: &Delivery,
    requests: &[&Receipt],
    attempts: &[Attempt],
    verdict: &mut Verdict,
    lost: &mut u64,
) {
    let id = run.text(delivery.id);
    if let Some(what) = wrong_story(delivery, attempts) {
        verdict.wrong(|| format!("the log of {id}: {what}"));
    }
    for attempt in attempts.iter().filter(|attempt| attempt.status.is_some()) {
        if !requests.iter().any(|request| request.attempt == attempt.number) {
            let number = attempt.number;
            verdict
                .wrong(|| format!("the log of {id}: attempt {number} was answered, but no receiver saw it"));
        }
    }
    for (index, request) in requests.iter().enumerate() {
        let next = requests.get(index + 1);
        if next.is_some_and(|next| next.attempt < request.attempt) {
            verdict.wrong(|| format!("{} came before one with a lower number", run.show(request)));
        }
        if next.is_some_and(|next| next.attempt == request.attempt) {
            // After a success that is a duplicate, which has a judge of its own.
            let again = next.map_or(NEVER, |next| next.t);
            if !request.succeeded() && run.faults.took_result(request, again).is_none() {
                verdict.wrong(|| {
                    format!("{} came twice with this number, and nothing happened between", run.show(request))
                });
            }
            *lost += 1;
            continue;
        }
        match attempts.iter().find(|attempt| attempt.number == request.attempt) {
            None if run.faults.took_result(request, NEVER).is_some() => *lost += 1,
            None => verdict.wrong(|| format!("{} is not in the log", run.show(request))),
            Some(attempt) => {
                if let Some(what) = wrong_answer(run, request, attempt) {
                    verdict.wrong(|| format!("{}: the log has {what}", run.show(request)));
                }
            }
        }
    }
}

/// What came of publications that were never answered is told, too. An accepted event without its delivery is lost, and what
/// nobody published is a phantom: these are other promises' matter.
pub(super) fn all_are_told(run: &Run, verdict: &mut Verdict) {
    if !run.publications.iter().any(Publication::is_unknown) {
        return;
    }
    let untold = |receipt: &&Receipt| {
        run.delivery(receipt.delivery).is_none() && run.accepted(receipt.event).is_none()
    };
    for receipt in run.receipts.iter().filter(untold) {
        verdict.wrong(|| format!("{}: the API knows no such delivery", run.show(receipt)));
    }
}

/// Numbers without a gap, a success at the end and nowhere else, and as many as the delivery says.
fn wrong_story(delivery: &Delivery, attempts: &[Attempt]) -> Option<String> {
    let count = attempts.len();
    for (attempt, number) in attempts.iter().zip(1..) {
        if attempt.number != number {
            return Some(format!("attempt {} where {number} is expected", attempt.number));
        }
        if attempt.outcome == Outcome::Success && number as usize != count {
            return Some(format!("attempt {number} succeeded, but is not the last of {count}"));
        }
    }
    (delivery.attempts_count as usize != count)
        .then(|| format!("{count} attempts, but the delivery says {}", delivery.attempts_count))
}

/// What the log says was answered is what the receiver answered; unless the fault that ended both took the answer.
fn wrong_answer(run: &Run, request: &Receipt, attempt: &Attempt) -> Option<String> {
    let status = attempt.status?;
    let same = request.ending == Ending::Answered && request.status == status;
    let lost = || run.faults.took_result(request, NEVER).is_some();
    (!same && !lost()).then(|| format!("the answer {status}"))
}
