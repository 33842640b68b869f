//! Destinations: where events go, and by which policies.
//!
//! A document is checked by [`policy`](crate::policy), kept by the [catalogue](crate::catalogue), and shown together with
//! what its lane knows: status, holds, queue, timeout.

mod actions;
mod directory;
mod find;
mod forecast;
mod history;
mod lane;
mod latency;
mod preview;
mod secret;
mod standing;
mod test_event;
mod view;
mod write;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::directory::DirectoryQuery;
pub(crate) use self::find::find;
use self::view::DestinationView;
use super::error::ApiError;
use super::etag::{IfMatch, etag};
use super::extract::{Json, PathText};
use super::openapi::{Refusals, WriteRefusals};
use super::page::ListAnswer;
use super::{App, Data, created, ok};
use crate::auth::{Call, Editor, Viewer};
use crate::policy::{DestinationPatch, NewDestination};

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(read, change, remove))
        .routes(routes!(actions::pause))
        .routes(routes!(actions::resume))
        .routes(routes!(actions::retry_now))
        .routes(routes!(test_event::test))
        .routes(routes!(secret::rotate))
        .routes(routes!(latency::latency))
        .routes(routes!(forecast::forecast))
        .routes(routes!(preview::preview))
        .routes(routes!(history::holds))
        .routes(routes!(history::notices))
        .routes(routes!(history::attempts))
}

/// Create a destination.
///
/// Without a `signing_secret` the server makes one: it is in this answer, and in no other.
#[utoipa::path(
    post,
    path = "/v1/destinations",
    tag = "destinations",
    request_body = NewDestination,
    responses((status = 201, description = "It is there.", body = Data<DestinationView>), WriteRefusals)
)]
async fn create(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    Json(body): Json<NewDestination>,
) -> Result<Response, ApiError> {
    let (entry, secret) = write::create(&app, &caller, body).await?;
    let mut view = view::one(&app, &entry).await?;
    view.signing_secret = secret;
    Ok((etag(entry.row.version), created(view)).into_response())
}

/// List the destinations: the newest first, or as `sort` says.
#[utoipa::path(
    get,
    path = "/v1/destinations",
    tag = "destinations",
    params(DirectoryQuery),
    responses((status = 200, description = "A page.", body = Data<ListAnswer<DestinationView>>), Refusals)
)]
async fn list(
    State(app): State<App>,
    Call { caller, query, .. }: Call<Viewer, DirectoryQuery>,
) -> Result<axum::Json<Data<ListAnswer<DestinationView>>>, ApiError> {
    let page = directory::page(&app, caller.account, &query).await?;
    let items = view::many(&app, &page.items).await?;
    Ok(ok(ListAnswer { items, next_cursor: page.next_cursor, total: page.total }))
}

/// Read a destination.
#[utoipa::path(
    get,
    path = "/v1/destinations/{id}",
    tag = "destinations",
    params(("id" = String, Path, description = "Its id or external id.")),
    responses((status = 200, description = "As it is now.", body = Data<DestinationView>), Refusals)
)]
async fn read(
    State(app): State<App>,
    Call { caller, .. }: Call<Viewer>,
    PathText(name): PathText,
) -> Result<Response, ApiError> {
    let entry = find(&app, &caller, &name)?;
    let view = view::one(&app, &entry).await?;
    Ok((etag(entry.row.version), ok(view)).into_response())
}

/// Change a destination.
///
/// Fields that are absent stay; `null` removes a policy. In force for every attempt that starts after the answer.
#[utoipa::path(
    patch,
    path = "/v1/destinations/{id}",
    tag = "destinations",
    params(
        ("id" = String, Path, description = "Its id or external id."),
        ("If-Match" = Option<String>, Header, description = "The `ETag` that was read: another version is 412.")
    ),
    request_body = DestinationPatch,
    responses((status = 200, description = "As it is now.", body = Data<DestinationView>), WriteRefusals)
)]
async fn change(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    PathText(name): PathText,
    if_match: IfMatch,
    Json(patch): Json<DestinationPatch>,
) -> Result<Response, ApiError> {
    let entry = write::change(&app, &caller, &name, &if_match, &patch).await?;
    let view = view::one(&app, &entry).await?;
    Ok((etag(entry.row.version), ok(view)).into_response())
}

/// Delete a destination.
///
/// Nothing more is sent to it. Its open deliveries are cancelled: visibly at once, in the store soon after.
#[utoipa::path(
    delete,
    path = "/v1/destinations/{id}",
    tag = "destinations",
    params(
        ("id" = String, Path, description = "Its id or external id."),
        ("If-Match" = Option<String>, Header, description = "The `ETag` that was read: another version is 412.")
    ),
    responses((status = 204, description = "It is gone."), WriteRefusals)
)]
async fn remove(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    PathText(name): PathText,
    if_match: IfMatch,
) -> Result<StatusCode, ApiError> {
    write::remove(&app, &caller, &name, &if_match).await?;
    Ok(StatusCode::NO_CONTENT)
}
