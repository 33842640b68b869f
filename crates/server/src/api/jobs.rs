//! Jobs as they are asked for and shown: replays and cancellations alike. Each kind is a resource of its own, with the calls
//! that [`calls`] writes out.

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
    let action = format!("{}.create", word(kind));
    let audit = caller.audit(app, &action, job.id, &json!({"request": request, "total": total}));
    let view = JobView::new(&job);
    jobs::begin(app, job, audit).await?;
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
        let audit = caller.audit(app, &format!("{}.stop", word(kind)), id, &json!({}));
        jobs::stop(app, id, audit).await?;
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

/// The calls of one kind of job, with their words. (Parts of attributes go through as single tokens: what is captured as a
/// literal is no literal to the macro that reads them.)
macro_rules! calls {
    (
        $kind:expr, $all:tt, $one:tt;
        $(#[$($create:tt)*])* create;
        $(#[$($list:tt)*])* list;
        $(#[$($read:tt)*])* read;
        $(#[$($stop:tt)*])* stop;
    ) => {
        use axum::extract::State;
        use axum::http::StatusCode;
        use axum::response::Response;
        use tidegate_core::id::kind;
        use utoipa_axum::router::OpenApiRouter;
        use utoipa_axum::routes;

        use super::error::ApiError;
        use super::extract::{Json, PathId};
        use super::jobs::{self, DryRun, JobView};
        use super::openapi::{Refusals, WriteRefusals};
        use super::page::{ListAnswer, ListQuery};
        use super::{App, Data};
        use crate::auth::{Call, Editor, Viewer};
        use crate::jobs::request::JobRequest;

        /// The calls.
        pub(crate) fn routes() -> OpenApiRouter<App> {
            OpenApiRouter::new().routes(routes!(create, list)).routes(routes!(read, stop))
        }

        $(#[$($create)*])*
        #[utoipa::path(
            post,
            path = $all,
            tag = "deliveries",
            request_body = JobRequest,
            responses(
                (status = 200, description = "A dry run: how many there are.", body = Data<DryRun>),
                (status = 202, description = "It has begun.", body = Data<JobView>),
                WriteRefusals
            )
        )]
        async fn create(
            State(app): State<App>,
            Call { caller, .. }: Call<Editor>,
            Json(request): Json<JobRequest>,
        ) -> Result<Response, ApiError> {
            jobs::create(&app, &caller, request, $kind).await
        }

        $(#[$($list)*])*
        #[utoipa::path(
            get,
            path = $all,
            tag = "deliveries",
            params(ListQuery),
            responses((status = 200, description = "A page.", body = Data<ListAnswer<JobView>>), Refusals)
        )]
        async fn list(
            State(app): State<App>,
            Call { caller, query, .. }: Call<Viewer, ListQuery>,
        ) -> Result<axum::Json<Data<ListAnswer<JobView>>>, ApiError> {
            jobs::list(&app, &caller, &query, $kind).await
        }

        $(#[$($read)*])*
        #[utoipa::path(
            get,
            path = $one,
            tag = "deliveries",
            params(("id" = String, Path)),
            responses((status = 200, description = "As it is now.", body = Data<JobView>), Refusals)
        )]
        async fn read(
            State(app): State<App>,
            Call { caller, .. }: Call<Viewer>,
            PathId(id): PathId<kind::Replay>,
        ) -> Result<axum::Json<Data<JobView>>, ApiError> {
            jobs::read(&app, &caller, id, $kind).await
        }

        $(#[$($stop)*])*
        #[utoipa::path(
            delete,
            path = $one,
            tag = "deliveries",
            params(("id" = String, Path)),
            responses((status = 204, description = "It goes no further."), WriteRefusals)
        )]
        async fn stop(
            State(app): State<App>,
            Call { caller, .. }: Call<Editor>,
            PathId(id): PathId<kind::Replay>,
        ) -> Result<StatusCode, ApiError> {
            jobs::stop(&app, &caller, id, $kind).await
        }
    };
}
pub(super) use calls;
