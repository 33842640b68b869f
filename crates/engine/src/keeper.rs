//! Housekeeping: ends what went stale in the store without being in memory, deletes what is old enough, closes idle
//! connections.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::time::Millis;
use tidegate_store::StoreError;
use tokio::sync::mpsc;

use crate::driver::{Arrival, Parts};
use crate::metrics::Metrics;
use crate::reading::Reading;

/// How often to look for what has expired or is too old: lanes end what they have in memory by themselves, to the millisecond.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// Deliveries ended at once.
const SWEEP: usize = 1_000;
/// How often to look for what may be deleted.
const FORGET_EVERY: Duration = Duration::from_secs(1);
/// Events deleted in one commit: few enough not to hold up what is accepted in the same group.
const FORGET: usize = 512;

/// Starts the two tasks; they end when the store is closed.
pub(crate) fn start(parts: &Arc<Parts>, inbox: &mpsc::UnboundedSender<Arrival>, retention: Millis) {
    tokio::spawn(sweep(Arc::clone(parts), inbox.clone()));
    tokio::spawn(forget(Arc::clone(parts), retention));
}

/// Hands what has expired, or is too old, to its lane: all ends go through the lane.
async fn sweep(parts: Arc<Parts>, inbox: mpsc::UnboundedSender<Arrival>) {
    let mut tick = tokio::time::interval(SWEEP_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        parts.sender.close_idle();
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
        if !found.is_empty() && inbox.send(Arrival::Overdue(found)).is_err() {
            return;
        }
    }
}

/// Deletes what ended before the retention, in small steps.
async fn forget(parts: Arc<Parts>, retention: Millis) {
    let mut tick = tokio::time::interval(FORGET_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        loop {
            let before = parts.clock.now().wall - retention;
            match parts.store.forget(before, FORGET).await {
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
