//! `throttle`: a destination that limits us, seen from three sides.
//!
//! - [`neighbours`]: twenty destinations, one of them with a daily quota a tenth of what it gets. Do the others notice?
//!   Is it left alone for as long as it asks, or as the ladder says, and asked again by one probe?
//! - [`adaptive`]: `mode: "adaptive"` against limiters of every style. How much of the limit is used, and at what cost?
//! - [`change`]: the same when the limit is raised or lowered.

mod adaptive;
mod change;
mod neighbours;
mod watch;

use tidegate_core::time::Millis;

use super::Progress;
use crate::report::{Finding, Picture, Report};

/// Runs all three parts.
pub(super) fn run(seed: u64, progress: Progress<'_>) -> Report {
    let mut telling = Telling { progress, done: Millis::ZERO };
    let mut shown = Shown::default();
    neighbours::run(seed, &mut telling, &mut shown);
    adaptive::run(seed, &mut telling, &mut shown);
    change::run(seed, &mut telling, &mut shown);
    (telling.progress)(1.0, "done");
    Report {
        scenario: "throttle".into(),
        seed,
        world: "twenty destinations, of which one allows 1,000 requests a day and gets 10,000; and one destination at a \
                time that is paced by what it answers, against limits per minute and per day, in windows and buckets, \
                which say when to come back in seconds, as a date, in `RateLimit` headers or not at all"
            .into(),
        deliveries: shown.deliveries,
        attempts: shown.attempts,
        simulated_seconds: telling.done.as_secs_f64(),
        findings: shown.findings,
        pictures: shown.pictures,
    }
}

/// What the parts have shown so far.
#[derive(Default)]
struct Shown {
    deliveries: u64,
    attempts: u64,
    findings: Vec<Finding>,
    pictures: Vec<Picture>,
}

/// Tells how far all parts together are, by simulated time.
struct Telling<'a> {
    progress: Progress<'a>,
    done: Millis,
}

impl Telling<'_> {
    /// `length` more has been simulated, of `what`.
    fn passed(&mut self, length: Millis, what: &str) {
        let whole = neighbours::WHOLE + adaptive::WHOLE + change::WHOLE;
        self.done += length;
        (self.progress)(self.done.get() as f64 / whole.get() as f64, what);
    }
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part * 100.0 / whole } else { 0.0 }
}
