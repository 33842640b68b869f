//! The dashboard: what flows, what waits, and why, for people.
//!
//! It is the API's first client. Each page asks the [API](crate::api) for what it shows, within the process and with the key
//! of whoever looks ([`ask`]), so that roles, rules, validation and the audit log are the API's own and there is no second
//! copy of any of them. A page is a file; what several share is in [`ui`], [`form`], [`chart`] and [`words`].
//!
//! ```text
//!   browser ──► session cookie ──► Visitor ──► ask: /v1/… within the process ──► page ──► HTML
//!      ▲ script: on each event of /live, fetches its page again and swaps what changed
//! ```
//!
//! Nothing that comes from outside is ever HTML: templates escape all text, and the [policy](headers) of every page allows
//! one script and one style sheet, both from the binary.

mod ask;
mod assets;
mod chart;
mod dead_letters;
mod destination;
mod destinations;
mod event;
mod event_types;
mod form;
mod headers;
mod layout;
mod live;
mod log;
mod overview;
mod policies;
mod session;
mod settings;
mod sign_in;
mod ui;
mod visitor;
mod wire;
mod words;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::header::ACCEPT;
use axum::http::{Method, StatusCode};
use axum::middleware::map_response;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::api::{App, no_such_path};

/// What every page has at hand.
#[derive(Clone)]
pub(crate) struct Dashboard {
    app: App,
    api: Router,
    ended: Arc<session::Ended>,
}

/// The API with the dashboard beside it.
pub(crate) fn beside(api: Router, app: App) -> Router {
    let pages = Router::new()
        .route("/", get(overview::show))
        .route("/sign-in", get(sign_in::show).post(sign_in::enter))
        .route("/sign-out", get(back_to_overview).post(sign_in::leave))
        .route("/account", get(back_to_overview).post(sign_in::choose_account))
        .route("/live", get(live::watch))
        .merge(destinations::routes())
        .merge(destination::routes())
        .merge(log::routes())
        .merge(event::routes())
        .merge(dead_letters::routes())
        .merge(event_types::routes())
        .merge(settings::routes())
        .layer(map_response(headers::guard))
        .merge(assets::routes())
        .with_state(Dashboard { app, api: api.clone(), ended: Arc::default() });
    api.merge(pages).fallback(nowhere)
}

/// The address of a form that somebody typed or reloaded.
async fn back_to_overview() -> Response {
    visitor::see("/")
}

/// A path that leads nowhere: a page for people who look for one, the API's own words for everybody else.
async fn nowhere(request: Request) -> Response {
    let accepts = request.headers().get(ACCEPT).and_then(|kinds| kinds.to_str().ok()).unwrap_or_default();
    let looks = matches!(*request.method(), Method::GET | Method::HEAD) && accepts.contains("text/html");
    if !looks || request.uri().path().starts_with("/v1/") {
        return no_such_path().into_response();
    }
    let text = "There is no page at this address.";
    headers::guard(layout::plain(StatusCode::NOT_FOUND, "Not found", text)).await
}
