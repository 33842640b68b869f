//! What a deleted destination leaves behind: its open deliveries, shown as cancelled at once, are written so in batches.

use std::sync::Arc;

use tidegate_core::delivery::Withdrawn;
use tidegate_core::dial::Target;
use tidegate_core::headers::CustomHeaders;
use tidegate_core::policy::Policy;
use tidegate_engine::NewLane;
use tidegate_engine::sender::{Endpoint, Envelope, Settings};
use tidegate_store::catalogue::Deleted;
use tidegate_store::list::{DeliveryFilter, PageQuery, Stage};
use tidegate_store::{AccountNo, DestinationNo};

use super::pace::MAX_BATCH;
use super::{AGAIN, becomes_true};
use crate::api::App;
use crate::api::error::ApiError;

/// Withdraws everything that waits for destinations of an account, in the background and one after the other.
pub(crate) fn clear(app: &App, account: AccountNo, destinations: Vec<DestinationNo>, by: Withdrawn) {
    let app = app.clone();
    tokio::spawn(async move {
        for destination in destinations {
            until_done(&app, account, destination, by).await;
        }
    });
}

/// The same for destinations that were deleted in an earlier life of the server.
pub(super) fn take_up(app: &App, left_over: Vec<Deleted>) {
    if left_over.is_empty() {
        return;
    }
    let app = app.clone();
    tokio::spawn(async move {
        for Deleted { no, account, .. } in left_over {
            revive(&app, account, no).await;
        }
    });
}

/// Opens the lane of a deleted destination once more, only to end what it has left.
async fn revive(app: &App, account: AccountNo, destination: DestinationNo) {
    let Some(endpoint) = nowhere() else { return };
    let policy = Arc::new(Policy::default());
    let (id, disabled, stored) = (None, false, None);
    app.engine.open(NewLane { destination, id, account, policy, endpoint, disabled, stored });
    // An engine that has left has nothing to retire.
    let _left = app.engine.retire(destination).await;
    until_done(app, account, destination, Withdrawn::DestinationDeleted).await;
}

/// Nothing is ever sent there: a retired lane starts nothing.
fn nowhere() -> Option<Arc<Endpoint>> {
    let target = Target::parse("https://deleted.invalid/", true).ok()?;
    let headers = CustomHeaders::default();
    let settings = Settings { target, secrets: Vec::new(), headers, auth: None, envelope: Envelope::Raw };
    Endpoint::new(settings).ok().map(Arc::new)
}

async fn until_done(app: &App, account: AccountNo, destination: DestinationNo, by: Withdrawn) {
    let mut leaving = app.leaving.clone();
    while let Err(error) = pass(app, account, destination, by).await {
        tracing::warn!("what a deleted destination left is withdrawn later: {error:?}");
        tokio::select! {
            () = becomes_true(&mut leaving) => return,
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}

/// Goes through everything once. What is in flight ends by itself.
async fn pass(
    app: &App,
    account: AccountNo,
    destination: DestinationNo,
    by: Withdrawn,
) -> Result<(), ApiError> {
    let mut before = None;
    loop {
        let _reading = app.engine.reading().await?;
        let found = page(app, account, destination, before, MAX_BATCH).await?;
        let batch: Vec<_> =
            found.items.into_iter().map(|stored| (stored.destination, stored.delivery)).collect();
        if !batch.is_empty() {
            app.engine.withdraw(batch, by, None).await?;
        }
        match found.next {
            None => return Ok(()),
            next => before = next,
        }
    }
}

async fn page(
    app: &App,
    account: AccountNo,
    destination: DestinationNo,
    before: Option<tidegate_core::sequence::Sequence>,
    limit: usize,
) -> Result<tidegate_store::list::Page<tidegate_store::delivery::StoredDelivery>, ApiError> {
    let page = PageQuery { account, before, limit, oldest_first: true };
    let filter = DeliveryFilter {
        destinations: Some(vec![destination]),
        stages: Some(vec![Stage::Open]),
        ..DeliveryFilter::default()
    };
    Ok(app.engine.store().deliveries(page, filter).await?)
}
