//! Looks at the API while a run goes on: how deliveries stand, how much waits, whether the server is ready. One question at a
//! time, so that the order of the answers is the order of what they tell.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use serde_json::Value;

use crate::client::Client;
use crate::clock::{millis, pass};
use crate::dice::Dice;
use crate::history::History;
use crate::ledger::Ledger;
use crate::transit::Probe;
use crate::world::World;

/// Between two questions: on average a third of a producer's pace in the usual load.
const PACE_MS: u64 = 60;
/// Deliveries in a list.
const PAGE: usize = 20;
/// Deliveries that are looked at again.
const REMEMBERED: usize = 100;

/// What it asks.
pub(crate) struct Poller {
    pub(crate) client: Client,
    pub(crate) history: Arc<History>,
    pub(crate) world: Arc<World>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) dice: Dice,
}

/// Stops when it is dropped.
pub(crate) struct Polling {
    task: tokio::task::JoinHandle<()>,
    latest: Arc<AtomicU64>,
}

impl Drop for Polling {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Polling {
    /// The longest that a request of our own took to be seen, in the whole run.
    pub(crate) fn longest_transit(&self) -> Duration {
        Duration::from_nanos(self.latest.load(Ordering::Relaxed))
    }
}

impl Poller {
    pub(crate) fn start(mut self) -> Polling {
        let latest: Arc<AtomicU64> = Arc::default();
        let longest = latest.clone();
        let task = tokio::spawn(async move {
            let mut probe = Probe::connect(self.world.probe.address).await.ok();
            let mut known = Vec::new();
            loop {
                self.ask(&mut known).await;
                if let Some(probe) = &mut probe
                    && let Ok(took) = probe.once().await
                {
                    longest.fetch_max(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
                }
                pass(millis(self.dice.below(2 * PACE_MS))).await;
            }
        });
        Polling { task, latest }
    }

    async fn ask(&mut self, known: &mut Vec<String>) {
        match self.dice.below(8) {
            0..=2 => self.readiness().await,
            3 => self.queue().await,
            4 => self.list(known).await,
            5 => self.event(known).await,
            _ => self.delivery(known).await,
        }
    }

    /// What is answered with 200.
    async fn get(&self, path: &str) -> Option<Value> {
        let answer = self.client.send(Method::GET, path, None, Bytes::new()).await.ok()?;
        let mut json = answer.json;
        (answer.status == 200).then(|| json.get_mut("data").map(Value::take).unwrap_or(json))
    }

    async fn readiness(&self) {
        if let Some(status) = self.client.status("/readyz").await {
            self.history.poll("/readyz", status, &Value::Null);
        }
    }

    async fn queue(&mut self) {
        let Some(any) = self.dice.any(&self.world.destinations) else { return };
        let path = format!("/v1/destinations/{}", any.id);
        if let Some(seen) = self.get(&path).await {
            self.history.poll(&path, 200, &seen);
        }
    }

    /// A page of deliveries, of all or of one destination: each as if it had been asked for alone.
    async fn list(&mut self, known: &mut Vec<String>) {
        let one = self.dice.any(&self.world.destinations).filter(|_| self.dice.one_in(2));
        let of = one.map(|one| format!("&destination_id={}", one.id)).unwrap_or_default();
        let Some(page) = self.get(&format!("/v1/deliveries?limit={PAGE}{of}")).await else { return };
        page["items"].as_array().into_iter().flatten().for_each(|item| self.note(known, item));
    }

    /// The deliveries of an event.
    async fn event(&mut self, known: &mut Vec<String>) {
        let Some(id) = self.ledger.any_id(&mut self.dice) else { return };
        let Some(event) = self.get(&format!("/v1/outbound-events/{id}")).await else { return };
        event["deliveries"].as_array().into_iter().flatten().for_each(|item| self.note(known, item));
    }

    /// One that was seen before.
    async fn delivery(&mut self, known: &mut Vec<String>) {
        let Some(id) = self.dice.any(known).cloned() else { return };
        if let Some(seen) = self.get(&format!("/v1/deliveries/{id}")).await {
            self.note(known, &seen);
        }
    }

    fn note(&mut self, known: &mut Vec<String>, delivery: &Value) {
        let Some(id) = delivery["id"].as_str() else { return };
        self.history.poll(&format!("/v1/deliveries/{id}"), 200, delivery);
        if known.iter().any(|other| other == id) {
            return;
        }
        if known.len() < REMEMBERED {
            known.push(id.to_owned());
        } else if let Ok(place) = usize::try_from(self.dice.below(REMEMBERED as u64)) {
            id.clone_into(&mut known[place]);
        }
    }
}
