//! Events that applications published in SQL, within their own transactions: accepted through the same rules as those that come
//! over HTTP, under the id that `tidegate.publish` returned. Only a quota is no reason to refuse one: it holds publishers back,
//! and this one's transaction is over. What came so counts, and holds back those who can still be told.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value};
use tidegate_store::event::{Accept, Accepted};
use tidegate_store::outbox::Outboxed;
use tidegate_store::{AccountNo, StoreError};

use super::build::Builder;
use super::wire;
use crate::api::App;
use crate::api::error::ApiError;

/// How often the outbox is looked into where nobody tells of anything.
const LOOK_EVERY: Duration = Duration::from_millis(400);
/// After a look that failed.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Events that are taken at once.
const AT_ONCE: usize = 200;

/// Why an event stays in the outbox.
enum Stays {
    /// The rules refuse it: it is kept with the reason.
    Refused(ApiError),
    /// It names what this node does not know: another may have made it a moment ago.
    Unknown(ApiError),
    /// It is tried again.
    ForNow(StoreError),
}

/// Empties the outbox, for as long as the server runs.
pub(crate) async fn follow(app: App) {
    let Some(cluster) = app.engine.store().cluster().cloned() else { return };
    while !*app.leaving.borrow() {
        let wait = match app.engine.store().outbox(AT_ONCE).await {
            Ok(found) if found.is_empty() => {
                let _asked_for = tokio::time::timeout(LOOK_EVERY, cluster.published()).await;
                continue;
            }
            Ok(found) => accept_all(&app, found).await,
            Err(StoreError::Closed) => return,
            Err(error) => {
                tracing::warn!(%error, "the outbox cannot be read");
                AGAIN_AFTER
            }
        };
        tokio::time::sleep(wait).await;
    }
}

/// One after the other: events of one transaction keep their order.
async fn accept_all(app: &App, found: Vec<Outboxed>) -> Duration {
    let mut is_fresh = false;
    for outboxed in found {
        let mut accepted = accept(app, &outboxed).await;
        // What was made before any of these was read is known after one look at it.
        if matches!(accepted, Err(Stays::Unknown(_))) && !is_fresh {
            if let Err(error) = app.catalogue.refresh().await {
                tracing::warn!(%error, "an event stays in the outbox for now");
                return AGAIN_AFTER;
            }
            is_fresh = true;
            accepted = accept(app, &outboxed).await;
        }
        let refused = match accepted {
            Ok(()) => continue,
            Err(Stays::Refused(error) | Stays::Unknown(error)) => error,
            Err(Stays::ForNow(error)) => {
                tracing::warn!(%error, "an event stays in the outbox for now");
                return AGAIN_AFTER;
            }
        };
        tracing::warn!(event = %outboxed.event, error = %refused, "an event that was published in SQL is refused");
        if let Err(error) = app.engine.store().refuse_outbox(outboxed.no, refused.to_string()).await {
            tracing::warn!(%error, "an event stays in the outbox for now");
            return AGAIN_AFTER;
        }
    }
    Duration::ZERO
}

async fn accept(app: &App, outboxed: &Outboxed) -> Result<(), Stays> {
    let (account, body) = request(app, outboxed)?;
    let drafted = wire::read_event(&body).and_then(|event| Builder::new(app, account).draft(&event, &body));
    let refused = |error: ApiError| match error.is_of_the_moment() {
        true => Stays::Unknown(error),
        false => Stays::Refused(error),
    };
    let mut event = drafted.map_err(refused)?.event;
    Arc::make_mut(&mut event.message).id = outboxed.event;
    let now = app.engine.now().wall;
    let accepting = Accept { now, events: vec![event], idempotency: None, outbox: Some(outboxed.no) };
    match app.engine.store().accept(accepting).await.map_err(Stays::ForNow)? {
        Accepted::Conflict { first, .. } => {
            let message = format!("this external_event_id belongs to {first}, which has another payload");
            Err(Stays::Refused(ApiError::conflict("external_event_id_taken", message)))
        }
        _ => Ok(()),
    }
}

/// The same as a body of the API, and whose it is.
fn request(app: &App, outboxed: &Outboxed) -> Result<(AccountNo, Bytes), Stays> {
    let options: Map<String, Value> =
        serde_json::from_str(&outboxed.options).map_err(|error| Stays::Refused(ApiError::bad_json(error)))?;
    let named = options.get("account_id").and_then(Value::as_str);
    let account = match (named, app.catalogue.accounts().as_slice()) {
        (Some(name), _) => app.catalogue.find_account(name).map(|account| account.row.no),
        (None, [only]) => Some(only.row.no),
        (None, _) => None,
    };
    let message = "`account_id` must name an account, where there are several";
    let account = account.ok_or_else(|| Stays::Unknown(ApiError::invalid("account_id", message)))?;
    let mut body = format!("{{\"event_type\":{}", Value::from(outboxed.event_type.as_str())).into_bytes();
    for (name, value) in options.iter().filter(|(name, _)| *name != "account_id") {
        body.extend_from_slice(format!(",{}:{value}", Value::from(name.as_str())).as_bytes());
    }
    body.extend_from_slice(b",\"payload\":");
    body.extend_from_slice(&outboxed.payload);
    body.push(b'}');
    Ok((account, body.into()))
}
