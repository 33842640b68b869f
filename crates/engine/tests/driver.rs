//! The whole engine on a real store and real sockets: what is accepted arrives, across restarts.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "kit/furnish.rs"]
mod furnish;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::delivery::Withdrawn;
use tidegate_core::dial::{Guard, Target};
use tidegate_core::draw::Draw;
use tidegate_core::headers::CustomHeaders;
use tidegate_core::id::{DeliveryId, EventId};
use tidegate_core::pattern::EventType;
use tidegate_core::policy::{Concurrency, Policy};
use tidegate_core::sequence::Sequence;
use tidegate_core::settle::{Incoming, Terms, accept};
use tidegate_core::sign::Secret;
use tidegate_core::time::Millis;
use tidegate_engine::dispatcher::Command;
use tidegate_engine::resolver::Resolver;
use tidegate_engine::sender::{Endpoint, Envelope, SenderConfig, Settings, SigningKey};
use tidegate_engine::{Engine, EngineConfig, NewLane, Place, Started, start};
use tidegate_store::event::{Accept, Accepted, Body, Message, NewEvent};
use tidegate_store::lane::Of;
use tidegate_store::{AccountNo, DestinationNo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A receiver that counts how often it got each event, and answers with the status it is told.
#[derive(Clone)]
struct Receiver {
    url: String,
    got: Arc<Mutex<BTreeMap<String, usize>>>,
    status: Arc<Mutex<u16>>,
}

impl Receiver {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let receiver = Self { url, got: Arc::default(), status: Arc::new(Mutex::new(200)) };
        let shared = receiver.clone();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let shared = shared.clone();
                tokio::spawn(async move {
                    let mut text = Vec::new();
                    while let Some(request) = read_request(&mut socket, &mut text).await {
                        let id = request.lines().find_map(|line| line.strip_prefix("webhook-id: ")).unwrap();
                        *shared.got.lock().unwrap().entry(id.to_owned()).or_default() += 1;
                        let status = *shared.status.lock().unwrap();
                        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
                        if socket.write_all(answer.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        receiver
    }
    fn count(&self) -> usize {
        self.got.lock().unwrap().len()
    }
}

/// One request with its body, as text.
async fn read_request(socket: &mut tokio::net::TcpStream, text: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(head) = text.windows(4).position(|window| window == b"\r\n\r\n") {
            let request = String::from_utf8_lossy(&text[..head]).to_lowercase();
            let length: usize =
                request.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()?;
            if text.len() >= head + 4 + length {
                text.drain(..head + 4 + length);
                return Some(request.replace("webhook-id: evt_", "webhook-id: EVT_"));
            }
        }
        if socket.read_buf(text).await.ok()? == 0 {
            return None;
        }
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("driver-{name}-{}", std::process::id()));
    let _none = std::fs::remove_dir_all(&folder);
    folder
}

async fn run(folder: &Path) -> (Engine, Started) {
    let guard = Guard::new(vec!["127.0.0.0/8".parse().unwrap()]);
    let sender = SenderConfig::new(Resolver::system(guard).unwrap());
    let config = EngineConfig {
        place: Place::Directory(folder.to_path_buf()),
        data_dir: folder.to_path_buf(),
        slots: 100,
        readers: 2,
        retention: Millis::days(30),
        sender,
    };
    start(config).await.unwrap()
}

fn endpoint(url: &str) -> Arc<Endpoint> {
    let secrets = vec![SigningKey { secret: Secret::generate([1; 32]), valid_until: None }];
    let settings = Settings {
        target: Target::parse(url, false).unwrap(),
        secrets,
        headers: CustomHeaders::default(),
        auth: None,
        envelope: Envelope::Raw,
    };
    Arc::new(Endpoint::new(settings).unwrap())
}

fn policy() -> Arc<Policy> {
    Arc::new(Policy { max_concurrency: Concurrency::new(10).unwrap(), ..Policy::default() })
}

/// An account with one destination, in an empty store.
async fn furnish(engine: &Engine, url: &str) -> (AccountNo, DestinationNo) {
    let (account, destinations) = furnish::furnish(engine, 1).await;
    engine.open(NewLane {
        destination: destinations[0],
        id: None,
        account,
        policy: policy(),
        endpoint: endpoint(url),
        disabled: false,
        stored: None,
    });
    (account, destinations[0])
}

async fn publish(
    engine: &Engine,
    account: AccountNo,
    destination: DestinationNo,
    policy: &Policy,
) -> DeliveryId {
    let now = engine.now().wall;
    let first = engine.number(2);
    let event_type = EventType::parse("order.paid").unwrap();
    let sequence = Sequence::from_stored(first.get() + 1);
    let id = DeliveryId::numbered(sequence, Draw(engine.draw().0));
    let incoming = Incoming::new(id, sequence.get(), event_type.clone());
    let delivery = accept(now, incoming, policy, &Terms::default());
    let message = Arc::new(Message {
        id: EventId::numbered(first, engine.draw()),
        event_type,
        accepted_at: now,
        payload: Bytes::from_static(b"{\"a\": 1}"),
        body: Body::Json,
    });
    let event = NewEvent {
        account,
        message,
        occurred_at: now,
        expires_at: None,
        deliver_at: None,
        ordering_key: None,
        priority: delivery.priority,
        external_id: None,
        deliveries: vec![(destination, delivery)],
    };
    let accepted = engine
        .store()
        .accept(Accept { now, events: vec![event], idempotency: None, outbox: None })
        .await
        .unwrap();
    assert!(matches!(accepted, Accepted::Stored(_)));
    id
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(20), async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited in vain until {what}");
}

/// The lanes of all destinations that the store knows, opened again.
fn reopen(engine: &Engine, started: &Started, url: &str) {
    for stored in &started.lanes {
        let row = started.catalogue.destinations.iter().find(|row| row.no == stored.destination).unwrap();
        engine.open(NewLane {
            destination: stored.destination,
            id: Some(row.id),
            account: row.account,
            policy: policy(),
            endpoint: endpoint(url),
            disabled: false,
            stored: Some(stored.clone()),
        });
    }
    engine.go();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_accepted_arrives_once_and_is_recorded() {
    let folder = folder("arrives");
    let receiver = Receiver::start().await;
    let (engine, _) = run(&folder).await;
    let (account, destination) = furnish(&engine, &receiver.url).await;
    engine.go();
    let policy = policy();
    let mut ids = Vec::new();
    for _ in 0..200 {
        ids.push(publish(&engine, account, destination, &policy).await);
    }
    until("all have arrived", async || receiver.count() == 200).await;
    let of = Of::Destination(destination);
    until("all are recorded", async || engine.store().waiting(of).deliveries == 0).await;
    assert!(receiver.got.lock().unwrap().values().all(|count| *count == 1));
    let stored = engine.store().delivery(account, ids[7]).await.unwrap().unwrap();
    assert_eq!(stored.delivery.status.word(), "delivered");
    assert_eq!(engine.store().attempts(ids[7]).await.unwrap().len(), 1);
    engine.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_at_a_clean_stop_goes_after_the_next_start() {
    let folder = folder("restart");
    let receiver = Receiver::start().await;
    let (engine, _) = run(&folder).await;
    let (account, destination) = furnish(&engine, &receiver.url).await;
    engine.go();
    engine.command(destination, Command::Pause, None).await.unwrap();
    let policy = policy();
    for _ in 0..700 {
        publish(&engine, account, destination, &policy).await;
    }
    engine.shutdown(Duration::from_secs(5)).await;
    assert_eq!(receiver.count(), 0);

    let (engine, started) = run(&folder).await;
    assert_eq!(started.lanes[0].open, 700);
    reopen(&engine, &started, &receiver.url);
    let held = engine.look(move |view| view.lane(destination).unwrap().state().standing).await.unwrap();
    assert!(held.paused.is_some(), "{held:?}");
    engine.command(destination, Command::Resume { skip_head: false }, None).await.unwrap();
    until("all have arrived", async || receiver.count() == 700).await;
    let of = Of::Destination(destination);
    until("all are recorded", async || engine.store().waiting(of).deliveries == 0).await;
    assert!(
        receiver.got.lock().unwrap().values().all(|count| *count == 1),
        "a clean stop sends nothing twice"
    );
    engine.shutdown(Duration::from_secs(5)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_that_is_only_in_the_store_can_be_withdrawn_and_hastened() {
    let folder = folder("orders");
    let receiver = Receiver::start().await;
    *receiver.status.lock().unwrap() = 418;
    let (engine, _) = run(&folder).await;
    let (account, destination) = furnish(&engine, &receiver.url).await;
    engine.go();
    let policy = policy();
    let id = publish(&engine, account, destination, &policy).await;
    let load = async || engine.store().delivery(account, id).await.unwrap().unwrap().delivery;
    until("it waits for its retry", async || load().await.status.word() == "retry_scheduled").await;
    *receiver.status.lock().unwrap() = 200;
    engine.hasten(destination, load().await, None).await.unwrap();
    until("it is delivered", async || load().await.status.word() == "delivered").await;

    engine.command(destination, Command::Pause, None).await.unwrap();
    let id = publish(&engine, account, destination, &policy).await;
    let stored = engine.store().delivery(account, id).await.unwrap().unwrap().delivery;
    engine.withdraw(vec![(destination, stored)], Withdrawn::ByRequest, None).await.unwrap();
    let stored = engine.store().delivery(account, id).await.unwrap().unwrap().delivery;
    assert_eq!(stored.status.word(), "cancelled");
    engine.shutdown(Duration::from_secs(5)).await;
}
