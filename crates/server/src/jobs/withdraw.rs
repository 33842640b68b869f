//! One step of a cancellation: a batch of open deliveries is withdrawn.

use std::time::Duration;

use tidegate_core::delivery::{Status, Withdrawn};
use tidegate_store::delivery::StoredDelivery;
use tidegate_store::job::{Job, JobKind, Progress};
use tidegate_store::list::PageQuery;

use super::Step;
use super::pace::{MAX_BATCH, batch, pause};
use super::request::JobRequest;
use crate::api::App;
use crate::api::deliveries::query::StatusWord;
use crate::api::error::ApiError;

/// The next batch.
pub(super) async fn step(app: &App, job: &mut Job, request: &JobRequest) -> Result<Step, ApiError> {
    let Ok(filter) = request.within(app, job.account, JobKind::Cancellation, job.created_at) else {
        // Its destination is gone by now, and with it what waited there.
        return Ok(Step::Done);
    };
    let limit = request.max_per_minute.map_or(MAX_BATCH, batch);
    let page = PageQuery { account: job.account, before: job.position, limit, oldest_first: true };
    let _reading = app.engine.reading().await?;
    let found = app.engine.store().deliveries(page, filter).await?;
    let seen = found.items.len();
    let wanted = |stored: &StoredDelivery| match request.filter.status {
        Some(StatusWord::Queued) => stored.delivery.status == Status::Queued,
        Some(StatusWord::RetryScheduled) => matches!(stored.delivery.status, Status::RetryScheduled { .. }),
        _ => true,
    };
    let last = found.items.last().map(|last| last.delivery.id.sequence());
    let batch: Vec<_> = (found.items.into_iter().filter(wanted))
        .map(|stored| (stored.destination, stored.delivery))
        .collect();
    let count = batch.len();
    if count > 0 {
        app.engine.withdraw(batch, Withdrawn::ByRequest, None).await?;
    }
    job.position = found.next.or(last).or(job.position);
    job.done += count as u64;
    job.skipped += (seen - count) as u64;
    if found.next.is_none() {
        return Ok(Step::Done);
    }
    if app.engine.store().put_job(job.clone()).await? == Progress::Lost {
        return Ok(Step::Lost);
    }
    Ok(Step::After(request.max_per_minute.map_or(Duration::ZERO, |rate| pause(count, rate))))
}
