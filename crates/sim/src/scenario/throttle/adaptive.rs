//! `mode: "adaptive"`, with always something to send, against limiters of every style.
//!
//! Everything counts from the first request: nothing is known of the destination then, and what it costs to find out is
//! in the figures.

use tidegate_core::policy::Policy;
use tidegate_core::rate::{Per, Quota, RateLimit, RateMode};
use tidegate_core::time::{Millis, Timestamp};

use super::watch::Watch;
use super::{Shown, Telling, percent};
use crate::report::{Finding, Picture};
use crate::run::{Commit, Destination, Faults, Setup, Sim, Storage};
use crate::series::Series;
use crate::traffic::{Arrivals, Source, Template};
use crate::world::{Latency, Limiter, Model, Says};

/// 2026-05-04T09:41:17Z: no minute begins with the run.
pub(super) const START: Timestamp = Timestamp::from_millis(1_777_887_677_000);

const PER_MINUTE: u32 = 100;
/// The bucket's burst: a tenth of the minute, so that it is a limit and not a loan.
const BURST: u32 = 10;
const LENGTH: Millis = Millis::hours(24);
const MINUTES: u32 = 24 * 60;
/// What waits at the start. After that as much comes in as is allowed, so that there is always more.
pub(super) const HEAD_START: u32 = 2_000;

/// 2026-05-04T00:00:00Z: so many days are so many quotas.
const MIDNIGHT: Timestamp = Timestamp::from_millis(1_777_852_800_000);
const QUOTA: u32 = 1_000;
const QUOTA_DAYS: i64 = 10;
const QUOTA_ARRIVALS_A_DAY: f64 = 10_000.0;

/// Simulated time in all.
pub(super) const WHOLE: Millis = Millis::days(MINUTE_STYLES as i64 + 3 * QUOTA_DAYS);
const MINUTE_STYLES: usize = 6;

pub(super) fn run(seed: u64, telling: &mut Telling<'_>, shown: &mut Shown) {
    let minute = Millis::minutes(1);
    let styles: [(&str, Limiter); MINUTE_STYLES] = [
        ("window, says nothing", Limiter::new(PER_MINUTE, minute, Says::Nothing)),
        ("window, says seconds", Limiter::new(PER_MINUTE, minute, Says::Seconds)),
        ("window, says a date", Limiter::new(PER_MINUTE, minute, Says::HttpDate)),
        ("window, RateLimit headers", Limiter::new(PER_MINUTE, minute, Says::Headers)),
        ("bucket, says nothing", Limiter::bucket(PER_MINUTE, minute, BURST, Says::Nothing)),
        ("bucket, says seconds", Limiter::bucket(PER_MINUTE, minute, BURST, Says::Seconds)),
    ];
    for (place, (name, limiter)) in styles.into_iter().enumerate() {
        let series = against_minutes(seed, name, limiter, telling, shown);
        if place == 0 {
            // The hardest one: it is found out by 429s alone, and each costs a minute.
            let title = format!("The first hours: adaptive, 100 a minute, {name}");
            shown.pictures.push(Picture { title, series });
        }
    }
    let styles = [
        ("says nothing", Says::Nothing),
        ("says seconds", Says::Seconds),
        ("RateLimit headers", Says::Headers),
    ];
    for (name, says) in styles {
        against_a_day(seed, name, says, telling, shown);
    }
}

fn against_minutes(
    seed: u64,
    name: &str,
    limiter: Limiter,
    telling: &mut Telling<'_>,
    shown: &mut Shown,
) -> Series {
    let waiting = Arrivals::Burst { at: START, count: HEAD_START };
    let arrivals = Arrivals::per_day(f64::from(PER_MINUTE * MINUTES), START, START + LENGTH);
    let first_hours = Series::new(START, START + Millis::hours(4), 240);
    let setup = world(seed, START, limiter, vec![waiting, arrivals]);
    let mut sim = Sim::new(setup, (Watch::new(0), first_hours));
    sim.run_for(LENGTH);
    telling.passed(LENGTH, name);
    let (watch, series) = sim.observer;
    let used = percent(watch.delivered as f64, f64::from(PER_MINUTE * MINUTES));
    let refused = percent(watch.refused as f64, watch.sent as f64);
    let name = format!("adaptive, 100 a minute, {name}");
    shown.findings.push(Finding::check(
        format!("{name}: used of what it allows in {LENGTH}"),
        format!("{used:.2}%"),
        "at least 95%",
        used >= 95.0 && watch.starved == 0 && watch.dead == 0,
    ));
    shown.findings.push(Finding::check(
        format!("{name}: answered 429"),
        format!("{} of {} requests = {refused:.3}%", watch.refused, watch.sent),
        "at most 1%",
        refused <= 1.0,
    ));
    shown.deliveries += watch.ended;
    shown.attempts += watch.sent;
    series
}

fn against_a_day(seed: u64, name: &str, says: Says, telling: &mut Telling<'_>, shown: &mut Shown) {
    let end = MIDNIGHT + Millis::days(QUOTA_DAYS);
    let limiter = Limiter::new(QUOTA, Millis::days(1), says);
    let setup = world(seed, MIDNIGHT, limiter, vec![Arrivals::per_day(QUOTA_ARRIVALS_A_DAY, MIDNIGHT, end)]);
    let mut sim = Sim::new(setup, Watch::new(0));
    for _ in 0..QUOTA_DAYS {
        sim.run_for(Millis::days(1));
        telling.passed(Millis::days(1), name);
    }
    let watch = &sim.observer;
    let refused = percent(watch.refused as f64, watch.sent as f64);
    let used = percent(watch.delivered as f64, f64::from(QUOTA) * QUOTA_DAYS as f64);
    let name = format!("adaptive, 1,000 a day, {name}");
    shown.findings.push(Finding::check(
        format!("{name}: answered 429 in {QUOTA_DAYS} days"),
        format!("{} of {} requests = {refused:.2}%", watch.refused, watch.sent),
        "at most 2%",
        refused <= 2.0 && watch.dead == 0,
    ));
    shown.findings.push(Finding::note(format!("{name}: used of the quota"), format!("{used:.1}%")));
    shown.deliveries += watch.ended;
    shown.attempts += watch.sent;
}

/// One destination, paced by what it answers, up to 6,000 a minute.
pub(super) fn world(seed: u64, start: Timestamp, limiter: Limiter, arrivals: Vec<Arrivals>) -> Setup {
    let quota = Quota::new(6_000, Per::Minute, None).expect("a valid rate");
    let policy =
        Policy { rate_limit: Some(RateLimit { quota, mode: RateMode::Adaptive }), ..Policy::default() };
    let model = Model::healthy(Latency::LogNormal { median_ms: 120.0, sigma: 0.6 }).limited(limiter);
    let source = |arrivals| Source { destination: 0, template: Template::new("order.created"), arrivals };
    Setup {
        seed,
        start,
        slots: 100,
        commit: Commit::Instant,
        storage: Storage::Memory,
        destinations: vec![Destination { name: "limited".into(), account: 0, policy, model }],
        sources: arrivals.into_iter().map(source).collect(),
        faults: Faults::default(),
    }
}
