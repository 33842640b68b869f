//! What a person may do to one delivery: replay it, cancel it, hasten it.

use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::json;
use tidegate_core::delivery::{End, Status, Withdrawn};
use tidegate_core::id::{DeliveryId, kind};
use tidegate_store::delivery::StoredDelivery;
use utoipa::ToSchema;

use super::replay::{self, ReplayBody};
use super::state;
use super::view::DeliveryView;
use crate::api::error::ApiError;
use crate::api::extract::{OptionalJson, PathId};
use crate::api::openapi::WriteRefusals;
use crate::api::{App, Data, accepted, ok};
use crate::auth::{Call, Caller, Editor};

type Answer = Result<axum::Json<Data<DeliveryView>>, ApiError>;

/// Nothing to say.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

/// Replay a delivery: a new one of the same event to the same destination. The old one is left as it is.
#[utoipa::path(
    post,
    path = "/v1/deliveries/{id}/replay",
    tag = "deliveries",
    params(("id" = String, Path)),
    request_body = Option<ReplayBody>,
    responses((status = 202, description = "The new delivery.", body = Data<DeliveryView>), WriteRefusals)
)]
pub(super) async fn replay(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    PathId(id): PathId<kind::Delivery>,
    OptionalJson(body): OptionalJson<ReplayBody>,
) -> Result<(StatusCode, axum::Json<Data<DeliveryView>>), ApiError> {
    let terms = body.check()?;
    let original = super::find(&app, &caller, id).await?;
    let Some(destination) = app.catalogue.destination(original.destination) else {
        return Err(ApiError::conflict("destination_deleted", "its destination was deleted"));
    };
    if !state::one(&app, &original).await?.status.is_final() {
        let message = "it is still on its way: there is nothing to replay yet";
        return Err(ApiError::conflict("not_final", message));
    }
    let now = app.engine.now().wall;
    let new = replay::make(&app, now, app.engine.number(1), &original, &destination, terms)?;
    let new_id = new.delivery.id;
    let said = json!({"delivery_id": new_id.to_string()});
    let line = caller.audit(&app, "delivery.replay", id, &said);
    replay::accept(&app, caller.account, vec![new], None, Some(line)).await?;
    Ok(accepted(show(&app, &caller, new_id).await?))
}

/// Cancel a delivery: it is not sent any more. One that is in flight is cancelled unless it succeeds.
#[utoipa::path(
    post,
    path = "/v1/deliveries/{id}/cancel",
    tag = "deliveries",
    params(("id" = String, Path)),
    request_body = Option<Nothing>,
    responses((status = 200, description = "As it is now.", body = Data<DeliveryView>), WriteRefusals)
)]
pub(super) async fn cancel(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    PathId(id): PathId<kind::Delivery>,
    OptionalJson(Nothing {}): OptionalJson<Nothing>,
) -> Answer {
    act(&app, &caller, id, Wish::Withdraw).await
}

/// Send a delivery without waiting for its own time. What holds its destination still holds it.
#[utoipa::path(
    post,
    path = "/v1/deliveries/{id}/retry-now",
    tag = "deliveries",
    params(("id" = String, Path)),
    request_body = Option<Nothing>,
    responses((status = 200, description = "As it is now.", body = Data<DeliveryView>), WriteRefusals)
)]
pub(super) async fn retry_now(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    PathId(id): PathId<kind::Delivery>,
    OptionalJson(Nothing {}): OptionalJson<Nothing>,
) -> Answer {
    act(&app, &caller, id, Wish::Hasten).await
}

/// What somebody wants of a delivery that is not over.
#[derive(Clone, Copy, Debug)]
enum Wish {
    Withdraw,
    Hasten,
}

/// Does that, unless it is so already, and shows what came of it.
async fn act(app: &App, caller: &Caller, id: DeliveryId, wish: Wish) -> Answer {
    let _reading = app.engine.reading().await?;
    let stored = super::find(app, caller, id).await?;
    match (wish, state::one(app, &stored).await?.status) {
        // What is in flight cannot be hastened.
        (Wish::Withdraw, Status::Final(End::Cancelled(_))) | (Wish::Hasten, Status::Delivering) => {
            return Ok(ok(show(app, caller, id).await?));
        }
        (_, Status::Final(end)) => {
            return Err(ApiError::conflict("already_final", format!("it is over: {end}")));
        }
        (_, Status::Queued | Status::RetryScheduled { .. } | Status::Delivering) => {}
    }
    let StoredDelivery { destination, delivery, .. } = stored;
    let line = |action| Some(caller.audit(app, action, id, &json!({})));
    match wish {
        Wish::Withdraw => {
            let delivery = vec![(destination, delivery)];
            app.engine.withdraw(delivery, Withdrawn::ByRequest, line("delivery.cancel")).await?;
        }
        Wish::Hasten => app.engine.hasten(destination, delivery, line("delivery.retry_now")).await?,
    }
    Ok(ok(show(app, caller, id).await?))
}

async fn show(app: &App, caller: &Caller, id: DeliveryId) -> Result<DeliveryView, ApiError> {
    let stored = super::find(app, caller, id).await?;
    let standing = state::one(app, &stored).await?;
    Ok(DeliveryView::new(app, &stored, &standing))
}
