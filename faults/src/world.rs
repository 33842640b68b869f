//! The destinations of a run: one for each bound that has to hold, each with a receiver of its own.

mod cast;
mod script;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};

use crate::client::Client;
use crate::clock::{millis, nanos, now, pass, secs, wall_ms};
use crate::history::{Book, History};
use crate::receiver::{Receiver, Reply};
use crate::transit;

pub(crate) use cast::Cast;
use cast::Spec;

/// A change is answered within this time, with all that is done to the server meanwhile.
const LONGEST_CHANGE: Duration = secs(600);

/// What is changed of a destination.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'a> {
    Patch(&'a Value),
    Pause,
    Resume,
    Rotate(&'a Value),
}

impl Change<'_> {
    /// The checker's word for it; none: a PATCH.
    const fn action(self) -> Option<&'static str> {
        match self {
            Self::Patch(_) => None,
            Self::Pause => Some("pause"),
            Self::Resume => Some("resume"),
            Self::Rotate(_) => Some("rotate"),
        }
    }
}

/// A destination of the run. It gets the event types `name.*`; `shared.*` goes to the first two, `twins.*` to
/// the two that are alike.
pub(crate) struct Destination {
    pub(crate) name: &'static str,
    pub(crate) id: String,
    pub(crate) receiver: Receiver,
    shown: Value,
}

/// All destinations.
pub(crate) struct World {
    pub(crate) destinations: Vec<Destination>,
    /// A receiver of ours alone, to measure with.
    pub(crate) probe: Receiver,
    /// How late receivers may be to see a request.
    pub(crate) jitter: Duration,
    history: Arc<History>,
    healed: script::Healed,
    seed: u64,
}

impl World {
    /// Makes the destinations through the API.
    pub(crate) async fn build(
        client: &Client,
        history: &Arc<History>,
        cast: Cast,
        seed: u64,
    ) -> Result<Self> {
        let mut destinations = Vec::new();
        let healed = script::Healed::default();
        for Spec { name, mut policy } in cast::specs().into_iter().filter(|spec| cast.has(spec.name)) {
            let receiver = Receiver::start(name, history, script::behaviour(name, &healed)).await?;
            let shared = match name {
                "plain" | "second" => vec!["shared.*"],
                "left" | "right" => vec!["twins.*"],
                _ => vec![],
            };
            let own = format!("{name}.*");
            policy["name"] = json!(name);
            policy["url"] = json!(format!("http://{}/{name}", receiver.address));
            policy["event_types"] = [&[&*own][..], &shared].concat().into();
            let shown = client.must(Method::POST, "/v1/destinations", &policy).await?;
            let id = shown["id"].as_str().context("a destination has an id")?.to_owned();
            destinations.push(Destination { name, id, receiver, shown });
        }
        let probe = Receiver::start("probe", history, Arc::new(|_| Reply::status(200))).await?;
        let jitter = transit::measure(probe.address).await?;
        let world = Self { destinations, probe, jitter, history: history.clone(), healed, seed };
        world.write()?;
        Ok(world)
    }

    /// Writes `world.json`.
    fn write(&self) -> Result<()> {
        let offset = wall_ms() - i64::try_from(nanos() / 1_000_000)?;
        let destinations: Vec<Value> = self
            .destinations
            .iter()
            .map(|one| {
                let mut policy = one.shown.clone();
                let secret = policy.as_object_mut().and_then(|policy| policy.remove("signing_secret"));
                json!({"id": one.id, "name": one.name, "policy": policy, "secrets": [secret]})
            })
            .collect();
        self.history.world(&json!({
            "seed": self.seed,
            "jitter_ms": u64::try_from(self.jitter.as_millis())?,
            "mono_to_wall_ms": offset,
            "destinations": destinations,
        }))
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Destination> {
        self.destinations.iter().find(|destination| destination.name == name)
    }

    /// Waits until the receivers have seen the last of a server that is gone.
    pub(crate) async fn drained(&self) -> Result<()> {
        for destination in &self.destinations {
            destination.receiver.drained().await?;
        }
        Ok(())
    }

    /// Requests that came to all receivers.
    pub(crate) fn requests(&self) -> u64 {
        self.destinations.iter().map(|destination| destination.receiver.requests()).sum()
    }

    /// From now on those that refuse on purpose answer well.
    pub(crate) fn heal(&self) {
        self.healed.store(true, Ordering::Relaxed);
    }

    /// Changes a destination, and notes that.
    pub(crate) async fn patch(&self, client: &Client, name: &str, patch: &Value) -> Result<()> {
        self.change(client, name, Change::Patch(patch)).await
    }

    /// The same for any change. What is not answered is asked for again: it may or may not have come through, and either may
    /// be in force until it has.
    pub(crate) async fn change(&self, client: &Client, name: &str, change: Change<'_>) -> Result<()> {
        let Some(destination) = self.find(name) else { return Ok(()) };
        let path = format!("/v1/destinations/{}", destination.id);
        let (method, path, body) = match change {
            Change::Patch(patch) => (Method::PATCH, path, Some(patch)),
            Change::Pause => (Method::POST, format!("{path}/pause"), None),
            Change::Resume => (Method::POST, format!("{path}/resume"), None),
            Change::Rotate(secret) => (Method::POST, format!("{path}/rotate-secret"), Some(secret)),
        };
        let (asked, began) = (nanos(), now());
        let status = loop {
            let bytes = body.map(Value::to_string).unwrap_or_default().into();
            match client.send(method.clone(), &path, None, bytes).await {
                Ok(answer) if answer.status < 500 => {
                    ensure!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.json);
                    break answer.status;
                }
                _ => ensure!(began.elapsed() < LONGEST_CHANGE, "{method} {path} is not answered"),
            }
            pass(millis(30)).await;
        };
        self.history.write(
            Book::Producer,
            &json!({
                "kind": "change", "t": asked, "answered": nanos(), "destination": destination.id,
                "patch": body.cloned().unwrap_or_else(|| json!({})), "action": change.action(), "status": status,
            }),
        );
        Ok(())
    }

    /// How many wait for a destination.
    pub(crate) async fn waiting(&self, client: &Client, name: &str) -> Result<u64> {
        let destination = self.find(name).with_context(|| format!("there is no {name}"))?;
        let seen = client.get(&format!("/v1/destinations/{}", destination.id)).await?;
        seen["queued_events"].as_u64().context("a destination tells how many wait")
    }

    /// Waits until nothing waits and nothing is in flight.
    pub(crate) async fn come_to_rest(&self, client: &Client, bound: Duration) -> Result<()> {
        let began = now();
        for destination in &self.destinations {
            loop {
                let path = format!("/v1/destinations/{}", destination.id);
                let seen = client.get(&path).await?;
                self.history.poll(&path, 200, &seen);
                if seen["queued_events"] == 0 && seen["inflight"] == 0 {
                    break;
                }
                ensure!(
                    began.elapsed() < bound,
                    "after {bound:?} {} still has {} waiting and {} in flight: {}",
                    destination.name,
                    seen["queued_events"],
                    seen["inflight"],
                    seen["holds"]
                );
                pass(millis(50)).await;
            }
        }
        Ok(())
    }
}
