//! Producers: they publish one request after the other under idempotency keys, and repeat what may or may not have been
//! accepted until they know.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::client::Client;
use crate::clock::{millis, nanos, now, pass, secs, wall};
use crate::dice::Dice;
use crate::history::{Book, History};
use crate::ledger::{Answered, Ledger};
use crate::world::World;

/// After the end of a run's faults a request is repeated for so long.
const PATIENCE: Duration = secs(120);
/// An event of `brief` is worth nothing after so long.
const BRIEF_MS: i64 = 2_500;
/// What may wait for the plain destination, so that a run comes to rest in minutes.
const MOST_WAITING: u64 = 200_000;
/// What may wait in the calm of quiet hours: it is all sent when they end, and fewer than the checker takes for a crowd.
const MOST_QUIET: u64 = 15;
/// Under this the ledger counts events that do not bypass quiet hours.
const HELD: &str = "held";

/// How much is published.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Producers of events in no order.
    pub(crate) producers: u64,
    /// Events in a batch, at most; every other request is a single event.
    pub(crate) batch: u64,
    /// Between two requests of a producer.
    pub(crate) pace: Duration,
    /// Whether events may have a time to live: not under a faked clock.
    pub(crate) brief: bool,
    /// Requests of each producer; none: until the ledger is closed.
    pub(crate) requests: Option<u64>,
    /// What all events are for; none: for any destination.
    pub(crate) only: Option<&'static str>,
}

impl Load {
    /// Enough to have something in flight at any time.
    pub(crate) const fn usual() -> Self {
        Self { producers: 3, batch: 8, pace: millis(4), brief: true, requests: None, only: None }
    }

    /// Some requests, and no more.
    pub(crate) const fn little(requests: u64) -> Self {
        Self {
            producers: 1,
            batch: 3,
            pace: Duration::ZERO,
            brief: false,
            requests: Some(requests),
            only: None,
        }
    }

    /// The same backlog for the two that are alike.
    pub(crate) const fn twins() -> Self {
        Self { producers: 1, batch: 400, requests: Some(8), only: Some("twins"), ..Self::heavy() }
    }

    /// As much as is accepted.
    pub(crate) const fn heavy() -> Self {
        Self { producers: 3, batch: 400, pace: Duration::ZERO, brief: true, requests: None, only: None }
    }
}

/// What all producers of a run share.
pub(crate) struct Desk {
    pub(crate) client: Client,
    pub(crate) history: Arc<History>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) world: Arc<World>,
    pub(crate) load: Load,
}

impl Desk {
    /// Events that quiet hours may hold and that have not come yet.
    pub(crate) fn held(&self) -> u64 {
        let come = self.world.find("quiet").map_or(0, |quiet| quiet.receiver.first_made());
        self.ledger.count_for(HELD).saturating_sub(come)
    }
}

/// Starts them. They end when the ledger is closed, each with what it was about.
pub(crate) fn start(desk: &Arc<Desk>, dice: &mut Dice) -> Vec<tokio::task::JoinHandle<()>> {
    (0..=desk.load.producers)
        .map(|index| {
            let producer = Producer {
                desk: desk.clone(),
                dice: dice.split(),
                ordered: index == 0 && desk.load.only.is_none(),
            };
            tokio::spawn(producer.run())
        })
        .collect()
}

/// Publishes one event of the type `name.made`. Says whether it was accepted.
pub(crate) async fn publish_one(desk: &Arc<Desk>, dice: Dice, name: &'static str) -> bool {
    let mut producer = Producer { desk: desk.clone(), dice, ordered: false };
    let event = producer.event(name, "made");
    let (body, shown) = (event.body().into(), vec![event.shown()]);
    let request = Request { endpoint: "/v1/outbound-events", key: None, body, shown };
    producer.send_once(&request).await == Some(202)
}

/// Publishes so many events for the plain destination at the same time, each once. Ends when all of them are answered.
pub(crate) async fn publish_at_once(desk: &Arc<Desk>, dice: &mut Dice, count: u64) {
    let mut publishers = tokio::task::JoinSet::new();
    for _ in 0..count {
        let (desk, dice) = (desk.clone(), dice.split());
        publishers.spawn(async move { publish_one(&desk, dice, "plain").await });
    }
    // How each was answered is in the ledger.
    publishers.join_all().await;
}

struct Event {
    event_type: String,
    payload: String,
    ordering_key: Option<String>,
    expires_at_ms: Option<i64>,
}

struct Request {
    endpoint: &'static str,
    key: Option<String>,
    body: Bytes,
    shown: Vec<Value>,
}

struct Producer {
    desk: Arc<Desk>,
    dice: Dice,
    /// It alone publishes what has an order, so that the order is known.
    ordered: bool,
}

impl Producer {
    async fn run(mut self) {
        let mut left = self.desk.load.requests.unwrap_or(u64::MAX);
        while left > 0 && self.desk.ledger.is_open() {
            let Some(request) = self.next_request() else {
                pass(millis(10)).await;
                continue;
            };
            self.publish(&request).await;
            left -= 1;
            if !self.desk.load.pace.is_zero() {
                pass(self.desk.load.pace).await;
            }
        }
    }

    /// Sends it until its end is known, or nothing more is to be known.
    async fn publish(&mut self, request: &Request) {
        let mut closed_at = None;
        loop {
            let Some(status) = self.send_once(request).await else {
                // Nobody repeats what has no key: it may come twice.
                if request.key.is_none() {
                    return;
                }
                if !self.desk.ledger.is_open() && closed_at.get_or_insert_with(now).elapsed() > PATIENCE {
                    self.desk
                        .ledger
                        .strange("a request was not answered for two minutes after the run".to_owned());
                    return;
                }
                pass(millis(30)).await;
                continue;
            };
            if status != 202 {
                self.desk.ledger.strange(format!("a publication was answered {status}"));
            }
            return;
        }
    }

    /// One request. None: it is not known, or was refused for now.
    async fn send_once(&self, request: &Request) -> Option<u16> {
        let Desk { history, ledger, client, .. } = &*self.desk;
        let number = ledger.next_request();
        let sent = nanos();
        history.write(
            Book::Producer,
            &json!({
                "kind": "send", "t": sent, "request": number, "endpoint": request.endpoint, "key": request.key,
                "body_sha256": hex(&Sha256::digest(&request.body)), "events": request.shown,
            }),
        );
        let answer =
            client.send(Method::POST, request.endpoint, request.key.as_deref(), request.body.clone()).await;
        let answered = nanos();
        let (status, ids) = match &answer {
            Ok(answer) if answer.status == 202 => (Some(202), ids(&answer.json["data"])),
            Ok(answer) => (Some(answer.status), Vec::new()),
            Err(_) => (None, Vec::new()),
        };
        history.write(
            Book::Producer,
            &json!({"kind": "answer", "t": answered, "request": number, "status": status, "ids": ids}),
        );
        let has_retry_after = answer.is_ok_and(|answer| answer.has_retry_after);
        ledger.answered(Answered { sent, answered, status, has_retry_after }, ids);
        match status {
            None | Some(503) => None,
            other => other,
        }
    }

    /// Whether producers are ahead of the destination that gets most of all.
    fn is_far_ahead(&self) -> bool {
        let Desk { ledger, world, .. } = &*self.desk;
        let published = ledger.count_for("plain") + ledger.count_for("shared");
        world.find("plain").is_some_and(|plain| published > plain.receiver.first_attempts() + MOST_WAITING)
    }

    fn next_request(&mut self) -> Option<Request> {
        if self.is_far_ahead() {
            return None;
        }
        let batch = self.desk.load.batch > 1 && self.dice.one_in(2);
        let most = if self.ordered { self.desk.load.batch.min(5) } else { self.desk.load.batch };
        let count = if batch { 1 + self.dice.below(most) } else { 1 };
        let events: Vec<Event> = (0..count).map_while(|_| self.next_event()).collect();
        if events.is_empty() {
            return None;
        }
        // One in sixteen has no key.
        let key = (!self.dice.one_in(16)).then(|| format!("k-{}", self.desk.ledger.next_number()));
        let bodies: Vec<String> = events.iter().map(Event::body).collect();
        let (endpoint, body) = if batch {
            ("/v1/outbound-events/batch", format!("{{\"events\":[{}]}}", bodies.join(",")))
        } else {
            ("/v1/outbound-events", bodies.concat())
        };
        let shown = events.iter().map(Event::shown).collect();
        Some(Request { endpoint, key, body: body.into(), shown })
    }

    fn next_event(&mut self) -> Option<Event> {
        let name = if self.ordered { self.ordered_name()? } else { self.any_name() };
        Some(self.event_for(name))
    }

    fn event_for(&mut self, name: &'static str) -> Event {
        let bypasses = name == "quiet" && (self.desk.held() >= MOST_QUIET || self.dice.one_in(3));
        self.event(name, if bypasses { "urgent" } else { "made" })
    }

    fn event(&mut self, name: &'static str, kind: &str) -> Event {
        let Desk { ledger, .. } = &*self.desk;
        ledger.note_for(name);
        if name == "quiet" && kind == "made" {
            ledger.note_for(HELD);
        }
        let number = ledger.next_number();
        let pad = "x".repeat(usize::try_from(self.dice.below(40)).unwrap_or(0));
        Event {
            event_type: format!("{name}.{kind}"),
            payload: format!("{{\"number\":{number},\"pad\":\"{pad}\"}}"),
            ordering_key: (name == "keyed").then(|| format!("line-{}", self.dice.below(6))),
            expires_at_ms: (name == "brief").then(|| wall().as_millisecond() + BRIEF_MS),
        }
    }

    /// Whether a slow destination can have another: its backlog stays small, so that a run comes to rest soon.
    fn takes(&self, name: &'static str, most: u64) -> bool {
        let Some(destination) = self.desk.world.find(name) else { return false };
        self.desk.ledger.count_for(name) < destination.receiver.first_attempts() + most
    }

    fn ordered_name(&mut self) -> Option<&'static str> {
        let keyed = self.desk.world.find("keyed").is_some() && self.dice.one_in(2);
        let name = if keyed { "keyed" } else { "fifo" };
        self.takes(name, 60).then_some(name)
    }

    fn any_name(&mut self) -> &'static str {
        if let Some(only) = self.desk.load.only {
            return only;
        }
        let wide = self.desk.world.find("second").is_some();
        match self.dice.below(40) {
            0..=1 if self.takes("limited", 30) => "limited",
            2..=3 if self.takes("narrow", 60) => "narrow",
            2..=3 if self.takes("slow", 4) => "slow",
            4..=5 if self.takes("flaky", 60) => "flaky",
            6..=7 if wide && !self.desk.ledger.leaves_quiet_alone() => "quiet",
            8..=9 if wide && self.desk.load.brief && self.takes("brief", 40) => "brief",
            10 if self.takes("busy", 12) => "busy",
            11 if self.takes("away", 12) => "away",
            12 if self.takes("failing", 12) => "failing",
            13 if self.takes("gone", 12) => "gone",
            14 if self.takes("patient", 6) => "patient",
            15 if self.takes("jittered", 6) => "jittered",
            16 if self.takes("renamed", 20) => "renamed",
            17 if self.takes("halted", 20) => "halted",
            18 if self.takes("tuned", 30) => "tuned",
            19..=25 if wide => "shared",
            19..=25 if self.takes("limited", 30) => "limited",
            26..=32 if wide => "second",
            _ => "plain",
        }
    }
}

impl Event {
    fn body(&self) -> String {
        let mut body = format!("{{\"event_type\":\"{}\",\"payload\":{}", self.event_type, self.payload);
        if let Some(key) = &self.ordering_key {
            body += &format!(",\"ordering_key\":\"{key}\"");
        }
        if let Some(expires_at) = self.expires_at_ms.and_then(|ms| Timestamp::from_millisecond(ms).ok()) {
            body += &format!(",\"expires_at\":\"{expires_at}\"");
        }
        body + "}"
    }

    fn shown(&self) -> Value {
        json!({
            "event_type": self.event_type, "sha256": hex(&Sha256::digest(&self.payload)),
            "ordering_key": self.ordering_key, "expires_at_ms": self.expires_at_ms, "deliver_at_ms": null,
            "priority": null, "destination_ids": null,
        })
    }
}

/// The ids in an answer: of one event, or of a batch.
fn ids(data: &Value) -> Vec<String> {
    let text = |id: &Value| id.as_str().map(ToOwned::to_owned);
    match data["items"].as_array() {
        Some(items) => items.iter().filter_map(|item| text(&item["id"])).collect(),
        None => text(&data["id"]).into_iter().collect(),
    }
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}
