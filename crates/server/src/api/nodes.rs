//! The nodes of the installation: this one.

use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tidegate_store::AccountNo;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::openapi::Refusals;
use super::page::{Cursor, ListAnswer, ListQuery, page_of};
use super::{App, Data, ok};
use crate::auth::{Call, Operator};

/// What attempts say about where they were made.
pub(crate) const THIS_NODE: &str = "single";

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

/// A node.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeView {
    /// Its name.
    #[schema(value_type = String)]
    id: &'static str,
    /// `active`, or `leaving`.
    #[schema(value_type = String)]
    status: &'static str,
    /// Which version of Tidegate.
    #[schema(value_type = String)]
    version: &'static str,
    /// Destinations that it serves.
    destinations: usize,
    /// Requests in flight.
    inflight: u32,
    /// Requests in flight at most.
    max_in_flight: u32,
}

/// List the nodes.
#[utoipa::path(
    get, path = "/v1/nodes", tag = "observing", params(ListQuery),
    responses((status = 200, description = "All nodes.", body = Data<ListAnswer<NodeView>>), Refusals)
)]
async fn list(
    State(app): State<App>,
    Call { query, .. }: Call<Operator, ListQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let list = Cursor { list: "nodes", account: AccountNo(0) };
    let page = query.page(list)?;
    let (destinations, inflight) = app.engine.look(|view| (view.lanes().count(), view.in_flight())).await?;
    let node = NodeView {
        id: THIS_NODE,
        status: if *app.leaving.borrow() { "leaving" } else { "active" },
        version: env!("CARGO_PKG_VERSION"),
        destinations,
        inflight,
        max_in_flight: app.config.max_in_flight,
    };
    Ok(ok(page_of([node], |_| 0, page, list, |node| node)))
}
