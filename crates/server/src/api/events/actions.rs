//! What a person may do to all deliveries of an event.

use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::json;
use tidegate_core::delivery::Withdrawn;
use tidegate_core::id::{EventId, kind};
use tidegate_core::sequence::Sequence;
use tidegate_store::delivery::StoredDelivery;
use utoipa::ToSchema;

use super::view::{self, EventStory};
use crate::api::deliveries::replay::{self, ReplayBody};
use crate::api::deliveries::state;
use crate::api::error::ApiError;
use crate::api::extract::{OptionalJson, PathId};
use crate::api::openapi::WriteRefusals;
use crate::api::{App, Data, accepted, as_text, ok};
use crate::auth::{Call, Caller, Editor};

/// What a replay of an event made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EventReplay {
    /// The event.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String)]
    event_id: EventId,
    /// The new deliveries.
    delivery_ids: Vec<String>,
    /// Destinations that were left out: deleted, or with a delivery still on its way.
    skipped: usize,
}

/// Replay an event to every destination that it went to.
///
/// Destinations that were deleted, and those whose delivery is still on its way, are left out.
#[utoipa::path(
    post,
    path = "/v1/outbound-events/{id}/replay",
    tag = "deliveries",
    params(("id" = String, Path)),
    request_body = Option<ReplayBody>,
    responses((status = 202, description = "The new deliveries.", body = Data<EventReplay>), WriteRefusals)
)]
pub(super) async fn replay(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    PathId(id): PathId<kind::Event>,
    OptionalJson(body): OptionalJson<ReplayBody>,
) -> Result<(StatusCode, axum::Json<Data<EventReplay>>), ApiError> {
    let terms = body.check()?;
    let deliveries = deliveries(&app, &caller, id).await?;
    let standings = state::many(&app, &deliveries).await?;
    let mut newest: Vec<usize> = view::newest(&deliveries).into_values().collect();
    newest.sort_unstable();
    let first = app.engine.number(newest.len().max(1) as u64).get();
    let now = app.engine.now().wall;
    let mut new = Vec::new();
    for (index, number) in newest.iter().zip(first..) {
        let original = &deliveries[*index];
        let Some(destination) = app.catalogue.destination(original.destination) else { continue };
        if standings[*index].status.is_final() {
            let sequence = Sequence::from_stored(number);
            new.push(replay::make(&app, now, sequence, original, &destination, terms)?);
        }
    }
    let delivery_ids: Vec<String> = new.iter().map(|replay| replay.delivery.id.to_string()).collect();
    let skipped = newest.len() - new.len();
    if !new.is_empty() {
        let line = caller.audit(&app, "event.replay", id, &json!({"deliveries": delivery_ids.len()}));
        replay::accept(&app, caller.account, new, None, Some(line)).await?;
    }
    Ok(accepted(EventReplay { event_id: id, delivery_ids, skipped }))
}

/// Cancel all deliveries of an event that are not over.
#[utoipa::path(
    post,
    path = "/v1/outbound-events/{id}/cancel",
    tag = "deliveries",
    params(("id" = String, Path)),
    request_body = Option<crate::api::deliveries::Nothing>,
    responses((status = 200, description = "As it is now.", body = Data<EventStory>), WriteRefusals)
)]
pub(super) async fn cancel(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    PathId(id): PathId<kind::Event>,
    OptionalJson(crate::api::deliveries::Nothing {}): OptionalJson<crate::api::deliveries::Nothing>,
) -> Result<axum::Json<Data<EventStory>>, ApiError> {
    let _reading = app.engine.reading().await?;
    let open: Vec<_> = (deliveries(&app, &caller, id).await?.into_iter())
        .filter(|stored| !stored.delivery.status.is_final())
        .map(|stored| (stored.destination, stored.delivery))
        .collect();
    if !open.is_empty() {
        let line = caller.audit(&app, "event.cancel", id, &json!({"deliveries": open.len()}));
        app.engine.withdraw(open, Withdrawn::ByRequest, Some(line)).await?;
    }
    let event = app.engine.store().event(caller.account, id).await?.ok_or_else(ApiError::not_found)?;
    Ok(ok(view::story(&app, &event, usize::MAX).await?))
}

/// The deliveries of an event of the caller's account.
async fn deliveries(app: &App, caller: &Caller, id: EventId) -> Result<Vec<StoredDelivery>, ApiError> {
    app.engine.store().event(caller.account, id).await?.ok_or_else(ApiError::not_found)?;
    Ok(app.engine.store().deliveries_of(id).await?)
}
