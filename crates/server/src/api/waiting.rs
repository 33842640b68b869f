//! What keeps how many deliveries waiting, over many destinations, for `/metrics` and `/v1/stats`.
//!
//! Most of it is in memory. Where a destination has more waiting than its lane keeps, the store counts those that wait for a
//! time of their own; of very many such destinations, for those with the longest queues alone.

use std::collections::HashMap;

use tidegate_core::delivery::HoldReason;
use tidegate_engine::dispatcher::Waits;
use tidegate_store::DestinationNo;

use crate::api::App;

/// Destinations that the store is asked about, at most: a few milliseconds each at the worst.
const MAX_ASKED: usize = 100;

/// What holds the deliveries of each destination, in the order in which they are given: with how many wait there, and what its
/// lane knows.
pub(crate) async fn by_reason(
    app: &App,
    all: Vec<(DestinationNo, u64, Waits)>,
) -> Vec<Vec<(HoldReason, u64)>> {
    let mut unknown: Vec<(u64, DestinationNo)> = (all.iter())
        .filter(|(_, queued, waits)| !waits.is_whole(*queued))
        .map(|(no, queued, _)| (*queued, *no))
        .collect();
    unknown.sort_unstable_by(|a, b| b.cmp(a));
    unknown.truncate(MAX_ASKED);
    let asked: Vec<DestinationNo> = unknown.into_iter().map(|(_, no)| no).collect();
    // A store that cannot be read must not hide what memory knows.
    let now = app.engine.now().wall;
    let counted = app.engine.store().waiting_for_own_time(asked.clone(), now).await.unwrap_or_default();
    let counted: HashMap<_, _> = asked.into_iter().zip(counted).collect();
    let reasons = |(no, queued, waits): (DestinationNo, u64, Waits)| {
        waits.by_reason(queued, counted.get(&no).copied()).collect()
    };
    all.into_iter().map(reasons).collect()
}
