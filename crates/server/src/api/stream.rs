//! State changes as they happen: server-sent events of one account.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream;
use serde_json::json;
use tidegate_core::time::Millis;
use tidegate_engine::notice::Notice;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::App;
use super::error::ApiError;
use super::openapi::Refusals;
use super::told::Told;
use crate::auth::{Call, Caller, Viewer};

/// Streams at a time: each one sees every notice of the node.
const MAX_STREAMS: usize = 500;
/// Proxies close what is silent for longer.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// A key that expires is looked at so often.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Seconds after which a place may be free.
const RETRY_SECONDS: u32 = 10;

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(watch))
}

/// One who watches.
struct Watcher {
    app: App,
    caller: Caller,
    notices: Receiver<Arc<Notice>>,
    told: Receiver<Arc<Told>>,
    revoked: watch::Receiver<()>,
    leaving: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

/// Watch state changes of this account.
///
/// Each event is named by its kind; its data is JSON: `{at, kind, destination_id, delivery_id, status, detail}`. Kinds:
/// `delivery`; of a destination `circuit_opened`, `circuit_closed`, `throttled`, `timeout_changed`, `order_halted`,
/// `paused`, `resumed`, `disabled`, `enabled`; of the account `account_paused`, `account_resumed`. A watcher that is too slow gets a `missed`
/// event with the number of changes that it did not see. The stream ends when its key is revoked or expires.
/// It begins with what happens next: there is no going back to what was missed (`Last-Event-ID`); ask the lists for that.
#[utoipa::path(
    get, path = "/v1/stream", tag = "observing",
    responses((status = 200, description = "Server-sent events.", body = String, content_type = "text/event-stream"), Refusals)
)]
async fn watch(
    State(app): State<App>,
    Call { caller, .. }: Call<Viewer>,
) -> Result<impl IntoResponse, ApiError> {
    static PLACES: std::sync::LazyLock<Arc<Semaphore>> =
        std::sync::LazyLock::new(|| Arc::new(Semaphore::new(MAX_STREAMS)));
    let place = Arc::clone(&PLACES).try_acquire_owned().map_err(|_| ApiError::rate_limited(RETRY_SECONDS))?;
    let watcher = Watcher {
        notices: app.engine.subscribe(),
        told: app.told.subscribe(),
        revoked: app.catalogue.revoked(),
        leaving: app.leaving.clone(),
        caller,
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
    /// The next event of this account; `None` when the server stops, or the key is good no longer.
    async fn next(&mut self) -> Option<Event> {
        loop {
            let key = self.caller.still(&self.app)?;
            let left = key.expires_at.map(|end| end - self.app.engine.now().wall);
            let heard = tokio::select! {
                notice = self.notices.recv() => notice.map(|notice| Told::from(&*notice)),
                told = self.told.recv() => told.map(|told| Told::clone(&told)),
                changed = self.revoked.changed() => { changed.ok()?; continue }
                () = expiry(left) => continue,
                _ = self.leaving.wait_for(|leaving| *leaving) => return None,
            };
            match heard {
                Ok(told) if told.account == self.caller.account => return Some(self.show(&told)),
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

    fn show(&self, told: &Told) -> Event {
        let destination = told.destination.and_then(|no| self.app.catalogue.destination_id(no));
        let data = json!({
            "at": told.at.to_string(),
            "kind": told.kind,
            "destination_id": destination.map(|id| id.to_string()),
            "delivery_id": told.delivery.map(|id| id.to_string()),
            "status": told.status,
            "detail": told.detail,
        });
        Event::default().event(told.kind).data(data.to_string())
    }
}

/// Waits until a key may have ended. The wall clock may be set meanwhile, so it is asked again soon.
async fn expiry(left: Option<Millis>) {
    match left {
        Some(left) => {
            let left = Duration::from_millis(left.get().max(0).unsigned_abs());
            tokio::time::sleep(left.min(LOOK_AGAIN)).await;
        }
        None => std::future::pending().await,
    }
}
