//! Listens for hints of other nodes, on a connection of its own: what a pooler gives to another after each transaction hears
//! nothing. If none can be had, nothing is heard, and whoever looks by itself finds the same later.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::address::Address;
use super::cluster::number;
use crate::shared::Shared;

/// Where hints go.
const CHANNEL: &str = "tidegate";
/// The hint that slots were given back; one that is none of these is the number of the node that has something for others.
pub(super) const FREED: &str = "slots";
/// The hint that an application has published something.
const PUBLISHED: &str = "";
/// What whoever has just begun to listen hears, and nobody sends: anything may have been missed.
pub(super) const BEGUN: &str = "begun";
/// How long after a lost connection the next is tried.
const PAUSE: Duration = Duration::from_millis(250);

/// Listens until the store is closed or let go of.
pub(super) fn run(address: &Address, shared: &Arc<Shared>) {
    let Some(node) = &shared.node else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return tracing::warn!(%error, "hints of other nodes are not heard"),
    };
    let own = number(node.me).to_string();
    let hear = |hint: &str| match hint {
        BEGUN => [&node.freed, &node.published, &node.heard].into_iter().for_each(Notify::notify_one),
        FREED => node.freed.notify_one(),
        PUBLISHED => node.published.notify_one(),
        hint if hint == own => {}
        _ => node.heard.notify_one(),
    };
    let listen = async {
        loop {
            let heard = tokio::select! {
                heard = address.listen(CHANNEL, hear) => heard,
                () = address.weather.passes_over() => Ok(()),
            };
            if let Err(failure) = heard {
                tracing::debug!(?failure, "hints of other nodes are not heard for now");
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    let mut closing = node.closing.subscribe();
    runtime.block_on(async {
        tokio::select! {
            () = listen => {}
            _ = closing.wait_for(|closing| *closing) => {}
        }
    });
}
