//! What became of events: their replays, and the attempts for their deliveries.

use std::collections::{HashMap, HashSet};

use tidegate_core::delivery::Delivery;
use tidegate_core::id::{DeliveryId, EventId};
use tidegate_core::sequence::Sequence;
use tidegate_store::DestinationNo;
use tidegate_store::delivery::Room;
use tidegate_store::event::{NewEvent, NewReplay};
use tidegate_store::record::Record;

use crate::fixture::{Bench, ERROR, OK, START, later};
use crate::forget::replay_of;
use crate::place::Engine;

on_both! {
    the_newest_replays_of_events_are_found_open_or_ended;
    the_attempts_for_deliveries_are_read_delivery_by_delivery;
    the_attempts_for_deliveries_are_read_as_far_as_there_is_room;
}

async fn replay(bench: &Bench, event: EventId, destination: u32, original: &Delivery, at: i64) -> Delivery {
    let delivery = replay_of(bench, original, later(at));
    let new = NewReplay {
        destination: DestinationNo(destination),
        replay_of: original.id,
        event,
        delivery: delivery.clone(),
    };
    bench.store.accept_replays(vec![new], None, None).await.unwrap();
    delivery
}

async fn the_newest_replays_of_events_are_found_open_or_ended(engine: Engine) {
    let bench = Bench::new(engine).await;
    let events: [NewEvent; 3] = std::array::from_fn(|_| bench.event(1, &[1, 2], START));
    let ids = [0, 1, 2].map(|index| events[index].message.id);
    let originals = events.iter().map(|event| event.deliveries.clone()).collect::<Vec<_>>();
    bench.accept(events.into(), START).await;
    for (destination, delivery) in originals.iter().flatten() {
        bench.settle(1, destination.0, std::slice::from_ref(delivery), OK, later(1)).await;
    }
    let first = replay(&bench, ids[0], 1, &originals[0][0].1, 2).await;
    bench.settle(1, 1, std::slice::from_ref(&first), OK, later(3)).await;
    let second = replay(&bench, ids[0], 1, &first, 4).await;
    let elsewhere = replay(&bench, ids[0], 2, &originals[0][1].1, 5).await;
    bench.settle(1, 2, std::slice::from_ref(&elsewhere), OK, later(6)).await;
    let other = replay(&bench, ids[1], 2, &originals[1][1].1, 7).await;

    let found = async |asked: &[EventId]| bench.store.newest_replays(asked.to_vec()).await.unwrap();
    let of = |event, destination, delivery: &Delivery| {
        ((event, DestinationNo(destination)), delivery.id.sequence())
    };
    let of_first = [of(ids[0], 1, &second), of(ids[0], 2, &elsewhere)];
    assert_eq!(found(&[]).await, HashMap::new());
    assert_eq!(found(&[ids[2]]).await, HashMap::new());
    assert_eq!(found(&ids[..1]).await, of_first.into());
    let all = HashMap::from_iter(of_first.into_iter().chain([of(ids[1], 2, &other)]));
    assert_eq!(found(&ids).await, all);
    assert_eq!(found(&[ids, ids].concat()).await, all);

    let [first, second, elsewhere, other] =
        [first, second, elsewhere, other].map(|delivery| delivery.id.sequence());
    let open = async |asked: &[Sequence]| bench.store.open_among(asked.to_vec()).await.unwrap();
    assert_eq!(open(&[]).await, HashSet::new());
    assert_eq!(open(&[first, second, elsewhere, Sequence::from_stored(1)]).await, HashSet::from([second]));
    assert_eq!(open(&[other, second, other]).await, HashSet::from([second, other]));
}

/// An event for so many destinations, and its deliveries.
async fn wide(bench: &Bench, destinations: &[u32]) -> Vec<Delivery> {
    let event = bench.event(1, destinations, START);
    let deliveries = event.deliveries.iter().map(|(_, delivery)| delivery.clone()).collect();
    bench.accept(vec![event], START).await;
    deliveries
}

const PLENTY: Room = Room { attempts: 100_000, bytes: 1 << 30 };

async fn the_attempts_for_deliveries_are_read_delivery_by_delivery(engine: Engine) {
    let bench = Bench::new(engine).await;
    let first = wide(&bench, &[1, 2]).await;
    let second = wide(&bench, &[1, 2]).await;
    let third = wide(&bench, &[1, 2]).await;
    let retried = bench.settle(1, 1, &first[..1], ERROR, later(1)).await;
    bench.settle(1, 2, &first[1..], OK, later(2)).await;
    bench.settle(1, 1, &retried, OK, later(3)).await;
    bench.settle(1, 1, &second[..1], OK, later(4)).await;
    bench.settle(1, 2, &third[1..], OK, later(5)).await;

    let asked: Vec<DeliveryId> = first.iter().chain(&third).map(|delivery| delivery.id).collect();
    let found = bench.store.attempts_of(asked.clone(), PLENTY).await.unwrap();
    let read: Vec<_> = found.items.iter().map(|attempt| (attempt.delivery, attempt.number)).collect();
    assert_eq!(read, [(asked[0], 1), (asked[0], 2), (asked[1], 1), (asked[3], 1)]);
    assert_eq!((found.looked_at, found.cut), (4, 0));
    let none = bench.store.attempts_of(Vec::new(), PLENTY).await.unwrap();
    assert_eq!((none.items.len(), none.looked_at, none.cut), (0, 0, 0));
}

/// Goal: nothing is cut within a delivery, unless that has more attempts than one look brings.
async fn the_attempts_for_deliveries_are_read_as_far_as_there_is_room(engine: Engine) {
    let bench = Bench::new(engine).await;
    let deliveries = wide(&bench, &[1, 2, 1, 2, 1]).await;
    let ids: Vec<DeliveryId> = deliveries.iter().map(|delivery| delivery.id).collect();
    let counts = [600, 600, 1_500, 7, 1];
    for ((delivery, count), destination) in deliveries.iter().zip(counts).zip([1, 2, 1, 2, 1]) {
        let mut settled = Vec::new();
        let mut tried = delivery.clone();
        for number in 1..=count {
            tried.attempts_made = number;
            let mut one = bench.settled(1, destination, delivery, ERROR, later(1));
            one.attempt = Some(bench.attempt(destination, &tried, ERROR, later(1)));
            *one.delivery = tried.clone();
            settled.push(one);
        }
        bench.record(Record { now: later(1), settled, ..Record::default() }).await;
    }
    let read = async |room| {
        let found = bench.store.attempts_of(ids.clone(), room).await.unwrap();
        let of = |id| found.items.iter().filter(|attempt| attempt.delivery == id).count();
        (ids.iter().map(|id| of(*id)).collect::<Vec<_>>(), found.looked_at, found.cut)
    };
    assert_eq!(read(PLENTY).await, (vec![600, 600, 1_000, 7, 1], 5, 1));
    assert_eq!(read(Room { attempts: 1, ..PLENTY }).await, (vec![600, 0, 0, 0, 0], 1, 0));
    assert_eq!(read(Room { attempts: 1_000, ..PLENTY }).await, (vec![600, 600, 0, 0, 0], 2, 0));
    assert_eq!(read(Room { bytes: 0, ..PLENTY }).await, (vec![0; 5], 0, 0));
}
