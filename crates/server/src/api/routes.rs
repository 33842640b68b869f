//! Routes: which types of events go to a destination besides those that it names itself.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tidegate_core::id::{DestinationId, RouteId, kind};
use tidegate_core::pattern::Pattern;
use tidegate_core::time::Timestamp;
use tidegate_store::catalogue::{Edit, Route};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::extract::{Json, PathId};
use super::openapi::{Refusals, WriteRefusals};
use super::page::{Cursor, ListAnswer, ListQuery, page_of};
use super::{App, Data, as_optional_text, as_text, created, ok};
use crate::auth::{Call, Editor, Viewer};
use crate::catalogue::RouteEntry;

/// Routes of one account at most: each is asked when the way of a type is worked out.
const MAX_ROUTES: usize = 100_000;

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(create, list)).routes(routes!(read, remove))
}

/// A new route.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRoute {
    /// To where, by id or external id.
    destination_id: String,
    /// Which types; all if not said. `*` matches the rest at the end, or one segment elsewhere.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 128, example = "order.*")]
    event_type_pattern: Option<String>,
}

/// A route.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Route)]
pub(crate) struct RouteView {
    /// Its id.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String)]
    id: RouteId,
    /// To where.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, required = true)]
    destination_id: Option<DestinationId>,
    /// Which types.
    event_type_pattern: String,
    /// When it was made.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

impl RouteView {
    fn new(app: &App, entry: &RouteEntry) -> Self {
        Self {
            id: entry.row.id,
            destination_id: app.catalogue.destination_id(entry.row.destination),
            event_type_pattern: entry.pattern.to_string(),
            created_at: entry.row.created_at,
        }
    }
}

/// Create a route.
#[utoipa::path(
    post,
    path = "/v1/routes",
    tag = "destinations",
    request_body = NewRoute,
    responses((status = 201, description = "It is there.", body = Data<RouteView>), WriteRefusals)
)]
async fn create(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    Json(body): Json<NewRoute>,
) -> Result<(StatusCode, axum::Json<Data<RouteView>>), ApiError> {
    let destination = app.catalogue.find_destination(caller.account, &body.destination_id);
    let destination = destination.ok_or_else(|| {
        ApiError::invalid("destination_id", "`destination_id`: there is no such destination in this account")
    })?;
    let pattern = body.event_type_pattern.as_deref().unwrap_or("*");
    let pattern = Pattern::parse(pattern).map_err(|fault| fault.under("event_type_pattern"))?;
    if app.catalogue.routes(caller.account).len() >= MAX_ROUTES {
        let message = format!("an account has at most {MAX_ROUTES} routes");
        return Err(ApiError::conflict("too_many_routes", message));
    }
    let now = app.engine.now().wall;
    let row = Route {
        id: RouteId::new(now, (app.engine.draw(), app.engine.draw())),
        account: caller.account,
        destination: destination.row.no,
        document: json!({"event_type_pattern": pattern.as_str()}).to_string(),
        created_at: now,
    };
    let id = row.id;
    let audit = caller.audit(&app, "route.create", id, &json!({"event_type_pattern": pattern.as_str()}));
    app.catalogue.change(vec![Edit::AddRoute(row)], Some(audit)).await?;
    let entry = app.catalogue.route(caller.account, id).ok_or_else(ApiError::not_found)?;
    Ok(created(RouteView::new(&app, &entry)))
}

/// List the routes, the newest first.
#[utoipa::path(
    get,
    path = "/v1/routes",
    tag = "destinations",
    params(ListQuery),
    responses((status = 200, description = "A page.", body = Data<ListAnswer<RouteView>>), Refusals)
)]
async fn list(
    State(app): State<App>,
    Call { caller, query, .. }: Call<Viewer, ListQuery>,
) -> Result<axum::Json<Data<ListAnswer<RouteView>>>, ApiError> {
    let list = Cursor { list: "routes", account: caller.account };
    let params = query.page(list)?;
    let entries = app.catalogue.routes(caller.account);
    Ok(ok(page_of(
        entries,
        |entry| entry.row.id.to_bits(),
        params,
        list,
        |entry| RouteView::new(&app, &entry),
    )))
}

/// Read a route.
#[utoipa::path(
    get,
    path = "/v1/routes/{id}",
    tag = "destinations",
    params(("id" = String, Path)),
    responses((status = 200, description = "The route.", body = Data<RouteView>), Refusals)
)]
async fn read(
    State(app): State<App>,
    Call { caller, .. }: Call<Viewer>,
    PathId(id): PathId<kind::Route>,
) -> Result<axum::Json<Data<RouteView>>, ApiError> {
    let entry = app.catalogue.route(caller.account, id).ok_or_else(ApiError::not_found)?;
    Ok(ok(RouteView::new(&app, &entry)))
}

/// Delete a route. What was accepted by it stays on its way.
#[utoipa::path(
    delete,
    path = "/v1/routes/{id}",
    tag = "destinations",
    params(("id" = String, Path)),
    responses((status = 204, description = "It is gone."), WriteRefusals)
)]
async fn remove(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    PathId(id): PathId<kind::Route>,
) -> Result<StatusCode, ApiError> {
    let entry = app.catalogue.route(caller.account, id).ok_or_else(ApiError::not_found)?;
    let audit =
        caller.audit(&app, "route.delete", id, &json!({"event_type_pattern": entry.pattern.as_str()}));
    app.catalogue.change(vec![Edit::DropRoute(id)], Some(audit)).await?;
    Ok(StatusCode::NO_CONTENT)
}
