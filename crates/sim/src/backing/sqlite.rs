//! The real store, driven from the simulation: every verb is waited for, so that a run stays one trace.
//!
//! A crash is the worst one: the next life starts from a copy of the files as they lie there, with the log not yet folded
//! into the file, and the process before it never gets to close anything. What the store says is believed only as far as it
//! is true: what was committed is read back and compared.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use bytes::Bytes;
use tidegate_core::delivery::{Delivery, OwnTime, Status};
use tidegate_core::id::{AccountId, DeliveryId, DestinationId, EventId};
use tidegate_core::lane::{LastStop, SavedLane};
use tidegate_core::policy::Policy;
use tidegate_core::refill::Refill;
use tidegate_core::time::Timestamp;
use tidegate_engine::dispatcher::{self, Lane};
use tidegate_store::catalogue::{Account, Change, Changed, Destination, Edit};
use tidegate_store::delivery::StoredAttempt;
use tidegate_store::event::{Accept, Accepted, Body, Item, Message, NewEvent};
use tidegate_store::lane::{Of, Overdue, RefillQuery};
use tidegate_store::list::{DeliveryFilter, PageQuery, Stage};
use tidegate_store::record::{Commit, LaneSave, Record, Settled};
use tidegate_store::sqlite::{Opened, Options};
use tidegate_store::{AccountNo, DestinationNo, Store};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use super::folder::Folder;
use super::{Op, Restarted, RestartedLane, SWEEP};

/// A commit that takes longer than this will not come: the store has refused it.
const PATIENCE: Duration = Duration::from_secs(60);
/// What every event carries.
const PAYLOAD: &[u8] = b"{}";

/// The durable state of a simulated node, in a store of its own.
pub struct Sqlite {
    runtime: Runtime,
    store: Store,
    commits: Receiver<Commit>,
    destinations: Vec<Known>,
    tickets: u64,
    /// What must be open, by what was committed.
    open: HashSet<DeliveryId>,
    /// As of the last commit.
    next_expiry: Option<Timestamp>,
    // Last, so that the store has let go of its files before they are taken away.
    folder: Folder,
}

/// A destination as the store knows it.
#[derive(Debug)]
struct Known {
    account: AccountNo,
    no: DestinationNo,
    /// Lines are looked at in the order of their keys: where the next look begins.
    after_key: Option<Arc<str>>,
}

impl std::fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sqlite").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Sqlite {
    pub(super) fn new(now: Timestamp, destinations: &[(dispatcher::AccountNo, Arc<Policy>)]) -> Self {
        let runtime = must(Builder::new_current_thread().build());
        let folder = must(Folder::new());
        let (opened, commits) = open(&folder);
        let mut sqlite = Self {
            runtime,
            store: opened.store,
            commits,
            destinations: Vec::new(),
            tickets: 0,
            open: HashSet::new(),
            next_expiry: None,
            folder,
        };
        sqlite.add_destinations(now, destinations);
        sqlite
    }

    fn add_destinations(&mut self, now: Timestamp, destinations: &[(dispatcher::AccountNo, Arc<Policy>)]) {
        let most = destinations.iter().map(|(account, _)| account.0 + 1).max().unwrap_or(0);
        let accounts = (0..most).map(|number| Edit::AddAccount(account(number, now))).collect();
        let (accounts, _) = self.change(accounts);
        let rows = (0_u32..).zip(destinations).map(|(place, (account, _))| {
            Edit::AddDestination(destination(place, accounts[account.0 as usize], now))
        });
        let (_, numbers) = self.change(rows.collect());
        self.destinations = (numbers.into_iter().zip(destinations))
            .map(|(no, (account, _))| Known { account: accounts[account.0 as usize], no, after_key: None })
            .collect();
    }

    fn change(&self, edits: Vec<Edit>) -> (Vec<AccountNo>, Vec<DestinationNo>) {
        match self.wait(self.store.change(Change { edits, audit: None })) {
            Changed::Done { accounts, destinations } => (accounts, destinations),
            lost => panic!("nobody else changes anything in a simulation: {lost:?}"),
        }
    }

    fn wait<T, E: Display>(&self, verb: impl Future<Output = Result<T, E>>) -> T {
        must(self.runtime.block_on(verb))
    }

    pub(super) fn open_count(&self, lane: usize) -> usize {
        count(self.store.waiting(Of::Destination(self.destinations[lane].no)).deliveries)
    }
    pub(super) fn open_total(&self) -> usize {
        (0..self.destinations.len()).map(|lane| self.open_count(lane)).sum()
    }

    pub(super) fn find_open(
        &self,
        lane: usize,
        looks: usize,
        mut such: impl FnMut(&Delivery) -> bool,
    ) -> Option<Delivery> {
        let Known { account, no, .. } = self.destinations[lane];
        let page = PageQuery { account, before: None, limit: looks, oldest_first: true };
        let filter = DeliveryFilter {
            destinations: Some(vec![no]),
            stages: Some(vec![Stage::Open]),
            ..DeliveryFilter::default()
        };
        let found = self.wait(self.store.deliveries(page, filter)).items.into_iter();
        found.map(|stored| stored.delivery).find(|delivery| such(delivery))
    }

    pub(super) fn commit(&mut self, now: Timestamp, group: &mut [Op]) {
        let events: Vec<NewEvent> = group.iter().filter_map(|op| self.event(op, now)).collect();
        let expected: Vec<EventId> = events.iter().map(|event| event.message.id).collect();
        let ticket = group.iter().any(|op| !matches!(op, Op::Accept { .. })).then(|| {
            self.tickets += 1;
            self.store.record(Record { ticket: self.tickets, ..self.record(now, group) });
            self.tickets
        });
        if !events.is_empty() {
            let accepted =
                self.wait(self.store.accept(Accept { now, events, idempotency: None, outbox: None }));
            let all = expected.iter().map(|event| Item::New(*event)).collect();
            assert_eq!(accepted, Accepted::Stored(all), "every event is new");
        }
        self.await_commit(ticket, &expected);
        self.note_what_changed(group);
        self.read_back(group);
    }

    /// One that is final stays so: which of the settled ones were open until now?
    fn note_what_changed(&mut self, group: &mut [Op]) {
        for op in group {
            match op {
                Op::Accept { delivery, .. } if !delivery.status.is_final() => {
                    self.open.insert(delivery.id);
                }
                Op::Settle { delivery, changed, .. } if delivery.status.is_final() => {
                    *changed = self.open.remove(&delivery.id);
                }
                Op::Settle { delivery, changed, .. } => *changed = self.open.contains(&delivery.id),
                Op::Accept { .. } | Op::Save { .. } => {}
            }
        }
    }

    /// The store has what it was given, and keeps what was final before; and what goes stale next is found by its index.
    /// All is asked at once: a question to a thread costs more than its answer.
    fn read_back(&mut self, group: &[Op]) {
        let mut newest = HashMap::new();
        for op in group {
            if let Op::Accept { lane, delivery, .. } | Op::Settle { lane, delivery, changed: true, .. } = op {
                newest.insert(delivery.id, (self.destinations[lane.index()].account, delivery));
            }
        }
        let store = &self.store;
        let (stored, first) = self.runtime.block_on(async {
            let mut looks = JoinSet::new();
            for (id, (account, _)) in &newest {
                let (store, account, id) = (store.clone(), *account, *id);
                looks.spawn(async move { store.delivery(account, id).await });
            }
            let first = store.overdue(Timestamp::MAX, 1).await;
            (looks.join_all().await, first)
        });
        assert_eq!(stored.len(), newest.len());
        for stored in stored {
            let stored = must(stored).expect("what was accepted is in the store").delivery;
            assert_eq!(Some(&stored), newest.get(&stored.id).map(|(_, given)| &***given), "as it was given");
        }
        self.next_expiry = must(first).first().and_then(|overdue| overdue.delivery.expires_at);
    }

    fn event(&self, op: &Op, now: Timestamp) -> Option<NewEvent> {
        let Op::Accept { lane, event, delivery, .. } = op else { return None };
        let Known { account, no, .. } = self.destinations[lane.index()];
        let message = Message {
            id: *event,
            event_type: delivery.event_type.clone(),
            accepted_at: now,
            payload: Bytes::from_static(PAYLOAD),
            body: Body::Json,
        };
        let deliver_at = match delivery.status {
            Status::RetryScheduled { at, reason: OwnTime::Scheduled } => Some(at),
            _ => None,
        };
        Some(NewEvent {
            account,
            message: Arc::new(message),
            occurred_at: delivery.place.occurred_at,
            expires_at: delivery.expires_at,
            deliver_at,
            ordering_key: delivery.ordering_key.clone(),
            priority: delivery.priority,
            external_id: None,
            deliveries: vec![(no, (**delivery).clone())],
        })
    }

    fn record(&self, now: Timestamp, group: &[Op]) -> Record {
        let mut record = Record { now, ..Record::default() };
        for op in group {
            match op {
                Op::Accept { .. } => {}
                Op::Settle { lane, delivery, attempt, .. } => {
                    let Known { account, no: destination, .. } = self.destinations[lane.index()];
                    let attempt = attempt.as_ref().map(|(id, attempt, report)| StoredAttempt {
                        id: *id,
                        delivery: delivery.id,
                        destination,
                        number: delivery.attempts_made,
                        started_at: attempt.started.wall,
                        response_time: report.elapsed,
                        timeout: attempt.timeout,
                        outcome: report.outcome,
                        error: None,
                        response_headers: Vec::new(),
                        response_body: Vec::new(),
                        probe: attempt.probe,
                    });
                    record.settled.push(Settled {
                        account,
                        destination,
                        delivery: delivery.clone(),
                        event: None,
                        attempt,
                        epoch: None,
                    });
                }
                Op::Save { lane, state, timeouts, .. } => record.lanes.push(LaneSave {
                    destination: self.destinations[lane.index()].no,
                    state: Some(state.clone()),
                    timeouts: timeouts.clone(),
                    in_flight: 0,
                    epoch: None,
                }),
            }
        }
        record
    }

    /// The commit that names the record, and one that names the events: as the engine's driver hears of them.
    fn await_commit(&self, ticket: Option<u64>, events: &[EventId]) {
        let (mut recorded, mut accepted) = (None, Vec::new());
        while recorded != ticket || accepted.len() < events.len() {
            let commit = self.commits.recv_timeout(PATIENCE);
            let commit = commit.unwrap_or_else(|_| panic!("the store did not commit record {ticket:?}"));
            recorded = commit.recorded.last().copied().or(recorded);
            accepted.extend(commit.accepted.iter().map(|event| event.message.id));
        }
        assert_eq!(accepted, events, "a commit names every event once, in order");
    }

    pub(super) fn refill(&mut self, lane: &Lane, now: Timestamp) -> Refill {
        let known = &self.destinations[lane.id().index()];
        let query = RefillQuery {
            destination: known.no,
            policy: lane.shared_policy(),
            wanted: lane.wanted(),
            halted: lane.halted().iter().map(|halted| halted.line.clone()).collect(),
            now,
            after_key: known.after_key.clone(),
        };
        let refilled = self.wait(self.store.refill(query));
        self.destinations[lane.id().index()].after_key = refilled.after_key;
        refilled.refill
    }

    pub(super) const fn next_expiry(&self) -> Option<Timestamp> {
        self.next_expiry
    }

    pub(super) fn stale(&self, now: Timestamp) -> Vec<(usize, Delivery)> {
        let found = self.wait(self.store.overdue(now, SWEEP)).into_iter();
        found.map(|Overdue { destination, delivery }| (self.place(destination), delivery)).collect()
    }

    fn place(&self, destination: DestinationNo) -> usize {
        let known = self.destinations.iter().position(|known| known.no == destination);
        known.expect("the simulation made all destinations")
    }

    pub(super) fn restart(&mut self, last_stop: LastStop) -> Restarted {
        let killed = match last_stop {
            LastStop::Clean => {
                self.runtime.block_on(self.store.close());
                None
            }
            LastStop::Crash => Some(must(self.folder.kill())),
        };
        let (opened, commits) = open(&self.folder);
        self.store = opened.store;
        self.commits = commits;
        if let Some(killed) = killed {
            must(std::fs::remove_dir_all(killed));
        }
        assert_eq!(opened.last_stop, last_stop, "the store knows how the last process ended");
        let mut rows = opened.catalogue.destinations;
        assert_eq!(rows.len(), self.destinations.len(), "the catalogue has every destination");
        rows.sort_by_key(|row| row.id);
        let known = |row: Destination| Known { account: row.account, no: row.no, after_key: None };
        self.destinations = rows.into_iter().map(known).collect();
        let mut lanes: Vec<RestartedLane> =
            self.destinations.iter().map(|_| RestartedLane { saved: None, backlog: false }).collect();
        let open: u64 = opened.lanes.iter().map(|stored| stored.open).sum();
        assert_eq!(count(open), self.open.len(), "what was open is open again, and nothing else");
        for stored in opened.lanes {
            let saved = stored.state.map(|state| SavedLane::decode(&state, stored.timeouts.as_deref()));
            lanes[self.place(stored.destination)] = RestartedLane {
                saved: saved.map(|saved| saved.expect("a stored lane can be read")),
                backlog: stored.open > 0,
            };
        }
        Restarted { last_stop: opened.last_stop, sequence: opened.sequence, lanes }
    }
}

fn open(folder: &Folder) -> (Opened, Receiver<Commit>) {
    let (commits, receiver) = channel();
    let on_commit = Box::new(move |commit| drop(commits.send(commit)));
    (must(Store::open(Options { data_dir: folder.now(), readers: 1, on_commit })), receiver)
}

/// A simulation without its store shows nothing: it ends, and says why.
fn must<T, E: Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("the store of the simulated node: {error}"))
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn account(number: u32, now: Timestamp) -> Account {
    Account {
        no: AccountNo(0),
        id: AccountId::from_bits(u128::from(number) + 1),
        external_id: None,
        document: "{}".to_owned(),
        settings: "{}".to_owned(),
        version: 1,
        created_at: now,
    }
}

fn destination(place: u32, account: AccountNo, now: Timestamp) -> Destination {
    Destination {
        no: DestinationNo(0),
        id: DestinationId::from_bits(u128::from(place) + 1),
        account,
        external_id: None,
        document: "{}".to_owned(),
        secrets: Vec::new(),
        version: 1,
        created_at: now,
        updated_at: now,
    }
}
