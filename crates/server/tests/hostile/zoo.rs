//! All animals as destinations of one server.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use super::catalogue::{self, Animal, Expect, Wire};
use super::kit::{Client, Server, now, secs};
use super::process;
use super::tls::{Authorities, Certificate};
use super::wire::{Port, Under};

/// How long an attempt may take, in seconds.
const TIMEOUT: u64 = 1;
/// A machine that is busy with other things may come so much later, in milliseconds.
const SLACK: i64 = 3_000;

/// One zoo at a time: what they do to the machine would make them late.
static TURN: Mutex<()> = Mutex::const_new(());

pub(crate) struct Zoo {
    pub(crate) server: Server,
    _turn: MutexGuard<'static, ()>,
    cages: Vec<(Animal, Port)>,
}

impl Zoo {
    pub(crate) async fn open() -> Self {
        let turn = TURN.lock().await;
        let authorities = Authorities::new();
        let trusted = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("zoo-{}.pem", std::process::id()));
        std::fs::write(&trusted, authorities.pem()).expect("the build's directory is ours");
        let server = Server::start(&["--extra-ca-file", &trusted.display().to_string()]).await;
        let _ = std::fs::remove_file(trusted);
        let mut cages = Vec::new();
        for animal in [catalogue::http1(), super::http2::all()].concat() {
            let under = match animal.wire {
                Wire::Full => {
                    cages.push((animal, Port::full()));
                    continue;
                }
                Wire::Http | Wire::NoTls => Under::Tcp,
                Wire::Https(certificate) => Under::Tls(authorities.acceptor(certificate, "http/1.1")),
                Wire::Http2 => Under::Http2(authorities.acceptor(Certificate::Good, "h2")),
            };
            let port = Port::open(under, animal.script.clone()).await;
            cages.push((animal, port));
        }
        Self { server, _turn: turn, cages }
    }

    /// Each of them as a destination that is tried once.
    pub(crate) async fn each(&self) {
        for index in self.animals() {
            let once = json!({
                "timeout_seconds": TIMEOUT,
                "retry_policy": {"max_attempts": 1},
                "circuit_breaker": {"enabled": false},
            });
            self.admit(index, id(index), &once).await;
        }
    }

    /// So many destinations, each of another kind as far as there are kinds, with these policies.
    pub(crate) async fn crowd(&self, count: usize, policies: &Value) -> Vec<String> {
        let ids: Vec<_> = (0..count).map(id).collect();
        for (number, id) in ids.iter().enumerate() {
            self.admit(number % self.cages.len(), id.clone(), policies).await;
        }
        ids
    }

    async fn admit(&self, index: usize, id: String, policies: &Value) {
        let (animal, port) = &self.cages[index];
        let scheme = if matches!(animal.wire, Wire::Http | Wire::Full) { "http" } else { "https" };
        let mut destination = json!({
            "name": animal.name,
            "url": format!("{scheme}://127.0.0.1:{}/{id}", port.number),
            "external_id": id,
            "event_types": [],
        });
        for (field, value) in policies.as_object().into_iter().flatten() {
            destination[field] = value.clone();
        }
        self.server.post("/v1/destinations", destination).await.expect(201);
    }

    pub(crate) fn animals(&self) -> impl Iterator<Item = usize> {
        0..self.cages.len()
    }

    /// So many events for each of them.
    pub(crate) async fn publish(&self, count: usize) {
        for (large, payload) in [(false, "small".to_owned()), (true, "large".repeat(120_000))] {
            let ids = self.cages.iter().enumerate().filter(|(_, (animal, _))| animal.large == large);
            let ids: Vec<_> = ids.map(|(index, _)| id(index)).collect();
            for _ in 0..count {
                let event = json!({"event_type": "zoo.event", "payload": payload, "destination_ids": ids});
                self.server.post("/v1/outbound-events", event).await.expect(202);
            }
        }
    }

    /// What is not as it must be with one animal, once its attempts are over.
    pub(crate) async fn check(&self, index: usize, events: usize) -> Vec<String> {
        let (animal, port) = &self.cages[index];
        let wanted = match animal.expect {
            Expect::Throttled(1) => 2,
            Expect::Throttled(_) | Expect::Unavailable(_) => 1,
            _ => events,
        };
        let mut attempts = self.attempts(index, wanted).await;
        let requests = port.requests();
        if requests > attempts.len() {
            // One that is asked again and again may have had a request just now.
            attempts = self.attempts(index, requests).await;
        }
        let mut faults = Vec::new();
        let mut fault = |what: String| faults.push(format!("{}: {what}", animal.name));
        if attempts.len() < wanted {
            fault(format!("{} attempts", attempts.len()));
        }
        for attempt in &attempts {
            if !fits(animal.expect, attempt) {
                fault(format!("expected {:?}, got {}", animal.expect, shown(attempt)));
            }
            let took = attempt["response_time_ms"].as_i64().unwrap_or(i64::MAX);
            let due = if animal.expect == Expect::Timeout { 1_000 } else { 0 };
            if !(due..1_000 + SLACK).contains(&took) {
                fault(format!("took {took} ms"));
            }
            let kept = attempt["response_body"].as_str().unwrap_or_default().len();
            if kept > 4 * 1_024 * 3 {
                fault(format!("{kept} bytes of its body are kept"));
            }
        }
        if requests > attempts.len() {
            fault(format!("{requests} requests for {} attempts", attempts.len()));
        }
        if animal.alone && port.most_on_one_connection() > 1 {
            fault("a connection that is not to be trusted was used again".to_owned());
        }
        faults.extend(self.hold_fault(index, &attempts).await);
        faults
    }

    /// The newest last. Waits for as many as there should be.
    async fn attempts(&self, index: usize, wanted: usize) -> Vec<Value> {
        let path = format!("/v1/destinations/{}/attempts?limit=200", id(index));
        let (began, bound) = (now(), secs(30));
        loop {
            let mut list = self.server.get(&path).await.expect(200);
            let mut items = list["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
            if items.len() >= wanted || began.elapsed() > bound {
                items.reverse();
                return items;
            }
            tokio::time::sleep(super::millis(20)).await;
        }
    }

    async fn hold_fault(&self, index: usize, attempts: &[Value]) -> Option<String> {
        let (animal, _) = &self.cages[index];
        let shown = self.server.get(&format!("/v1/destinations/{}", id(index))).await.expect(200);
        let status = shown["status"].as_str().unwrap_or_default();
        let (word, seconds) = match animal.expect {
            Expect::Throttled(1) => {
                let gap = at(&attempts.get(1)?["started_at"]) - at(&attempts.first()?["started_at"]);
                let kept = (1_000..5_000 + SLACK).contains(&gap);
                return (!kept).then(|| format!("{}: the probe came {gap} ms later", animal.name));
            }
            Expect::Throttled(seconds) => ("throttled", seconds),
            Expect::Unavailable(seconds) => ("unavailable", seconds),
            Expect::Gone if status == "disabled" => return None,
            Expect::Gone => return Some(format!("{}: it is {status}", animal.name)),
            _ if status == "active" => return None,
            _ => return Some(format!("{}: it is {status}", animal.name)),
        };
        let until = at(&shown["holds"][0]["until"]);
        let from = at(&attempts.first()?["started_at"]);
        let waits = until - from;
        let holds = status == word && (seconds * 1_000..=seconds * 1_000 + SLACK).contains(&waits);
        (!holds).then(|| format!("{}: it is {status} for {waits} ms, not {seconds} s", animal.name))
    }

    /// Those whose attempts are over and who hold a slot all the same.
    pub(crate) async fn busy(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (index, (animal, _)) in self.cages.iter().enumerate() {
            if matches!(animal.expect, Expect::Throttled(_) | Expect::Unavailable(_)) {
                continue; // it may be asked again at any time
            }
            let shown = self.server.get(&format!("/v1/destinations/{}", id(index))).await.expect(200);
            if shown["inflight"] != 0 {
                faults.push(format!("{}: {} in flight", animal.name, shown["inflight"]));
            }
        }
        faults
    }

    /// Connections that should be closed and are not. Those to whoever behaves may stay for a while.
    pub(crate) async fn leaks(&self) -> Vec<String> {
        let pid = self.server.pid();
        let may_stay = |animal: &Animal| {
            if animal.expect == Expect::Throttled(1) {
                return true;
            }
            let behaves = animal.name.ends_with("as it should be") || animal.name.starts_with("HTTP/2");
            behaves
                && matches!(animal.expect, Expect::Success(_) | Expect::HttpError(_) | Expect::Redirect(_))
                && !animal.large
        };
        let left = || -> Vec<String> {
            let open = process::sockets_by_far_port(pid);
            let of = |port: &Port| open.get(&port.number).copied().unwrap_or(0);
            self.cages
                .iter()
                .filter(|(animal, port)| of(port) > usize::from(may_stay(animal)))
                .map(|(animal, port)| format!("{}: {} connections are still open", animal.name, of(port)))
                .collect()
        };
        let began = now();
        while !left().is_empty() && began.elapsed() < secs(10) {
            tokio::time::sleep(super::millis(100)).await;
        }
        left()
    }
}

/// One event for each of these, for so many at once.
pub(crate) async fn publish_to(client: Client, ids: Vec<String>, at_once: usize, every: Duration) {
    for some in ids.chunks(at_once) {
        let event = json!({"event_type": "a.b", "payload": "x".repeat(2_000), "destination_ids": some});
        client.post("/v1/outbound-events", event).await.expect(202);
        tokio::time::sleep(every).await;
    }
}

fn id(index: usize) -> String {
    format!("animal-{index}")
}

fn at(time: &Value) -> i64 {
    let time = time.as_str().and_then(tidegate_core::time::Timestamp::parse);
    time.map_or(0, |time| time.as_millis())
}

fn fits(expect: Expect, attempt: &Value) -> bool {
    let outcome = attempt["outcome"].as_str().unwrap_or_default();
    let (status, error) = (attempt["status_code"].as_u64(), attempt["error"].as_str());
    let answered = |word: &str, code: u16| outcome == word && status == Some(code.into());
    match expect {
        Expect::Success(code) => answered("success", code),
        Expect::HttpError(code) => answered("http_error", code),
        Expect::Redirect(code) => answered("redirect", code),
        Expect::Gone => answered("gone", 410),
        Expect::Throttled(_) => answered("rate_limited", 429),
        Expect::Unavailable(_) => answered("unavailable", 503),
        Expect::Timeout => outcome == "timeout" && status.is_none() && error == Some("no answer in time"),
        Expect::Network(said) => outcome == "network_error" && status.is_none() && error == Some(said),
        Expect::NetworkOr(other) => outcome == "network_error" || outcome == other,
    }
}

fn shown(attempt: &Value) -> String {
    let part = |name: &str| attempt[name].to_string();
    format!("{} {} {}", part("outcome"), part("status_code"), part("error"))
}
