//! Producers: they publish to all nodes in turn, with an idempotency key, and try again elsewhere until they get an answer.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::kit::{Client, Dice, NoAnswer, ids_of_batch, millis, now, numbered_event, secs};
use crate::world::{Kind, World};

/// A call that takes longer is made again elsewhere.
const LONGEST_CALL: Duration = secs(3);
/// No fault lasts so long that nobody takes an event for this time.
const LONGEST_WAIT: Duration = secs(60);

/// One event that was accepted.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) number: u64,
    pub(crate) event_type: String,
    pub(crate) key: Option<String>,
    pub(crate) id: String,
    /// When the 202 came.
    pub(crate) accepted_at: Instant,
}

/// All that was sent so far.
#[derive(Default)]
pub(crate) struct Ledger {
    next: AtomicU64,
    turn: AtomicUsize,
    events: Mutex<Vec<Event>>,
    /// Answers that were neither 202 nor a refused connection.
    errors: Mutex<Vec<(Instant, String)>>,
    stop: AtomicBool,
}

impl Ledger {
    /// Asks producers to end after what they are at.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn errors(&self) -> Vec<(Instant, String)> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Publishes so many events of a type in one request, and insists.
    async fn publish(&self, nodes: &[Client], event_type: &str, key: Option<&str>, count: u64) {
        let first = self.next.fetch_add(count, Relaxed);
        let numbers = first..first + count;
        let mut bodies: Vec<Value> =
            numbers.clone().map(|number| numbered_event(event_type, key, number)).collect();
        let (path, body) = match count {
            1 => ("/v1/outbound-events", bodies.remove(0)),
            _ => ("/v1/outbound-events/batch", json!({"events": bodies})),
        };
        let bytes = Bytes::from(body.to_string());
        let sent_at = now();
        let data = loop {
            let node = &nodes[self.turn.fetch_add(1, Relaxed) % nodes.len()];
            let client = node.with_header("idempotency-key", &format!("request-{first}"));
            let call = client.try_send(Method::POST, path, Some("application/json"), bytes.clone());
            let error = match tokio::time::timeout(LONGEST_CALL, call).await {
                Ok(Ok(answer)) if answer.status == 202 => break answer.expect(202),
                Ok(Ok(answer)) => {
                    assert!(answer.status >= 500, "answered {} {}", answer.status, answer.json);
                    Some(format!("{} {}", answer.status, answer.json))
                }
                Ok(Err(NoAnswer::Refused)) => None,
                Ok(Err(NoAnswer::Lost(why))) => Some(why),
                Err(_) => Some("no answer in time".to_owned()),
            };
            if let Some(error) = error {
                let error = (now(), format!("{}: {error}", node.authority));
                self.errors.lock().unwrap_or_else(PoisonError::into_inner).push(error);
            }
            assert!(sent_at.elapsed() < LONGEST_WAIT, "nobody takes {event_type}");
            tokio::time::sleep(millis(10)).await;
        };
        let accepted_at = now();
        let ids = if count == 1 { vec![data["id"].clone()] } else { ids_of_batch(&data) };
        assert_eq!(ids.len() as u64, count, "{data}");
        let event = |(number, id): (u64, Value)| Event {
            number,
            event_type: event_type.to_owned(),
            key: key.map(str::to_owned),
            id: id.as_str().expect("an id").to_owned(),

            accepted_at,
        };
        let events = numbers.zip(ids).map(event);
        self.events.lock().unwrap_or_else(PoisonError::into_inner).extend(events);
    }
}

/// One who publishes to some destinations and waits a while between requests.
struct Producer {
    /// The first parts of event types.
    names: Vec<String>,
    /// Events of a request.
    count: u64,
    keys: u64,
    /// Requests for the same destination and key, at most, before there is a pause.
    in_a_row: u64,
    /// Between two requests, at most.
    pause: u64,
}

/// Starts all producers. Those of ordered events share no destination, so that each knows the order.
pub(crate) fn start(nodes: &[Client], world: &World, ledger: &Arc<Ledger>, seed: u64) -> Vec<JoinHandle<()>> {
    let all = |kind| world.of(kind).map(|destination| destination.name.clone()).collect::<Vec<_>>();
    let one = |names, count, pause| Producer { names, count, keys: 0, in_a_row: 1, pause };
    let mut producers = vec![
        one(all(Kind::Plain), 1, 40),
        one(all(Kind::Plain), 1, 40),
        one(all(Kind::Plain), 3, 100),
        one(vec!["shared".to_owned()], 1, 400),
        one(vec!["nobody".to_owned()], 1, 500),
        one(all(Kind::Limited), 12, 400),
        one(all(Kind::Narrow), 6, 400),
        one(all(Kind::Flaky), 2, 400),
        one(all(Kind::Quiet), 2, 400),
        one(all(Kind::Closing), 1, 100),
        one(all(Kind::Long), 1, 1_000),
    ];
    for names in all(Kind::Fifo).chunks(7) {
        producers.push(Producer { in_a_row: 3, ..one(names.to_vec(), 1, 150) });
    }
    for names in all(Kind::Keyed).chunks(7) {
        producers.push(Producer { keys: 3, in_a_row: 3, ..one(names.to_vec(), 1, 150) });
    }
    let started = producers.into_iter().enumerate().map(|(index, producer)| {
        let (nodes, ledger) = (nodes.to_vec(), Arc::clone(ledger));
        let dice = Dice::new(seed.wrapping_mul(1_000) + index as u64);
        tokio::spawn(producer.run(nodes, ledger, dice))
    });
    started.collect()
}

impl Producer {
    async fn run(self, nodes: Vec<Client>, ledger: Arc<Ledger>, mut dice: Dice) {
        while !ledger.stop.load(Relaxed) {
            let name = &self.names[usize::try_from(dice.below(self.names.len() as u64)).unwrap_or(0)];
            let key = (self.keys > 0).then(|| format!("key-{}", dice.below(self.keys)));
            // One right after the other, each to another node: whoever got an answer for the first expects it to go first.
            for _ in 0..=dice.below(self.in_a_row) {
                ledger.publish(&nodes, &format!("{name}.step"), key.as_deref(), self.count).await;
            }
            tokio::time::sleep(millis(dice.below(self.pause))).await;
        }
    }
}
