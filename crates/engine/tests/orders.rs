//! Two nodes on one PostgreSQL: what people want of a destination that the other node works happens there, once, in the order in
//! which it was wanted, whatever fails meanwhile.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

#[path = "kit/furnish.rs"]
mod furnish;
#[path = "../../store/tests/conformance/server.rs"]
#[expect(dead_code, unreachable_pub, reason = "the store's tests need more of it")]
mod server;

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::delivery::Withdrawn;
use tidegate_core::dial::{Guard, Target};
use tidegate_core::headers::CustomHeaders;
use tidegate_core::id::{DeliveryId, EventId};
use tidegate_core::pattern::EventType;
use tidegate_core::policy::Policy;
use tidegate_core::sequence::Sequence;
use tidegate_core::settle::{Incoming, Terms, accept};
use tidegate_core::sign::Secret;
use tidegate_core::time::Millis;
use tidegate_engine::dispatcher::Command;
use tidegate_engine::resolver::Resolver;
use tidegate_engine::sender::{Endpoint, Envelope, SenderConfig, Settings, SigningKey};
use tidegate_engine::{Engine, EngineConfig, NewLane, Place, Stopped, start};
use tidegate_store::catalogue::AuditEntry;
use tidegate_store::cluster::{Identity, OrderNo};
use tidegate_store::event::{Accept, Accepted, Body, Message, NewEvent};
use tidegate_store::{AccountNo, DestinationNo, StoreError};

const RESUME: Command = Command::Resume { skip_head: false };

async fn node(database: &str, name: &str) -> Engine {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("orders-{database}-{name}-{}", std::process::id()));
    let _none = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let config = EngineConfig {
        place: Place::Database {
            url: server::server().url(database),
            listen_url: None,
            max_event_bytes: 1 << 20,
            identity: Identity { name: name.to_owned(), ..Identity::default() },
        },
        data_dir: folder,
        slots: 10,
        readers: 2,
        retention: Millis::days(30),
        sender: SenderConfig::new(Resolver::system(Guard::new(Vec::new())).unwrap()),
    };
    start(config).await.unwrap().0
}

fn endpoint() -> Arc<Endpoint> {
    let settings = Settings {
        target: Target::parse("https://127.0.0.1:9/hook", false).unwrap(),
        secrets: vec![SigningKey { secret: Secret::generate([1; 32]), valid_until: None }],
        headers: CustomHeaders::default(),
        auth: None,
        envelope: Envelope::Raw,
    };
    Arc::new(Endpoint::new(settings).unwrap())
}

/// Two nodes, and a destination of the second.
struct Pair {
    first: Engine,
    second: Engine,
    account: AccountNo,
    destination: DestinationNo,
    database: String,
}

impl Pair {
    async fn new(name: &str) -> Self {
        let database = format!("orders_{name}");
        server::create(&database);
        let (first, second) = (node(&database, "first").await, node(&database, "second").await);
        let (account, destinations) = furnish::furnish(&first, 8).await;
        for engine in [&first, &second] {
            for destination in &destinations {
                engine.open(NewLane {
                    destination: *destination,
                    id: None,
                    account,
                    policy: Arc::default(),
                    endpoint: endpoint(),
                    disabled: false,
                    stored: None,
                });
            }
            engine.go();
        }
        let mut found = None;
        until("the second node works something", async || {
            for destination in &destinations {
                if is_here(&second, *destination).await && !is_here(&first, *destination).await {
                    found = Some(*destination);
                }
            }
            found.is_some()
        })
        .await;
        Self { first, second, account, destination: found.unwrap(), database }
    }

    fn sql(&self, sql: &str) -> String {
        server::server().sql(&self.database, sql)
    }

    /// How often the server has refused a statement on this of our tables.
    fn errors(&self, what: &str) -> usize {
        let log = std::fs::read_to_string(server::server().directory().join("log")).unwrap_or_default();
        log.lines().filter(|line| line.contains(what)).count()
    }

    async fn is_open(&self, order: OrderNo) -> bool {
        self.first.store().order_is_open(order).await.unwrap()
    }

    /// The second node leaves, and the first works everything.
    async fn move_all(&self) {
        self.second.shutdown(Duration::from_secs(5)).await;
        until("the first node works it", async || is_here(&self.first, self.destination).await).await;
    }

    async fn end(self) {
        self.second.shutdown(Duration::from_secs(1)).await;
        self.first.shutdown(Duration::from_secs(1)).await;
        server::drop(&self.database);
    }
}

async fn is_here(engine: &Engine, destination: DestinationNo) -> bool {
    engine
        .look(move |view| view.lane(destination).is_some() && !view.is_elsewhere(destination))
        .await
        .unwrap()
}

async fn is_paused(engine: &Engine, destination: DestinationNo) -> bool {
    engine.look(move |view| view.lane(destination).unwrap().state().standing.paused.is_some()).await.unwrap()
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(20), async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited in vain until {what}");
}

async fn publish(engine: &Engine, account: AccountNo, destination: DestinationNo) -> DeliveryId {
    let now = engine.now().wall;
    let first = engine.number(2);
    let event_type = EventType::parse("order.paid").unwrap();
    let sequence = Sequence::from_stored(first.get() + 1);
    let id = DeliveryId::numbered(sequence, engine.draw());
    let incoming = Incoming::new(id, sequence.get(), event_type.clone());
    let delivery = accept(now, incoming, &Policy::default(), &Terms::default());
    let message = Message {
        id: EventId::numbered(first, engine.draw()),
        event_type,
        accepted_at: now,
        payload: Bytes::from_static(b"{}"),
        body: Body::Json,
    };
    let event = NewEvent {
        account,
        message: Arc::new(message),
        occurred_at: now,
        expires_at: None,
        deliver_at: None,
        ordering_key: None,
        priority: delivery.priority,
        external_id: None,
        deliveries: vec![(destination, delivery)],
    };
    let accept = Accept { now, events: vec![event], idempotency: None, outbox: None };
    assert!(matches!(engine.store().accept(accept).await.unwrap(), Accepted::Stored(_)));
    id
}

/// Posts orders one behind the other, without waiting for the first; the number of the last.
async fn post_all(engine: &Engine, destination: DestinationNo, orders: &[&str]) -> OrderNo {
    let post =
        |order: &&str| Box::pin(engine.store().post_order(destination, order.as_bytes().to_vec(), None));
    let mut posting: Vec<Pin<Box<_>>> = orders.iter().map(post).collect();
    let mut last = OrderNo(0);
    std::future::poll_fn(|context| {
        posting.retain_mut(|order| match order.as_mut().poll(context) {
            Poll::Ready(no) => {
                last = last.max(no.unwrap());
                false
            }
            Poll::Pending => true,
        });
        if posting.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    last
}

/// Goal: pause and resume, posted in this order, leave a destination that is not paused; and the other way round.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn orders_are_carried_out_in_the_order_of_their_numbers() {
    let pair = Pair::new("in_order").await;
    for round in 0..30 {
        let orders = if round % 2 == 0 { ["pause", "resume"] } else { ["resume", "pause"] };
        let last = post_all(&pair.first, pair.destination, &orders.repeat(8)).await;
        until("all are carried out", async || {
            !pair.is_open(last).await && pair.sql("select count(*) from tidegate.orders").trim() == "0"
        })
        .await;
        assert_eq!(is_paused(&pair.second, pair.destination).await, round % 2 == 1, "round {round}");
    }
    pair.end().await;
}

/// Goal: whoever takes over a destination does what was wanted of it, even if it cannot read that at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_that_cannot_be_read_after_a_claim_is_carried_out_later() {
    let pair = Pair::new("after_claim").await;
    let insert = format!(
        "insert into tidegate.orders (destination_no, body) values ({}, 'pause')",
        pair.destination.0
    );
    pair.sql(&insert);
    pair.sql("alter table tidegate.orders rename to orders_away");
    pair.move_all().await;
    until("it could not be read", async || pair.errors("\"tidegate.orders\" does not exist") > 0).await;
    assert!(!is_paused(&pair.first, pair.destination).await);
    pair.sql("alter table tidegate.orders_away rename to orders");
    until("it is paused", async || is_paused(&pair.first, pair.destination).await).await;
    until("the order has ended", async || pair.sql("select count(*) from tidegate.orders").trim() == "0")
        .await;
    pair.end().await;
}

/// Goal: an order that names a delivery is carried out although that cannot be read at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_whose_delivery_cannot_be_read_is_carried_out_later() {
    let pair = Pair::new("unreadable").await;
    pair.first.command(pair.destination, Command::Pause, None).await.unwrap();
    let id = publish(&pair.first, pair.account, pair.destination).await;
    let stored = pair.first.store().delivery(pair.account, id).await.unwrap().unwrap().delivery;
    pair.sql("alter table tidegate.open_deliveries rename to open_away");
    let withdrawing = tokio::spawn({
        let (first, destination) = (pair.first.clone(), pair.destination);
        async move { first.withdraw(vec![(destination, stored)], Withdrawn::ByRequest, None).await }
    });
    // A line of the statement that looks for one delivery.
    until("it could not be read", async || {
        pair.errors("null::text as end_code, null::bigint as finished_at") > 0
    })
    .await;
    pair.sql("alter table tidegate.open_away rename to open_deliveries");
    withdrawing.await.unwrap().unwrap();
    let stored = pair.first.store().delivery(pair.account, id).await.unwrap().unwrap().delivery;
    assert_eq!(stored.status.word(), "cancelled");
    pair.end().await;
}

/// Goal: an order is not carried out a second time by the next node, after somebody has wanted the opposite.
/// Method: its end cannot be written for a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_is_not_carried_out_again_by_the_next_node() {
    let pair = Pair::new("once").await;
    pair.sql(
        "create function tidegate.deny() returns trigger language plpgsql as $$
         begin raise exception 'not now' using errcode = '40001'; end $$;
         create trigger deny before delete on tidegate.orders for each row execute function tidegate.deny()",
    );
    let order = post_all(&pair.first, pair.destination, &["pause"]).await;
    until("it is paused", async || is_paused(&pair.second, pair.destination).await).await;
    until("its end could not be written", async || pair.errors("not now") >= 4).await;
    assert!(pair.is_open(order).await);
    pair.sql("drop trigger deny on tidegate.orders");
    // The store takes in what comes again when it has tried.
    until("it is resumed", async || pair.second.command(pair.destination, RESUME, None).await.is_ok()).await;
    assert!(!is_paused(&pair.second, pair.destination).await);
    pair.move_all().await;
    until("the order has ended", async || !pair.is_open(order).await).await;
    assert!(!is_paused(&pair.first, pair.destination).await, "it was carried out again");
    pair.end().await;
}

/// Two nodes on a database whose disk can be full.
impl Pair {
    fn line(&self, action: &str) -> Option<AuditEntry> {
        Some(AuditEntry {
            account: self.account,
            at: self.first.now().wall,
            actor: None,
            action: action.to_owned(),
            subject: "it".to_owned(),
            detail: "{}".to_owned(),
        })
    }

    /// The actions in the audit log, the oldest first.
    async fn lines(&self) -> Vec<String> {
        let found = self.first.store().audit_log(self.account, None, 99).await.unwrap();
        found.items.into_iter().rev().map(|(_, entry)| entry.action).collect()
    }

    fn fill(&self) -> Full<'_> {
        self.sql(
            "create or replace function tidegate.full_disk() returns trigger language plpgsql as $$
             begin raise exception 'no room' using errcode = '53100'; end $$;
             create trigger full_disk before update on tidegate.seats execute function tidegate.full_disk()",
        );
        Full(self)
    }

    async fn finds_room(&self) {
        until("both have found it", async || {
            !self.first.store().status().waits && !self.second.store().status().waits
        })
        .await;
    }
}

/// A full disk. It has room again when this is dropped: a store that has something to write does not end before.
struct Full<'p>(&'p Pair);

impl Drop for Full<'_> {
    fn drop(&mut self) {
        self.0.sql("drop trigger full_disk on tidegate.seats");
    }
}

/// What is wanted is answered at once.
async fn at_once(engine: &Engine, pair: &Pair, command: Command, action: &str) -> Result<(), Stopped> {
    let asked = engine.command(pair.destination, command, pair.line(action));
    tokio::time::timeout(Duration::from_secs(4), asked).await.expect("at once")
}

/// Goal: on a full disk nobody waits. Nothing is begun that could not be written; what was begun a moment before is told of as
/// unknown, and comes to be with its line in the audit log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_full_disk_nothing_is_begun_and_nobody_waits() {
    let pair = Pair::new("full").await;
    until("the store is at rest", async || !pair.second.store().status().waits).await;
    let full = pair.fill();
    let begun = at_once(&pair.second, &pair, Command::Pause, "first").await;
    assert!(matches!(begun, Err(Stopped::Unknown(StoreError::Full))), "{begun:?}");
    assert!(is_paused(&pair.second, pair.destination).await);
    let refused = at_once(&pair.second, &pair, RESUME, "second").await;
    assert!(matches!(refused, Err(Stopped::Store(StoreError::Full))), "{refused:?}");
    assert!(is_paused(&pair.second, pair.destination).await, "it was done all the same");
    assert!(pair.lines().await.is_empty());
    drop(full);
    pair.finds_room().await;
    until("the line of what was begun is in", async || pair.lines().await == ["first"]).await;
    at_once(&pair.second, &pair, RESUME, "third").await.unwrap();
    assert_eq!(pair.lines().await, ["first", "third"]);

    // The same for what another node is to do.
    let full = pair.fill();
    for action in ["fourth", "fifth"] {
        let refused = at_once(&pair.first, &pair, Command::Pause, action).await;
        assert!(matches!(refused, Err(Stopped::Store(StoreError::Full))), "{refused:?}");
    }
    drop(full);
    pair.finds_room().await;
    assert_eq!(pair.sql("select count(*) from tidegate.orders").trim(), "0");
    at_once(&pair.first, &pair, Command::Pause, "sixth").await.unwrap();
    assert!(is_paused(&pair.second, pair.destination).await);
    assert_eq!(pair.lines().await, ["first", "third", "sixth"]);
    pair.end().await;
}

/// Goal: a database out of reach is answered at once, too, and what was refused is not done when it is back.
/// Method: nobody can connect to it, and who is connected is thrown out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_database_a_node_refuses_at_once_what_is_wanted() {
    let pair = Pair::new("away").await;
    let name = &pair.database;
    let turn = |connections: bool| {
        let server = server::server();
        server.sql("postgres", &format!("alter database {name} with allow_connections {connections}"));
        let sessions = format!("from pg_stat_activity where datname = '{name}'");
        server.sql("postgres", &format!("select pg_terminate_backend(pid) {sessions}"));
    };
    turn(false);
    // A node that is alone with its memory has nothing to write before somebody wants something.
    let mut answer = Ok(());
    until("it is missed", async || {
        answer = at_once(&pair.second, &pair, RESUME, "resume").await;
        answer.is_err() && pair.second.store().status().waits
    })
    .await;
    let refused = at_once(&pair.second, &pair, Command::Pause, "pause").await;
    assert!(matches!(refused, Err(Stopped::Store(StoreError::Unavailable(_)))), "{refused:?}");
    turn(true);
    until("it is back", async || !pair.second.store().status().waits).await;
    assert!(!is_paused(&pair.second, pair.destination).await);
    assert!(!pair.lines().await.iter().any(|action| action == "pause"));
    pair.end().await;
}
