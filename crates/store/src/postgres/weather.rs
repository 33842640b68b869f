//! Whether anything comes through to the database, as the connections of one node tell one another.
//!
//! A network that silently drops everything is noticed only by a connection that waits for an answer. The first that gives up
//! tells the others, which need not find out by themselves: connections from before are not used again, and whoever waits on
//! one gives up a moment later.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// How much longer an answer is waited for on a connection from before a storm: the server may only be slow.
const GRACE: Duration = Duration::from_secs(5);

/// How many times nothing came through.
#[derive(Clone, Debug, Default)]
pub(super) struct Weather {
    storms: Arc<watch::Sender<u64>>,
}

impl Weather {
    /// How many storms there were until now.
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
