//! Event types: what is known of a type, or of all that match a pattern, and on which terms they are delivered.

mod document;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tidegate_core::pattern::Pattern;
use tidegate_store::catalogue::{Edit, EventTypeRow};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::document::EventTypeBody;
pub(crate) use self::document::EventTypeView;
use super::error::ApiError;
use super::etag::{IfMatch, etag};
use super::extract::{Json, PathText};
use super::openapi::{Refusals, WriteRefusals};
use super::page::{Cursor, ListAnswer, ListQuery, Total};
use super::{App, Data, created, ok};
use crate::auth::{Call, Editor, Viewer};

/// Event types of one account at most: each is asked when the way of a type is worked out.
const MAX_EVENT_TYPES: usize = 10_000;

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(read, put, remove))
}

/// List the event types, by name.
#[utoipa::path(
    get,
    path = "/v1/event-types",
    tag = "destinations",
    params(ListQuery),
    responses((status = 200, description = "A page.", body = Data<ListAnswer<EventTypeView>>), Refusals)
)]
async fn list(
    State(app): State<App>,
    Call { caller, query, .. }: Call<Viewer, ListQuery>,
) -> Result<axum::Json<Data<ListAnswer<EventTypeView>>>, ApiError> {
    let list = Cursor { list: "event_types", account: caller.account };
    let (params, after) = query.page_by_name(list)?;
    let entries = app.catalogue.event_types(caller.account);
    let total = if params.total { Total::counted(entries.len() as u64) } else { Total::Unasked };
    let rows = entries.iter().map(|entry| &entry.row);
    let mut rest = rows.filter(|row| after.as_ref().is_none_or(|after| row.event_type > *after));
    let page: Vec<_> = rest.by_ref().take(params.limit).collect();
    let last = page.last().filter(|_| rest.next().is_some());
    let next_cursor = last.map(|row| list.encode_name(&row.event_type));
    let items = page.into_iter().map(EventTypeView::new).collect();
    Ok(ok(ListAnswer { items, next_cursor, total }))
}

/// Read an event type, by the name or pattern as it was written.
#[utoipa::path(
    get,
    path = "/v1/event-types/{event_type}",
    tag = "destinations",
    params(("event_type" = String, Path, description = "The name or pattern.")),
    responses((status = 200, description = "As it is now.", body = Data<EventTypeView>), Refusals)
)]
async fn read(
    State(app): State<App>,
    Call { caller, .. }: Call<Viewer>,
    PathText(name): PathText,
) -> Result<Response, ApiError> {
    let entry = app.catalogue.event_type(caller.account, &name).ok_or_else(ApiError::not_found)?;
    Ok((etag(entry.row.version), ok(EventTypeView::new(&entry.row))).into_response())
}

/// Write an event type: the whole of it, new or in place of what was there.
#[utoipa::path(
    put,
    path = "/v1/event-types/{event_type}",
    tag = "destinations",
    params(
        ("event_type" = String, Path, description = "A name, or a pattern such as `order.*`."),
        ("If-Match" = Option<String>, Header, description = "The `ETag` that was read: another version is 412.")
    ),
    request_body = EventTypeBody,
    responses(
        (status = 200, description = "It is replaced.", body = Data<EventTypeView>),
        (status = 201, description = "It is new.", body = Data<EventTypeView>),
        WriteRefusals
    )
)]
async fn put(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    PathText(name): PathText,
    if_match: IfMatch,
    Json(body): Json<EventTypeBody>,
) -> Result<Response, ApiError> {
    let pattern = Pattern::parse(&name).map_err(|fault| fault.under("event_type"))?;
    body.check(&pattern)?;
    let turn = app.catalogue.turn().await;
    let before = app.catalogue.event_type(caller.account, &name);
    let version = before.as_ref().map_or(0, |entry| entry.row.version);
    if before.is_some() {
        if_match.check(version)?;
    } else if if_match != IfMatch::Any {
        return Err(ApiError::outdated());
    } else if app.catalogue.event_types(caller.account).len() >= MAX_EVENT_TYPES {
        let message = format!("an account has at most {MAX_EVENT_TYPES} event types");
        return Err(ApiError::conflict("too_many_event_types", message));
    }
    let row = EventTypeRow {
        account: caller.account,
        event_type: name.clone(),
        document: body.to_stored(),
        version: version + 1,
        updated_at: app.engine.now().wall,
    };
    let action = if before.is_some() { "event_type.update" } else { "event_type.create" };
    let audit = caller.audit(&app, action, &name, &json!({}));
    turn.change(vec![Edit::SetEventType(row)], Some(audit)).await?;
    let entry = app.catalogue.event_type(caller.account, &name).ok_or_else(ApiError::not_found)?;
    let view = EventTypeView::new(&entry.row);
    let etag = etag(entry.row.version);
    Ok(match before {
        Some(_) => (etag, ok(view)).into_response(),
        None => (etag, created(view)).into_response(),
    })
}

/// Delete an event type: what was said about it no longer holds for what is accepted from now on.
#[utoipa::path(
    delete,
    path = "/v1/event-types/{event_type}",
    tag = "destinations",
    params(
        ("event_type" = String, Path, description = "The name or pattern."),
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
    let turn = app.catalogue.turn().await;
    let entry = app.catalogue.event_type(caller.account, &name).ok_or_else(ApiError::not_found)?;
    if_match.check(entry.row.version)?;
    let audit = caller.audit(&app, "event_type.delete", &name, &json!({}));
    let edit = Edit::DropEventType { account: caller.account, event_type: name };
    turn.change(vec![edit], Some(audit)).await?;
    Ok(StatusCode::NO_CONTENT)
}
