//! The attempt's line in the log: how it ended, what becomes of its delivery, and when that is due again.
//!
//! Tens of thousands succeed in a second, and nobody reads about those: they are told at `debug`, the others at `info`. Where
//! a line is not wanted, nothing of it is made.

use tidegate_core::delivery::{Delivery, End, Status};
use tidegate_core::id::DestinationId;
use tidegate_core::lane::{LaneState, Report};
use tidegate_core::outcome::Outcome;
use tidegate_core::time::Timestamp;

/// What operators know these lines by, wherever the code is.
const TARGET: &str = "tidegate::attempts";

/// Tells of an attempt for `delivery`, which is what it is after it.
pub(super) fn attempt(
    destination: Option<DestinationId>,
    delivery: &Delivery,
    report: &Report,
    error: Option<&str>,
    lane: &LaneState,
) {
    // What is inside is evaluated where the line is wanted.
    macro_rules! line {
        ($level:ident) => {
            tracing::$level!(
                target: TARGET,
                delivery = %delivery.id,
                destination = destination.map(tracing::field::display),
                number = delivery.attempts_made,
                outcome = report.outcome.word(),
                status_code = report.outcome.status(),
                error,
                took_ms = report.elapsed.get(),
                decision = delivery.status.word(),
                reason = reason(delivery),
                next_at = next_at(delivery, report, lane).map(tracing::field::display),
                "attempt"
            )
        };
    }
    match report.outcome {
        Outcome::Success { .. } => line!(debug),
        _ => line!(info),
    }
}

/// Why it is over, if it did not arrive.
fn reason(delivery: &Delivery) -> Option<String> {
    match delivery.status {
        Status::Final(End::Delivered) => None,
        Status::Final(end) => Some(end.to_string()),
        _ => None,
    }
}

/// When it is due: its own time, or the end of what their 429 has begun.
fn next_at(delivery: &Delivery, report: &Report, lane: &LaneState) -> Option<Timestamp> {
    match (delivery.status, report.outcome) {
        (Status::Final(_), _) => None,
        (_, Outcome::RateLimited { .. }) => lane.throttle.shut().map(|(_, until)| until),
        (status, _) => status.own_time(),
    }
}
