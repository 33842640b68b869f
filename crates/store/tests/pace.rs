//! What the writer spends on one event: accepted, delivered at the first attempt, forgotten.
//!
//! `cargo test --release -p tidegate-store --test pace -- --ignored --nocapture`; with `PACE_DATABASE_URL` it is measured on
//! the PostgreSQL databases whose names are that with the size of the groups after it: `postgres://…/pace` and so `pace64`.

#![expect(clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods, reason = "a measurement")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use tidegate_core::delivery::{Delivery, End, Status};
use tidegate_core::draw::Draw;
use tidegate_core::id::{AccountId, AttemptId, DeliveryId, DestinationId, EventId};
use tidegate_core::outcome::Outcome;
use tidegate_core::pattern::EventType;
use tidegate_core::policy::Policy;
use tidegate_core::sequence::{Sequence, Share};
use tidegate_core::settle::{self, Incoming, Terms};
use tidegate_core::slots::Slot;
use tidegate_core::time::{Millis, Timestamp};
use tidegate_store::catalogue::{Account, Change, Destination, Edit};
use tidegate_store::cluster::Identity;
use tidegate_store::delivery::StoredAttempt;
use tidegate_store::event::{Accept, Body, Message, NewEvent};
use tidegate_store::record::{LaneSave, Record, Settled};
use tidegate_store::{AccountNo, DestinationNo, Store, postgres, sqlite};

const DESTINATIONS: u32 = 100;
const PAYLOAD: usize = 500;
/// Events that one step of retention looks at.
const FORGOTTEN: usize = 1_000;
const START: Timestamp = Timestamp::from_millis(1_790_000_000_000);

/// Nanoseconds that this thread has run.
fn ran() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

struct World {
    store: Store,
    cpu: Arc<Mutex<u64>>,
    sequence: Sequence,
    directory: PathBuf,
    payload: Bytes,
    types: Vec<EventType>,
}

impl World {
    async fn new(name: &str) -> Self {
        let base = std::env::var_os("PACE_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let directory = base.join(format!("tidegate-pace-{}-{name}", std::process::id()));
        let cpu = Arc::new(Mutex::new(0));
        let seen = Arc::clone(&cpu);
        let on_commit = Box::new(move |_| *seen.lock().unwrap() = ran());
        let opened = match std::env::var("PACE_DATABASE_URL") {
            Ok(url) => {
                let url = format!("{url}{name}");
                let partition = postgres::Options::PARTITION;
                let identity = Identity::default();
                Store::connect(postgres::Options {
                    url,
                    listen_url: None,
                    max_event_bytes: 1 << 20,
                    identity,
                    readers: 1,
                    partition,
                    on_commit,
                })
            }
            Err(_) => Store::open(sqlite::Options { data_dir: directory.clone(), readers: 1, on_commit }),
        };
        let store = opened.unwrap().store;
        if let Some(cluster) = store.cluster() {
            cluster.claim(Slot::all().collect()).await.unwrap();
        }
        let account = Account {
            no: AccountNo(0),
            id: AccountId::from_bits(1),
            external_id: None,
            document: String::new(),
            settings: String::new(),
            version: 1,
            created_at: START,
        };
        let mut edits = vec![Edit::AddAccount(account)];
        edits.extend((0..DESTINATIONS).map(|number| {
            Edit::AddDestination(Destination {
                no: DestinationNo(0),
                id: DestinationId::from_bits(u128::from(number)),
                account: AccountNo(1),
                external_id: None,
                document: String::new(),
                secrets: Vec::new(),
                version: 1,
                created_at: START,
                updated_at: START,
            })
        }));
        store.change(Change { edits, audit: None }).await.unwrap();
        let types = (0..5).map(|number| EventType::parse(&format!("order.kind{number}")).unwrap()).collect();
        let payload = Bytes::from(vec![b'x'; PAYLOAD]);
        Self { store, cpu, sequence: Sequence::at(START), directory, payload, types }
    }

    fn next(&mut self, count: u64) -> u64 {
        let (first, last) = self.sequence.next(START, count, Share::All);
        self.sequence = last;
        first.get()
    }

    fn event(&mut self) -> NewEvent {
        let number = self.next(2);
        let draw = Draw(number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let destination = u32::try_from(draw.0 >> 32).unwrap() % DESTINATIONS + 1;
        let event_type = self.types[usize::try_from(draw.0 >> 60).unwrap() % 5].clone();
        let id = DeliveryId::numbered(Sequence::from_stored(number + 1), draw);
        let incoming = Incoming::new(id, number + 1, event_type.clone());
        let delivery = settle::accept(START, incoming, &Policy::default(), &Terms::default());
        NewEvent {
            account: AccountNo(1),
            message: Arc::new(Message {
                id: EventId::numbered(Sequence::from_stored(number), draw),
                event_type,
                accepted_at: START,
                payload: self.payload.clone(),
                body: Body::Json,
            }),
            occurred_at: START,
            expires_at: None,
            deliver_at: None,
            ordering_key: None,
            priority: delivery.priority,
            external_id: None,
            deliveries: vec![(DestinationNo(destination), delivery)],
        }
    }

    fn settled(&mut self, destination: DestinationNo, mut delivery: Delivery) -> Settled {
        delivery.status = Status::Final(End::Delivered);
        delivery.attempts_made = 1;
        delivery.attempts_used = 1;
        let of = Sequence::from_stored(delivery.id.sequence().get() - 1);
        let event = (EventId::numbered(of, Draw(0)), PAYLOAD);
        let number = self.next(1);
        let attempt = StoredAttempt {
            id: AttemptId::numbered(Sequence::from_stored(number), Draw(number)),
            delivery: delivery.id,
            destination,
            number: 1,
            started_at: START,
            response_time: Millis::new(9),
            timeout: Millis::seconds(10),
            outcome: Outcome::Success { status: 200 },
            error: None,
            response_headers: Vec::new(),
            response_body: Vec::new(),
            probe: None,
        };
        Settled {
            account: AccountNo(1),
            destination,
            delivery: Box::new(delivery),
            event: Some(event),
            attempt: Some(attempt),
            epoch: None,
        }
    }

    fn spent(&self) -> u64 {
        *self.cpu.lock().unwrap()
    }

    /// Waits until all that was recorded is committed.
    async fn drained(&self) {
        self.store.change(Change { edits: Vec::new(), audit: None }).await.unwrap();
    }
}

async fn pace(group: usize, groups: usize) {
    let mut world = World::new(&group.to_string()).await;
    let total = group * groups;
    let micros = |ns: u64| ns as f64 / 1_000.0 / total as f64;
    let (mut accepting, mut settling) = (0, 0);
    let begun = Instant::now();
    for _ in 0..groups {
        let events: Vec<NewEvent> = (0..group).map(|_| world.event()).collect();
        let deliveries: Vec<_> = events.iter().map(|event| event.deliveries[0].clone()).collect();
        let before = world.spent();
        world.store.accept(Accept { now: START, events, idempotency: None, outbox: None }).await.unwrap();
        let accepted = world.spent();
        let settled: Vec<Settled> =
            deliveries.into_iter().map(|(to, delivery)| world.settled(to, delivery)).collect();
        let touched: BTreeSet<DestinationNo> = settled.iter().map(|settled| settled.destination).collect();
        let lanes = touched.into_iter();
        let lanes = lanes.map(|destination| LaneSave {
            destination,
            state: Some(vec![7; 200]),
            timeouts: None,
            in_flight: 0,
            epoch: None,
        });
        let record = Record { now: START, settled, lanes: lanes.collect(), ..Record::default() };
        world.store.record(record);
        world.drained().await;
        accepting += accepted - before;
        settling += world.spent() - accepted;
    }
    let lived = begun.elapsed();
    let before = world.spent();
    let mut gone = 0;
    while gone < total as u64 {
        gone += world.store.forget(START + Millis::days(1), FORGOTTEN).await.unwrap();
    }
    let forgetting = world.spent() - before;
    println!(
        "groups of {group}: {total} events, accept {:.1} + settle {:.1} + forget {:.1} = {:.1} us of the writer's CPU per event; \
         accept and settle {:.0} events/s by the clock",
        micros(accepting),
        micros(settling),
        micros(forgetting),
        micros(accepting + settling + forgetting),
        total as f64 / lived.as_secs_f64(),
    );
    world.store.close().await;
    let _ = std::fs::remove_dir_all(&world.directory);
}

#[test]
#[ignore = "a measurement, not a check"]
fn what_one_event_costs() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        pace(64, 300).await;
        pace(1_000, 40).await;
    });
}
