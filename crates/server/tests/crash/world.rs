//! The destinations: one for each bound that has to hold, each with a receiver of its own.

use std::time::Duration;

use jiff::{SignedDuration, tz::TimeZone};
use serde_json::{Value, json};

use crate::kit::{Received, Receiver, Reply, Server, millis, now, wall};
use crate::producer::Ledger;

/// `limited` may get so many in a second …
pub(crate) const RATE: u64 = 10;
/// … and so many at once.
pub(crate) const BURST: u64 = 10;
/// … and so many at a time.
pub(crate) const LIMITED: usize = 5;
/// `narrow` may get so many at a time.
pub(crate) const NARROW: usize = 3;

/// A destination of the test.
pub(crate) struct Destination {
    pub(crate) name: &'static str,
    pub(crate) id: String,
    /// What its event types begin with.
    prefixes: &'static [&'static str],
    pub(crate) receiver: Receiver,
}

impl Destination {
    /// Whether it gets events of this type.
    pub(crate) fn gets(&self, event_type: &str) -> bool {
        self.prefixes.iter().any(|prefix| event_type.split('.').next() == Some(prefix))
    }
}

/// All destinations.
pub(crate) struct World {
    pub(crate) destinations: Vec<Destination>,
}

impl World {
    pub(crate) async fn build(server: &Server) -> Self {
        let retries = json!({"max_attempts": 5, "delays_seconds": [1], "jitter": "none"});
        let limit = json!({"max": RATE, "per": "second", "burst_capacity": BURST});
        let specs: [(&'static str, &'static [&'static str], Value); 8] = [
            ("plain", &["plain", "shared"], json!({"max_concurrency": 20})),
            ("second", &["shared"], json!({})),
            ("limited", &["limited"], json!({"rate_limit": limit, "max_concurrency": LIMITED})),
            ("narrow", &["narrow"], json!({"max_concurrency": NARROW})),
            ("fifo", &["fifo"], json!({"ordering": "fifo"})),
            ("keyed", &["keyed"], json!({"ordering": "key"})),
            ("flaky", &["flaky"], json!({"retry_policy": retries, "circuit_breaker": {"enabled": false}})),
            ("quiet", &["quiet"], json!({"delivery_schedule": quiet_now()})),
        ];
        let mut destinations = Vec::new();
        for (name, prefixes, mut body) in specs {
            let receiver = Receiver::start(move |request| behaviour(name, request)).await;
            body["name"] = json!(name);
            body["url"] = json!(receiver.url);
            body["event_types"] = prefixes.iter().map(|prefix| format!("{prefix}.*")).collect();
            let made = server.post("/v1/destinations", body).await.expect(201);
            let id = made["id"].as_str().expect("an id").to_owned();
            destinations.push(Destination { name, id, prefixes, receiver });
        }
        Self { destinations }
    }

    pub(crate) fn named(&self, name: &str) -> &Destination {
        self.destinations.iter().find(|destination| destination.name == name).expect("one of ours")
    }

    /// Waits until the receivers have seen the last of a server that was killed, so that each life has its own requests.
    pub(crate) async fn drained(&self) {
        for destination in &self.destinations {
            destination.receiver.drained().await;
        }
    }

    /// Waits until nothing waits and nothing is in flight.
    pub(crate) async fn come_to_rest(&self, server: &Server, bound: Duration) {
        let began = now();
        for destination in &self.destinations {
            loop {
                let seen = server.get(&format!("/v1/destinations/{}", destination.id)).await.expect(200);
                if seen["queued_events"] == 0 && seen["inflight"] == 0 {
                    break;
                }
                assert!(began.elapsed() < bound, "after {bound:?} something is still open: {seen}");
                tokio::time::sleep(millis(20)).await;
            }
        }
    }

    /// The destination in its quiet hours got what bypasses them and nothing else, and the API says why the rest waits.
    pub(crate) async fn check_quiet_hours_hold(&self, server: &Server, ledger: &Ledger) {
        let quiet = self.named("quiet");
        for request in quiet.receiver.received() {
            assert_eq!(request.header("tidegate-event-type"), Some("quiet.urgent"), "sent in quiet hours");
        }
        let held = ledger.published().accepted("quiet.calm").count();
        assert!(held > 0, "nothing was published that has to wait");
        let path = format!("/v1/deliveries?destination_id={}&event_type=quiet.calm&limit=1", quiet.id);
        let listed = server.get(&path).await.expect(200);
        assert_eq!(listed["items"][0]["status"], "queued", "{listed}");
        assert_eq!(listed["items"][0]["hold_reason"], "quiet_hours", "{listed}");
    }

    /// Lets what waited go.
    pub(crate) async fn end_quiet_hours(&self, server: &Server) {
        let path = format!("/v1/destinations/{}", self.named("quiet").id);
        server.patch(&path, json!({"delivery_schedule": null})).await.expect(200);
    }
}

fn behaviour(name: &str, request: &Received) -> Reply {
    match name {
        "narrow" => Reply::status(200).after(millis(30)),
        "fifo" | "keyed" => Reply::status(200).after(millis(3)),
        // A third of the events fails at first.
        "flaky" if request.attempt() == 1 && request.body.len().is_multiple_of(3) => Reply::status(500),
        _ => Reply::status(200),
    }
}

/// A window that began two hours ago and goes on for twenty.
fn quiet_now() -> Value {
    let local = |hours| {
        (wall() + SignedDuration::from_hours(hours)).to_zoned(TimeZone::UTC).strftime("%H:%M").to_string()
    };
    json!({"timezone": "UTC", "quiet_start": local(-2), "quiet_end": local(20), "bypass_event_types": ["quiet.urgent"]})
}
