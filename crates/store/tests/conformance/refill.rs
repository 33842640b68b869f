//! A refill answers as a walk over everything that is open would.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tidegate_core::delivery::{Delivery, OwnTime, Status};
use tidegate_core::order::{Line, Ordering};
use tidegate_core::pattern::EventType;
use tidegate_core::policy::Policy;
use tidegate_core::quiet::{QuietHours, Window, WindowSpec};
use tidegate_core::refill::{Refill, Wanted};
use tidegate_core::time::Timestamp;
use tidegate_store::lane::RefillQuery;
use tidegate_store::record::{Record, Settled};
use tidegate_store::{AccountNo, DestinationNo};

use crate::fixture::{Bench, START, later, priority};
use crate::model;
use crate::place::Engine;

on_both! {
    with_many_lines_each_has_its_turn;
    all_that_came_due_at_once_is_ready_at_once;
}

/// One open delivery of a random backlog.
#[derive(Clone, Debug)]
struct Sketch {
    destination: u32,
    priority: u64,
    event_type: usize,
    key: Option<usize>,
    occurred: i64,
    attempts: u32,
    /// Its own time, if it waits for one: before or after the time of the question.
    own_time: Option<i64>,
}

#[derive(Clone, Debug)]
struct Case {
    backlog: Vec<Sketch>,
    ordering: Ordering,
    windows: usize,
    wanted: Wanted,
    halted: Vec<usize>,
    after_key: Option<usize>,
}

const TYPES: [&str; 4] = ["order.paid", "order.sent", "user.new", "user.gone"];
const NOW: i64 = 1_000;

fn key(number: usize) -> Arc<str> {
    ["", "a", "b", "ab", "z"][number].into()
}

fn sketch() -> impl Strategy<Value = Sketch> {
    let own_time = prop::option::weighted(0.3, 900..1_100_i64);
    let attempts = prop_oneof![3 => Just(0_u32), 1 => 1..3_u32];
    let key = prop::option::weighted(0.6, 0..5_usize);
    (1..3_u32, 1..5_u64, 0..4_usize, key, 0..20_i64, attempts, own_time).prop_map(
        |(destination, priority, event_type, key, occurred, attempts, own_time)| Sketch {
            destination,
            priority,
            event_type,
            key,
            occurred,
            attempts,
            own_time,
        },
    )
}

fn case() -> impl Strategy<Value = Case> {
    let ordering = prop_oneof![Just(Ordering::None), Just(Ordering::Fifo), Just(Ordering::Key)];
    let wanted = (1..5_usize, 1..4_usize, 1..4_usize, 0..6_usize)
        .prop_map(|(per_shelf, per_line, lines, timed)| Wanted { per_shelf, per_line, lines, timed });
    let halted = prop::collection::vec(0..6_usize, 0..2);
    let after_key = prop::option::of(0..5_usize);
    let backlog = prop::collection::vec(sketch(), 0..50);
    (backlog, ordering, 0..3_usize, wanted, halted, after_key).prop_map(
        |(backlog, ordering, windows, wanted, halted, after_key)| Case {
            backlog,
            ordering,
            windows,
            wanted,
            halted,
            after_key,
        },
    )
}

fn policy(case: &Case) -> Policy {
    let window = |pattern: &str| {
        let spec = WindowSpec {
            timezone: "Europe/Berlin".to_owned(),
            quiet_start: "22:00".to_owned(),
            quiet_end: "07:00".to_owned(),
            applies_to: vec![pattern.to_owned()],
            ..WindowSpec::default()
        };
        Window::parse(spec).unwrap()
    };
    let windows = [window("order.*"), window("*.gone")][..case.windows].to_vec();
    Policy { ordering: case.ordering, quiet: QuietHours::new(windows).unwrap(), ..Policy::default() }
}

/// Puts the backlog into the store: accepted as new, then as it became.
async fn fill(bench: &Bench, backlog: &[Sketch]) -> Vec<(u32, Delivery)> {
    let (mut all, mut events) = (Vec::new(), Vec::new());
    for sketch in backlog {
        let event = bench.event_of(1, &[sketch.destination], START, |incoming| {
            incoming.priority = priority(sketch.priority);
            incoming.event_type = EventType::parse(TYPES[sketch.event_type]).unwrap();
            incoming.ordering_key = sketch.key.map(key);
            incoming.occurred_at = Some(later(-sketch.occurred));
        });
        let mut delivery = event.deliveries[0].1.clone();
        events.push(event);
        let reason = if sketch.attempts > 0 { OwnTime::RetryBackoff } else { OwnTime::Scheduled };
        delivery.attempts_made = sketch.attempts;
        delivery.attempts_used = sketch.attempts;
        if let Some(at) = sketch.own_time {
            delivery.status = Status::RetryScheduled { at: later(at), reason };
        }
        all.push((sketch.destination, delivery));
    }
    bench.accept(events, START).await;
    let settled = all.iter().map(|(destination, delivery)| Settled {
        account: AccountNo(1),
        destination: DestinationNo(*destination),
        delivery: Box::new(delivery.clone()),
        event: None,
        attempt: None,
        epoch: None,
    });
    bench.record(Record { now: START, settled: settled.collect(), ..Record::default() }).await;
    all
}

/// What two refills must agree on, in one order. What is due may or may not say so.
fn sorted(mut refill: Refill, now: Timestamp) -> Refill {
    for delivery in &mut refill.deliveries {
        if matches!(delivery.status, Status::RetryScheduled { at, .. } if at <= now) {
            delivery.status = Status::Queued;
        }
    }
    refill.deliveries.sort_by_key(|delivery| delivery.place);
    refill.more.shelves.sort();
    refill.more.lines.sort();
    refill.more.other_lines.sort();
    refill.more.other_lines.dedup();
    refill
}

#[test]
fn a_refill_answers_as_a_walk_over_everything_would() {
    answers_as_a_walk(Engine::Sqlite, 128);
}

/// Fewer: each case has a database of its own.
#[test]
fn a_refill_answers_as_a_walk_over_everything_would_on_postgres() {
    answers_as_a_walk(Engine::Postgres, 24);
}

fn answers_as_a_walk(engine: Engine, cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let ran = runner.run(&case(), |case| {
        runtime.block_on(async {
            let bench = Bench::new(engine).await;
            let backlog = fill(&bench, &case.backlog).await;
            let policy = policy(&case);
            let halted = case.halted.iter().map(|number| match number {
                5 => Line::Whole,
                number => Line::Key(key(*number)),
            });
            let query = RefillQuery {
                destination: DestinationNo(1),
                policy: Arc::new(policy),
                wanted: case.wanted,
                halted: halted.collect(),
                now: later(NOW),
                after_key: case.after_key.map(key),
            };
            let mine: Vec<Delivery> =
                backlog.into_iter().filter(|(to, _)| *to == 1).map(|(_, delivery)| delivery).collect();
            let expected = sorted(model::refill(&mine, &query), query.now);
            let refilled = bench.store.refill(query.clone()).await.unwrap();
            let left_out = refilled.after_key.is_some();
            let found = sorted(refilled.refill, query.now);
            prop_assert_eq!(&found.deliveries, &expected.deliveries);
            prop_assert_eq!(format!("{:?}", found.more), format!("{:?}", expected.more));
            prop_assert_eq!(left_out, !expected.more.other_lines.is_empty());
            let again = sorted(bench.store.refill(query.clone()).await.unwrap().refill, query.now);
            prop_assert_eq!(&again.deliveries, &expected.deliveries, "asked again");
            bench.store.close().await;
            Ok(())
        })
    });
    if let Err(failure) = ran {
        panic!("{failure}");
    }
}

async fn with_many_lines_each_has_its_turn(engine: Engine) {
    let bench = Bench::new(engine).await;
    let mut events = Vec::new();
    for line in 0..40 {
        for _ in 0..3 {
            let key: Arc<str> = format!("line-{line:02}").into();
            events.push(bench.event_of(1, &[1], START, |incoming| incoming.ordering_key = Some(key)));
        }
    }
    bench.accept(events, START).await;
    let policy = Arc::new(Policy { ordering: Ordering::Key, ..Policy::default() });
    let wanted = Wanted { per_shelf: 10, per_line: 2, lines: 16, timed: 10 };
    let mut seen = std::collections::BTreeSet::new();
    let mut after_key = None;
    for _ in 0..3 {
        let query = RefillQuery {
            destination: DestinationNo(1),
            policy: Arc::clone(&policy),
            wanted,
            halted: Vec::new(),
            now: START,
            after_key,
        };
        let refilled = bench.store.refill(query).await.unwrap();
        assert_eq!(refilled.refill.deliveries.len(), 32);
        assert_eq!(refilled.refill.more.lines.len(), 16);
        seen.extend(refilled.refill.deliveries.into_iter().filter_map(|delivery| delivery.ordering_key));
        after_key = refilled.after_key;
        assert!(after_key.is_some());
    }
    assert_eq!(seen.len(), 40);
}

async fn all_that_came_due_at_once_is_ready_at_once(engine: Engine) {
    let bench = Bench::new(engine).await;
    let at = later(5_000);
    let events = (0..2_500)
        .map(|_| bench.event_of(1, &[1], START, |incoming| incoming.deliver_at = Some(at)))
        .collect();
    bench.accept(events, START).await;
    let first = bench.refill(1, &Policy::default(), START).await.refill;
    assert_eq!(
        (first.deliveries.len(), first.more.timed_from),
        (0, Some(at)),
        "those of one time stay together"
    );
    let due = bench.refill(1, &Policy::default(), at).await.refill;
    assert_eq!((due.deliveries.len(), due.more.shelves.len(), due.more.timed_from), (1_000, 1, None));
    assert!(due.deliveries.iter().all(|delivery| delivery.status == Status::Queued));
}
