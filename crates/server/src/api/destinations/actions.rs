//! Pause, resume, retry now: what a person may want of a lane.

use axum::extract::State;
use serde::Deserialize;
use serde_json::{Value, json};
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
    /// Where all deliveries keep one order (`fifo`) and the first of them has failed and waits for its next attempt: withdraw
    /// that one (`cancelled`), so that the next may go. One that was never tried is not withdrawn. A line that is halted goes
    /// on after the one that died in any case.
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
    command(&app, &caller, &name, ("destination.pause", json!({})), Command::Pause).await
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
    let ResumeBody { skip_head } = body;
    let said = if skip_head { json!({"skip_head": true}) } else { json!({}) };
    command(&app, &caller, &name, ("destination.resume", said), Command::Resume { skip_head }).await
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
    command(&app, &caller, &name, ("destination.retry_now", json!({})), Command::RetryNow).await
}

/// Carries out a command; the audit log gets the action and what was said with it.
async fn command(
    app: &App,
    caller: &Caller,
    name: &str,
    (action, said): (&str, Value),
    command: Command,
) -> Answer {
    let entry = find(app, caller, name)?;
    let line = caller.audit(app, action, entry.row.id, &said);
    standing::command(app, &entry, command, Some(line)).await?;
    Ok(ok(view::one(app, &entry).await?))
}
