//! Jobs as they are asked for and shown: replays and cancellations alike.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;
use tidegate_core::id::ReplayId;
use tidegate_core::sequence::Sequence;
use tidegate_core::time::Timestamp;
use tidegate_store::job::{Job, JobKind, JobState};
use tidegate_store::list::PageQuery;
use utoipa::ToSchema;

use crate::api::error::ApiError;
use crate::api::page::{Cursor, ListAnswer, ListQuery, MAX_TOTAL, Total};
use crate::api::{App, Data, accepted, as_optional_text, as_text, new_id, ok};
use crate::auth::Caller;
use crate::jobs;
use crate::jobs::request::JobRequest;

/// A job.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Job)]
pub(crate) struct JobView {
    /// Its id.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String)]
    id: ReplayId,
    /// `running`, `done` or `stopped`.
    #[schema(value_type = String)]
    status: &'static str,
    /// What was asked for.
    #[schema(value_type = JobRequest)]
    request: serde_json::Value,
    /// Deliveries that it had to replay or withdraw when it began; null: too many to count.
    #[schema(required = true)]
    total: Option<u64>,
    /// Deliveries that it has replayed or withdrawn.
    done: u64,
    /// Deliveries that it left alone: their destination is gone, or something newer went there.
    skipped: u64,
    /// When it was asked for: nothing accepted later belongs to it.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    /// When it ended.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    finished_at: Option<Timestamp>,
}

/// How many deliveries a job would replay or withdraw.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DryRun {
    /// Always true.
    dry_run: bool,
    /// How many; null: too many to count.
    #[schema(required = true)]
    count: Option<u64>,
}

impl JobView {
    fn new(job: &Job) -> Self {
        let status = match job.state {
            JobState::Running => "running",
            JobState::Done => "done",
            JobState::Stopped => "stopped",
        };
        Self {
            id: job.id,
            status,
            request: serde_json::from_str(&job.request).unwrap_or_default(),
            total: job.total,
            done: job.done,
            skipped: job.skipped,
            created_at: job.created_at,
            finished_at: job.finished_at,
        }
    }
}

/// Begins a job, or counts what it would do.
pub(crate) async fn create(
    app: &App,
    caller: &Caller,
    mut request: JobRequest,
    kind: JobKind,
) -> Result<Response, ApiError> {
    request.check(app, caller.account, kind)?;
    let now = app.engine.now().wall;
    let total = request.count(app, caller, kind, now).await?;
    if request.dry_run {
        return Ok(ok(DryRun { dry_run: true, count: total }).into_response());
    }
    let job = Job {
        id: new_id(app),
        account: caller.account,
        kind,
        request: request.to_stored(),
        created_at: now,
        state: JobState::Running,
        position: None,
        total,
        done: 0,
        skipped: 0,
        finished_at: None,
    };
    app.engine.store().put_job(job.clone()).await?;
    let action = format!("{}.create", word(kind));
    let audit = caller.audit(app, &action, job.id, &json!({"request": request, "total": total}));
    app.catalogue.change(Vec::new(), Some(audit)).await?;
    let view = JobView::new(&job);
    jobs::start(app, job);
    Ok(accepted(view).into_response())
}

/// A page of jobs.
pub(crate) async fn list(
    app: &App,
    caller: &Caller,
    query: &ListQuery,
    kind: JobKind,
) -> Result<axum::Json<Data<ListAnswer<JobView>>>, ApiError> {
    let list = Cursor { list: word(kind), account: caller.account };
    let params = query.page(list)?;
    let total = if params.total {
        Total::counted(app.engine.store().count_jobs(caller.account, kind, MAX_TOTAL).await?)
    } else {
        Total::Unasked
    };
    let before = params.cursor.and_then(|at| u64::try_from(at).ok()).map(Sequence::from_stored);
    let page = PageQuery { account: caller.account, before, limit: params.limit, oldest_first: false };
    let found = app.engine.store().jobs(page, kind).await?;
    let next_cursor = found.next.map(|next| list.encode(u128::from(next.get())));
    let items = found.items.iter().map(JobView::new).collect();
    Ok(ok(ListAnswer { items, next_cursor, total }))
}

/// One job.
pub(crate) async fn read(
    app: &App,
    caller: &Caller,
    id: ReplayId,
    kind: JobKind,
) -> Result<axum::Json<Data<JobView>>, ApiError> {
    Ok(ok(JobView::new(&find(app, caller, id, kind).await?)))
}

/// Ends a job where it is.
pub(crate) async fn stop(
    app: &App,
    caller: &Caller,
    id: ReplayId,
    kind: JobKind,
) -> Result<StatusCode, ApiError> {
    let job = find(app, caller, id, kind).await?;
    if job.state == JobState::Running {
        jobs::stop(app, id).await;
        let audit = caller.audit(app, &format!("{}.stop", word(kind)), id, &json!({}));
        app.catalogue.change(Vec::new(), Some(audit)).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}

async fn find(app: &App, caller: &Caller, id: ReplayId, kind: JobKind) -> Result<Job, ApiError> {
    let job = app.engine.store().job(caller.account, id).await?;
    job.filter(|job| job.kind == kind).ok_or_else(ApiError::not_found)
}

const fn word(kind: JobKind) -> &'static str {
    match kind {
        JobKind::Replay => "replay",
        JobKind::Cancellation => "cancellation",
    }
}
