//! Outbound events after they were published: what became of them, replayed, cancelled.

mod actions;
mod list;
mod view;

use axum::extract::State;
use serde::Deserialize;
use tidegate_core::id::kind;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::view::EventStory;
use super::error::ApiError;
use super::extract::PathId;
use super::openapi::Refusals;
use super::{App, Data, ok};
use crate::auth::{Call, Viewer};

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list))
        .routes(routes!(read))
        .routes(routes!(actions::replay))
        .routes(routes!(actions::cancel))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ReadQuery {
    /// How many of its deliveries to tell at most: all of them if not said. `delivery_counts` counts all of them either way.
    deliveries: Option<u32>,
}

/// Read an outbound event, with its deliveries and attempts.
#[utoipa::path(
    get,
    path = "/v1/outbound-events/{id}",
    tag = "deliveries",
    params(("id" = String, Path), ReadQuery),
    responses((status = 200, description = "As it is now.", body = Data<EventStory>), Refusals)
)]
async fn read(
    State(app): State<App>,
    Call { caller, query, .. }: Call<Viewer, ReadQuery>,
    PathId(id): PathId<kind::Event>,
) -> Result<axum::Json<Data<EventStory>>, ApiError> {
    let event = app.engine.store().event(caller.account, id).await?.ok_or_else(ApiError::not_found)?;
    let most = query.deliveries.map_or(usize::MAX, |most| most as usize);
    Ok(ok(view::story(&app, &event, most).await?))
}
