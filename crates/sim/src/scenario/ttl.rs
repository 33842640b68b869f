//! `ttl`: events that go stale, at destinations with outages and quiet hours. Nothing is sent too late, what expired and
//! what died is told apart, and retries that fit the life of an event bring more of them in time than the default schedule.

mod reasons;
mod world;

use tidegate_core::time::Millis;

use super::Progress;
use super::count::Count;
use crate::oracle::expiry::Expiry;
use crate::oracle::quiet::Quiet;
use crate::report::{Finding, Picture, Report};
use crate::run::Sim;
use crate::series::Series;
use reasons::{Ends, Reasons};
use world::{Kind, LASTS, Retries, start};

/// After the publishers stop: the retries of durable events span an hour and a quarter, the longest nights nine hours.
const AFTERMATH: Millis = Millis::days(2);
/// What is stale may be seen as waiting for no longer than the sweep takes.
const SEEN_STALE: Millis = Millis::seconds(2);

/// What was seen.
struct Ran {
    expiry: Expiry,
    reasons: Reasons,
    series: Series,
    count: Count,
    lasted: Millis,
    at_rest: bool,
}

/// Runs it.
pub(super) fn run(seed: u64, progress: Progress<'_>) -> Report {
    progress(0.0, "retries that fit the life of the event");
    let fitted = run_with(seed, Retries::Fitted);
    progress(0.5, "the default schedule");
    let default = run_with(seed, Retries::Default);

    let mut findings = vec![judge_starts(&fitted, &default)];
    findings.push(judge_reasons([&fitted, &default]));
    findings.extend(judge_ends(&fitted));
    findings.extend(stale_kinds().flat_map(|kind| judge_share(kind, &fitted, &default)));
    findings
        .extend(fitted.reasons.given.iter().map(|(reason, count)| Finding::note(reason, count.to_string())));
    let mut count = fitted.count;
    count += default.count;
    Report {
        scenario: "ttl".into(),
        seed,
        world: "100 destinations for 3 days, each with an outage every 20 minutes or so, most of half a minute, some of \
                minutes, few of hours, and a third of them quiet from 22:00 to 06:30 Europe/Berlin; one-time passwords \
                (which pass quiet hours), payment authorisations, price alerts and durable events, each every 10 minutes \
                per destination"
            .into(),
        deliveries: count.ended,
        attempts: count.attempts,
        simulated_seconds: (fitted.lasted + default.lasted).as_secs_f64(),
        findings,
        pictures: vec![Picture { title: "the first day".into(), series: fitted.series }],
    }
}

fn stale_kinds() -> impl Iterator<Item = Kind> {
    Kind::ALL.into_iter().filter(|kind| kind.life().is_some())
}

fn run_with(seed: u64, retries: Retries) -> Ran {
    let setup = world::setup(seed, retries);
    let reasons = Reasons::new(retries, Quiet::new(&setup));
    let series = Series::new(start(), start() + Millis::days(1), 144);
    let mut sim = Sim::new(setup, ((Expiry::new(), reasons), (series, Count::default())));
    let at_rest = sim.run_until_quiet(LASTS + AFTERMATH);
    let lasted = sim.now().wall - start();
    let ((expiry, reasons), (series, count)) = sim.observer;
    Ran { expiry, reasons, series, count, lasted, at_rest }
}

fn judge_starts(fitted: &Ran, default: &Ran) -> Finding {
    let late = fitted.expiry.count() + default.expiry.count();
    let attempts = fitted.count.attempts + default.count.attempts;
    Finding::check(
        "requests that began at or after expiry, or could last past it",
        format!("{late} of {attempts}"),
        "none",
        late == 0,
    )
}

/// Every end of both runs.
fn judge_reasons(runs: [&Ran; 2]) -> Finding {
    let sum = |part: fn(&Ends) -> u64| runs.iter().flat_map(|ran| &ran.reasons.ends).map(part).sum::<u64>();
    let (all, expired, dead) = (sum(|ends| ends.all), sum(|ends| ends.expired), sum(|ends| ends.dead));
    let wrong: u64 = runs.iter().map(|ran| ran.reasons.wrong.count()).sum();
    Finding::check(
        "ended with a status or a reason that does not fit what happened",
        format!("{wrong} of {all} (expired {expired}, dead_letter {dead})"),
        "none, and both occur",
        wrong == 0 && expired > 0 && dead > 0 && runs.iter().all(|ran| ran.at_rest),
    )
}

fn judge_ends(ran: &Ran) -> Vec<Finding> {
    let durable = ran.reasons.ends[Kind::Durable as usize];
    vec![
        Finding::check(
            "durable events: expired, dead_letter",
            format!("{}, {}", durable.expired, durable.dead),
            "none expire",
            durable.expired == 0,
        ),
        Finding::check(
            "longest that a stale delivery was shown as waiting",
            ran.reasons.latest.to_string(),
            format!("≤ {SEEN_STALE}"),
            ran.reasons.latest <= SEEN_STALE,
        ),
    ]
}

/// Of all of a kind, and of those whose first attempt failed: the others leave nothing for retries to do.
fn judge_share(kind: Kind, fitted: &Ran, default: &Ran) -> Vec<Finding> {
    let share = |ran: &Ran, part: fn(&Ends) -> (u64, u64)| {
        let (some, all) = part(&ran.reasons.ends[kind as usize]);
        some as f64 / all.max(1) as f64 * 100.0
    };
    let judge = |what: &str, part| {
        let (ours, theirs) = (share(fitted, part), share(default, part));
        Finding::check(
            format!("{}: {what}", kind.words()),
            format!("{ours:.2}%"),
            format!("above the default schedule's {theirs:.2}%"),
            ours > theirs,
        )
    };
    vec![
        judge("delivered in time", |ends| (ends.delivered, ends.all)),
        judge("in time though the first attempt failed", |ends| (ends.saved, ends.hit)),
    ]
}
