//! What receivers answer. Each counts its requests, so that the script goes on where it was when its sender is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::clock::{millis, secs};
use crate::receiver::{Asked, Behaviour, Reply};

/// Seconds that those ask for who want to be left alone: more than the checker allows for a result to be stored, so that a
/// restart within them is judged.
const LEFT_ALONE: u64 = 2;
/// What is under way when a receiver stops to answer well is over by then, for the checker, too.
const BREATH: u64 = 2;

/// Whether faults are over: then those that refuse on purpose answer well, and the slow one at once.
pub(super) type Healed = Arc<AtomicBool>;

/// How the receiver of this name behaves.
pub(super) fn behaviour(name: &'static str, healed: &Healed) -> Behaviour {
    let (count, healed) = (AtomicU64::new(0), healed.clone());
    Arc::new(move |asked| {
        let refuses = matches!(name, "busy" | "away" | "failing" | "gone" | "slow");
        if refuses && healed.load(Ordering::Relaxed) {
            return Reply::status(200);
        }
        reply(name, count.fetch_add(1, Ordering::Relaxed), asked)
    })
}

/// The answer to the n-th request, from 0.
fn reply(name: &str, n: u64, asked: Asked<'_>) -> Reply {
    let well = Reply::status(200);
    let length = asked.body.len();
    match name {
        "slow" => well.after(secs(3)),
        // Long enough for their backlogs to last while a sender is as fast as it can.
        "left" | "right" => well.after(millis(8)),
        "narrow" => well.after(millis(20)),
        "tuned" => well.after(millis(15)),
        "fifo" | "keyed" => well.after(millis(3)),
        // A third of the events fails at first.
        "flaky" if asked.attempt <= 2 && length.is_multiple_of(3) => Reply::status(500),
        "patient" | "jittered" if asked.attempt <= 1 && length.is_multiple_of(5) => Reply::status(500),
        "brief" if length.is_multiple_of(2) => Reply::status(503),
        "busy" if n % 12 == 5 => Reply::status(429).retry_after(LEFT_ALONE),
        "away" if n % 12 == 5 => Reply::status(503).retry_after(LEFT_ALONE),
        // After a while in which nothing comes, so many failures in a row that the breaker opens, and one for its probe.
        "failing" => match n % 20 {
            4 => Reply::status(429).retry_after(BREATH),
            5..=10 => Reply::status(500),
            _ => well,
        },
        // One at a time: the third disables it, and who enables it finds it well.
        "gone" if (4..7).contains(&(n % 15)) => Reply::status(410),
        _ => well,
    }
}
