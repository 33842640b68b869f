//! A small good run as histories that a test may break: in real time, with receivers that are up to 5 ms late.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tidegate_checker::{Run, Verdict, judge_all, table};

/// 2026-11-01T06:10:00Z: 01:10 in Chicago, for the first time. The hour comes twice.
pub(crate) const START_MS: i64 = 1_793_513_400_000;
pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
pub(crate) const MILLI: u64 = 1_000_000;

/// What a receiver does with a request.
#[derive(Clone, Copy)]
pub(crate) enum Reply {
    Status(u16),
    RetryAfter(u16, &'static str),
    Hangs,
}

/// One request for an event: when it comes, how long it is open, what is answered.
#[derive(Clone, Copy)]
pub(crate) struct Try {
    pub(crate) at: u64,
    pub(crate) took: u64,
    pub(crate) reply: Reply,
}

pub(crate) const fn answered(at: u64, status: u16) -> Try {
    Try { at, took: 3, reply: Reply::Status(status) }
}

/// An event for one destination.
pub(crate) struct Event {
    pub(crate) to: &'static str,
    pub(crate) kind: &'static str,
    /// Published then, in milliseconds from the start.
    pub(crate) at: u64,
    pub(crate) key: Option<&'static str>,
    pub(crate) idempotency: Option<&'static str>,
    pub(crate) expires_at: Option<i64>,
    pub(crate) tries: Vec<Try>,
    pub(crate) state: &'static str,
}

impl Event {
    /// Delivered at the first try, a moment after it was published.
    pub(crate) fn new(to: &'static str, at: u64) -> Self {
        let tries = vec![answered(at + 6, 200)];
        let (key, idempotency, expires_at) = (None, None, None);
        Self { to, kind: "a", at, key, idempotency, expires_at, tries, state: "delivered" }
    }
    pub(crate) fn tries(mut self, tries: &[Try]) -> Self {
        self.tries = tries.to_vec();
        self
    }
}

/// The histories.
#[derive(Clone, Default)]
pub(crate) struct World {
    pub(crate) world: Value,
    pub(crate) producer: Vec<Value>,
    pub(crate) receiver: Vec<Value>,
    pub(crate) faults: Vec<Value>,
    pub(crate) api: Vec<Value>,
    pub(crate) resources: Vec<Value>,
    events: u64,
    requests: u64,
}

impl World {
    /// No event yet; a node that is up.
    pub(crate) fn new() -> Self {
        let retry = json!({"max_attempts": 8, "delays_seconds": [1], "jitter": "none"});
        let off = json!({"enabled": false});
        let window = json!({"timezone": "America/Chicago", "quiet_start": "01:00", "quiet_end": "02:00",
                            "bypass_event_types": ["quiet.urgent"]});
        let destinations = [
            ("plain", json!({"max_concurrency": 50})),
            ("narrow", json!({"max_concurrency": 2})),
            ("limited", json!({"rate_limit": {"max": 10, "per": "second", "burst_capacity": 2}})),
            ("quiet", json!({"delivery_schedules": [window]})),
            ("fifo", json!({"ordering": "fifo"})),
            ("keyed", json!({"ordering": "key"})),
            ("halting", json!({"ordering": "fifo", "on_exhausted": "halt", "circuit_breaker": off})),
            ("flaky", json!({"retry_policy": retry, "circuit_breaker": off})),
            ("broken", json!({"retry_policy": retry})),
        ];
        let destination = |(name, mut policy): (&str, Value)| {
            policy["event_types"] = json!([format!("{name}.*")]);
            json!({"id": format!("dst_{name}"), "name": name, "policy": policy, "secrets": [SECRET]})
        };
        let world = json!({
            "seed": 1, "jitter_ms": 5, "mono_to_wall_ms": START_MS,
            "destinations": destinations.map(destination).to_vec(),
        });
        let mut built = Self { world, ..Self::default() };
        built.fault(0, "start", None);
        built.fault(1, "ready", None);
        built
    }

    pub(crate) fn fault(&mut self, at: u64, kind: &str, offset_ms: Option<i64>) {
        let detail = json!({"offset_ms": offset_ms});
        self.faults.push(json!({"t": at * MILLI, "kind": kind, "node": "a", "detail": detail}));
    }

    /// Killed then, started again 100 ms later, and soon ready.
    pub(crate) fn crash(&mut self, at: u64) {
        for (after, kind) in [(0, "kill"), (100, "start"), (150, "ready")] {
            self.fault(at + after, kind, None);
        }
    }

    /// Publishes, delivers, and has the API tell it. Returns the event's number.
    pub(crate) fn add(&mut self, event: Event) -> u64 {
        self.events += 1;
        let number = self.events;
        let body = format!("{{\"number\":{number}}}");
        let event_type = format!("{}.{}", event.to, event.kind);
        self.producer.push(json!({
            "kind": "send", "t": event.at * MILLI, "request": number, "endpoint": "/v1/outbound-events",
            "key": event.idempotency, "body_sha256": sha(body.as_bytes()),
            "events": [{"event_type": event_type, "sha256": sha(body.as_bytes()), "ordering_key": event.key,
                        "expires_at_ms": event.expires_at, "deliver_at_ms": null, "destination_ids": null}],
        }));
        let ids = [format!("evt_{number}")];
        let answered = (event.at + 2) * MILLI;
        self.producer
            .push(json!({"kind": "answer", "t": answered, "request": number, "status": 202, "ids": ids}));
        for (attempt, one) in (1..).zip(&event.tries) {
            self.receive(number, &event, attempt, *one, &body);
        }
        self.at_rest(number, &event);
        number
    }

    fn receive(&mut self, number: u64, event: &Event, attempt: u32, one: Try, body: &str) {
        self.requests += 1;
        let wall = START_MS + i64::try_from(one.at).unwrap();
        let (id, stamp) = (format!("evt_{number}"), wall / 1_000);
        self.receiver.push(json!({
            "kind": "request", "t": one.at * MILLI, "n": self.requests, "receiver": event.to, "connection": 1,
            "event_id": id, "delivery_id": format!("dlv_{number}"), "attempt": attempt,
            "event_type": format!("{}.{}", event.to, event.kind), "timestamp": stamp,
            "signature": sign(SECRET, &id, stamp, body), "sha256": sha(body.as_bytes()), "body": body,
            "wall_ms": wall,
        }));
        let (how, status, wait) = match one.reply {
            Reply::Status(status) => ("answered", Some(status), None),
            Reply::RetryAfter(status, wait) => ("answered", Some(status), Some(wait)),
            Reply::Hangs => ("closed", None, None),
        };
        self.receiver.push(json!({
            "kind": "end", "t": (one.at + one.took) * MILLI, "n": self.requests, "how": how, "status": status,
            "retry_after": wait,
        }));
        let outcome = match (one.reply, status) {
            (_, Some(200..=299)) => "success",
            (_, Some(429)) => "rate_limited",
            (_, Some(410)) => "gone",
            (Reply::RetryAfter(..), _) => "unavailable",
            (Reply::Hangs, _) => "timeout",
            _ => "http_error",
        };
        self.api.push(json!({
            "kind": "attempt", "delivery_id": format!("dlv_{number}"), "destination_id": format!("dst_{}", event.to),
            "body": {"number": attempt, "started_at": time(wall - 1), "response_time_ms": one.took, "timeout_ms": 10_000,
                     "outcome": outcome, "status_code": status, "counted": status != Some(429)},
        }));
    }

    fn at_rest(&mut self, number: u64, event: &Event) {
        let last = event.tries.last().map_or(event.at + 3, |one| one.at + one.took);
        let used = event
            .tries
            .iter()
            .filter(|one| !matches!(one.reply, Reply::Status(429) | Reply::RetryAfter(429, _)));
        let max = if matches!(event.to, "flaky" | "broken") { 8 } else { 5 };
        let body = json!({
            "id": format!("dlv_{number}"), "event_id": format!("evt_{number}"), "destination_id": format!("dst_{}", event.to),
            "status": event.state, "attempts_count": event.tries.len(), "attempts_used": used.count(),
            "max_attempts": max, "created_at": time(START_MS + i64::try_from(event.at).unwrap()),
            "expires_at": event.expires_at.map(time),
            "finished_at": time(START_MS + i64::try_from(last).unwrap()), "final_reason": "because",
        });
        self.api.push(json!({"kind": "delivery", "body": body}));
    }

    /// The line of a request, and that of its end.
    pub(crate) fn receipt(&mut self, number: u64, attempt: u32) -> &mut Value {
        let id = format!("evt_{number}");
        let found =
            self.receiver.iter_mut().find(|line| line["event_id"] == *id && line["attempt"] == attempt);
        found.expect("it was added")
    }
    pub(crate) fn end(&mut self, number: u64, attempt: u32) -> &mut Value {
        let n = self.receipt(number, attempt)["n"].clone();
        self.receiver.iter_mut().find(|line| line["kind"] == "end" && line["n"] == n).expect("it was added")
    }
    /// The API's delivery.
    pub(crate) fn delivery(&mut self, number: u64) -> &mut Value {
        let id = format!("dlv_{number}");
        let found = self.api.iter_mut().find(|line| line["kind"] == "delivery" && line["body"]["id"] == *id);
        &mut found.expect("it was added")["body"]
    }
    pub(crate) fn attempt(&mut self, number: u64, attempt: u32) -> &mut Value {
        let id = format!("dlv_{number}");
        let same = |line: &&mut Value| line["delivery_id"] == *id && line["body"]["number"] == attempt;
        &mut self.api.iter_mut().filter(|line| line["kind"] == "attempt").find(same).expect("it was added")["body"]
    }
    /// Moves a request and its end by so many milliseconds, with its stamps.
    pub(crate) fn shift(&mut self, number: u64, attempt: u32, by: i64) {
        let body = format!("{{\"number\":{number}}}");
        let moved = |t: &Value| json!(t.as_u64().unwrap().saturating_add_signed(by * 1_000_000));
        let receipt = self.receipt(number, attempt);
        receipt["t"] = moved(&receipt["t"]);
        let wall = receipt["wall_ms"].as_i64().unwrap() + by;
        receipt["wall_ms"] = json!(wall);
        receipt["timestamp"] = json!(wall / 1_000);
        receipt["signature"] = json!(sign(SECRET, &format!("evt_{number}"), wall / 1_000, &body));
        let end = self.end(number, attempt);
        end["t"] = moved(&end["t"]);
        self.attempt(number, attempt)["started_at"] = json!(time(wall - 1));
    }
    /// The same request once more, so much later.
    pub(crate) fn repeat(&mut self, number: u64, attempt: u32, later: i64) {
        let (receipt, end) = (self.receipt(number, attempt).clone(), self.end(number, attempt).clone());
        self.requests += 1;
        let n = self.requests;
        let moved = |t: &Value| json!(t.as_u64().unwrap().saturating_add_signed(later * 1_000_000));
        let (mut receipt, mut end) = (receipt, end);
        for line in [&mut receipt, &mut end] {
            line["t"] = moved(&line["t"]);
            line["n"] = json!(n);
        }
        let wall = receipt["wall_ms"].as_i64().unwrap() + later;
        receipt["wall_ms"] = json!(wall);
        receipt["timestamp"] = json!(wall / 1_000);
        let body = format!("{{\"number\":{number}}}");
        receipt["signature"] = json!(sign(SECRET, &format!("evt_{number}"), wall / 1_000, &body));
        self.receiver.extend([receipt, end]);
    }

    pub(crate) fn write(&self) -> PathBuf {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory =
            std::env::temp_dir().join(format!("tidegate-planted-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("world.json"), self.world.to_string()).unwrap();
        for (name, lines) in [
            ("producer", &self.producer),
            ("receiver", &self.receiver),
            ("faults", &self.faults),
            ("api", &self.api),
            ("resources", &self.resources),
        ] {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            std::fs::write(directory.join(format!("{name}.jsonl")), text).unwrap();
        }
        directory
    }

    pub(crate) fn verdicts(&self) -> Vec<Verdict> {
        let directory = self.write();
        let run = Run::load(&directory).unwrap();
        std::fs::remove_dir_all(directory).unwrap();
        judge_all(&run)
    }

    /// The promises that are broken, and nothing else, are these.
    #[track_caller]
    pub(crate) fn breaks(&self, expected: &[&str]) {
        let verdicts = self.verdicts();
        let red: Vec<&str> = verdicts.iter().filter(|one| !one.holds()).map(|one| one.name).collect();
        assert_eq!(red, expected, "\n{}", table::render(&verdicts));
    }

    /// How many things a promise was judged by.
    pub(crate) fn judged(&self, name: &str) -> u64 {
        self.verdicts().iter().find(|verdict| verdict.name == name).unwrap().checked
    }
}

pub(crate) fn sign(secret: &str, id: &str, stamp: i64, body: &str) -> String {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(format!("{id}.{stamp}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

pub(crate) fn sha(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn time(ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(ms).unwrap().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}
