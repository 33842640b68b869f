//! Pause, resume, retry now: what a person may want of a lane.

use axum::extract::State;
use serde::Deserialize;
use serde_json::json;
use tidegate_engine::dispatcher::Command;
use utoipa::ToSchema;

use super::find::find;
use super::standing;
use super::view::{self, DestinationView};
use crate::api::deliveries::Nothing;
use crate::api::error::ApiError;
use crate::api::extract::{OptionalJson, PathText};
use crate::api::openapi::WriteRefusals;
use crate::api::{App, Data, ok};
use crate::auth::{Call, Caller, Editor};

type Answer = Result<axum::Json<Data<DestinationView>>, ApiError>;

/// How to go on.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ResumeBody {
    /// Where a line stands because a delivery could not be delivered: go on after that one.
    skip_head: bool,
}

/// Pause a destination: its deliveries wait.
#[utoipa::path(
    post,
    path = "/v1/destinations/{id}/pause",
    tag = "destinations",
    params(("id" = String, Path, description = "Its id or external id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "As it is now.", body = Data<DestinationView>), WriteRefusals)
)]
pub(super) async fn pause(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    PathText(name): PathText,
    OptionalJson(Nothing {}): OptionalJson<Nothing>,
) -> Answer {
    command(&app, &caller, &name, "destination.pause", Command::Pause).await
}

/// Resume a destination: after a pause, or where a line stands. One that is disabled is enabled by `active: true`.
#[utoipa::path(
    post,
    path = "/v1/destinations/{id}/resume",
    tag = "destinations",
    params(("id" = String, Path, description = "Its id or external id.")),
    request_body = Option<ResumeBody>,
    responses((status = 200, description = "As it is now.", body = Data<DestinationView>), WriteRefusals)
)]
pub(super) async fn resume(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    PathText(name): PathText,
    OptionalJson(body): OptionalJson<ResumeBody>,
) -> Answer {
    command(&app, &caller, &name, "destination.resume", Command::Resume { skip_head: body.skip_head }).await
}

/// Clear breaker, throttle and `unavailable`, and probe at once.
#[utoipa::path(
    post,
    path = "/v1/destinations/{id}/retry-now",
    tag = "destinations",
    params(("id" = String, Path, description = "Its id or external id.")),
    request_body = Option<Nothing>,
    responses((status = 200, description = "As it is now.", body = Data<DestinationView>), WriteRefusals)
)]
pub(super) async fn retry_now(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    PathText(name): PathText,
    OptionalJson(Nothing {}): OptionalJson<Nothing>,
) -> Answer {
    command(&app, &caller, &name, "destination.retry_now", Command::RetryNow).await
}

async fn command(app: &App, caller: &Caller, name: &str, action: &str, command: Command) -> Answer {
    let entry = find(app, caller, name)?;
    standing::command(app, &entry, command).await?;
    let line = caller.audit(app, action, entry.row.id, &json!({}));
    app.catalogue.change(Vec::new(), Some(line)).await?;
    Ok(ok(view::one(app, &entry).await?))
}
