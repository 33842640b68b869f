//! Goal: when many destinations open at the same moment, or all come back after a long outage, nobody gets more than their
//! bucket and the node holds, and what was before is soon so again.
//! Method: simulated nights and outages of whole fleets, with the oracles watching every request.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use tidegate_core::delivery::{End, Status};
use tidegate_core::outcome::Outcome;
use tidegate_core::policy::{Concurrency as MaxConcurrency, Policy};
use tidegate_core::quiet::{QuietHours, Window, WindowSpec};
use tidegate_core::rate::{Per, Quota, RateLimit, RateMode};
use tidegate_core::time::{Millis, Timestamp};
use tidegate_sim::oracle::concurrency::Concurrency;
use tidegate_sim::oracle::ledger::Ledger;
use tidegate_sim::oracle::quiet::Quiet;
use tidegate_sim::oracle::rate::Rate;
use tidegate_sim::oracle::shut::Shut;
use tidegate_sim::run::{Commit, Destination, Faults, Note, Observer, Setup, Sim, Storage, View};
use tidegate_sim::traffic::{Arrivals, Source, Template};
use tidegate_sim::world::{Buffer, Latency, Model, Trouble, TroubleKind};

/// Five in the morning; at six something happens.
const START: Timestamp = Timestamp::from_millis(1_777_611_600_000);
const SIX: Timestamp = Timestamp::from_millis(1_777_615_200_000);
/// Destinations that open or come back together.
const MANY: usize = 1_000;
/// What each of them waits for.
const EACH: u32 = 30;
const BURST: u32 = 5;
const PER_MINUTE: u32 = 60;
/// Requests that the node makes at a time.
const SLOTS: u32 = 400;
/// The longest that a breaker stays open before it lets a probe through.
const LONGEST_OPEN: Millis = Millis::minutes(10);

/// Every start and every end, by destination and time.
#[derive(Default)]
struct Seen {
    starts: Vec<(usize, Timestamp)>,
    failures: Vec<Timestamp>,
    delivered: Vec<Timestamp>,
    lost: usize,
}

impl Observer for Seen {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        let now = view.now.wall;
        match note {
            Note::Sent(lane, _) => self.starts.push((lane.index(), now)),
            Note::Answered(_, _, answer) if !matches!(answer.report.outcome, Outcome::Success { .. }) => {
                self.failures.push(now);
            }
            Note::Settled(_, delivery) => match delivery.status {
                Status::Final(End::Delivered) => self.delivered.push(now),
                Status::Final(_) => self.lost += 1,
                _ => {}
            },
            _ => {}
        }
    }
}

type Watched = (Seen, ((Rate, Concurrency), (Quiet, (Shut, Ledger))));

fn watched(setup: Setup) -> Sim<Watched> {
    let bounds = (Rate::new(&setup), Concurrency::new(&setup));
    let doors = (Quiet::new(&setup), (Shut::new(&setup), Ledger::default()));
    Sim::new(setup, (Seen::default(), (bounds, doors)))
}

#[track_caller]
fn assert_held(sim: &Sim<Watched>) {
    let (_, ((rate, concurrency), (quiet, (shut, ledger)))) = &sim.observer;
    for wrong in [
        rate.violations(),
        concurrency.violations(),
        quiet.violations(),
        shut.violations(),
        ledger.violations(),
    ] {
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

/// Destinations alike, each with its events at one moment.
fn fleet(seed: u64, policy: &Policy, troubles: &[Trouble], at: Timestamp) -> Setup {
    let model =
        Model::healthy(Latency::LogNormal { median_ms: 100.0, sigma: 0.4 }).troubled(troubles.to_vec());
    let destination = |number: usize| Destination {
        name: format!("d{number}"),
        account: u32::try_from(number % 50).unwrap(),
        policy: policy.clone(),
        model: model.clone(),
    };
    let source = |destination| Source {
        destination,
        template: Template::new("order.created"),
        arrivals: Arrivals::Burst { at, count: EACH },
    };
    Setup {
        seed,
        start: START,
        slots: SLOTS,
        commit: Commit::Grouped(Millis::new(3)),
        storage: Storage::Memory,
        destinations: (0..MANY).map(destination).collect(),
        sources: (0..MANY).map(source).collect(),
        faults: Faults::default(),
    }
}

fn limited() -> Policy {
    let quota = Quota::new(PER_MINUTE.into(), Per::Minute, Some(BURST.into())).unwrap();
    Policy {
        max_concurrency: MaxConcurrency::new(10).unwrap(),
        rate_limit: Some(RateLimit { quota, mode: RateMode::Fixed }),
        ..Policy::default()
    }
}

/// How many starts each destination had from `from` on, for so long.
fn starts_of_each(seen: &Seen, from: Timestamp, during: Millis) -> Vec<u32> {
    let mut counts = vec![0; MANY];
    for (lane, _) in seen.starts.iter().filter(|(_, at)| (from..from + during).contains(at)) {
        counts[*lane] += 1;
    }
    counts
}

#[test]
fn a_thousand_quiet_windows_that_open_together_give_each_its_burst_once() {
    let spec = WindowSpec {
        timezone: "UTC".into(),
        quiet_start: "22:00".into(),
        quiet_end: "06:00".into(),
        ..WindowSpec::default()
    };
    let quiet = QuietHours::new(vec![Window::parse(spec).unwrap()]).unwrap();
    let setup = fleet(1, &Policy { quiet, ..limited() }, &[], START + Millis::minutes(10));
    let mut sim = watched(setup);
    assert!(sim.run_until_quiet(Millis::hours(3)), "{} are left", sim.open_deliveries());
    assert_held(&sim);
    let seen = &sim.observer.0;
    assert!(seen.starts.iter().all(|(_, at)| *at >= SIX), "nothing goes before six");
    assert_eq!((seen.delivered.len(), seen.lost), (MANY * EACH as usize, 0));
    // A bucket that is full, and what it gains in ten seconds: it was not filled a second time.
    let first = starts_of_each(seen, SIX, Millis::seconds(10));
    let most = BURST + PER_MINUTE / 6;
    assert!(first.iter().all(|count| (BURST..=most).contains(count)), "{:?}", first.iter().max());
    // 25 more at one a second, and a little for the crowd of the first seconds.
    let last = *seen.delivered.last().unwrap();
    assert!(last < SIX + Millis::seconds(40), "{last}");
}

#[test]
fn a_thousand_destinations_that_come_back_together_are_approached_one_by_one() {
    let down = Trouble { from: START, to: SIX, kind: TroubleKind::Refuses };
    let mut sim = watched(fleet(2, &limited(), &[down], START + Millis::minutes(50)));
    assert!(sim.run_until_quiet(Millis::hours(5)), "{} are left", sim.open_deliveries());
    assert_held(&sim);
    let seen = &sim.observer.0;
    assert_eq!((seen.delivered.len(), seen.lost), (MANY * EACH as usize, 0));
    for second in 0..120 {
        let from = SIX + Millis::seconds(second * 10);
        let most = starts_of_each(seen, from, Millis::seconds(10)).into_iter().max().unwrap();
        assert!(most <= BURST + PER_MINUTE / 6, "{most} from {from} on");
    }
    // Each breaker was opened at its own time and waits for its own: they do not come back as one.
    let in_first_second = starts_of_each(seen, SIX, Millis::seconds(1)).iter().sum::<u32>();
    assert!(in_first_second < SLOTS, "{in_first_second}");
    let everybody = starts_of_each(seen, SIX, LONGEST_OPEN.scaled(6, 5));
    assert!(everybody.iter().all(|count| *count > 0), "each was asked again within the longest pause");
}

/// Goal: an outage of everybody for an hour leaves nothing behind: no storm that keeps itself alive, and the old pace within
/// the longest pause of a breaker and a few minutes.
/// Method: destinations that can take twice what comes, and refuse what is more, so that a storm would feed itself.
#[test]
fn after_an_hour_of_failure_everywhere_the_old_pace_is_back() {
    const DESTINATIONS: usize = 20;
    const EVERY: Millis = Millis::seconds(4);
    for kind in [TroubleKind::Errors { status: 500 }, TroubleKind::Hangs] {
        let (down, up) = (START + Millis::minutes(30), START + Millis::minutes(90));
        let end = START + Millis::minutes(200);
        let trouble = Trouble { from: down, to: up, kind };
        let latency = Latency::LogNormal { median_ms: 100.0, sigma: 0.4 };
        let model = Model::healthy(latency).buffered(Buffer::new(30, 30)).troubled(vec![trouble]);
        let destination = |number: usize| Destination {
            name: format!("d{number}"),
            account: 0,
            policy: Policy::default(),
            model: model.clone(),
        };
        let source = |destination| Source {
            destination,
            template: Template::new("order.created"),
            arrivals: Arrivals::Poisson { from: START, every: EVERY, to: end },
        };
        let mut sim = watched(Setup {
            seed: 3,
            start: START,
            slots: SLOTS,
            commit: Commit::Grouped(Millis::new(3)),
            storage: Storage::Memory,
            destinations: (0..DESTINATIONS).map(destination).collect(),
            sources: (0..DESTINATIONS).map(source).collect(),
            faults: Faults::default(),
        });
        assert!(sim.run_until_quiet(Millis::hours(9)), "{} are left", sim.open_deliveries());
        assert_held(&sim);
        let seen = &sim.observer.0;
        let per_minute = |times: &[Timestamp], minute: i64| {
            let from = START + Millis::minutes(minute);
            times.iter().filter(|at| (from..from + Millis::minutes(1)).contains(at)).count()
        };
        let usual = DESTINATIONS * 15;
        let starts: Vec<_> = seen.starts.iter().map(|(_, at)| *at).collect();
        // While nobody answers, what is tried is a small part of what comes.
        assert!(per_minute(&starts, 60) * 5 < usual, "{}", per_minute(&starts, 60));
        // The longest pause, with its jitter, and a minute for the probes.
        let back = 90 + 13;
        for minute in back..200 {
            let delivered = per_minute(&seen.delivered, minute);
            assert!(delivered * 10 >= usual * 8, "{kind:?}, minute {minute}: {delivered} of {usual}");
        }
        // An hour's backlog at what they can take beside what comes is an hour, and half as much again is allowed.
        for minute in back + 90..200 {
            assert_eq!(per_minute(&seen.failures, minute), 0, "{kind:?}, minute {minute}");
            assert!(per_minute(&starts, minute) * 10 <= usual * 13, "{kind:?}, minute {minute}");
        }
        assert_eq!(seen.lost, 0, "{kind:?}");
    }
}

/// When a breaker changed, and how many were delivered.
#[derive(Default)]
struct Flaps {
    changed: Vec<Timestamp>,
    delivered: u32,
}

impl Observer for Flaps {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        let now = view.now.wall;
        match note {
            Note::Changed(_, aftermath) => self.changed.extend(aftermath.breaker.map(|_| now)),
            Note::Settled(_, delivery) if delivery.status == Status::Final(End::Delivered) => {
                self.delivered += 1;
            }
            _ => {}
        }
    }
}

/// A destination that is there for a second and away for the next, for good, with an event every two seconds for two hours.
fn flapping(seed: u64) -> Sim<Flaps> {
    let second = Millis::seconds(1);
    let kind = TroubleKind::Flaps { up: second, down: second };
    let trouble = Trouble { from: START, to: START + Millis::hours(48), kind };
    let latency = Latency::LogNormal { median_ms: 100.0, sigma: 0.4 };
    let destination = Destination {
        name: "flapping".into(),
        account: 0,
        policy: Policy::default(),
        model: Model::healthy(latency).troubled(vec![trouble]),
    };
    let arrivals = Arrivals::Poisson { from: START, every: second + second, to: START + Millis::hours(2) };
    let source = Source { destination: 0, template: Template::new("order.created"), arrivals };
    let setup = Setup {
        seed,
        start: START,
        slots: SLOTS,
        commit: Commit::Grouped(Millis::new(3)),
        storage: Storage::Memory,
        destinations: vec![destination],
        sources: vec![source],
        faults: Faults::default(),
    };
    Sim::new(setup, Flaps::default())
}

/// A breaker stays open for half a minute at least: however its destination flaps, it opens and closes once in that time.
#[test]
fn the_breaker_of_a_flapping_destination_does_not_flap_with_it() {
    for seed in 0..5 {
        let mut sim = flapping(seed);
        sim.run_until_quiet(Millis::hours(12));
        let changed = &sim.observer.changed;
        assert!(changed.len() > 2, "it never opened");
        let apart = |three: &[Timestamp]| three[2].as_millis() - three[0].as_millis();
        let closest = changed.windows(3).map(apart).min().unwrap();
        assert!(closest >= 30_000, "seed {seed}: three changes within {closest} ms");
    }
}

/// Its breaker lets a few dozen through each time that two probes in a row have met it while it is up, and more comes than
/// that: it falls behind, but goes on. (Without what puts pauses out of step with it, nothing went at all.)
#[test]
fn a_flapping_destination_is_not_starved() {
    for seed in 0..5 {
        let mut sim = flapping(seed);
        sim.run_until_quiet(Millis::hours(12));
        let delivered = sim.observer.delivered;
        assert!(delivered > 500, "seed {seed}: {delivered} delivered");
    }
}
