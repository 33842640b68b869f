//! Two nodes on one database: who works what, what one accepts for another, and what they may never do twice.

use std::sync::Arc;
use std::time::Duration;

use tidegate_core::delivery::Delivery;
use tidegate_core::id::ReplayId;
use tidegate_core::lane::LastStop;
use tidegate_core::sequence::{Sequence, Share};
use tidegate_core::slots::{Epoch, Seat, Slot};
use tidegate_core::time::Millis;
use tidegate_store::catalogue::{Change, Edit};
use tidegate_store::cluster::{Cluster, News, OrderNo};
use tidegate_store::event::{Accept, Accepted, ExternalId, IdempotencyKey, Item, NewEvent, NewReplay};
use tidegate_store::job::{Job, JobKind, JobState, Progress};
use tidegate_store::lane::{Of, Waiting};
use tidegate_store::record::{LaneSave, OrderDone, Record, Settled};
use tidegate_store::{AccountNo, DestinationNo, Store, StoreError};

use crate::fixture::{Bench, Commits, OK, START, delivery_id, later, new_account};
use crate::place::{Engine, claim_all, end_leases, open};
use crate::server;

/// The first node has all slots but those of destinations 2 and 4, which the second has.
struct Pair {
    first: Bench,
    second: Store,
    commits: Commits,
}

const PASSED_ON: [Slot; 2] = [Slot::new(2), Slot::new(4)];

impl Pair {
    async fn new() -> Self {
        let first = Bench::new(Engine::Postgres).await;
        let commits = Commits::default();
        let second = open(&first.place, &commits).unwrap().store;
        let pair = Self { first, second, commits };
        pair.a().give_back(PASSED_ON.to_vec(), true).await.unwrap();
        assert_eq!(pair.b().claim(PASSED_ON.to_vec()).await.unwrap().len(), 2);
        for cluster in [pair.a(), pair.b()] {
            assert_eq!(cluster.renew(false).await.unwrap().nodes.len(), 2);
            cluster.news().await.unwrap();
        }
        pair
    }
    fn a(&self) -> &Cluster {
        self.first.store.cluster().unwrap()
    }
    fn b(&self) -> &Cluster {
        self.second.cluster().unwrap()
    }
    /// Accepts events on one of both.
    async fn accept(&self, store: &Store, events: Vec<NewEvent>) {
        let accepted =
            store.accept(Accept { now: START, events, idempotency: None, outbox: None }).await.unwrap();
        assert!(matches!(accepted, Accepted::Stored(_)));
    }
    fn sql(&self, sql: &str) -> String {
        server::server().sql(self.first.place.name(), sql)
    }
}

fn brought(news: &News) -> Vec<(u32, u64)> {
    news.brought.iter().map(|brought| (brought.destination.0, brought.delivery.place.sequence)).collect()
}

fn destinations(event: &NewEvent, number: u32) -> (u32, u64) {
    let delivery = event.deliveries.iter().find(|(to, _)| to.0 == number).map(|(_, delivery)| delivery);
    (number, delivery.unwrap().place.sequence)
}

async fn until(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not within ten seconds: {what}");
}

/// Goal: whoever accepts, a delivery reaches the node that works its destination, once, and no other.
#[tokio::test]
async fn what_one_accepts_for_a_slot_of_another_is_brought_there_once() {
    let pair = Pair::new().await;
    let event = pair.first.event(1, &[1, 2], START);
    let expected = destinations(&event, 2);
    let (message, delivery) = (Arc::clone(&event.message), event.deliveries[1].1.clone());
    pair.accept(&pair.first.store, vec![event]).await;
    let news = pair.b().news().await.unwrap();
    assert_eq!(brought(&news), [expected]);
    assert_eq!((&news.brought[0].message, &news.brought[0].delivery), (&message, &delivery));
    assert!(!news.catalogue && !news.missed && !news.more && news.behind.is_empty());
    assert!(brought(&pair.b().news().await.unwrap()).is_empty());
    assert!(brought(&pair.a().news().await.unwrap()).is_empty());

    let events = vec![pair.first.event(1, &[1, 2], START), pair.first.event(2, &[3, 4], START)];
    let expected = [destinations(&events[0], 1), destinations(&events[1], 3)];
    pair.accept(&pair.second, events).await;
    assert_eq!(brought(&pair.a().news().await.unwrap()), expected);
    assert!(brought(&pair.b().news().await.unwrap()).is_empty());
}

/// Goal: a node that holds everything writes nothing for others when it accepts.
#[tokio::test]
async fn who_works_alone_tells_nobody() {
    let bench = Bench::new(Engine::Postgres).await;
    let count = || server::server().sql(bench.place.name(), "select count(*) from tidegate.bulletins");
    let before = count();
    bench.deliver(1, 1, 20, START).await;
    assert_eq!(count(), before);
}

/// Goal: the other node hears of it at once.
#[tokio::test]
async fn a_hint_is_heard() {
    let pair = Pair::new().await;
    for _ in 0..3 {
        pair.accept(&pair.first.store, vec![pair.first.event(1, &[2], START)]).await;
        loop {
            let heard = tokio::time::timeout(Duration::from_secs(10), pair.b().noticed());
            heard.await.expect("within ten seconds");
            // Hints of what came before may still be on their way.
            if !brought(&pair.b().news().await.unwrap()).is_empty() {
                break;
            }
        }
    }
}

/// Goal: an event that a node accepts for a slot that it has lost without knowing still reaches the new owner.
#[tokio::test]
async fn what_is_accepted_for_a_slot_that_was_lost_is_told_to_the_new_owner() {
    let pair = Pair::new().await;
    end_leases(&pair.first.place);
    pair.b().renew(false).await.unwrap();
    assert_eq!(pair.b().claim(vec![Slot::new(1)]).await.unwrap().len(), 1);
    let event = pair.first.event(1, &[1], START);
    let expected = destinations(&event, 1);
    pair.accept(&pair.first.store, vec![event]).await;
    assert_eq!(brought(&pair.b().news().await.unwrap()), [expected]);
}

#[tokio::test]
async fn changes_of_the_catalogue_are_told() {
    let pair = Pair::new().await;
    let change = Change { edits: vec![Edit::AddAccount(new_account(9))], audit: None };
    pair.second.change(change).await.unwrap();
    assert!(pair.a().news().await.unwrap().catalogue);
    assert!(!pair.a().news().await.unwrap().catalogue && !pair.b().news().await.unwrap().catalogue);
}

/// Goal: a slot is worked by one node at a time.
#[tokio::test]
async fn a_slot_is_granted_only_when_it_is_free() {
    let pair = Pair::new().await;
    let wanted = vec![Slot::new(1), Slot::new(2)];
    assert!(pair.b().claim(vec![Slot::new(1)]).await.unwrap().is_empty());
    // Its own again: the answer to the first claim might have been lost.
    let again = pair.b().claim(wanted.clone()).await.unwrap();
    assert_eq!((again.len(), again[0].slot, again[0].epoch.0), (1, Slot::new(2), 3));

    // A lease that ended lets another claim, unless it was renewed before.
    end_leases(&pair.first.place);
    pair.a().renew(false).await.unwrap();
    assert_eq!(pair.b().claim(wanted.clone()).await.unwrap().len(), 1);
    end_leases(&pair.first.place);
    let roll = pair.b().renew(false).await.unwrap().roll;
    let lease = |node| roll.members.iter().find(|member| member.node == node).unwrap().lease_left;
    assert!(lease(pair.a().me()) <= Millis::ZERO && lease(pair.b().me()) > Millis::seconds(9));
    let taken = pair.b().claim(wanted).await.unwrap();
    assert_eq!(taken.len(), 2);
    assert_eq!((taken[0].slot, taken[0].last_stop), (Slot::new(1), LastStop::Crash));
    let roll = pair.a().renew(false).await.unwrap().roll;
    assert_eq!(roll.slots[1].by, Some(pair.b().me()));
    assert_eq!(roll.slots[3].by, Some(pair.a().me()));
}

#[tokio::test]
async fn a_slot_that_was_given_back_says_how() {
    let pair = Pair::new().await;
    pair.first.deliver(1, 1, 3, START).await;
    pair.a().give_back(vec![Slot::new(1)], false).await.unwrap();
    pair.a().give_back(vec![Slot::new(3)], true).await.unwrap();
    let claimed = pair.b().claim(vec![Slot::new(1), Slot::new(3)]).await.unwrap();
    assert_eq!(
        claimed.iter().map(|claimed| claimed.last_stop).collect::<Vec<_>>(),
        [LastStop::Crash, LastStop::Clean]
    );
    let lanes: Vec<_> = claimed[0].lanes.iter().map(|lane| (lane.destination.0, lane.open)).collect();
    assert_eq!(lanes, [(1, 3)]);
}

/// Goal: whoever stops closes and leaves; the others need not wait for its lease.
#[tokio::test]
async fn who_leaves_leaves_everything() {
    let pair = Pair::new().await;
    pair.first.store.close().await;
    assert!(pair.a().leave().await.is_ok());
    assert!(matches!(pair.a().renew(false).await, Err(StoreError::Closed)));
    assert_eq!(pair.b().renew(false).await.unwrap().nodes.len(), 1);
    assert_eq!(claim_all(&pair.second).await, LastStop::Crash, "its own two were never given back");
    let third = open(&pair.first.place, &Commits::default()).unwrap().store;
    assert_eq!(third.cluster().unwrap().seat(), Seat::new(0).unwrap());
}

/// Goal: results of a node whose slot was taken are refused, counted, and told.
#[tokio::test]
async fn results_of_a_stale_node_are_refused_and_counted() {
    let pair = Pair::new().await;
    let (one, three) = (pair.first.deliver(1, 1, 2, START).await, pair.first.deliver(2, 3, 1, START).await);
    end_leases(&pair.first.place);
    pair.b().renew(false).await.unwrap();
    pair.b().claim(vec![Slot::new(1)]).await.unwrap();
    let settled = vec![
        pair.first.settled(1, 1, &one[0], OK, later(5)),
        pair.first.settled(1, 1, &one[1], OK, later(5)),
        pair.first.settled(2, 3, &three[0], OK, later(5)),
    ];
    pair.first.store.record(Record { now: later(5), settled, ..Record::default() });
    pair.first.wait_for(|commit| commit.stale == 2).await;
    assert_eq!(pair.first.store.status().stale, 2);
    for (account, delivery, ended) in [(1, &one[0], false), (1, &one[1], false), (2, &three[0], true)] {
        let found = pair.first.store.delivery(AccountNo(account), delivery.id).await.unwrap().unwrap();
        assert_eq!(found.finished_at.is_some(), ended);
    }
}

/// Goal: what came about before a node lost a slot is refused, though it has the slot again when that is written.
#[tokio::test]
async fn results_of_an_earlier_tenure_are_refused() {
    let pair = Pair::new().await;
    let deliveries = pair.first.deliver(1, 1, 2, START).await;
    let slot = Slot::new(1);
    let earlier = pair.a().renew(false).await.unwrap().roll.slots[slot.index()].epoch;
    pair.a().give_back(vec![slot], true).await.unwrap();
    let current = pair.a().claim(vec![slot]).await.unwrap()[0].epoch;
    let settled =
        |delivery, epoch| Settled { epoch: Some(epoch), ..pair.first.settled(1, 1, delivery, OK, later(5)) };
    let save = |state: &[u8], epoch| LaneSave {
        destination: DestinationNo(1),
        state: Some(state.to_vec()),
        timeouts: None,
        in_flight: 0,
        epoch: Some(epoch),
    };
    let settled = vec![settled(&deliveries[0], earlier), settled(&deliveries[1], current)];
    let lanes = vec![save(b"current", current), save(b"earlier", earlier)];
    pair.first.store.record(Record { now: later(5), settled, lanes, ..Record::default() });
    pair.first.wait_for(|commit| commit.stale == 1).await;
    for (delivery, ended) in deliveries.iter().zip([false, true]) {
        let found = pair.first.store.delivery(AccountNo(1), delivery.id).await.unwrap().unwrap();
        assert_eq!(found.finished_at.is_some(), ended);
    }
    let lanes = pair.second.lanes(vec![DestinationNo(1)]).await.unwrap();
    assert_eq!(lanes[0].state.as_deref(), Some(&b"current"[..]));
}

/// Goal: a node whose place was given to another writes nothing more, and says so.
#[tokio::test]
async fn a_node_whose_place_was_given_away_is_broken() {
    let pair = Pair::new().await;
    pair.sql(&format!("delete from tidegate.nodes where no = {}", pair.a().me().0));
    let third = open(&pair.first.place, &Commits::default()).unwrap().store;
    assert_eq!(third.cluster().unwrap().seat(), pair.a().seat());
    let event = pair.first.event(1, &[1], START);
    let refused = pair
        .first
        .store
        .accept(Accept { now: START, events: vec![event], idempotency: None, outbox: None })
        .await;
    assert!(matches!(&refused, Err(StoreError::Broken(text)) if text.contains("restart")), "{refused:?}");
    assert!(pair.first.store.status().broken);
    assert!(matches!(pair.a().renew(false).await, Err(StoreError::Broken(_))));
}

/// Goal: nodes that register at once sit on seats of their own; who crashed again and again is in nobody's way.
#[tokio::test]
async fn every_node_has_a_seat_of_its_own() {
    let bench = Bench::new(Engine::Postgres).await;
    let place = &bench.place;
    let nodes: Vec<Store> = std::thread::scope(|scope| {
        let open = || open(place, &Commits::default()).unwrap().store;
        let opening: Vec<_> =
            (0..4).map(|_| std::thread::Builder::new().spawn_scoped(scope, open).unwrap()).collect();
        opening.into_iter().map(|opening| opening.join().unwrap()).collect()
    });
    let mut seats: Vec<u8> = nodes.iter().map(|node| node.cluster().unwrap().seat().get()).collect();
    seats.sort_unstable();
    assert_eq!(seats, [1, 2, 3, 4]);

    let crowd = "insert into tidegate.nodes (seat, name, address, version, started_at, lease_until, leaving) \
                 select seat, '', '', '', clock_timestamp(), clock_timestamp() + interval '1 min', false \
                 from generate_series(5, 30) as seat";
    server::server().sql(place.name(), crowd);
    let refused = open(place, &Commits::default()).err();
    assert!(matches!(refused, Some(StoreError::Database(_))), "{refused:?}");
    server::server()
        .sql(place.name(), "update tidegate.nodes set lease_until = clock_timestamp() where seat > 20");
    let node = open(place, &Commits::default()).unwrap().store;
    assert_eq!(node.cluster().unwrap().seat().get(), 21);
}

/// Goal: what waits is the sum of what all nodes have counted, and hours are, too.
#[tokio::test]
async fn counts_add_up() {
    let pair = Pair::new().await;
    let deliveries = pair.first.deliver(1, 2, 5, START).await;
    let mut settled = Vec::new();
    for delivery in &deliveries[..2] {
        settled.push(pair.first.settled(1, 2, delivery, OK, later(5)));
    }
    pair.second.record(Record { now: later(5), settled, ..Record::default() });
    let of = |of| (pair.first.store.waiting(of).deliveries, pair.second.waiting(of).deliveries);
    until("both have read what the other counted", || {
        of(Of::Destination(DestinationNo(2))) == (3, 3) && of(Of::Account(AccountNo(1))) == (3, 3)
    })
    .await;
    for store in [&pair.first.store, &pair.second] {
        for of in [Of::Destination(DestinationNo(2)), Of::Account(AccountNo(1))] {
            let hours = store.hours(of, START).await.unwrap();
            assert_eq!((hours.len(), hours[0].tally.accepted, hours[0].tally.delivered), (1, 5, 2));
        }
    }
    // Whoever comes later finds the same, also where both have left.
    pair.first.store.close().await;
    pair.second.close().await;
    let opened = open(&pair.first.place, &Commits::default()).unwrap();
    assert_eq!(opened.store.waiting(Of::Account(AccountNo(1))).deliveries, 3);
    assert_eq!(opened.lanes.iter().map(|lane| lane.open).sum::<u64>(), 3);
    claim_all(&opened.store).await;
    let mut settled = Vec::new();
    for delivery in &deliveries[2..] {
        settled.push(pair.first.settled(1, 2, delivery, OK, later(6)));
    }
    opened.store.record(Record { now: later(6), settled, ..Record::default() });
    until("nothing waits", || opened.store.waiting(Of::Account(AccountNo(1))) == Waiting::default()).await;
    assert_eq!(pair.sql("select sum(open), sum(bytes) from tidegate.lane_counts"), "0|0\n");
}

fn keyed(event: NewEvent, key: &str) -> Accept {
    let now = event.message.accepted_at;
    let key =
        IdempotencyKey { account: AccountNo(1), endpoint: "events", key: key.to_owned(), body_hash: [7; 32] };
    let render = Box::new(|items: &[Item]| format!("{items:?}").into_bytes());
    Accept { now, events: vec![event], idempotency: Some((key, render)), outbox: None }
}

/// Goal: a key counts once, also when two nodes have it in hand at the same moment; and so does an external id.
#[tokio::test]
async fn keys_and_external_ids_count_once_on_all_nodes() {
    let pair = Pair::new().await;
    for round in 0..30 {
        // Every round has partitions of its own, which both make.
        let at = later(10 * round);
        let (one, other) = (pair.first.event(1, &[1], at), pair.first.event(1, &[1], at));
        let key = format!("key-{round}");
        let (one, other) =
            tokio::join!(pair.first.store.accept(keyed(one, &key)), pair.second.accept(keyed(other, &key)));
        match (one.unwrap(), other.unwrap()) {
            (Accepted::Stored(items), Accepted::Again(bytes))
            | (Accepted::Again(bytes), Accepted::Stored(items)) => {
                assert_eq!(bytes, format!("{items:?}").into_bytes());
            }
            both => panic!("round {round}: {both:?}"),
        }

        let id = ExternalId { id: format!("order-{round}").into(), payload_hash: [3; 32] };
        let event = || NewEvent { external_id: Some(id.clone()), ..pair.first.event(1, &[1, 2], at) };
        let (one, other) = (event(), event());
        let (one, other) = tokio::join!(
            pair.first.store.accept(keyed(one, &format!("a-{round}"))),
            pair.second.accept(keyed(other, &format!("b-{round}")))
        );
        let (Accepted::Stored(one), Accepted::Stored(other)) = (one.unwrap(), other.unwrap()) else {
            panic!("round {round}: both are stored");
        };
        match (one[0], other[0]) {
            (Item::New(first), Item::Duplicate { first: same, .. })
            | (Item::Duplicate { first: same, .. }, Item::New(first)) => {
                assert_eq!(first, same);
            }
            both => panic!("round {round}: {both:?}"),
        }
    }
    let counts = pair.sql("select count(*), count(distinct external_id) from tidegate.events");
    assert_eq!(counts, "60|30\n");
}

/// Goal: nodes that give numbers at the same moment never give the same.
#[tokio::test]
async fn numbers_never_collide() {
    let pair = Pair::new().await;
    let mut given = std::collections::HashSet::new();
    for cluster in [pair.a(), pair.b()] {
        let mut last = Sequence::default();
        for _ in 0..1_000 {
            let (first, end) = last.next(START, 37, Share::Of(cluster.seat()));
            assert!((first.get()..=end.get()).all(|number| given.insert(number)));
            last = end;
        }
    }
    assert!(pair.commits.lock().unwrap().is_empty());
}

/// A record of an order of destination 2 that is carried out.
fn done(no: OrderNo, epoch: Option<Epoch>) -> Record {
    Record {
        now: later(1),
        orders: vec![OrderDone { no, destination: DestinationNo(2), epoch }],
        ..Record::default()
    }
}

/// Goal: what is wanted of a lane reaches whoever works it, also after it has moved, until it is done.
#[tokio::test]
async fn an_order_reaches_whoever_works_the_lane() {
    let pair = Pair::new().await;
    let order = pair.first.store.post_order(DestinationNo(2), b"pause".to_vec(), None).await.unwrap();
    let posted = pair.b().news().await.unwrap().orders;
    assert_eq!((posted.len(), posted[0].no, posted[0].destination), (1, order, DestinationNo(2)));
    assert_eq!(posted[0].body, b"pause");
    assert!(
        pair.b().news().await.unwrap().orders.is_empty() && pair.a().news().await.unwrap().orders.is_empty()
    );

    // The slot moves before it was carried out: its new owner asks, and whoever had it finishes nothing.
    pair.b().give_back(vec![Slot::new(2)], true).await.unwrap();
    assert!(!pair.b().holds(Slot::new(2)) && !pair.a().holds(Slot::new(2)));
    let claimed = pair.a().claim(vec![Slot::new(2)]).await.unwrap();
    assert!(pair.a().holds(Slot::new(2)));
    assert_eq!(pair.a().orders(&[Slot::new(1), Slot::new(2)]).await.unwrap(), posted);
    assert!(pair.a().orders(&[Slot::new(1)]).await.unwrap().is_empty());
    pair.second.record(done(order, None));
    until("the record is in", || pair.commits.lock().unwrap().iter().any(|commit| commit.recorded == [0]))
        .await;
    assert!(pair.second.order_is_open(order).await.unwrap());
    // Nor does whoever has it now, for what it did when it had it before.
    pair.first.record(done(order, Some(Epoch(claimed[0].epoch.0 - 1)))).await;
    assert!(pair.second.order_is_open(order).await.unwrap());
    pair.first.record(done(order, Some(claimed[0].epoch))).await;
    assert!(!pair.second.order_is_open(order).await.unwrap());
    assert!(pair.a().orders(&[Slot::new(2)]).await.unwrap().is_empty());

    // An order for a slot that the node itself holds by then.
    let own = pair.first.store.post_order(DestinationNo(2), Vec::new(), None).await.unwrap();
    let posted = pair.a().news().await.unwrap().orders;
    assert_eq!(posted.iter().map(|posted| posted.no).collect::<Vec<_>>(), [own]);
    assert!(pair.a().news().await.unwrap().orders.is_empty());
}

/// Goal: a lane that another node works can be looked at, as it was last stored.
#[tokio::test]
async fn lanes_of_others_can_be_looked_at() {
    let pair = Pair::new().await;
    pair.first.deliver(1, 2, 3, START).await;
    let destination = DestinationNo(2);
    let save = |state: &[u8], in_flight| LaneSave {
        destination,
        state: Some(state.to_vec()),
        timeouts: Some(b"learned".to_vec()),
        in_flight,
        epoch: None,
    };
    for (at, state, in_flight) in [(5, &b"one"[..], 3), (9, &b"two"[..], 7)] {
        let lanes = vec![save(state, in_flight)];
        pair.second.record(Record { now: later(at), ticket: 1, lanes, ..Record::default() });
    }
    let mut found = Vec::new();
    for _ in 0..500 {
        found = pair.first.store.lanes(vec![DestinationNo(1), destination, DestinationNo(99)]).await.unwrap();
        if found.first().is_some_and(|lane| lane.saved_at == Some(later(9))) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        (found.len(), found[0].destination, found[0].open, found[0].in_flight),
        (1, destination, 3, 7)
    );
    assert_eq!(found[0].state.as_deref(), Some(&b"two"[..]));
}

/// Goal: what is overdue is ended by the node that works it.
#[tokio::test]
async fn each_node_sees_what_is_overdue_of_its_own_slots() {
    let pair = Pair::new().await;
    let event = |destinations: &[u32]| {
        pair.first.event_of(1, destinations, START, |incoming| incoming.expires_at = Some(later(50)))
    };
    let events: Vec<NewEvent> = (0..5).map(|_| event(&[1, 2])).collect();
    pair.accept(&pair.first.store, events).await;
    for (store, destination) in [(&pair.first.store, 1), (&pair.second, 2)] {
        assert!(store.overdue(later(49), 100).await.unwrap().is_empty());
        let found = store.overdue(later(50), 100).await.unwrap();
        assert_eq!(found.len(), 5);
        assert!(found.iter().all(|overdue| overdue.destination == DestinationNo(destination)));
        assert_eq!(store.overdue(later(50), 3).await.unwrap().len(), 3);
    }
}

fn job(number: u128) -> Job {
    Job {
        id: ReplayId::from_bits(number),
        account: AccountNo(1),
        kind: JobKind::Replay,
        request: "{}".to_owned(),
        created_at: START,
        state: JobState::Running,
        position: None,
        total: None,
        done: 0,
        skipped: 0,
        finished_at: None,
    }
}

/// Goal: a node that has left a job, because it had lost it or never knew that it was stored, takes it up like any other.
#[tokio::test]
async fn a_job_that_nobody_here_works_at_is_adopted_again() {
    let pair = Pair::new().await;
    let begin = Change { edits: vec![Edit::AddJob(job(7))], audit: None };
    pair.first.store.change(begin).await.unwrap();
    assert!(pair.first.store.adopt_jobs().await.unwrap().is_empty());
    pair.first.store.leave_job(job(7).id);
    assert!(pair.second.adopt_jobs().await.unwrap().is_empty(), "its node lives");
    let adopted = pair.first.store.adopt_jobs().await.unwrap();
    assert_eq!(adopted.iter().map(|job| job.id).collect::<Vec<_>>(), [job(7).id]);
}

/// Goal: a job goes on where its node is gone, on one other node, and its old node does nothing more for it.
#[tokio::test]
async fn a_job_whose_node_is_gone_is_taken_over() {
    let pair = Pair::new().await;
    let delivery = pair.first.deliver(1, 1, 1, START).await.swap_remove(0);
    let event = pair.first.commits.lock().unwrap().last().unwrap().accepted[0].message.id;
    let begin = Change { edits: vec![Edit::AddJob(job(7))], audit: None };
    pair.first.store.change(begin).await.unwrap();
    assert!(pair.second.adopt_jobs().await.unwrap().is_empty());
    assert!(pair.first.store.adopt_jobs().await.unwrap().is_empty(), "it works at it already");
    end_leases(&pair.first.place);
    pair.b().renew(false).await.unwrap();
    let adopted = pair.second.adopt_jobs().await.unwrap();
    assert_eq!(adopted.iter().map(|job| job.id).collect::<Vec<_>>(), [job(7).id]);
    assert!(pair.second.adopt_jobs().await.unwrap().is_empty());

    let replay = |number| NewReplay {
        destination: DestinationNo(1),
        replay_of: delivery.id,
        event,
        delivery: Delivery { id: delivery_id(number), ..delivery.clone() },
    };
    let progress = |done| Some(Job { done, ..job(7) });
    let of_first = replay(pair.first.numbers(START, 1));
    let lost = pair.first.store.accept_replays(vec![of_first], progress(1), None).await.unwrap();
    assert_eq!(lost, Progress::Lost);
    let over = Job { state: JobState::Done, finished_at: Some(later(8)), ..job(7) };
    assert_eq!(pair.first.store.put_job(over).await.unwrap(), Progress::Lost, "it is not theirs to end");
    assert_eq!(pair.second.deliveries_of(event).await.unwrap().len(), 1);
    let of_second = replay(pair.first.numbers(START, 1));
    let written = pair.second.accept_replays(vec![of_second], progress(2), None).await.unwrap();
    assert_eq!(written, Progress::Written);
    assert_eq!(pair.second.deliveries_of(event).await.unwrap().len(), 2);
    assert_eq!(pair.second.job(AccountNo(1), job(7).id).await.unwrap().unwrap().done, 2);

    // Anybody may stop it, and it stays stopped.
    let stop = Change { edits: vec![Edit::StopJob { job: job(7).id, at: later(9) }], audit: None };
    pair.first.store.change(stop).await.unwrap();
    let of_second = replay(pair.first.numbers(START, 1));
    let lost = pair.second.accept_replays(vec![of_second], progress(3), None).await.unwrap();
    assert_eq!(lost, Progress::Lost);
    assert_eq!(pair.second.deliveries_of(event).await.unwrap().len(), 2);
    assert_eq!(pair.second.job(AccountNo(1), job(7).id).await.unwrap().unwrap().state, JobState::Stopped);
}

#[tokio::test]
async fn all_nodes_have_one_key_and_see_one_catalogue() {
    let pair = Pair::new().await;
    assert!(pair.first.store.fingerprint(&[1, 2]).await.unwrap());
    assert!(pair.second.fingerprint(&[1, 2]).await.unwrap());
    assert!(!pair.second.fingerprint(&[1, 3]).await.unwrap());
    let before = pair.first.store.catalogue().await.unwrap().accounts.len();
    let change = Change { edits: vec![Edit::AddAccount(new_account(9))], audit: None };
    pair.second.change(change).await.unwrap();
    assert_eq!(pair.first.store.catalogue().await.unwrap().accounts.len(), before + 1);
}

/// Goal: of nodes that claim at the same moment each slot is granted to one, whatever they give back meanwhile.
#[tokio::test]
async fn nodes_that_claim_at_once_share_the_slots() {
    let bench = Bench::new(Engine::Postgres).await;
    let nodes: Vec<Store> = (0..3).map(|_| open(&bench.place, &Commits::default()).unwrap().store).collect();
    let all = || Slot::all().collect::<Vec<_>>();
    bench.store.cluster().unwrap().give_back(all(), true).await.unwrap();
    let claim = |node: usize| {
        let cluster = nodes[node].cluster().unwrap().clone();
        async move { cluster.claim(Slot::all().filter(|slot| slot.index() % 3 != node).collect()).await.unwrap() }
    };
    for _ in 0..10 {
        let (one, two, three) = tokio::join!(claim(0), claim(1), claim(2));
        let mut granted: Vec<Slot> =
            one.iter().chain(&two).chain(&three).map(|claimed| claimed.slot).collect();
        granted.sort_unstable();
        assert_eq!(granted, all());
        for (node, claimed) in nodes.iter().zip([one, two, three]) {
            let slots = claimed.into_iter().map(|claimed| claimed.slot).collect();
            node.cluster().unwrap().give_back(slots, true).await.unwrap();
        }
    }
}

/// Goal: much that was accepted for a node is read bit by bit, and what is too much is left to its lanes.
#[tokio::test]
async fn news_come_in_bounded_parts() {
    let pair = Pair::new().await;
    let mut expected = Vec::new();
    for _ in 0..3 {
        let event = pair.first.event(1, &[2], START);
        expected.push(destinations(&event, 2));
        pair.accept(&pair.first.store, vec![event]).await;
    }
    pair.sql("update tidegate.bulletins set bytes = 3000000 where bytes > 0");
    for (place, delivery) in expected.iter().enumerate() {
        let news = pair.b().news().await.unwrap();
        assert_eq!((brought(&news), news.more), (vec![*delivery], place < 2));
    }
    pair.accept(&pair.first.store, vec![pair.first.event(1, &[2], START)]).await;
    pair.sql("update tidegate.bulletins set bytes = 5000000 where bytes > 0");
    let news = pair.b().news().await.unwrap();
    assert_eq!((news.behind, news.brought.len(), news.more), (vec![DestinationNo(2)], 0, false));
}
