//! The rate: how many attempts start in any interval, over all lives.
//!
//! The bound is on starts, and a start is not an arrival: on a busy machine requests wait between the two, and come in
//! bunches. When an attempt started is in the store. For a request that died with its process it is not; then it started
//! in an interval, and counts only where all of that lies within what is looked at.

use jiff::{SignedDuration, Timestamp};

use crate::checks::Seen;
use crate::lives::Lives;
use crate::log::Log;
use crate::world::{BURST, RATE};

/// Starts are told in whole milliseconds.
const ROUNDED: SignedDuration = SignedDuration::from_millis(1);
/// Over a restart both clocks of the server are rounded once more, before and after.
const ROUNDED_BY_RESTART: SignedDuration = SignedDuration::from_millis(2);

/// One start: not before `from`, not after `to`.
struct Start {
    from: Timestamp,
    to: Timestamp,
}

/// In any interval of T seconds at most `burst + rate · T`.
pub(crate) fn holds(seen: &[Seen<'_>], lost: &[&Seen<'_>], log: &Log, lives: &Lives) {
    let stored =
        log.values().flatten().map(|attempt| Start { from: attempt.started_at, to: attempt.started_at });
    let lost = lost
        .iter()
        .map(|one| Start { from: earliest_start(one, seen, log, lives), to: one.request.arrived_at });
    let mut starts: Vec<Start> = stored.chain(lost).collect();
    starts.sort_by_key(|start| start.to);
    for first in &starts {
        let mut count = 0_u32;
        for last in starts.iter().filter(|start| start.from >= first.from) {
            count += 1;
            let restarts = lives.at(last.to) - lives.at(first.from);
            let slack = ROUNDED + ROUNDED_BY_RESTART * i32::try_from(restarts).expect("few");
            let time = last.to.duration_since(first.from);
            let most = BURST as f64 + RATE as f64 * (time + slack).as_secs_f64();
            assert!(
                f64::from(count) <= most,
                "{count} attempts started from {} to {}, in {time:?}, with {restarts} restarts; at most {most:.2}",
                first.from,
                last.to,
            );
        }
    }
}

/// A request that died with its process started in that life, in the second that it says itself, and after those of
/// earlier events in that life: they go in their order.
fn earliest_start(lost: &Seen<'_>, seen: &[Seen<'_>], log: &Log, lives: &Lives) -> Timestamp {
    let stated = lost.request.header("webhook-timestamp").and_then(|text| text.parse().ok());
    let stated = stated.and_then(|second| Timestamp::from_second(second).ok()).expect("every request has it");
    let before = seen.iter().filter(|one| one.life == lost.life && one.event.number < lost.event.number);
    let before = before.filter_map(|one| {
        let attempts = log.get(one.request.delivery_id())?;
        let attempt = attempts.iter().find(|attempt| attempt.number == one.request.attempt())?;
        (lives.at(attempt.started_at) == one.life).then_some(attempt.started_at)
    });
    before.chain([stated, lives.get(lost.life).from_wall]).max().expect("two at least")
}
