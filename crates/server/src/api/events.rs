//! Outbound events after they were published: what became of them, replayed, cancelled.

mod actions;
mod view;

use axum::extract::State;
use futures_util::future::try_join_all;
use serde::Deserialize;
use tidegate_core::id::kind;
use tidegate_core::sequence::Sequence;
use tidegate_store::list::{EventFilter, PageQuery};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::view::{EventStory, EventView};
use super::deliveries::query::{event_type, time};
use super::error::ApiError;
use super::extract::PathId;
use super::openapi::Refusals;
use super::page::{Cursor, ListAnswer, MAX_TOTAL, PageParams, Total};
use super::{App, Data, ok};
use crate::auth::{Call, Viewer};

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(read))
        .routes(routes!(actions::replay))
        .routes(routes!(actions::cancel))
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListQuery {
    /// Of this type.
    event_type: Option<String>,
    /// Accepted at or after this time.
    #[param(format = DateTime)]
    from: Option<String>,
    /// Accepted before this time.
    #[param(format = DateTime)]
    to: Option<String>,
    /// With this id of its publisher.
    external_event_id: Option<String>,
    /// With this key.
    ordering_key: Option<String>,
    /// Items of a page: 25 if not said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// Whether to count all of them.
    total: Option<bool>,
}

/// List outbound events, the newest first.
#[utoipa::path(
    get,
    path = "/v1/outbound-events",
    tag = "deliveries",
    params(ListQuery),
    responses((status = 200, description = "A page.", body = Data<ListAnswer<EventView>>), Refusals)
)]
async fn list(
    State(app): State<App>,
    Call { caller, query, .. }: Call<Viewer, ListQuery>,
) -> Result<axum::Json<Data<ListAnswer<EventView>>>, ApiError> {
    let cursor = Cursor { list: "events", account: caller.account };
    let params = PageParams::new(cursor, query.limit, query.cursor.as_deref(), query.total)?;
    let filter = EventFilter {
        event_type: event_type("event_type", query.event_type.as_deref())?,
        from: time("from", query.from.as_deref())?,
        to: time("to", query.to.as_deref())?,
        external_event_id: query.external_event_id.as_deref().map(Into::into),
        ordering_key: query.ordering_key.as_deref().map(Into::into),
    };
    let total = if params.total {
        let counted = app.engine.store().count_events(caller.account, filter.clone(), MAX_TOTAL).await?;
        counted.map_or(Total::Many, Total::counted)
    } else {
        Total::Unasked
    };
    let before = params.cursor.and_then(|at| u64::try_from(at).ok()).map(Sequence::from_stored);
    let page = PageQuery { account: caller.account, before, limit: params.limit, oldest_first: false };
    let found = app.engine.store().events(page, filter).await?;
    let items = try_join_all(found.items.iter().map(|event| view::summary(&app, event))).await?;
    let next_cursor = found.next.map(|next| cursor.encode(u128::from(next.get())));
    Ok(ok(ListAnswer { items, next_cursor, total }))
}

/// Read an outbound event, with its deliveries and attempts.
#[utoipa::path(
    get,
    path = "/v1/outbound-events/{id}",
    tag = "deliveries",
    params(("id" = String, Path)),
    responses((status = 200, description = "As it is now.", body = Data<EventStory>), Refusals)
)]
async fn read(
    State(app): State<App>,
    Call { caller, .. }: Call<Viewer>,
    PathId(id): PathId<kind::Event>,
) -> Result<axum::Json<Data<EventStory>>, ApiError> {
    let event = app.engine.store().event(caller.account, id).await?.ok_or_else(ApiError::not_found)?;
    Ok(ok(view::story(&app, &event).await?))
}
