//! Follows what owners asked for on other nodes.

use std::time::Duration;

use crate::api::App;

/// After a reading that failed.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Reads the catalogue again whenever another node has changed it, for as long as the server runs.
pub(super) async fn follow(app: App) {
    if app.engine.cluster().is_none() {
        return;
    }
    loop {
        app.engine.catalogue_changed().await;
        while let Err(error) = app.catalogue.refresh().await {
            if *app.leaving.borrow() {
                return;
            }
            tracing::warn!(%error, "what other nodes have changed cannot be read");
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }
}
