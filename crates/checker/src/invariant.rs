//! The promises, one file each. Each is a pure function from a [`Run`] to a [`Verdict`], and judges only what the run
//! shows: where a history is silent, it says so instead of guessing. What is excused is counted in the verdict's notes.
//!
//! I17 (isolation between accounts, and addresses that are not to be dialled) is not here: it cannot be seen in what
//! willing receivers saw. It has tests of its own.

mod concurrency;
mod config;
mod duplicates;
mod expiry;
mod fairness;
mod health;
mod idempotency;
mod liveness;
mod loss;
mod order;
mod phantom;
mod quiet;
mod rate;
mod resources;
mod retry;
mod shut;
mod states;
mod waits;

use crate::run::{MILLI, Receipt, Run};
use crate::verdict::Verdict;

/// How a promise is judged.
pub type Judge = fn(&Run) -> Verdict;

/// Every promise that is judged, by name.
pub const ALL: &[(&str, Judge)] = &[
    ("I1", loss::judge),
    ("I2", phantom::judge),
    ("I3", duplicates::judge),
    ("I4", concurrency::judge),
    ("I5", rate::judge),
    ("I6", quiet::judge),
    ("I7", expiry::judge),
    ("I8", order::judge),
    ("I9", shut::judge),
    ("I10", fairness::judge),
    ("I11", retry::judge),
    ("I12", states::judge),
    ("I13", idempotency::judge),
    ("I14", config::judge),
    ("I15", liveness::judge),
    ("I16", resources::judge),
    ("I18", health::judge),
];

/// Why a receiver may get again what it had answered with 2xx.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// The sender was hit before the result was stored.
    Outage(usize),
    /// The answer came when the sender had given up waiting.
    AnsweredTooLate,
}

/// Why `first`, which was answered 2xx, may have been sent again by `again`; none: nothing explains it.
///
/// An attempt's number is one more than the attempts that are stored. So the API's attempt of a number is the last request
/// with that number, and a number that comes again tells that the request before it was never stored.
fn why_repeated(run: &Run, first: &Receipt, again: u64) -> Option<Why> {
    use crate::history::Outcome;
    let came_again = run
        .requests_of(first.delivery)
        .any(|other| other.attempt == first.attempt && (other.t, other.end) > (first.t, first.end));
    let stored = run.attempt(first.delivery, first.attempt).filter(|_| !came_again);
    match stored {
        Some(attempt) if attempt.outcome == Outcome::Success => return None,
        Some(attempt) if attempt.outcome == Outcome::Timeout => {
            let timeout = u64::try_from(attempt.timeout_ms.unwrap_or(0)).unwrap_or(0).saturating_mul(MILLI);
            if first.end.saturating_sub(first.t).saturating_add(run.late()) >= timeout {
                return Some(Why::AnsweredTooLate);
            }
        }
        _ => {}
    }
    run.faults.took_result(first, again).map(Why::Outage)
}
