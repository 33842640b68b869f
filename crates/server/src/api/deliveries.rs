//! Deliveries: what became of an event at one destination, and why it waits.
//!
//! The store knows a delivery's own state; why its destination holds it is asked of its lane when it is shown
//! ([`state`]), so a hold is never written on deliveries.

mod actions;
pub(crate) mod attempt;
pub(crate) mod explain;
mod list;
pub(crate) mod query;
pub(crate) mod replay;
mod requests;
pub(crate) mod search;
pub(crate) mod state;
mod timeline;
pub(crate) mod view;

use axum::extract::State;
use serde::Serialize;
use tidegate_core::id::{DeliveryId, kind};
use tidegate_store::delivery::StoredDelivery;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::actions::Nothing;
use self::attempt::AttemptView;
use self::timeline::Moment;
use self::view::DeliveryView;
use super::error::ApiError;
use super::extract::PathId;
use super::openapi::Refusals;
use super::{App, Data, ok};
use crate::auth::{Call, Caller, Viewer};

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list::list))
        .routes(routes!(read))
        .routes(routes!(explain::explain))
        .routes(routes!(requests::requests))
        .routes(routes!(actions::replay))
        .routes(routes!(actions::cancel))
        .routes(routes!(actions::retry_now))
}

/// A delivery with all that happened to it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveryStory {
    /// As it is now.
    #[serde(flatten)]
    delivery: DeliveryView,
    /// Every request that was made for it.
    attempts: Vec<AttemptView>,
    /// What happened, and why it waited.
    timeline: Vec<Moment>,
}

/// Read a delivery, with its attempts and its timeline.
#[utoipa::path(
    get,
    path = "/v1/deliveries/{id}",
    tag = "deliveries",
    params(("id" = String, Path)),
    responses((status = 200, description = "As it is now.", body = Data<DeliveryStory>), Refusals)
)]
async fn read(
    State(app): State<App>,
    Call { caller, .. }: Call<Viewer>,
    PathId(id): PathId<kind::Delivery>,
) -> Result<axum::Json<Data<DeliveryStory>>, ApiError> {
    let stored = find(&app, &caller, id).await?;
    let attempts = app.engine.store().attempts(id).await?;
    let state = state::one(&app, &stored).await?;
    let timeline = timeline::of(&app, &stored, &state, &attempts).await?;
    let delivery = DeliveryView::new(&app, &stored, &state);
    let attempts = attempts.iter().map(|attempt| AttemptView::new(&app, attempt)).collect();
    Ok(ok(DeliveryStory { delivery, attempts, timeline }))
}

/// The delivery of the caller's account with this id. Another account's is as unknown as none.
pub(crate) async fn find(app: &App, caller: &Caller, id: DeliveryId) -> Result<StoredDelivery, ApiError> {
    app.engine.store().delivery(caller.account, id).await?.ok_or_else(ApiError::not_found)
}
