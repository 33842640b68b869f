//! Whether anything comes through to the database, as the connections of one node tell one another.
//!
//! A way that swallows everything without a word is noticed by whoever waits for an answer. Who waits for little notices it soon,
//! and the others need not find out by themselves: a connection from before is not used again, and what waits on one
//! waits only a moment longer.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// What waits on a connection from before a storm waits so much longer: the server may only be slow.
const GRACE: Duration = Duration::from_secs(5);

/// How many times nothing came through.
#[derive(Clone, Debug, Default)]
pub(super) struct Weather {
    storms: Arc<watch::Sender<u64>>,
}

impl Weather {
    /// So many until now.
    pub(super) fn storms(&self) -> u64 {
        *self.storms.borrow()
    }

    /// An answer did not come in time.
    pub(super) fn storm(&self) {
        self.storms.send_modify(|storms| *storms += 1);
    }

    /// Ends a while after somebody else has noticed a storm.
    pub(super) async fn passes_over(&self) {
        let mut storms = self.storms.subscribe();
        let _is_kept_by_self = storms.changed().await;
        tokio::time::sleep(GRACE).await;
    }
}
