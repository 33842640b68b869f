//! State changes as they happen: server-sent events of one account.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream;
use serde_json::json;
use tidegate_engine::notice::Notice;
use tidegate_store::AccountNo;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::error::ApiError;
use super::openapi::Refusals;
use crate::auth::{Caller, Role};

/// Streams at a time: each one sees every notice of the node.
const MAX_STREAMS: usize = 500;
/// Proxies close what is silent for longer.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Seconds after which a place may be free.
const RETRY_SECONDS: u32 = 10;

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(watch))
}

/// One who watches.
struct Watcher {
    app: App,
    account: AccountNo,
    notices: Receiver<Arc<Notice>>,
    leaving: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

/// Watch state changes of this account.
///
/// Each event is named by its kind (`delivery`, `circuit_opened`, `disabled` …); its data is JSON. A watcher that is too
/// slow gets a `missed` event with the number of changes that it did not see.
#[utoipa::path(
    get, path = "/v1/stream", tag = "observing",
    responses((status = 200, description = "Server-sent events.", body = String, content_type = "text/event-stream"), Refusals)
)]
async fn watch(State(app): State<App>, caller: Caller) -> Result<impl IntoResponse, ApiError> {
    static PLACES: std::sync::LazyLock<Arc<Semaphore>> =
        std::sync::LazyLock::new(|| Arc::new(Semaphore::new(MAX_STREAMS)));
    caller.require(Role::Viewer)?;
    let place = Arc::clone(&PLACES).try_acquire_owned().map_err(|_| ApiError::rate_limited(RETRY_SECONDS))?;
    let watcher = Watcher {
        notices: app.engine.subscribe(),
        leaving: app.leaving.clone(),
        account: caller.account,
        app,
        _place: place,
    };
    let events = stream::unfold(watcher, |mut watcher| async move {
        let event = watcher.next().await?;
        Some((Ok::<_, Infallible>(event), watcher))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}

impl Watcher {
    /// The next event of this account; `None` when the server stops.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let notice = tokio::select! {
                notice = self.notices.recv() => notice,
                _ = self.leaving.wait_for(|leaving| *leaving) => return None,
            };
            match notice {
                Ok(notice) if notice.account == self.account => return Some(self.show(&notice)),
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    return Some(
                        Event::default().event("missed").data(json!({"missed": missed}).to_string()),
                    );
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn show(&self, notice: &Notice) -> Event {
        let data = json!({
            "at": notice.at.to_string(),
            "kind": notice.kind,
            "destination_id": self.app.catalogue.destination_id(notice.destination).map(|id| id.to_string()),
            "delivery_id": notice.delivery.map(|id| id.to_string()),
            "status": notice.status,
            "detail": notice.detail,
        });
        Event::default().event(notice.kind).data(data.to_string())
    }
}
