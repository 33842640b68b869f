//! Housekeeping: ends deliveries that expired in the store and are not in memory, recalls retries that a wrong clock has put out of
//! reach, deletes what is old enough, closes idle connections.

mod recall;

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::time::{Millis, Now, Timestamp};
use tidegate_store::StoreError;
use tokio::sync::mpsc;

use crate::driver::{Arrival, Parts};
use crate::metrics::Metrics;
use crate::reading::Reading;
use recall::Watch;

/// How often to look for what has expired or is too old: lanes end what they have in memory by themselves, to the millisecond.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Deliveries ended at once: lanes are not held up by more.
const SWEEP: usize = 1_000;
/// When to look again where there were as many: what was found is stored as ended by then.
const SWEEP_ON: Duration = Duration::from_millis(100);
/// How often to look for what may be deleted.
const FORGET_EVERY: Duration = Duration::from_secs(1);
/// Events deleted in one commit: few enough not to hold up what is accepted in the same group.
const FORGET: usize = 512;

/// A wall clock that gained this much on the monotonic one did not drift: it was set.
const LEAP: Millis = Millis::days(1);
/// A clock that was set ahead is believed when it has stood so for this long: what is deleted does not come back.
const BELIEVED_AFTER: Millis = Millis::hours(1);

/// Starts the two tasks; they end when the store is closed.
pub(crate) fn start(parts: &Arc<Parts>, inbox: &mpsc::UnboundedSender<Arrival>, retention: Millis) {
    tokio::spawn(sweep(Arc::clone(parts), inbox.clone()));
    tokio::spawn(forget(Arc::clone(parts), retention));
}

/// Hands what has expired, or is too old, to its lane: all ends go through the lane.
async fn sweep(parts: Arc<Parts>, inbox: mpsc::UnboundedSender<Arrival>) {
    let mut tick = tokio::time::interval(SWEEP_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut watch = Watch::new(parts.clock.now(), parts.number(1).made_at());
    loop {
        tick.tick().await;
        parts.sender.close_idle();
        if let Some(step) = watch.look(parts.clock.now()) {
            match recall::recall(&parts, &inbox, step).await {
                Ok(()) => {}
                Err(StoreError::Closed) => return,
                Err(error) => tracing::error!(%error, "cannot look for retries that are out of reach"),
            }
        }
        let Some(_reading) = Reading::begin(&inbox).await else { return };
        let now = parts.clock.now().wall;
        let found = match parts.store.overdue(now, SWEEP).await {
            Ok(found) => found,
            Err(StoreError::Closed) => return,
            Err(error) => {
                tracing::error!(%error, "cannot look for what has expired");
                continue;
            }
        };
        if found.len() >= SWEEP {
            tick.reset_after(SWEEP_ON);
        }
        if !found.is_empty() && inbox.send(Arrival::Overdue(found)).is_err() {
            return;
        }
    }
}

/// Deletes what ended before the retention, in small steps.
async fn forget(parts: Arc<Parts>, retention: Millis) {
    let mut tick = tokio::time::interval(FORGET_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut calendar = Calendar::new(parts.clock.now());
    loop {
        tick.tick().await;
        while let Some(today) = calendar.read(parts.clock.now()) {
            match parts.store.forget(today - retention, FORGET).await {
                Ok(count) => {
                    Metrics::count(
                        &parts.metrics.events_forgotten,
                        usize::try_from(count).unwrap_or(usize::MAX),
                    );
                    if count < FORGET as u64 {
                        break;
                    }
                }
                Err(StoreError::Closed) => return,
                Err(StoreError::Full) => break,
                Err(error) => {
                    tracing::error!(%error, "cannot delete what is old");
                    break;
                }
            }
        }
    }
}

/// The time by which things are old enough to be deleted: the wall clock, unless it has just leapt ahead.
struct Calendar {
    /// What the clocks were last believed to be.
    believed: Now,
    /// The first look at a clock that had leapt.
    leapt: Option<Now>,
}

impl Calendar {
    const fn new(now: Now) -> Self {
        Self { believed: now, leapt: None }
    }

    /// The time now; none while it is in doubt.
    fn read(&mut self, now: Now) -> Option<Timestamp> {
        if now.offset() - self.believed.offset() > LEAP {
            let leapt = match self.leapt {
                Some(leapt) => leapt,
                None => {
                    tracing::warn!(wall = %now.wall, "the clock was set far ahead: nothing is deleted as old for an hour");
                    *self.leapt.insert(now)
                }
            };
            if now.mono.since(leapt.mono) < BELIEVED_AFTER {
                return None;
            }
        }
        *self = Self::new(now);
        Some(now.wall)
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::time::Mono;

    use super::*;

    fn at(mono_minutes: i64, ahead: Millis) -> Now {
        let mono = Millis::minutes(mono_minutes);
        Now {
            wall: Timestamp::from_millis(1_700_000_000_000) + mono + ahead,
            mono: Mono::from_millis(mono.get()),
        }
    }

    #[test]
    fn a_clock_that_leaps_ahead_and_comes_back_deletes_nothing() {
        let mut calendar = Calendar::new(at(0, Millis::ZERO));
        assert!(calendar.read(at(1, Millis::hours(1))).is_some(), "an hour is no leap");
        for minute in 2..50 {
            assert_eq!(calendar.read(at(minute, Millis::days(3_650))), None);
        }
        assert_eq!(calendar.read(at(51, Millis::ZERO)), Some(at(51, Millis::ZERO).wall));
        assert_eq!(calendar.read(at(52, Millis::days(3_650))), None, "the next leap is in doubt anew");
    }

    #[test]
    fn a_clock_that_stays_where_it_was_set_is_believed() {
        let mut calendar = Calendar::new(at(0, Millis::ZERO));
        let set = Millis::days(400);
        assert_eq!(calendar.read(at(1, set)), None);
        assert_eq!(calendar.read(at(61, set)), Some(at(61, set).wall));
        assert_eq!(calendar.read(at(62, set)), Some(at(62, set).wall));
    }
}
