//! Replays of many deliveries: jobs with progress and a budget of their own.

pub(crate) mod job;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use tidegate_core::id::kind;
use tidegate_store::job::JobKind;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::job::{DryRun, JobView};
use super::error::ApiError;
use super::extract::{Json, PathId};
use super::openapi::{Refusals, WriteRefusals};
use super::page::{ListAnswer, ListQuery};
use super::{App, Data};
use crate::auth::{Call, Editor, Viewer};
use crate::jobs::request::JobRequest;

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(create, list)).routes(routes!(read, stop))
}

/// Replay all deliveries of a filter.
///
/// A job: each delivery that fits, was accepted before this call, and has no newer one of the same event, is sent again as
/// a new delivery of priority 4, at most `max_per_minute`, at most 1,000 of them open at a time. `dry_run` counts only.
#[utoipa::path(
    post,
    path = "/v1/replays",
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
    job::create(&app, &caller, request, JobKind::Replay).await
}

/// List replays, the newest first.
#[utoipa::path(
    get,
    path = "/v1/replays",
    tag = "deliveries",
    params(ListQuery),
    responses((status = 200, description = "A page.", body = Data<ListAnswer<JobView>>), Refusals)
)]
async fn list(
    State(app): State<App>,
    Call { caller, query, .. }: Call<Viewer, ListQuery>,
) -> Result<axum::Json<Data<ListAnswer<JobView>>>, ApiError> {
    job::list(&app, &caller, &query, JobKind::Replay).await
}

/// Read a replay and its progress.
#[utoipa::path(
    get,
    path = "/v1/replays/{id}",
    tag = "deliveries",
    params(("id" = String, Path)),
    responses((status = 200, description = "As it is now.", body = Data<JobView>), Refusals)
)]
async fn read(
    State(app): State<App>,
    Call { caller, .. }: Call<Viewer>,
    PathId(id): PathId<kind::Replay>,
) -> Result<axum::Json<Data<JobView>>, ApiError> {
    job::read(&app, &caller, id, JobKind::Replay).await
}

/// Stop a replay. What it has made stays on its way.
#[utoipa::path(
    delete,
    path = "/v1/replays/{id}",
    tag = "deliveries",
    params(("id" = String, Path)),
    responses((status = 204, description = "It goes no further."), WriteRefusals)
)]
async fn stop(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    PathId(id): PathId<kind::Replay>,
) -> Result<StatusCode, ApiError> {
    job::stop(&app, &caller, id, JobKind::Replay).await
}
