//! A store in a place of its own, with two accounts and two destinations each.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use tidegate_core::delivery::{Delivery, Priority};
use tidegate_core::draw::Draw;
use tidegate_core::id::{AccountId, AttemptId, DeliveryId, DestinationId, EventId};
use tidegate_core::outcome::Outcome;
use tidegate_core::pattern::EventType;
use tidegate_core::policy::Policy;
use tidegate_core::refill::Wanted;
use tidegate_core::sequence::{Sequence, Share};
use tidegate_core::settle::{self, Incoming, Terms};
use tidegate_core::time::{Millis, Timestamp};
use tidegate_store::catalogue::{Account, Change, Changed, Destination, Edit};
use tidegate_store::delivery::StoredAttempt;
use tidegate_store::event::{Accept, Accepted, Body, Message, NewEvent};
use tidegate_store::lane::{RefillQuery, Refilled};
use tidegate_store::open::Opened;
use tidegate_store::record::{Commit, Record, Settled};
use tidegate_store::{AccountNo, DestinationNo, Store};

use crate::place::{Engine, Place, claim_all, end_leases, open};

/// The first moment of every test.
pub const START: Timestamp = Timestamp::from_millis(1_790_000_000_000);

/// What the commits of a store said.
pub type Commits = Arc<Mutex<Vec<Commit>>>;

/// A store to try things on.
pub struct Bench {
    pub store: Store,
    pub commits: Commits,
    pub opened: Option<Opened>,
    sequence: Mutex<Sequence>,
    pub place: Place,
}

impl Bench {
    /// A new store with two accounts, 1 and 2, and two destinations each: 1 and 2 of the first, 3 and 4 of the second.
    pub async fn new(engine: Engine) -> Self {
        Self::at(Place::new(engine)).await
    }

    /// The same in this place, which is empty.
    pub async fn at(place: Place) -> Self {
        let commits = Commits::default();
        let opened = open(&place, &commits).unwrap();
        claim_all(&opened.store).await;
        let bench = Self {
            store: opened.store.clone(),
            commits,
            opened: Some(opened),
            sequence: Mutex::new(Sequence::at(START)),
            place,
        };
        for account in 1..=2 {
            let edits = vec![Edit::AddAccount(new_account(account))];
            assert!(matches!(bench.change(edits).await, Changed::Done { .. }));
            let destination =
                |number| Edit::AddDestination(new_destination(account, 2 * account - 2 + number));
            assert!(matches!(bench.change(vec![destination(1), destination(2)]).await, Changed::Done { .. }));
        }
        bench
    }

    /// The store in a place where there is one already.
    pub async fn over(place: Place) -> Self {
        let commits = Commits::default();
        let mut opened = open(&place, &commits).unwrap();
        opened.last_stop = match opened.store.cluster() {
            Some(_) => claim_all(&opened.store).await,
            None => opened.last_stop,
        };
        let sequence = Mutex::new(opened.sequence);
        Self { store: opened.store.clone(), commits, opened: Some(opened), sequence, place }
    }

    /// Closes the store, or lets go of it as a crash would, and opens it again.
    pub async fn reopen(mut self, close: bool) -> Self {
        if close {
            self.store.close().await;
        }
        self.opened = None;
        let Self { store, commits, sequence, place, .. } = self;
        drop(store);
        let mut opened = open(&place, &commits).unwrap();
        if opened.store.cluster().is_some() {
            end_leases(&place);
            opened.last_stop = claim_all(&opened.store).await;
        }
        Self { store: opened.store.clone(), commits, opened: Some(opened), sequence, place }
    }

    pub async fn change(&self, edits: Vec<Edit>) -> Changed {
        self.store.change(Change { edits, audit: None }).await.unwrap()
    }

    /// So many numbers in a row.
    pub fn numbers(&self, now: Timestamp, count: u64) -> u64 {
        let mut last = self.sequence.lock().unwrap();
        let (first, end) = last.next(now, count, Share::All);
        *last = end;
        first.get()
    }

    /// An event for destinations, at `now`.
    pub fn event(&self, account: u32, destinations: &[u32], now: Timestamp) -> NewEvent {
        self.event_of(account, destinations, now, |_| {})
    }

    /// The same, changed before its deliveries are made.
    pub fn event_of(
        &self,
        account: u32,
        destinations: &[u32],
        now: Timestamp,
        edit: impl FnOnce(&mut Incoming),
    ) -> NewEvent {
        let first = self.numbers(now, 1 + destinations.len() as u64);
        let mut incoming = Incoming::new(delivery_id(0), 0, EventType::parse("order.paid").unwrap());
        edit(&mut incoming);
        let deliveries = destinations.iter().zip(first + 1..).map(|(destination, number)| {
            let incoming = Incoming { id: delivery_id(number), sequence: number, ..incoming.clone() };
            let delivery = settle::accept(now, incoming, &Policy::default(), &Terms::default());
            (DestinationNo(*destination), delivery)
        });
        let message = Message {
            id: EventId::numbered(Sequence::from_stored(first), Draw(first.wrapping_mul(7) << 9)),
            event_type: incoming.event_type.clone(),
            accepted_at: now,
            payload: Bytes::from(format!("{{\"n\":{first}}}")),
            body: Body::Json,
        };
        NewEvent {
            account: AccountNo(account),
            message: Arc::new(message),
            occurred_at: incoming.occurred_at.unwrap_or(now),
            expires_at: incoming.expires_at,
            deliver_at: incoming.deliver_at,
            ordering_key: incoming.ordering_key.clone(),
            priority: incoming.priority,
            external_id: None,
            deliveries: deliveries.collect(),
        }
    }

    /// Accepts events that are new.
    pub async fn accept(&self, events: Vec<NewEvent>, now: Timestamp) {
        let count = events.len();
        let accepted =
            self.store.accept(Accept { now, events, idempotency: None, outbox: None }).await.unwrap();
        assert!(matches!(accepted, Accepted::Stored(items) if items.len() == count));
    }

    /// Accepts one event for each destination and gives back their deliveries.
    pub async fn deliver(
        &self,
        account: u32,
        destination: u32,
        count: usize,
        now: Timestamp,
    ) -> Vec<Delivery> {
        let events: Vec<NewEvent> = (0..count).map(|_| self.event(account, &[destination], now)).collect();
        let deliveries = events.iter().map(|event| event.deliveries[0].1.clone()).collect();
        self.accept(events, now).await;
        deliveries
    }

    /// Records results and waits for their commit.
    pub async fn record(&self, record: Record) {
        let ticket = self.numbers(START, 1);
        self.store.record(Record { ticket, ..record });
        self.wait_for(|commit| commit.recorded.contains(&ticket)).await;
    }

    /// Waits until some commit is such a one.
    pub async fn wait_for(&self, wanted: impl Fn(&Commit) -> bool) {
        for _ in 0..2_000 {
            if self.commits.lock().unwrap().iter().any(&wanted) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("no such commit within ten seconds");
    }

    /// An attempt for a delivery, with this outcome.
    pub fn attempt(
        &self,
        destination: u32,
        delivery: &Delivery,
        outcome: Outcome,
        now: Timestamp,
    ) -> StoredAttempt {
        let number = self.numbers(now, 1);
        StoredAttempt {
            id: AttemptId::numbered(Sequence::from_stored(number), Draw(number << 11)),
            delivery: delivery.id,
            destination: DestinationNo(destination),
            number: delivery.attempts_made,
            started_at: now,
            response_time: Millis::new(12),
            timeout: Millis::seconds(10),
            outcome,
            error: None,
            response_headers: Vec::new(),
            response_body: Vec::new(),
            probe: None,
        }
    }

    /// The delivery as the rules leave it after an attempt, with that attempt.
    pub fn settled(
        &self,
        account: u32,
        destination: u32,
        delivery: &Delivery,
        outcome: Outcome,
        now: Timestamp,
    ) -> Settled {
        let mut delivery = delivery.clone();
        settle::settle(now, &mut delivery, &Policy::default(), outcome, Draw(1 << 63));
        let attempt = Some(self.attempt(destination, &delivery, outcome, now));
        Settled {
            account: AccountNo(account),
            destination: DestinationNo(destination),
            delivery: Box::new(delivery),
            event: None,
            attempt,
            epoch: None,
        }
    }

    /// Attempts with this outcome for all of them.
    pub async fn settle(
        &self,
        account: u32,
        destination: u32,
        deliveries: &[Delivery],
        outcome: Outcome,
        now: Timestamp,
    ) -> Vec<Delivery> {
        let settled: Vec<Settled> = deliveries
            .iter()
            .map(|delivery| self.settled(account, destination, delivery, outcome, now))
            .collect();
        let after = settled.iter().map(|settled| (*settled.delivery).clone()).collect();
        self.record(Record { now, settled, ..Record::default() }).await;
        after
    }

    /// A refill with room for everything.
    pub async fn refill(&self, destination: u32, policy: &Policy, now: Timestamp) -> Refilled {
        let wanted = Wanted { per_shelf: 1_000, per_line: 1_000, lines: 1_000, timed: 1_000 };
        let query = RefillQuery {
            destination: DestinationNo(destination),
            policy: Arc::new(policy.clone()),
            wanted,
            halted: Vec::new(),
            now,
            after_key: None,
        };
        self.store.refill(query).await.unwrap()
    }

    /// The numbers of what a refill brings.
    pub async fn waiting_numbers(&self, destination: u32, now: Timestamp) -> Vec<u64> {
        let refilled = self.refill(destination, &Policy::default(), now).await;
        refilled.refill.deliveries.iter().map(|delivery| delivery.place.sequence).collect()
    }
}

pub fn delivery_id(number: u64) -> DeliveryId {
    DeliveryId::numbered(Sequence::from_stored(number), Draw(number.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}

pub fn later(ms: i64) -> Timestamp {
    START + Millis::new(ms)
}

pub fn new_account(number: u32) -> Account {
    Account {
        no: AccountNo(0),
        id: AccountId::from_bits(u128::from(number)),
        external_id: Some(format!("customer-{number}")),
        document: "{}".to_owned(),
        settings: "{}".to_owned(),
        version: 1,
        created_at: START,
    }
}

pub fn new_destination(account: u32, number: u32) -> Destination {
    Destination {
        no: DestinationNo(0),
        id: DestinationId::from_bits(u128::from(number)),
        account: AccountNo(account),
        external_id: Some(format!("hook-{number}")),
        document: format!("{{\"name\":\"{number}\"}}"),
        secrets: vec![1, 2, 3],
        version: 1,
        created_at: START,
        updated_at: START,
    }
}

pub fn priority(level: u64) -> Priority {
    Priority::new(level).unwrap()
}

pub const OK: Outcome = Outcome::Success { status: 200 };
pub const ERROR: Outcome = Outcome::HttpError { status: 500 };
