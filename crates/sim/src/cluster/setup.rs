//! What a simulated cluster consists of, and the world that its tests run in.

use std::sync::Arc;

use tidegate_core::delivery::Priority;
use tidegate_core::order::{OnExhausted, Ordering};
use tidegate_core::policy::{Concurrency, Policy};
use tidegate_core::quiet::{QuietHours, Window, WindowSpec};
use tidegate_core::rate::{Per, Quota, RateLimit, RateMode};
use tidegate_core::retry::{Jitter, RetryPolicy};
use tidegate_core::time::{Millis, Timestamp};

use crate::backing::Storage;
use crate::chance::Chance;
use crate::run;
use crate::run::{Commit, Destination};
use crate::traffic::Template;
use crate::world::{Latency, Limiter, Model, Outages, Says, Trouble, TroubleKind};

/// A cluster: its nodes, its world, what goes wrong.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Destinations, the slots of each node, the seed.
    pub world: run::Setup,
    /// Nodes.
    pub nodes: usize,
    /// What is published.
    pub streams: Vec<Stream>,
    /// What goes wrong.
    pub faults: Faults,
}

/// What one publisher publishes, on any node.
#[derive(Clone, Debug)]
pub struct Stream {
    /// For which destination, by its place in the set-up.
    pub destination: usize,
    /// What its events are like.
    pub template: Template,
    /// Mean time between two.
    pub every: Millis,
    /// It publishes the next one only after the answer to the one before, often at once, mostly on another node.
    pub chained: bool,
    /// None after this.
    pub until: Millis,
}

/// What goes wrong. Which of it, and when, is drawn from the seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Faults {
    /// Mean time between two: a crash, a freeze, a cut from the database, a clean leave, the database away.
    pub every: Option<Millis>,
    /// A freeze lasts at most so long.
    pub longest_pause: Millis,
    /// Share of notices that never arrive; as many come late.
    pub lost_notices: f64,
    /// Share of commits whose answer is lost; half of these were made.
    pub doubtful_commits: f64,
    /// Share of claims after which the new owner dies within moments.
    pub storms: f64,
    /// Few messages take up to so much longer than usual, there or back.
    pub slow_message: Millis,
    /// Wall clocks of nodes are wrong by at most this.
    pub skew: Millis,
    /// Monotonic clocks run fast or slow by at most so many parts of a million.
    pub drift_ppm: u64,
}

impl Faults {
    /// Everything.
    pub const ALL: Self = Self {
        every: Some(Millis::seconds(11)),
        longest_pause: Millis::seconds(30),
        lost_notices: 0.1,
        doubtful_commits: 0.004,
        storms: 0.15,
        slow_message: Millis::new(40),
        skew: Millis::hours(1),
        drift_ppm: 50,
    };
}

const START: Timestamp = Timestamp::from_millis(1_793_509_140_000);

/// The world that tests run in: one destination per policy, on two to four nodes, with everything going wrong.
pub fn world(seed: u64, length: Millis, faults: Faults) -> Setup {
    let mut chance = Chance::new(seed ^ 0xc1);
    let nodes = 2 + usize::try_from(chance.below(3)).unwrap_or(0);
    let destinations = destinations(length, &mut chance);
    let until = length.scaled(9, 10);
    let stream = |destination, template, every: i64, chained| Stream {
        destination,
        template,
        every: Millis::new(every),
        chained,
        until,
    };
    let mut streams = Vec::new();
    for (place, destination) in destinations.iter().enumerate() {
        let ordered = destination.policy.ordering != Ordering::None;
        let keys = Some(3).filter(|_| destination.policy.ordering == Ordering::Key);
        let usual = Template { keys, ..Template::new("order.created") };
        streams.push(stream(place, usual.clone(), 900, false));
        if ordered {
            streams.push(stream(place, usual.clone(), 1_500, true));
            streams.push(stream(place, usual, 1_500, true));
        }
        let urgent = Template {
            priority: Priority::CRITICAL,
            ..Template::new("payment.failed").with_ttl(Millis::seconds(20))
        };
        streams.push(stream(place, urgent, 5_000, false));
        let later = Template { deliver_after: Some(Millis::seconds(25)), ..Template::new("report.ready") };
        streams.push(stream(place, later, 9_000, false));
    }
    let world = run::Setup {
        seed,
        start: START,
        slots: 40,
        commit: Commit::Grouped(Millis::new(3)),
        storage: Storage::Memory,
        destinations,
        sources: Vec::new(),
        faults: run::Faults::default(),
    };
    Setup { world, nodes, streams, faults }
}

fn destinations(length: Millis, chance: &mut Chance) -> Vec<Destination> {
    let retry = RetryPolicy::new(5, [2, 5, 12, 20].map(Millis::seconds).to_vec(), Jitter::Proportional)
        .expect("a valid policy");
    let base = || Policy { retry: Some(Arc::new(retry.clone())), ..Policy::default() };
    let rate = |max, burst| {
        let quota = Quota::new(max, Per::Minute, Some(burst)).expect("a valid rate");
        Some(RateLimit { quota, mode: RateMode::Fixed })
    };
    let wide = |max| Concurrency::new(max).expect("in range");
    let quick = || Model::healthy(Latency::LogNormal { median_ms: 150.0, sigma: 0.8 });
    let slow = || Model::healthy(Latency::LogNormal { median_ms: 1_500.0, sigma: 0.7 });
    let end = START + length;
    let mut outages = |kind| {
        Outages { between: Millis::seconds(70), lasting: Millis::seconds(12), kind }.draw(START, end, chance)
    };
    let flaps = TroubleKind::Flaps { up: Millis::seconds(40), down: Millis::seconds(9) };
    let fifo = || Policy { ordering: Ordering::Fifo, on_exhausted: OnExhausted::Skip, ..base() };
    let keys = || Policy { ordering: Ordering::Key, on_exhausted: OnExhausted::Skip, ..base() };
    let list: Vec<(&str, Policy, Model)> = vec![
        ("plain", base(), quick().troubled(outages(TroubleKind::Errors { status: 500 }))),
        ("shaped", Policy { rate_limit: rate(100, 12), max_concurrency: wide(8), ..base() }, slow()),
        ("strict", Policy { rate_limit: rate(90, 1), max_concurrency: wide(2), ..base() }, quick()),
        ("wide", Policy { max_concurrency: wide(6), ..base() }, slow()),
        ("fifo", fifo(), quick()),
        ("fifo-failing", fifo(), quick().troubled(outages(TroubleKind::Refuses))),
        ("keys", Policy { max_concurrency: wide(4), ..keys() }, slow()),
        ("quiet", Policy { quiet: pause_of_a_minute(), rate_limit: rate(120, 20), ..base() }, quick()),
        ("throttled", base(), quick().limited(Limiter::new(15, Millis::seconds(20), Says::Seconds))),
        (
            "closing",
            base(),
            quick().troubled(outages(TroubleKind::Unavailable { retry_after: Millis::seconds(15) })),
        ),
        (
            "flapping",
            base(),
            quick().troubled(vec![Trouble { from: START, to: end, kind: flaps }]),
        ),
        (
            "everything",
            Policy { quiet: pause_of_a_minute(), rate_limit: rate(80, 5), max_concurrency: wide(3), ..keys() },
            quick().limited(Limiter::new(60, Millis::seconds(30), Says::Seconds)),
        ),
    ];
    let named = |(account, (name, policy, model)): (u32, (&str, Policy, Model))| Destination {
        name: name.into(),
        account: account % 3,
        policy,
        model,
    };
    (0..).zip(list).map(named).collect()
}

/// The world begins at 04:59 UTC.
fn pause_of_a_minute() -> QuietHours {
    let spec = WindowSpec {
        timezone: "UTC".into(),
        quiet_start: "05:00".into(),
        quiet_end: "05:01".into(),
        days: vec![],
        applies_to: vec![],
        bypass_event_types: vec!["payment.*".into()],
    };
    QuietHours::new(vec![Window::parse(spec).expect("a valid window")]).expect("open otherwise")
}
