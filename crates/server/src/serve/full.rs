//! The time before a start on a full disk is possible: everything that comes is told so.
//!
//! A process that left instead would be started again by its supervisor, for as long as that does so, and whoever publishes would
//! meanwhile be refused without a word.

use std::convert::Infallible;
use std::net::TcpListener as StdListener;

use anyhow::Context;
use axum::Router;
use axum::http::header::CONNECTION;
use axum::response::IntoResponse;
use axum::routing::get;
use tidegate_store::StoreError;
use tokio::net::TcpListener;

use crate::api::error::ApiError;
use crate::api::health;

/// Answers calls until it is dropped. Each answer is its connection's last: the next one meets the server, if that has started.
pub(super) async fn answer(listener: &StdListener) -> anyhow::Result<Infallible> {
    let listener = listener.try_clone().context("the listening socket")?;
    listener.set_nonblocking(true).context("the listening socket")?;
    let listener = TcpListener::from_std(listener).context("the listening socket")?;
    let full = || async { ([(CONNECTION, "close")], ApiError::from(StoreError::Full)).into_response() };
    let alive = || async { ([(CONNECTION, "close")], health::alive().await) };
    let router = Router::new().route("/healthz", get(alive)).fallback(full);
    axum::serve(listener, router).await.context("cannot answer while the disk is full")?;
    anyhow::bail!("the listening socket was closed")
}
