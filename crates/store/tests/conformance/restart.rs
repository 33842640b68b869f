//! What is there after a restart, clean or not; and who may open a store at all.

use tidegate_core::lane::LastStop;
use tidegate_core::policy::Policy;
use tidegate_store::event::Accept;
use tidegate_store::lane::{Of, Waiting};
use tidegate_store::record::{LaneSave, Record};
use tidegate_store::{AccountNo, DestinationNo, StoreError};

use crate::fixture::{Bench, ERROR, OK, START, later};
use crate::place::Engine;

on_both! {
    everything_is_there_after_a_restart_and_after_a_crash;
    a_closed_store_says_so;
}

fn lane(destination: u32, state: &[u8], timeouts: Option<&[u8]>) -> LaneSave {
    LaneSave {
        destination: DestinationNo(destination),
        state: Some(state.to_vec()),
        timeouts: timeouts.map(<[u8]>::to_vec),
        in_flight: 2,
        epoch: None,
    }
}

async fn everything_is_there_after_a_restart_and_after_a_crash(engine: Engine) {
    for (clean, expected) in [(true, LastStop::Clean), (false, LastStop::Crash)] {
        let bench = Bench::new(engine).await;
        let deliveries = bench.deliver(1, 1, 5, START).await;
        bench.deliver(2, 3, 2, START).await;
        bench.settle(1, 1, &deliveries[..1], OK, later(10)).await;
        let retried = bench.settle(1, 1, &deliveries[1..2], ERROR, later(20)).await;
        let lanes = vec![lane(1, b"first", Some(b"slow")), lane(3, b"third", None)];
        bench.record(Record { now: later(30), lanes, ..Record::default() }).await;
        bench
            .record(Record { now: later(30), lanes: vec![lane(1, b"second", None)], ..Record::default() })
            .await;
        let given = bench.numbers(START, 1) - 1;
        let waiting = bench.store.waiting(Of::Account(AccountNo(1)));

        let bench = bench.reopen(clean).await;
        let opened = bench.opened.as_ref().unwrap();
        assert_eq!(opened.last_stop, expected);
        assert!(opened.sequence.get() + 5 > given && opened.sequence.get() <= given, "{given}");
        assert_eq!((opened.catalogue.accounts.len(), opened.catalogue.destinations.len()), (2, 4));
        assert_eq!(bench.store.waiting(Of::Account(AccountNo(1))), waiting);
        assert_eq!(bench.store.waiting(Of::Account(AccountNo(2))).deliveries, 2);
        let lanes: Vec<_> = opened.lanes.iter().map(|lane| (lane.destination.0, lane.open)).collect();
        assert_eq!(lanes, [(1, 4), (3, 2)]);
        assert_eq!(opened.lanes[0].state.as_deref(), Some(&b"second"[..]));
        assert_eq!(opened.lanes[0].timeouts.as_deref(), Some(&b"slow"[..]));
        let asked = vec![DestinationNo(3), DestinationNo(99), DestinationNo(1)];
        let again = bench.store.lanes(asked).await.unwrap();
        let lanes: Vec<_> = again.iter().map(|lane| (lane.destination.0, lane.open)).collect();
        assert_eq!(lanes, [(3, 2), (1, 4)]);
        assert_eq!(again[1].state.as_deref(), Some(&b"second"[..]));
        assert_eq!(bench.store.catalogue().await.unwrap().destinations.len(), 4);
        let refilled = bench.refill(1, &Policy::default(), later(20)).await.refill.deliveries;
        assert_eq!(refilled.len(), 4);
        assert!(refilled.contains(&retried[0]) && refilled.contains(&deliveries[4]));
    }
}

async fn a_closed_store_says_so(engine: Engine) {
    let bench = Bench::new(engine).await;
    bench.store.close().await;
    bench.store.close().await;
    let accept =
        Accept { now: START, events: vec![bench.event(1, &[1], START)], idempotency: None, outbox: None };
    assert!(matches!(bench.store.accept(accept).await, Err(StoreError::Closed)));
    assert!(matches!(bench.store.survey(vec![DestinationNo(1)], START).await, Err(StoreError::Closed)));
    bench.store.record(Record::default());
    assert_eq!(bench.store.waiting(Of::Destination(DestinationNo(1))), Waiting::default());
}
