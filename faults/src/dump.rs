//! What the API says when everything is at rest: events, deliveries, attempts.

use std::sync::Arc;

use anyhow::Result;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::json;

use crate::client::Client;
use crate::history::{Book, History};
use crate::ledger::Ledger;
use crate::world::World;

/// Up to so many events are asked for one by one; more are read as lists, which tell the same in pages.
const ONE_BY_ONE: usize = 3_000;
/// Questions at a time.
const AT_A_TIME: usize = 8;

/// Writes it down.
pub(crate) async fn write(
    client: &Client,
    world: &Arc<World>,
    ledger: &Ledger,
    history: &History,
) -> Result<()> {
    let ids = ledger.ids();
    if ids.len() <= ONE_BY_ONE {
        let asked = stream::iter(ids).map(|id| event(client, history, id)).buffer_unordered(AT_A_TIME);
        asked.try_collect::<()>().await?;
    } else {
        let each = |item| history.write(Book::Api, &json!({"kind": "event", "body": item}));
        client.list("/v1/outbound-events", each).await?;
    }
    let each = |item| history.write(Book::Api, &json!({"kind": "delivery", "body": item}));
    client.list("/v1/deliveries", each).await?;
    for destination in &world.destinations {
        let each = |item: serde_json::Value| {
            let delivery = item["delivery_id"].clone();
            history.write(
                Book::Api,
                &json!({"kind": "attempt", "delivery_id": delivery, "destination_id": destination.id, "body": item}),
            );
        };
        client.list(&format!("/v1/destinations/{}/attempts", destination.id), each).await?;
    }
    Ok(())
}

/// One event. One that is not there is left out: the checker misses it.
async fn event(client: &Client, history: &History, id: String) -> Result<()> {
    let path = format!("/v1/outbound-events/{id}");
    if client.status(&path).await == Some(404) {
        return Ok(());
    }
    let body = client.get(&path).await?;
    history.write(Book::Api, &json!({"kind": "event", "body": body}));
    Ok(())
}
