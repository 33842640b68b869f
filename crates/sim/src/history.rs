//! A simulated run as histories: what its publishers, receivers and faults would have written down, in virtual time. The
//! format is that of real runs, so that one checker judges both; its description is in the checker's documentation.
//!
//! In a simulated world every request reaches its receiver, also one whose connection is refused: it is written as one that
//! came and ended without an answer.

mod document;
mod files;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;

use serde_json::{Value, json};
use tidegate_core::delivery::{Delivery, OwnTime, Status};
use tidegate_core::id::DeliveryId;
use tidegate_core::outcome::Outcome;
use tidegate_core::time::{Millis, Now, Timestamp};
use tidegate_engine::dispatcher::{LaneId, Sending};

use crate::run::{Commit, Note, Observer, Setup, View};
use files::Files;

/// The one node that there is.
const NODE: &str = "a";

/// Writes a run down.
pub struct Recorder {
    files: Files,
    /// The true time at which the run began: the wall clock's, until somebody sets it.
    start: Timestamp,
    /// How long a result is on its way to the store.
    commit: Millis,
    requests: u64,
    open: HashMap<(DeliveryId, u32), Open>,
    /// Answered, and not in the store.
    answered: HashMap<(DeliveryId, u32), Ended>,
    deliveries: BTreeMap<u64, Stored>,
}

/// A request that is out.
struct Open {
    number: u64,
    started: Now,
    timeout: Millis,
}

/// An attempt that is over.
struct Ended {
    outcome: Outcome,
    started: Now,
    timeout: Millis,
    took: Millis,
}

/// A delivery as the store has it.
struct Stored {
    lane: LaneId,
    delivery: Delivery,
    finished_at: Option<Timestamp>,
    attempts: Vec<Value>,
}

impl Recorder {
    /// Writes the run of `setup` into files in `directory`, which is made if need be.
    pub fn create(directory: &Path, setup: &Setup) -> io::Result<Self> {
        let mut files = Files::create(directory)?;
        document::world(setup, directory)?;
        for kind in ["start", "ready"] {
            files.faults.write(&json!({"t": 0, "kind": kind, "node": NODE}));
        }
        let commit = match setup.commit {
            Commit::Instant => Millis::ZERO,
            Commit::Grouped(latency) => latency,
        };
        let (open, answered) = (HashMap::new(), HashMap::new());
        let deliveries = BTreeMap::new();
        Ok(Self { files, start: setup.start, commit, requests: 0, open, answered, deliveries })
    }

    /// The run is over: writes what the store says at the end, and whatever could not be written is told.
    pub fn finish(mut self) -> io::Result<()> {
        for stored in self.deliveries.values() {
            self.files.api.write(&json!({"kind": "delivery", "body": stored.document()}));
            for attempt in &stored.attempts {
                self.files.api.write(attempt);
            }
        }
        self.files.finish()
    }

    fn accepted(&mut self, now: Now, lane: LaneId, delivery: &Delivery) {
        let (t, sequence) = (nanos(now), delivery.place.sequence);
        let scheduled = match delivery.status {
            Status::RetryScheduled { at, reason: OwnTime::Scheduled } => Some(at.as_millis()),
            _ => None,
        };
        let event = json!({
            "event_type": delivery.event_type.as_str(),
            "sha256": digest(sequence),
            "ordering_key": delivery.ordering_key.as_deref(),
            "expires_at_ms": delivery.expires_at.map(Timestamp::as_millis),
            "deliver_at_ms": scheduled,
            "priority": delivery.priority.get(),
            "destination_ids": [document::id(lane.index())],
        });
        self.files.producer.write(&json!({
            "kind": "send", "t": t, "request": sequence, "endpoint": "/v1/outbound-events", "key": null,
            "body_sha256": digest(sequence), "events": [event],
        }));
        self.files.producer.write(&json!({
            "kind": "answer", "t": t, "request": sequence, "status": 202, "ids": [event_id(sequence)],
        }));
        let finished_at = delivery.status.is_final().then_some(now.wall);
        let stored = Stored { lane, delivery: delivery.clone(), finished_at, attempts: Vec::new() };
        self.deliveries.insert(sequence, stored);
    }

    fn sent(&mut self, now: Now, lane: LaneId, sending: &Sending) {
        self.requests += 1;
        let (sequence, number) = (sending.place.sequence, self.requests);
        self.files.receiver.write(&json!({
            "kind": "request", "t": nanos(now), "n": number, "receiver": document::name(lane.index()),
            "connection": number, "event_id": event_id(sequence), "delivery_id": sending.delivery.to_string(),
            "attempt": sending.number, "event_type": sending.event_type.as_str(),
            "timestamp": now.wall.as_millis().div_euclid(1_000), "signature": "", "sha256": digest(sequence),
            "wall_ms": self.start.as_millis() + now.mono.as_millis(),
        }));
        let open = Open { number, started: now, timeout: sending.attempt.timeout };
        self.open.insert((sending.delivery, sending.number), open);
    }

    fn answered(&mut self, now: Now, sending: &Sending, outcome: Outcome) {
        let attempt = (sending.delivery, sending.number);
        let Some(open) = self.open.remove(&attempt) else { return };
        self.end(now, &open, Some(outcome));
        let took = now.mono.since(open.started.mono);
        let ended = Ended { outcome, started: open.started, timeout: open.timeout, took };
        self.answered.insert(attempt, ended);
    }

    /// A request is over at its receiver.
    fn end(&mut self, now: Now, open: &Open, outcome: Option<Outcome>) {
        let status = outcome.and_then(|outcome| outcome.status());
        let wait = match outcome {
            Some(Outcome::RateLimited { retry_after }) => retry_after,
            Some(Outcome::Unavailable { retry_after }) => Some(retry_after),
            _ => None,
        };
        self.files.receiver.write(&json!({
            "kind": "end", "t": nanos(now), "n": open.number,
            "how": if status.is_some() { "answered" } else { "closed" }, "status": status,
            "retry_after": wait.map(|wait| (wait.get() / 1_000).to_string()),
        }));
    }

    fn settled(&mut self, now: Now, delivery: &Delivery) {
        let attempt = (delivery.id, delivery.attempts_made);
        let called_off = self.open.remove(&attempt).map(|open| {
            self.end(now, &open, None);
            let took = now.mono.since(open.started.mono);
            Ended { outcome: Outcome::Cancelled, started: open.started, timeout: open.timeout, took }
        });
        let ended = self.answered.remove(&attempt).or(called_off);
        let Some(stored) = self.deliveries.get_mut(&delivery.place.sequence) else { return };
        if delivery.status.is_final() && stored.finished_at.is_none() {
            // It was decided before it was stored.
            stored.finished_at = Some(now.wall - self.commit);
        }
        stored.delivery = delivery.clone();
        if let Some(ended) = ended {
            stored.attempts.push(ended.document(delivery, &document::id(stored.lane.index())));
        }
        self.files.api.write(&json!({
            "kind": "poll", "t": nanos(now), "path": format!("/v1/deliveries/{}", delivery.id), "status": 200,
            "body": {"status": delivery.status.word(), "attempts_count": delivery.attempts_made},
        }));
    }

    fn crashed(&mut self, now: Now) {
        self.files.faults.write(&json!({"t": nanos(now), "kind": "kill", "node": NODE}));
        for open in std::mem::take(&mut self.open).into_values() {
            self.end(now, &open, None);
        }
        self.answered.clear();
    }
}

impl Stored {
    fn document(&self) -> Value {
        let Delivery { status, place, .. } = &self.delivery;
        let reason = match status {
            Status::Final(end) => Some(end.to_string()),
            Status::Queued | Status::RetryScheduled { .. } | Status::Delivering => None,
        };
        let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
        json!({
            "id": self.delivery.id.to_string(),
            "event_id": event_id(place.sequence),
            "event_type": self.delivery.event_type.as_str(),
            "destination_id": document::id(self.lane.index()),
            "status": status.word(),
            "attempts_count": self.delivery.attempts_made,
            "attempts_used": self.delivery.attempts_used,
            "max_attempts": self.delivery.plan.max_attempts(),
            "created_at": self.delivery.accepted_at.to_string(),
            "expires_at": time(self.delivery.expires_at),
            "finished_at": time(self.finished_at),
            "final_reason": reason,
        })
    }
}

impl Ended {
    fn document(&self, delivery: &Delivery, destination: &str) -> Value {
        let body = json!({
            "number": delivery.attempts_made,
            "started_at": self.started.wall.to_string(),
            "response_time_ms": self.took.get(),
            "timeout_ms": self.timeout.get(),
            "outcome": self.outcome.word(),
            "status_code": self.outcome.status(),
            "counted": self.outcome.uses_attempt(),
        });
        json!({"kind": "attempt", "delivery_id": delivery.id.to_string(), "destination_id": destination, "body": body})
    }
}

impl Observer for Recorder {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        let now = view.now;
        match note {
            Note::Accepted(lane, delivery) => self.accepted(now, *lane, delivery),
            Note::Sent(lane, sending) => self.sent(now, *lane, sending),
            Note::Answered(_, sending, answer) => self.answered(now, sending, answer.report.outcome),
            Note::Settled(_, delivery) => self.settled(now, delivery),
            Note::Crashed => self.crashed(now),
            Note::Restarted => {
                for kind in ["start", "ready"] {
                    self.files.faults.write(&json!({"t": nanos(now), "kind": kind, "node": NODE}));
                }
            }
            Note::ClockSet => {
                let offset = now.wall.as_millis() - self.start.as_millis() - now.mono.as_millis();
                self.files.faults.write(&json!({
                    "t": nanos(now), "kind": "clock", "node": NODE, "detail": {"offset_ms": offset},
                }));
            }
            _ => {}
        }
    }
}

fn nanos(now: Now) -> u64 {
    now.mono.as_millis().unsigned_abs().saturating_mul(1_000_000)
}

fn event_id(sequence: u64) -> String {
    format!("evt_{sequence:026}")
}

/// What stands for the hash of a payload: payloads are not simulated, but each event has its own.
fn digest(sequence: u64) -> String {
    format!("{sequence:032x}{sequence:032x}")
}
