//! Goal: a backlog far larger than a lane's memory is delivered whole, in order, without walking past what may not go.
//! Method: thousands of keys, scheduled deliveries and held types, with outages and crashes; oracles watch every step. On the
//! real store for some seeds, on the reference for more.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::sync::Arc;

use tidegate_core::delivery::Priority;
use tidegate_core::order::{OnExhausted, Ordering};
use tidegate_core::policy::{Concurrency, Policy};
use tidegate_core::quiet::{QuietHours, Window, WindowSpec};
use tidegate_core::retry::{Jitter, RetryPolicy};
use tidegate_core::time::{Millis, Timestamp};
use tidegate_sim::chance::Chance;
use tidegate_sim::oracle::Oracles;
use tidegate_sim::run::{Commit, Destination, Faults, Setup, Sim, Storage};
use tidegate_sim::traffic::{Arrivals, Source, Template};
use tidegate_sim::world::{Latency, Model, Outages, TroubleKind};

const START: Timestamp = Timestamp::from_millis(1_772_906_400_000);

fn world(seed: u64, ordering: Ordering, faults: Faults, storage: Storage) -> Setup {
    let retry = RetryPolicy::new(6, [5, 20, 60].map(Millis::seconds).to_vec(), Jitter::Full).unwrap();
    let spec = WindowSpec {
        timezone: "UTC".into(),
        quiet_start: "19:00".into(),
        quiet_end: "20:00".into(),
        days: vec![],
        applies_to: vec!["order.*".into()],
        bypass_event_types: vec![],
    };
    let policy = Policy {
        ordering,
        on_exhausted: OnExhausted::Skip,
        max_concurrency: Concurrency::new(50).unwrap(),
        quiet: QuietHours::new(vec![Window::parse(spec).unwrap()]).unwrap(),
        retry: Some(Arc::new(retry)),
        ..Policy::default()
    };
    let mut chance = Chance::new(seed);
    let outages = Outages {
        between: Millis::minutes(20),
        lasting: Millis::minutes(3),
        kind: TroubleKind::Errors { status: 500 },
    };
    let troubles = outages.draw(START, START + Millis::hours(3), &mut chance);
    let model = Model::healthy(Latency::LogNormal { median_ms: 40.0, sigma: 0.5 }).troubled(troubles);
    let burst = |template, minute, count| Source {
        destination: 0,
        template,
        arrivals: Arrivals::Burst { at: START + Millis::minutes(minute), count },
    };
    let keyed = |event_type| Template { keys: Some(900), ..Template::new(event_type) };
    let sources = vec![
        burst(keyed("order.created"), 30, 2_000),
        burst(keyed("invoice.paid"), 61, 600),
        burst(Template { priority: Priority::BULK, ..Template::new("report.ready") }, 1, 900),
        burst(
            Template { deliver_after: Some(Millis::minutes(47)), ..Template::new("reminder.due") },
            2,
            1_500,
        ),
        burst(Template { deliver_after: Some(Millis::minutes(12)), ..keyed("order.reminded") }, 3, 600),
        burst(Template::new("code.sent").with_ttl(Millis::minutes(4)), 62, 300),
    ];
    let destination = Destination { name: "one".into(), account: 0, policy, model };
    Setup {
        seed,
        start: START,
        slots: 400,
        commit: Commit::Grouped(Millis::new(3)),
        storage,
        destinations: vec![destination],
        sources,
        faults,
    }
}

/// Runs it and gives back its trace.
fn check(seed: u64, ordering: Ordering, faults: Faults, storage: Storage) -> u64 {
    let setup = world(seed, ordering, faults, storage);
    let oracles = Oracles::new(&setup);
    let mut sim = Sim::new(setup, oracles);
    let mut most = 0;
    for _ in 0..180 {
        sim.run_for(Millis::minutes(1));
        most = most.max(sim.dispatcher().lanes().iter().map(|lane| lane.waiting()).max().unwrap_or(0));
    }
    sim.heal();
    assert!(sim.run_until_quiet(Millis::days(2)), "seed {seed}: {} left open", sim.open_deliveries());
    for (name, wrong) in sim.observer.verdicts() {
        assert!(wrong.is_empty(), "seed {seed}, {ordering:?}: {name}: {wrong:#?}");
    }
    assert_eq!(sim.observer.ledger.accepted(), 5_900);
    let work = sim.work();
    assert!(work.refills <= 5_900 / 4 && work.wakes <= 4 * 5_900, "seed {seed}, {ordering:?}: {work:?}");
    assert!(most <= 4_000, "a lane keeps a window of the backlog, not {most}");
    sim.trace()
}

const CRASHES: Faults =
    Faults { crash_every: Some(Millis::minutes(3)), clean_stops: 0.2, storms: 0.2, lost_wakes: 0.1, clock_steps: None };

#[test]
fn a_large_backlog_is_delivered_whole_and_in_order() {
    for ordering in [Ordering::None, Ordering::Key, Ordering::Fifo] {
        for seed in 0..10 {
            check(seed, ordering, Faults::default(), Storage::Memory);
        }
    }
}

#[test]
fn and_so_it_is_with_crashes() {
    for ordering in [Ordering::None, Ordering::Key, Ordering::Fifo] {
        for seed in 0..10 {
            check(seed, ordering, CRASHES, Storage::Memory);
        }
    }
}

/// With more lines than a lane asks for, the store brings them in the order of their keys and the reference in the order of
/// their heads: both are right, and the traces differ. Without keys there is but one answer.
#[test]
fn and_so_it_is_on_the_real_store() {
    for faults in [Faults::default(), CRASHES] {
        check(0, Ordering::Key, faults, Storage::Sqlite);
        for ordering in [Ordering::None, Ordering::Fifo] {
            let traces =
                [Storage::Sqlite, Storage::Memory].map(|storage| check(1, ordering, faults, storage));
            assert_eq!(traces[0], traces[1], "{ordering:?}, {faults:?}");
        }
    }
}
