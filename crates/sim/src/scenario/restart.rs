//! `restart`: the process dies every few minutes, wake-ups are lost and the clock is set, under every policy at once.
//! Then it heals, and everything must come to its right end.

use std::sync::Arc;

use tidegate_core::delivery::Priority;
use tidegate_core::order::{OnExhausted, Ordering};
use tidegate_core::policy::{Concurrency, Policy};
use tidegate_core::quiet::{QuietHours, Window, WindowSpec};
use tidegate_core::rate::{Per, Quota, RateLimit, RateMode};
use tidegate_core::retry::{Jitter, RetryPolicy};
use tidegate_core::time::{Millis, Timestamp};

use super::Progress;
use crate::chance::Chance;
use crate::oracle::Oracles;
use crate::report::{Finding, Picture, Report};
use crate::run::{Commit, Destination, Faults, Note, Observer, Setup, Sim, Storage, View};
use crate::series::Series;
use crate::traffic::{Arrivals, Source, Template};
use crate::world::{Latency, Limiter, Model, Outages, Says, Trouble, TroubleKind};

/// 2026-03-07T18:00:00Z: the evening before the clocks go forward in Chicago.
const START: Timestamp = Timestamp::from_millis(1_772_906_400_000);
/// How long faults go on.
const FAULTS: Millis = Millis::hours(24);
/// How long it may take to come to rest after that: the longest retry plan, and the longest quiet window.
const REST: Millis = Millis::days(3);

/// Runs it for a simulated day.
pub fn run(seed: u64, progress: Progress<'_>) -> Report {
    run_watched(seed, (), progress).0
}

/// The world that [`run`] runs.
pub fn setup(seed: u64) -> Setup {
    world(seed, FAULTS, Storage::Sqlite)
}

/// The same as [`run`], with somebody else watching, too.
pub fn run_watched<O: Observer>(seed: u64, watcher: O, progress: Progress<'_>) -> (Report, O) {
    run_setup(setup(seed), FAULTS, watcher, progress)
}

/// Runs it with faults for `length`, then heals.
pub fn run_for(seed: u64, length: Millis, storage: Storage, progress: Progress<'_>) -> Report {
    run_setup(world(seed, length, storage), length, (), progress).0
}

fn run_setup<O: Observer>(setup: Setup, length: Millis, watcher: O, progress: Progress<'_>) -> (Report, O) {
    let seed = setup.seed;
    let series = Series::new(START, START + length + Millis::hours(12), 360);
    let observer = (((Oracles::new(&setup), Crashes::default()), series), watcher);
    let destinations = setup.destinations.len();
    let mut sim = Sim::new(setup, observer);
    let hours = (length.get() / 3_600_000).max(1);
    for hour in 0..hours {
        progress(hour as f64 / (hours + 4) as f64, "crashing");
        sim.run_for(length.scaled(1, hours));
    }
    sim.heal();
    progress(hours as f64 / (hours + 4) as f64, "healed, coming to rest");
    let rested = sim.run_until_quiet(REST);
    progress(1.0, "done");
    let (((oracles, crashes), series), watcher) = sim.observer;
    let ledger = &oracles.ledger;
    let ended = ["delivered", "dead_letter", "expired", "cancelled"].map(|word| ledger.ended(word));
    let mut findings = vec![
        Finding::note("crashes", crashes.count.to_string()),
        Finding::note("accepted", ledger.accepted().to_string()),
        Finding::note(
            "delivered / dead_letter / expired",
            format!("{} / {} / {}", ended[0], ended[1], ended[2]),
        ),
        Finding::note("sent again because a crash came before the commit", ledger.duplicates().to_string()),
        Finding::note(
            "probes seen, explanations compared",
            format!("{}, {}", oracles.shut.probes(), oracles.agreement.looked()),
        ),
        Finding::check("open after healing", ledger.open().to_string(), "0", rested && ledger.open() == 0),
        Finding::check(
            "accepted − ended",
            (ledger.accepted() - ended.iter().sum::<u64>()).to_string(),
            "0",
            ledger.accepted() == ended.iter().sum::<u64>(),
        ),
    ];
    findings.extend(oracles.verdicts().map(|(name, wrong)| {
        let value = wrong
            .first()
            .map_or_else(|| "holds".to_owned(), |first| format!("{} or more: {first}", wrong.len()));
        Finding::check(name, value, "holds", wrong.is_empty())
    }));
    let report = Report {
        scenario: "restart".into(),
        seed,
        world: format!(
            "{destinations} destinations with every policy, for {length} with crashes, lost wake-ups and a clock that is set; then healed"
        ),
        deliveries: ended.iter().sum(),
        attempts: crashes.sent,
        simulated_seconds: (length + REST).as_secs_f64(),
        findings,
        pictures: vec![Picture { title: "A day of crashes".into(), series }],
    };
    (report, watcher)
}

#[derive(Default)]
struct Crashes {
    count: u64,
    sent: u64,
}

impl Observer for Crashes {
    fn note(&mut self, _: &View<'_>, note: &Note<'_>) {
        self.count += u64::from(matches!(note, Note::Crashed));
        self.sent += u64::from(matches!(note, Note::Sent(..)));
    }
}

/// The world: one destination per policy, and all of them together in the last.
pub fn world(seed: u64, length: Millis, storage: Storage) -> Setup {
    world_from(START, seed, length, storage)
}

/// The same, from another time on.
pub fn world_from(start: Timestamp, seed: u64, length: Millis, storage: Storage) -> Setup {
    let mut chance = Chance::new(seed ^ 0x5eed);
    let end = start + length;
    let destinations = destinations((start, end), &mut chance);
    let to = end - length.scaled(1, 10);
    let mut sources: Vec<Source> = (0..destinations.len())
        .map(|destination| {
            source(destination, Template::new("order.created"), chance.between(150.0, 900.0), (start, to))
        })
        .collect();
    for destination in 0..destinations.len() {
        let urgent = Template {
            priority: Priority::CRITICAL,
            ..Template::new("payment.failed").with_ttl(Millis::minutes(7))
        };
        sources.push(source(destination, urgent, 60.0, (start, to)));
        let keyed = Template { keys: Some(7), ..Template::new("order.updated") };
        sources.push(source(destination, keyed, 300.0, (start, to)));
        let later = Template { deliver_after: Some(Millis::minutes(50)), ..Template::new("report.ready") };
        sources.push(source(destination, later, 30.0, (start, to)));
    }
    sources.push(Source {
        destination: 1,
        template: Template::new("order.created"),
        arrivals: Arrivals::Burst { at: start + length.scaled(1, 3), count: 1_500 },
    });
    let faults = Faults {
        crash_every: Some(Millis::minutes(4)),
        clean_stops: 0.3,
        storms: 0.2,
        lost_wakes: 0.05,
        clock_steps: Some((Millis::hours(3), Millis::hours(1))),
    };
    Setup {
        seed,
        start,
        slots: 60,
        commit: Commit::Grouped(Millis::new(3)),
        storage,
        destinations,
        sources,
        faults,
    }
}

fn source(
    destination: usize,
    template: Template,
    per_day: f64,
    (from, to): (Timestamp, Timestamp),
) -> Source {
    Source { destination, template, arrivals: Arrivals::per_day(per_day, from, to) }
}

fn destinations((start, end): (Timestamp, Timestamp), chance: &mut Chance) -> Vec<Destination> {
    let retry = RetryPolicy::new(4, [20, 90, 600].map(Millis::seconds).to_vec(), Jitter::Proportional)
        .expect("a valid policy");
    let base = || Policy { retry: Some(Arc::new(retry.clone())), ..Policy::default() };
    let rate = |max, burst, mode| {
        Some(RateLimit { quota: Quota::new(max, Per::Minute, Some(burst)).expect("a valid rate"), mode })
    };
    let wide = |max| Concurrency::new(max).expect("in range");
    let healthy = || Model::healthy(Latency::LogNormal { median_ms: 200.0, sigma: 0.8 });
    let mut outages = |kind| {
        Outages { between: Millis::hours(2), lasting: Millis::minutes(8), kind }.draw(start, end, chance)
    };
    let mut list: Vec<(&str, Policy, Model)> = vec![
        ("plain", base(), healthy().troubled(outages(TroubleKind::Errors { status: 500 }))),
        (
            "shaped",
            Policy { rate_limit: rate(30, 40, RateMode::Fixed), max_concurrency: wide(20), ..base() },
            healthy(),
        ),
        (
            "strict",
            Policy { rate_limit: rate(20, 1, RateMode::Fixed), ..base() },
            healthy().troubled(outages(TroubleKind::Hangs)),
        ),
        ("quiet", Policy { quiet: night(), rate_limit: rate(60, 20, RateMode::Fixed), ..base() }, healthy()),
        (
            "fifo",
            Policy { ordering: Ordering::Fifo, ..base() },
            healthy().troubled(outages(TroubleKind::Refuses)),
        ),
        (
            "keys",
            Policy { ordering: Ordering::Key, max_concurrency: wide(4), ..base() },
            healthy().troubled(outages(TroubleKind::Hangs)),
        ),
        ("quiet-fifo", Policy { ordering: Ordering::Fifo, quiet: night(), ..base() }, healthy()),
        ("throttled", base(), healthy().limited(Limiter::new(20, Millis::minutes(5), Says::Seconds))),
        ("mute", base(), healthy().limited(Limiter::new(20, Millis::minutes(5), Says::Nothing))),
        (
            "learned",
            Policy { rate_limit: rate(600, 10, RateMode::Adaptive), ..base() },
            healthy().limited(Limiter::new(3, Millis::minutes(1), Says::HttpDate)),
        ),
        (
            "closing",
            base(),
            healthy().troubled(outages(TroubleKind::Unavailable { retry_after: Millis::seconds(90) })),
        ),
        (
            "flapping",
            base(),
            healthy().troubled(vec![Trouble {
                from: start,
                to: end,
                kind: TroubleKind::Flaps { up: Millis::minutes(9), down: Millis::minutes(4) },
            }]),
        ),
    ];
    let everything = Policy {
        ordering: Ordering::Key,
        on_exhausted: OnExhausted::Skip,
        quiet: night(),
        rate_limit: rate(25, 10, RateMode::Fixed),
        max_concurrency: wide(3),
        ..base()
    };
    let model = healthy()
        .limited(Limiter::new(60, Millis::minutes(5), Says::Seconds))
        .troubled(outages(TroubleKind::Hangs));
    list.push(("everything", everything, model));
    let named = |(account, (name, policy, model)): (u32, (&str, Policy, Model))| Destination {
        name: name.into(),
        account: account % 4,
        policy,
        model,
    };
    (0..).zip(list).map(named).collect()
}

fn night() -> QuietHours {
    let spec = WindowSpec {
        timezone: "America/Chicago".into(),
        quiet_start: "00:00".into(),
        quiet_end: "06:00".into(),
        days: vec![],
        applies_to: vec![],
        bypass_event_types: vec!["payment.*".into()],
    };
    QuietHours::new(vec![Window::parse(spec).expect("a valid window")]).expect("open by day")
}
