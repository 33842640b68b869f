//! Producers: they publish one request after the other, note every answer, and never repeat anything.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::kit::{Client, Dice, ids_of_batch, millis, now, numbered_event};
use crate::world::World;

/// One event that was sent to the server.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) number: u64,
    pub(crate) event_type: String,
    pub(crate) key: Option<String>,
    /// Its id, where the answer was 202. Otherwise it is not known whether it was accepted.
    pub(crate) id: Option<String>,
    /// Events of one request share this number: all of them were accepted, or none.
    pub(crate) request: u64,
}

/// All that was sent so far.
#[derive(Default)]
pub(crate) struct Ledger {
    next: AtomicU64,
    events: Mutex<Vec<Event>>,
    acknowledged: Mutex<Vec<Acknowledged>>,
}

/// A publication that was answered with 202.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    sent_at: Instant,
    answered_at: Instant,
}

/// All that was sent, to look things up in.
pub(crate) struct Published {
    pub(crate) events: Vec<Event>,
    pub(crate) by_number: HashMap<u64, usize>,
    acknowledged: Vec<Acknowledged>,
}

impl Published {
    /// Events of a type that were answered with 202.
    pub(crate) fn accepted(&self, event_type: &str) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(move |event| event.event_type == event_type && event.id.is_some())
    }

    /// Publications that were sent after the one moment and answered with 202 before the other.
    pub(crate) fn acknowledged_between(&self, from: Instant, to: Instant) -> usize {
        self.acknowledged.iter().filter(|one| one.sent_at >= from && one.answered_at <= to).count()
    }

    pub(crate) fn summary(&self, world: &World) -> String {
        let accepted = self.events.iter().filter(|event| event.id.is_some()).count();
        let received = world.destinations.iter().map(|one| format!("{} {}", one.name, one.receiver.count()));
        let received = received.collect::<Vec<_>>().join(", ");
        format!("{accepted} events accepted, {} unknown; received: {received}", self.events.len() - accepted)
    }
}

impl Ledger {
    pub(crate) fn published(&self) -> Published {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let by_number = events.iter().enumerate().map(|(index, event)| (event.number, index)).collect();
        let acknowledged = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Published { events, by_number, acknowledged }
    }

    fn note(&self, events: Vec<Event>) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).extend(events);
    }

    /// Publishes so many events of a type, in one request.
    async fn publish(&self, client: &Client, event_type: &str, key: Option<String>, count: u64) {
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        let numbers = first..first + count;
        let mut bodies: Vec<Value> =
            numbers.clone().map(|number| numbered_event(event_type, key.as_deref(), number)).collect();
        let (path, body) = match count {
            1 => ("/v1/outbound-events", bodies.remove(0)),
            _ => ("/v1/outbound-events/batch", json!({"events": bodies})),
        };
        let bytes = Bytes::from(body.to_string());
        let sent_at = now();
        let answer = client.try_send(Method::POST, path, Some("application/json"), bytes).await;
        let answered_at = now();
        let data = match answer {
            Ok(answer) if answer.status == 202 => answer.expect(202),
            // No answer, or a server that is not ready: whether it was accepted is not known.
            Ok(answer) => {
                assert!(answer.status >= 500, "answered {} {}", answer.status, answer.json);
                Value::Null
            }
            Err(_) => Value::Null,
        };
        let known = !data.is_null();
        let ids = if count == 1 { vec![data["id"].clone()] } else { ids_of_batch(&data) };
        assert!(!known || ids.len() as u64 == count, "{data}");
        let event = |(index, number): (usize, u64)| Event {
            number,
            event_type: event_type.to_owned(),
            key: key.clone(),
            id: known.then(|| ids[index].as_str().expect("an id").to_owned()),
            request: first,
        };
        self.note(numbers.enumerate().map(event).collect());
        if known {
            let mut all = self.acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(Acknowledged { sent_at, answered_at });
        } else {
            // It was killed: there is no use in asking again at once.
            tokio::time::sleep(millis(10)).await;
        }
    }
}

/// Starts all producers. Those of ordered events are alone with their destination, so that they know the order.
pub(crate) fn start(
    client: &Client,
    ledger: &Arc<Ledger>,
    stop: &Arc<AtomicBool>,
    seed: u64,
) -> Vec<JoinHandle<()>> {
    let kinds = [Kind::Fifo, Kind::Keyed, Kind::Bursts, Kind::Mixed, Kind::Mixed, Kind::Mixed];
    let one = |(index, kind): (usize, Kind)| {
        let (client, ledger, stop) = (client.clone(), ledger.clone(), stop.clone());
        let mut dice = Dice::new(seed.wrapping_mul(1_000) + index as u64);
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                kind.publish(&client, &ledger, &mut dice).await;
            }
        })
    };
    kinds.into_iter().enumerate().map(one).collect()
}

#[derive(Clone, Copy)]
enum Kind {
    Fifo,
    Keyed,
    /// More at once than a limited destination may get.
    Bursts,
    Mixed,
}

impl Kind {
    /// One request, and a pause.
    async fn publish(self, client: &Client, ledger: &Ledger, dice: &mut Dice) {
        match self {
            Self::Fifo => {
                ledger.publish(client, "fifo.step", None, 1 + 4 * (dice.below(10) / 9)).await;
                tokio::time::sleep(millis(dice.below(40))).await;
            }
            Self::Keyed => {
                let key = format!("key-{}", dice.below(6));
                ledger.publish(client, "keyed.step", Some(key), 1).await;
                tokio::time::sleep(millis(dice.below(20))).await;
            }
            Self::Bursts => {
                ledger.publish(client, "limited.burst", None, 20).await;
                ledger.publish(client, "narrow.burst", None, 10).await;
                tokio::time::sleep(millis(500 + dice.below(600))).await;
            }
            Self::Mixed => {
                let types = [
                    "plain.a",
                    "plain.b",
                    "shared.a",
                    "flaky.a",
                    "quiet.calm",
                    "quiet.urgent",
                    "nobody.gets",
                ];
                let event_type = types[usize::try_from(dice.below(7)).unwrap_or(0)];
                ledger
                    .publish(
                        client,
                        event_type,
                        None,
                        [1, 1, 1, 8][usize::try_from(dice.below(4)).unwrap_or(0)],
                    )
                    .await;
                tokio::time::sleep(millis(dice.below(20))).await;
            }
        }
    }
}
