//! `fleet`: 200 destinations for 60 days, first with a fixed timeout of 10 s, then with the adaptive one.
//!
//! [`world`] draws the destinations, [`gauge`] watches a run, [`Figures`] are what it has shown. The two runs of a seed
//! differ in nothing but the timeout policy; `docs/scenarios.md` defines every figure.

mod figures;
mod gauge;
mod world;

pub use figures::{Figures, SlowForGood};

use tidegate_core::time::Millis;
use tidegate_core::timeout::TimeoutMode;

use super::Progress;
use crate::report::{Finding, Picture, Report};
use crate::run::{Setup, Sim};
use crate::series::Series;
use gauge::Gauge;

/// The simulated days.
pub const DAYS: i64 = 60;
/// The figures are taken on the days after these.
pub const WARM_UP_DAYS: i64 = 30;
/// The timeout of the first run.
pub const FIXED: TimeoutMode = TimeoutMode::Manual(Millis::seconds(10));
/// What is still open after the last day gets this long to come to an end.
const WIND_DOWN: Millis = Millis::days(8);
/// Points in time of each picture: four a day.
const STEPS: u32 = 240;

/// One run of the fleet.
#[derive(Clone, Debug)]
pub struct Run {
    /// What it has shown.
    pub figures: Figures,
    /// The fleet over time.
    pub series: Series,
}

/// The world of `seed` for so many days, in which every destination has this timeout policy.
pub fn setup(seed: u64, timeout: TimeoutMode, days: i64) -> Setup {
    world::setup(seed, &world::draw(seed, days), timeout, days)
}

/// Runs the fleet of `seed` under one timeout policy.
pub fn simulate(seed: u64, timeout: TimeoutMode, progress: Progress<'_>) -> Run {
    let fleet = world::draw(seed, DAYS);
    let (start, end) = (world::START, world::START + Millis::days(DAYS));
    let measured = (start + Millis::days(WARM_UP_DAYS), end);
    let watchers = (Gauge::new(&fleet, measured), Series::new(start, end, STEPS));
    let mut sim = Sim::new(world::setup(seed, &fleet, timeout, DAYS), watchers);
    for day in 1..=DAYS {
        sim.run_for(Millis::days(1));
        if day > WARM_UP_DAYS {
            let lanes = sim.dispatcher().lanes().iter();
            let in_force: Vec<_> = lanes.map(|lane| lane.state().timeout(lane.policy(), None)).collect();
            sim.observer.0.read_timeouts(&in_force);
        }
        progress(day as f64 / DAYS as f64, &format!("day {day} of {DAYS}"));
    }
    sim.run_until_quiet(WIND_DOWN);
    let now = sim.now().wall;
    let (mut gauge, series) = sim.observer;
    gauge.finish(now);
    Run { figures: Figures::of(&gauge), series }
}

/// Both runs of `seed`, and what the second must show.
pub fn run(seed: u64, progress: Progress<'_>) -> Report {
    let fixed = simulate(seed, FIXED, &mut |share, what| {
        progress(share / 2.0, &format!("fixed timeout, {what}"));
    });
    let adaptive = simulate(seed, TimeoutMode::Adaptive, &mut |share, what| {
        progress(0.5 + share / 2.0, &format!("adaptive timeout, {what}"));
    });
    report(seed, fixed, adaptive)
}

/// The report on both runs of `seed`.
pub fn report(seed: u64, fixed: Run, adaptive: Run) -> Report {
    let mut findings = for_comparison(&fixed.figures);
    findings.extend(wanted(&adaptive.figures));
    Report {
        scenario: "fleet".into(),
        seed,
        world: format!(
            "200 destinations for {DAYS} days, with latencies of very different shape, outages and slow phases; once \
             with a fixed timeout of 10 s, once with the adaptive one. Measured on the days {} to {DAYS}.",
            WARM_UP_DAYS + 1
        ),
        deliveries: fixed.figures.deliveries + adaptive.figures.deliveries,
        attempts: fixed.figures.attempts + adaptive.figures.attempts,
        simulated_seconds: 2.0 * Millis::days(DAYS).as_secs_f64(),
        findings,
        pictures: vec![
            Picture { title: "The fleet with a fixed timeout of 10 s".into(), series: fixed.series },
            Picture { title: "The fleet with adaptive timeouts".into(), series: adaptive.series },
        ],
    }
}

/// What the fixed run shows. The world is calibrated so that this is what the article starts from.
fn for_comparison(fixed: &Figures) -> Vec<Finding> {
    vec![
        Finding::note("fixed: false timeouts (calibrated to about 1.8%)", percent(fixed.false_timeouts)),
        Finding::note(
            "fixed: capacity spent on failed attempts (calibrated to about 22%)",
            percent(fixed.failed_capacity),
        ),
        Finding::note(
            "fixed: mean time to detect an outage (calibrated to about 38 s)",
            seconds(fixed.mean_detection),
        ),
        Finding::note("fixed: outages felt, and detected", detected(fixed)),
        Finding::note("fixed: breakers opened without an outage", fixed.false_alarms.to_string()),
        Finding::note("fixed: events given up", fixed.dead.to_string()),
        Finding::note("fixed: destinations that became slow for good", slow_for_good(fixed)),
    ]
}

/// What the adaptive run must show, all at once.
fn wanted(adaptive: &Figures) -> Vec<Finding> {
    let timeout = format!("{} ms", adaptive.median_timeout.get());
    vec![
        Finding::check(
            "adaptive: false timeouts",
            percent(adaptive.false_timeouts),
            "at most 0.3%",
            adaptive.few_false_timeouts(),
        ),
        Finding::check("adaptive: median timeout", timeout, "at most 3200 ms", adaptive.short_timeouts()),
        Finding::check(
            "adaptive: capacity spent on failed attempts",
            percent(adaptive.failed_capacity),
            "at most 11%",
            adaptive.little_wasted(),
        ),
        Finding::check(
            "adaptive: mean time to detect an outage",
            seconds(adaptive.mean_detection),
            "at most 14 s",
            adaptive.quick_detection(),
        ),
        Finding::check(
            "adaptive: destinations that became slow for good",
            slow_for_good(adaptive),
            "all delivered, never more than 5 min without a success",
            adaptive.none_locked_out(),
        ),
        Finding::note("adaptive: outages felt, and detected", detected(adaptive)),
        Finding::note("adaptive: breakers opened without an outage", adaptive.false_alarms.to_string()),
        Finding::note("adaptive: events given up", adaptive.dead.to_string()),
    ]
}

fn percent(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}

fn seconds(time: Millis) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn detected(figures: &Figures) -> String {
    format!(
        "{} and {}; those that hang after {}",
        figures.outages_felt,
        figures.outages_detected,
        seconds(figures.mean_hang_detection)
    )
}

fn slow_for_good(figures: &Figures) -> String {
    let slow = &figures.slow_for_good;
    format!(
        "{} delivered, {} given up, longest without a success {}",
        slow.delivered,
        slow.dead,
        seconds(slow.locked_out)
    )
}
