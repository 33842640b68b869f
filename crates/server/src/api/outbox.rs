//! Events that applications published in SQL and the rules refused: they stay in the outbox, with the reason.

use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tidegate_store::AccountNo;
use tidegate_store::outbox::Refused;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::openapi::Refusals;
use super::page::{Cursor, ListAnswer, ListQuery, page_of};
use super::{App, Data, ok};
use crate::auth::{Call, Operator};

/// Of more than so many, the newest are shown; the metric counts them all.
const SHOWN: usize = 1_000;

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

/// An event that was refused.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct RefusedView {
    /// The id that `tidegate.publish` returned.
    id: String,
    event_type: String,
    /// The other fields that were given, as they were.
    options: String,
    /// Why it was refused.
    error: String,
    created_at: String,
    refused_at: String,
}

/// List the events that were published in SQL and refused, the newest first.
#[utoipa::path(
    get, path = "/v1/outbox/refused", tag = "observing", params(ListQuery),
    responses((status = 200, description = "The newest 1,000 of them.", body = Data<ListAnswer<RefusedView>>), Refusals)
)]
async fn list(
    State(app): State<App>,
    Call { query, .. }: Call<Operator, ListQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let list = Cursor { list: "outbox", account: AccountNo(0) };
    let page = query.page(list)?;
    let refused = match app.engine.cluster() {
        None => Vec::new(),
        Some(_) => app.engine.store().refused_outbox(SHOWN).await?,
    };
    let position = |refused: &Refused| u128::from(refused.outboxed.no);
    Ok(ok(page_of(refused, position, page, list, view)))
}

fn view(refused: Refused) -> RefusedView {
    let Refused { outboxed, error, refused_at } = refused;
    RefusedView {
        id: outboxed.event.to_string(),
        event_type: outboxed.event_type,
        options: outboxed.options,
        error,
        created_at: outboxed.created_at.to_string(),
        refused_at: refused_at.to_string(),
    }
}
