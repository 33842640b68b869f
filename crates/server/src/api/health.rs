//! Is the process there, and can it take events?

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::{ApiError, ErrorBody};
use super::{App, Data, ok};

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(alive)).routes(routes!(ready))
}

/// How the server does.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// `ok`.
    #[schema(value_type = String)]
    status: &'static str,
    /// Which version of Tidegate.
    #[schema(value_type = String)]
    version: &'static str,
}

const WELL: Health = Health { status: "ok", version: env!("CARGO_PKG_VERSION") };

/// Whether the process is there.
#[utoipa::path(
    get, path = "/healthz", tag = "observing", security(()),
    responses((status = 200, description = "It is.", body = Data<Health>))
)]
pub(crate) async fn alive() -> axum::Json<Data<Health>> {
    ok(WELL)
}

/// Whether it can take and send events.
#[utoipa::path(
    get, path = "/readyz", tag = "observing", security(()),
    responses(
        (status = 200, description = "It can.", body = Data<Health>),
        (status = 503, description = "It cannot: `error` says why.", body = ErrorBody)
    )
)]
async fn ready(State(app): State<App>) -> Result<axum::Json<Data<Health>>, ApiError> {
    if *app.leaving.borrow() {
        return Err(ApiError::unavailable("the server is shutting down"));
    }
    if let Some(why) = app.engine.store().waits() {
        return Err(why.into());
    }
    if let Some(why) = app.engine.out_of_work() {
        return Err(ApiError::unavailable(why));
    }
    // The driver answers, so it runs.
    app.engine.look(|_| ()).await?;
    Ok(ok(WELL))
}
