//! The API: one file per resource, one router, and the document that is made from the handlers.
//!
//! Handlers read a request with [`extract`], see who calls with [`Caller`](crate::auth::Caller), look things up in the
//! [catalogue](crate::catalogue) or the store, and answer `{"data": …}` or an [`error::ApiError`]. What they decide about
//! deliveries, they ask the core and the engine.

mod accounts;
mod audit;
mod cancellations;
pub(crate) mod deliveries;
mod destinations;
pub(crate) mod error;
pub(crate) mod etag;
pub(crate) mod event_types;
mod events;
pub(crate) mod extract;
pub(crate) mod health;
mod jobs;
mod keys;
mod metrics;
mod nodes;
pub(crate) mod openapi;
mod outbox;
pub(crate) mod page;
pub(crate) mod publish;
mod replays;
mod routes;
pub(crate) mod schedules;
pub(crate) mod settings;
mod stats;
mod stream;
pub(crate) mod survey;
pub(crate) mod told;
mod waiting;

use std::ops::Deref;
use std::sync::Arc;

use axum::http::StatusCode;
use axum::{Json, Router};
use serde::Serialize;
use tidegate_core::id::{Id, Kind};
use tidegate_engine::Engine;
use tokio::sync::watch;
use utoipa::{OpenApi, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use self::error::ApiError;
use self::told::Teller;
use crate::auth::Auth;
use crate::catalogue::Catalogue;
use crate::config::Config;
use crate::jobs::Jobs;

/// What every handler has at hand. Clones share it.
#[derive(Clone)]
pub(crate) struct App(Arc<Parts>);

/// The parts of [`App`].
pub(crate) struct Parts {
    /// Sends, and keeps.
    pub(crate) engine: Engine,
    /// What owners asked for, in memory.
    pub(crate) catalogue: Catalogue,
    /// What the operator asked for.
    pub(crate) config: Arc<Config>,
    /// Who may do what.
    pub(crate) auth: Auth,
    /// What goes on in the background.
    pub(crate) jobs: Jobs,
    /// Tells those who watch what the API changed.
    pub(crate) told: Teller,
    /// What was read of all destinations of accounts that people look at.
    pub(crate) surveys: survey::Surveys,
    /// Becomes true when the server stops: whatever goes on without end must end then.
    pub(crate) leaving: watch::Receiver<bool>,
}

impl App {
    /// All parts together.
    pub(crate) fn new(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// The envelope of every success.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Data<T> {
    /// What was asked for.
    pub(crate) data: T,
}

/// 200 with `{"data": …}`.
pub(crate) fn ok<T: Serialize>(data: T) -> Json<Data<T>> {
    Json(Data { data })
}

/// 201 with `{"data": …}`.
pub(crate) fn created<T: Serialize>(data: T) -> (StatusCode, Json<Data<T>>) {
    (StatusCode::CREATED, ok(data))
}

/// 202 with `{"data": …}`.
pub(crate) fn accepted<T: Serialize>(data: T) -> (StatusCode, Json<Data<T>>) {
    (StatusCode::ACCEPTED, ok(data))
}

/// For `#[serde(serialize_with = "crate::api::as_text")]`: ids and times as they are shown.
pub(crate) fn as_text<T: std::fmt::Display, S: serde::Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// The same for what may be missing: null.
pub(crate) fn as_optional_text<T: std::fmt::Display, S: serde::Serializer>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(value),
        None => serializer.serialize_none(),
    }
}

/// A new id, made now.
pub(crate) fn new_id<K: Kind>(app: &App) -> Id<K> {
    Id::new(app.engine.now().wall, (app.engine.draw(), app.engine.draw()))
}

/// Every call, and the document that describes them. Each resource has `routes() -> OpenApiRouter<App>`.
fn described() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::Document::openapi())
        .merge(publish::routes())
        .merge(destinations::routes())
        .merge(schedules::routes())
        .merge(routes::routes())
        .merge(event_types::routes())
        .merge(events::routes())
        .merge(deliveries::routes())
        .merge(replays::routes())
        .merge(cancellations::routes())
        .merge(accounts::routes())
        .merge(keys::routes())
        .merge(settings::routes())
        .merge(audit::routes())
        .merge(stats::routes())
        .merge(stream::routes())
        .merge(nodes::routes())
        .merge(outbox::routes())
        .merge(health::routes())
        .merge(metrics::routes())
}

/// 404: nothing is at this path.
pub(crate) fn no_such_path() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "not_found", "there is no such path")
}

/// The whole API.
pub(crate) fn router(app: App) -> Router {
    let (router, mut document) = described().split_for_parts();
    openapi::name_operations(&mut document);
    openapi::name_accounts(&mut document);
    let document: bytes::Bytes =
        document.to_json().expect("the document is made of strings and numbers").into();
    let serve_document = move || {
        let json = [(axum::http::header::CONTENT_TYPE, "application/json")];
        std::future::ready((json, document.clone()))
    };
    router
        .route("/openapi.json", axum::routing::get(serve_document))
        .fallback(|| std::future::ready(no_such_path()))
        .method_not_allowed_fallback(|| {
            let message = "this path does not take this method";
            std::future::ready(ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message))
        })
        .with_state(app)
}
