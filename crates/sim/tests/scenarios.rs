//! The built-in scenarios show what they claim, under any seed; and the oracles that they rest on do object when a bound is
//! broken: each is given a world that asks for a little more than the one that runs.

use tidegate_core::order::Ordering;
use tidegate_core::policy::{Concurrency as MaxConcurrency, Policy};
use tidegate_core::quiet::{QuietHours, Window, WindowSpec};
use tidegate_core::rate::{Per, Quota, RateLimit, RateMode};
use tidegate_core::time::{Millis, Now, Timestamp};
use tidegate_engine::dispatcher::{LaneId, Sending};
use tidegate_sim::oracle::concurrency::Concurrency;
use tidegate_sim::oracle::expiry::Expiry;
use tidegate_sim::oracle::order::Order;
use tidegate_sim::oracle::quiet::Quiet;
use tidegate_sim::oracle::rate::Rate;
use tidegate_sim::report::Report;
use tidegate_sim::run::{Commit, Destination, Faults, Note, Observer, Setup, Sim, Storage, View};
use tidegate_sim::scenario::ALL;
use tidegate_sim::traffic::{Arrivals, Source, Template};
use tidegate_sim::world::{Buffer, Latency, Model};

fn run(name: &str, seed: u64) -> Report {
    let scenario = ALL.iter().find(|scenario| scenario.name == name).expect("a built-in scenario");
    let mut last = 0.0;
    (scenario.run)(seed, &mut |done, what| {
        assert!((last..=1.0).contains(&done) && !what.is_empty(), "{name}: {done} after {last}");
        last = done;
    })
}

fn holds_for_three_seeds(name: &str) {
    for seed in [1, 2, 2026] {
        let report = run(name, seed);
        let wrong: Vec<_> = report.findings.iter().filter(|finding| !finding.holds).collect();
        assert!(wrong.is_empty(), "{name}, seed {seed}: {wrong:#?}");
        assert!(report.deliveries > 0 && !report.pictures.is_empty());
        for picture in &report.pictures {
            let sent: u32 = picture.series.steps.iter().map(|step| step.sent).sum();
            assert!(sent > 0, "{name}: nothing to see in \"{}\"", picture.title);
        }
    }
}

#[test]
fn a_night_drains_at_the_pace_of_the_bucket_oldest_first() {
    holds_for_three_seeds("quiet-drain");
}

#[test]
fn a_burst_is_shaped_to_what_the_destination_is_good_for() {
    holds_for_three_seeds("burst");
}

#[test]
fn nothing_is_sent_stale_and_more_arrives_in_time() {
    holds_for_three_seeds("ttl");
}

#[test]
fn nobody_waits_for_the_busy_or_the_hanging() {
    holds_for_three_seeds("fairness");
}

#[test]
fn the_same_seed_gives_the_same_report() {
    let text = |seed| serde_json::to_string(&run("burst", seed)).unwrap();
    assert_eq!(text(5), text(5));
    assert_ne!(text(5), text(6));
}

fn start() -> Timestamp {
    Timestamp::parse("2026-05-01T02:00:00Z").expect("a valid time")
}

/// 200 events at once for one destination.
fn world(policy: Policy) -> Setup {
    let model = Model::healthy(Latency::LogNormal { median_ms: 200.0, sigma: 0.4 });
    Setup {
        seed: 1,
        start: start(),
        slots: 100,
        commit: Commit::Instant,
        storage: Storage::Memory,
        destinations: vec![Destination { name: "one".into(), account: 0, policy, model }],
        sources: vec![Source {
            destination: 0,
            template: Template::new("order.created").with_ttl(Millis::minutes(10)),
            arrivals: Arrivals::Burst { at: start(), count: 200 },
        }],
        faults: Faults::default(),
    }
}

fn watch<O: Observer>(policy: &Policy, oracle: O) -> Sim<O> {
    let mut sim = Sim::new(world(policy.clone()), oracle);
    assert!(sim.run_until_quiet(Millis::hours(1)));
    sim
}

#[test]
fn the_rate_oracle_sees_a_burst_that_is_one_too_large() {
    let policy = |burst| {
        let quota = Quota::new(100, Per::Minute, Some(burst)).unwrap();
        Policy { rate_limit: Some(RateLimit { quota, mode: RateMode::Fixed }), ..Policy::default() }
    };
    let seen = |asked| watch(&policy(50), Rate::new(&world(policy(asked)))).observer;
    assert_eq!(seen(50).violations(), [""; 0]);
    assert!(seen(49).count() > 0);
}

#[test]
fn the_concurrency_oracle_sees_one_request_too_many() {
    let policy = |max| Policy { max_concurrency: MaxConcurrency::new(max).unwrap(), ..Policy::default() };
    let seen = |asked| watch(&policy(5), Concurrency::new(&world(policy(asked)))).observer;
    assert_eq!(seen(5).violations(), [""; 0]);
    assert!(seen(4).count() > 0);
}

#[test]
fn the_quiet_oracle_sees_what_is_sent_in_the_night() {
    let policy = |bypass: &[&str]| {
        let window = Window::parse(WindowSpec {
            timezone: "Europe/London".into(),
            quiet_start: "23:00".into(),
            quiet_end: "03:01".into(),
            bypass_event_types: bypass.iter().map(ToString::to_string).collect(),
            ..WindowSpec::default()
        });
        Policy { quiet: QuietHours::new(vec![window.unwrap()]).unwrap(), ..Policy::default() }
    };
    let seen = |sent: &[&str]| watch(&policy(sent), Quiet::new(&world(policy(&[])))).observer;
    assert_eq!(seen(&[]).violations(), [""; 0], "02:00 UTC is 03:00 there: they wait for a minute");
    assert!(seen(&["order.*"]).count() > 0);
}

#[test]
fn the_order_oracle_sees_two_at_once() {
    let policy = |ordering| Policy { ordering, ..Policy::default() };
    let seen = |ran| watch(&policy(ran), Order::new(&world(policy(Ordering::Fifo)))).observer;
    assert_eq!(seen(Ordering::Fifo).violations(), [""; 0]);
    assert!(seen(Ordering::None).count() > 0);
}

/// Keeps the first request.
#[derive(Default)]
struct First(Option<(LaneId, Sending)>);

impl Observer for First {
    fn note(&mut self, _: &View<'_>, note: &Note<'_>) {
        if let (Note::Sent(lane, sending), None) = (note, &self.0) {
            self.0 = Some((*lane, (*sending).clone()));
        }
    }
}

#[test]
fn the_expiry_oracle_sees_a_request_that_comes_too_late() {
    let sim = watch(&Policy::default(), First::default());
    let (lane, sending) = sim.observer.0.as_ref().unwrap();
    let sent_so_long_before_expiry = |left: i64| {
        let mut expiry = Expiry::new();
        let wall = sending.expires_at.unwrap() - Millis::new(left);
        let now = Now { wall, ..sim.now() };
        let view = View { now, dispatcher: sim.dispatcher(), backing: sim.backing() };
        expiry.note(&view, &Note::Sent(*lane, sending));
        expiry.count()
    };
    let timeout = sending.attempt.timeout.get();
    assert_eq!([timeout, timeout - 1, 249, 0, -1].map(sent_so_long_before_expiry), [0, 1, 1, 1, 1]);
}

#[test]
fn a_destination_without_room_answers_503() {
    let mut setup = world(Policy::default());
    let latency = Latency::Constant { ms: 50.0 };
    setup.destinations[0].model = Model::healthy(latency).buffered(Buffer::new(60, 20));
    let mut sim = Sim::new(setup, ());
    sim.run_until_quiet(Millis::hours(1));
    assert!(sim.model(0).buffer.as_ref().unwrap().refused > 0);
}
