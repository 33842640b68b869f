//! Wishes for destinations that another node works: posted in the store, fulfilled by that node, and then deleted there.

use std::sync::Arc;
use std::time::Duration;

use tidegate_store::cluster::Posted;
use tidegate_store::{AccountNo, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::driver::{Arrival, Order, Parts, Wishes};
use crate::reading::Reading;
use crate::wish::{Wish, Written};

/// How long whoever posted a wish waits for it: a node that died has lost its slots by then.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Posts wishes, and waits until they are fulfilled. Says whether they were.
pub(crate) async fn post(parts: &Parts, wishes: Wishes) -> Result<bool, StoreError> {
    let mut posted = Vec::with_capacity(wishes.len());
    for (destination, written) in Written::from_wishes(&wishes) {
        posted.push(parts.store.post_order(destination, written.to_text().into_bytes()).await?);
    }
    let until = Instant::now() + PATIENCE;
    while let Some(no) = posted.last().copied() {
        if !parts.store.order_is_open(no).await? {
            posted.pop();
        } else if Instant::now() >= until {
            return Ok(false);
        } else {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
    Ok(true)
}

/// Fulfils what another has posted. What has moved on meanwhile is left to the next node.
pub(crate) fn fulfil(
    parts: &Arc<Parts>,
    inbox: &mpsc::UnboundedSender<Arrival>,
    account: AccountNo,
    order: Posted,
) {
    let (parts, inbox) = (Arc::clone(parts), inbox.clone());
    tokio::spawn(async move {
        if let Err(error) = fulfil_one(&parts, &inbox, account, &order).await {
            tracing::warn!(%error, destination = order.destination.0, "what a person wanted could not be done yet");
        }
    });
}

async fn fulfil_one(
    parts: &Parts,
    inbox: &mpsc::UnboundedSender<Arrival>,
    account: AccountNo,
    order: &Posted,
) -> Result<(), StoreError> {
    let Some(_reading) = Reading::begin(inbox).await else { return Ok(()) };
    let mut wishes = Vec::new();
    let text = String::from_utf8_lossy(&order.body);
    match Written::parse(&text) {
        Some(Written::Command(command)) => wishes.push((order.destination, Wish::Command(command))),
        Some(Written::Withdraw(by, ids)) => {
            for id in ids {
                let found = parts.store.delivery(account, id).await?;
                wishes.extend(
                    found.map(|stored| (order.destination, Wish::Withdraw(Box::new(stored.delivery), by))),
                );
            }
        }
        Some(Written::Hasten(id)) => {
            let found = parts.store.delivery(account, id).await?;
            wishes.extend(found.map(|stored| (order.destination, Wish::Hasten(Box::new(stored.delivery)))));
        }
        None => {
            tracing::warn!(%text, "a wish of a newer version is left to a newer node");
            return Ok(());
        }
    }
    let (left, asked) = oneshot::channel();
    let _gone = inbox.send(Arrival::Order(Order::Wishes(wishes, left)));
    match asked.await {
        Ok(elsewhere) if elsewhere.is_empty() => {}
        _ => return Ok(()),
    }
    parts.store.finish_order(order.no).await
}
