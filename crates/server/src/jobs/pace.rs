//! How fast a job may go on.

use std::time::Duration;

use tidegate_core::id::DeliveryId;
use tidegate_store::AccountNo;

use crate::api::App;
use crate::api::error::ApiError;

/// Deliveries of one step: one commit, and one short look at lanes.
pub(super) const MAX_BATCH: usize = 200;
/// Deliveries of one replay that may be open at a time: enough to keep many lanes busy, too few to fill their windows.
const MAX_OPEN: usize = 1_000;

/// How many a step may take at this rate: about a second's worth.
pub(super) fn batch(per_minute: u64) -> usize {
    usize::try_from(per_minute.div_ceil(60)).unwrap_or(MAX_BATCH).clamp(1, MAX_BATCH)
}

/// How long that many last at this rate.
pub(super) fn pause(count: usize, per_minute: u64) -> Duration {
    let millis = (count as u64).saturating_mul(60_000) / per_minute.max(1);
    Duration::from_millis(millis)
}

/// The deliveries that a job made and that are not over yet.
#[derive(Debug, Default)]
pub(super) struct Outstanding(Vec<DeliveryId>);

impl Outstanding {
    /// These are new.
    pub(super) fn add(&mut self, ids: impl IntoIterator<Item = DeliveryId>) {
        self.0.extend(ids);
    }

    /// How many more may be open. Asks the store only when there seems to be no room.
    pub(super) async fn room(&mut self, app: &App, account: AccountNo) -> Result<usize, ApiError> {
        if self.0.len() >= MAX_OPEN {
            let mut open = Vec::new();
            for id in &self.0 {
                let stored = app.engine.store().delivery(account, *id).await?;
                if stored.is_some_and(|stored| !stored.delivery.status.is_final()) {
                    open.push(*id);
                }
            }
            self.0 = open;
        }
        Ok(MAX_OPEN.saturating_sub(self.0.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_keep_to_the_rate() {
        for per_minute in [1, 59, 60, 1_000, 6_000, 12_000, 600_000] {
            let count = batch(per_minute);
            let made_in_an_hour = 3_600.0 / pause(count, per_minute).as_secs_f64() * count as f64;
            let allowed = per_minute as f64 * 60.0;
            assert!((made_in_an_hour / allowed - 1.0).abs() < 0.02, "{per_minute}: {made_in_an_hour}");
        }
    }
}
