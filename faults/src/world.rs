//! The destinations of a run: one for each bound that has to hold, each with a receiver of its own.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::client::Client;
use crate::clock::{millis, nanos, now, pass, secs, wall, wall_ms};
use crate::history::{Book, History};
use crate::receiver::{Asked, Receiver, Reply};

/// What a receiver sees later than it was sent, on a busy machine with two cores.
const JITTER_MS: u64 = 250;

/// Which destinations there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    /// One for each bound.
    Whole,
    /// Few of them, for scenarios that start often.
    Small,
    /// A plain one, and one that takes long to answer.
    Slow,
    /// Without those that fail.
    Steady,
}

impl Cast {
    fn has(self, name: &str) -> bool {
        match self {
            Self::Whole => name != "slow",
            Self::Small => matches!(name, "plain" | "limited" | "fifo" | "flaky"),
            Self::Slow => matches!(name, "plain" | "slow"),
            Self::Steady => !matches!(name, "slow" | "flaky" | "brief"),
        }
    }
}

/// What makes up a destination here.
struct Spec {
    name: &'static str,
    policy: Value,
}

/// A destination of the run. It gets the event types `name.*`; `shared.*` goes to the first two.
pub(crate) struct Destination {
    pub(crate) name: &'static str,
    pub(crate) id: String,
    pub(crate) receiver: Receiver,
    shown: Value,
}

/// All destinations.
pub(crate) struct World {
    pub(crate) destinations: Vec<Destination>,
    history: Arc<History>,
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
        for Spec { name, mut policy } in specs().into_iter().filter(|spec| cast.has(spec.name)) {
            let receiver =
                Receiver::start(name, history, Arc::new(move |asked| behaviour(name, asked))).await?;
            let shared = if matches!(name, "plain" | "second") { vec!["shared.*"] } else { vec![] };
            let own = format!("{name}.*");
            policy["name"] = json!(name);
            policy["url"] = json!(format!("http://{}/{name}", receiver.address));
            policy["event_types"] = [&[&*own][..], &shared].concat().into();
            let shown = client.must(Method::POST, "/v1/destinations", &policy).await?;
            let id = shown["id"].as_str().context("a destination has an id")?.to_owned();
            destinations.push(Destination { name, id, receiver, shown });
        }
        let world = Self { destinations, history: history.clone(), seed };
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
            "jitter_ms": JITTER_MS,
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

    /// Changes a destination, and notes that.
    pub(crate) async fn patch(&self, client: &Client, name: &str, patch: &Value) -> Result<()> {
        let Some(destination) = self.find(name) else { return Ok(()) };
        let sent = nanos();
        client.must(Method::PATCH, &format!("/v1/destinations/{}", destination.id), patch).await?;
        self.history.write(
            Book::Producer,
            &json!({
                "kind": "change", "t": sent, "answered": nanos(), "destination": destination.id,
                "patch": patch, "status": 200,
            }),
        );
        Ok(())
    }

    /// Waits until nothing waits and nothing is in flight.
    pub(crate) async fn come_to_rest(&self, client: &Client, bound: Duration) -> Result<()> {
        let began = now();
        for destination in &self.destinations {
            loop {
                let seen = client.get(&format!("/v1/destinations/{}", destination.id)).await?;
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

fn specs() -> Vec<Spec> {
    let retries = json!({"max_attempts": 6, "delays_seconds": [1], "jitter": "none"});
    let calm = json!({"enabled": false});
    let spec = |name, policy| Spec { name, policy };
    vec![
        spec("plain", json!({"max_concurrency": 20})),
        spec("second", json!({"max_concurrency": 64})),
        spec(
            "limited",
            json!({"rate_limit": {"max": 20, "per": "second", "burst_capacity": 10}, "max_concurrency": 5}),
        ),
        spec("narrow", json!({"max_concurrency": 3})),
        spec("fifo", json!({"ordering": "fifo"})),
        spec("keyed", json!({"ordering": "key"})),
        spec("flaky", json!({"retry_policy": retries, "circuit_breaker": calm})),
        spec("quiet", json!({"delivery_schedule": quiet_now()})),
        // Longer than a server may take to leave, and shorter than a test may take.
        spec("slow", json!({"timeout_seconds": 30})),
        // What is sent there fails, and its time to live is over before its attempts are.
        spec(
            "brief",
            json!({"circuit_breaker": calm, "retry_policy": {"max_attempts": 20, "delays_seconds": [1], "jitter": "none"}}),
        ),
    ]
}

fn behaviour(name: &str, asked: Asked<'_>) -> Reply {
    match name {
        "slow" => Reply::status(200).after(secs(5)),
        "narrow" => Reply::status(200).after(millis(20)),
        "fifo" | "keyed" => Reply::status(200).after(millis(3)),
        // A third of the events fails at first.
        "flaky" if asked.attempt <= 2 && asked.body.len().is_multiple_of(3) => Reply::status(500),
        "brief" if asked.body.len().is_multiple_of(2) => Reply::status(503),
        _ => Reply::status(200),
    }
}

/// A window that began two hours ago and goes on for twenty.
fn quiet_now() -> Value {
    let local = |hours| {
        (wall() + SignedDuration::from_hours(hours)).to_zoned(TimeZone::UTC).strftime("%H:%M").to_string()
    };
    json!({
        "timezone": "UTC", "quiet_start": local(-2), "quiet_end": local(20), "bypass_event_types": ["quiet.urgent"],
    })
}
