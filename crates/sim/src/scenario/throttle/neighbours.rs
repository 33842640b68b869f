//! Twenty destinations on one node, one of which is throttled: do the others notice?
//!
//! The same world runs without the throttled destination's events, then with them, once for each way of saying 429. The
//! neighbours get a batch on every hour, so that the node's slots are scarce just when the quota is renewed.

use tidegate_core::outcome::Outcome;
use tidegate_core::policy::Policy;
use tidegate_core::time::{Millis, Timestamp};

use super::watch::{WINDOWS, Watch};
use super::{Shown, Telling, percent};
use crate::report::{Finding, Picture};
use crate::run::{Commit, Destination, Faults, Note, Observer, Setup, Sim, Storage, View};
use crate::series::Series;
use crate::traffic::{Arrivals, Source, Template};
use crate::world::{Latency, Limiter, Model, Says};

/// 2026-05-04T00:00:00Z, when a daily quota begins anew.
const START: Timestamp = Timestamp::from_millis(1_777_852_800_000);
/// Less than the seven days after which the first deliveries would be too old.
const DAYS: i64 = 5;
const NEIGHBOURS: usize = 19;
const LIMITED: usize = NEIGHBOURS;
const QUOTA: u32 = 1_000;
const ARRIVALS_A_DAY: f64 = 10_000.0;
/// What a neighbour gets: this many a day, spread, and this many more on each hour, at once.
const SPREAD_A_DAY: f64 = 2_500.0;
const BATCH: usize = 12;
/// Fewer than the twenty destinations' concurrency together.
const SLOTS: u32 = 60;
/// What a probe may wait for one of them.
const SLOT_WAIT: Millis = Millis::seconds(1);

const STYLES: [(Says, &str); 3] = [
    (Says::Nothing, "429 without Retry-After"),
    (Says::Seconds, "429 with seconds"),
    (Says::HttpDate, "429 with a date"),
];

/// Simulated time in all.
pub(super) const WHOLE: Millis = Millis::days(DAYS * (1 + STYLES.len() as i64));

pub(super) fn run(seed: u64, telling: &mut Telling<'_>, shown: &mut Shown) {
    let alone = play(seed, None, "neighbours alone", telling, shown).0;
    for (says, name) in STYLES {
        let (latencies, watch, series) = play(seed, Some(says), name, telling, shown);
        shown.findings.extend(compare(name, &alone, &latencies));
        shown.findings.extend(judge(says, name, &watch));
        if says != Says::HttpDate {
            // It looks just like the one with seconds.
            let title = format!("The throttled destination: {name}");
            shown.pictures.push(Picture { title, series });
        }
    }
}

fn play(
    seed: u64,
    limited: Option<Says>,
    what: &str,
    telling: &mut Telling<'_>,
    shown: &mut Shown,
) -> (Latencies, Watch, Series) {
    let series = Series::new(START, START + Millis::days(DAYS), 240).of(LIMITED);
    let observer = ((Latencies::new(), Watch::new(LIMITED)), series);
    let mut sim = Sim::new(world(seed, limited), observer);
    for _ in 0..DAYS {
        sim.run_for(Millis::days(1));
        telling.passed(Millis::days(1), what);
    }
    let ((latencies, watch), series) = sim.observer;
    shown.deliveries += watch.ended + latencies.count();
    shown.attempts += watch.sent + latencies.count();
    (latencies, watch, series)
}

fn world(seed: u64, limited: Option<Says>) -> Setup {
    let end = START + Millis::days(DAYS);
    let says = limited.unwrap_or(Says::Nothing);
    let mut destinations: Vec<Destination> = (0_u32..)
        .take(NEIGHBOURS)
        .map(|index| {
            let median_ms = 60.0 + 15.0 * f64::from(index);
            destination(index, Model::healthy(Latency::LogNormal { median_ms, sigma: 0.6 }))
        })
        .collect();
    let quota = Limiter::new(QUOTA, Millis::days(1), says);
    let model = Model::healthy(Latency::LogNormal { median_ms: 120.0, sigma: 0.6 }).limited(quota);
    destinations.push(destination(0, model));
    let mut sources: Vec<Source> = Vec::new();
    for destination in 0..NEIGHBOURS {
        sources.push(source(destination, Arrivals::per_day(SPREAD_A_DAY, START, end)));
        let hours = (0..24 * DAYS).flat_map(|hour| [START + Millis::hours(hour); BATCH]);
        sources.push(source(destination, Arrivals::Recorded { at: hours.collect() }));
    }
    if limited.is_some() {
        // Last, so that the neighbours' chance is the same with and without it.
        sources.push(source(LIMITED, Arrivals::per_day(ARRIVALS_A_DAY, START, end)));
    }
    Setup {
        seed,
        start: START,
        slots: SLOTS,
        commit: Commit::Instant,
        storage: Storage::Memory,
        destinations,
        sources,
        faults: Faults::default(),
    }
}

fn destination(index: u32, model: Model) -> Destination {
    Destination { name: format!("destination {index}"), account: index % 5, policy: Policy::default(), model }
}

fn source(destination: usize, arrivals: Arrivals) -> Source {
    Source { destination, template: Template::new("order.created"), arrivals }
}

fn compare(name: &str, alone: &Latencies, beside: &Latencies) -> [Finding; 2] {
    let change = |before: i64, after: i64| percent((after - before) as f64, before as f64);
    let (before, after) = (p99(&alone.all()), p99(&beside.all()));
    let worst = (alone.of.iter().zip(&beside.of))
        .map(|(before, after)| change(p99(before), p99(after)))
        .fold(0.0_f64, |worst, change| if change.abs() > worst.abs() { change } else { worst });
    let all = change(before, after);
    [
        Finding::check(
            format!("{name}: p99 from acceptance to success at the {NEIGHBOURS} others, beside alone"),
            format!("{before} ms, {after} ms: {all:+.2}%"),
            "within 1%",
            all.abs() <= 1.0 && alone.count() == beside.count(),
        ),
        Finding::note(
            format!("{name}: the same, at the one of the {NEIGHBOURS} where it changes most"),
            format!("{worst:+.2}%"),
        ),
    ]
}

fn judge(says: Says, name: &str, watch: &Watch) -> Vec<Finding> {
    let check = |what: &str, value: String, target: &str, holds: bool| {
        Finding::check(format!("{name}: {what}"), value, target, holds)
    };
    // A probe may find all slots taken, like everybody else.
    let punctual = watch.intrusions == 0 && watch.late <= SLOT_WAIT;
    let (left_alone, target) = match says {
        Says::Nothing => (list(&watch.windows), list(&WINDOWS)),
        _ => (format!("as told, then up to {} for a slot", watch.late), "as told".to_owned()),
    };
    let as_asked = punctual && (says != Says::Nothing || left_alone == target);
    // The last throttle may not be over at the end.
    let one_each = watch.probes > 0 && (watch.probes..=watch.probes + 1).contains(&watch.episodes);
    let probes = format!("{} in {} throttles, {} others", watch.probes, watch.episodes, watch.intrusions);
    let repeated = format!("{} ({} different deliveries in all)", watch.repeated, watch.probed.len());
    let cost = format!(
        "{:.1}%, {} = {:.2}% of requests",
        percent(watch.delivered as f64, f64::from(QUOTA) * DAYS as f64),
        watch.refused,
        percent(watch.refused as f64, watch.sent as f64)
    );
    vec![
        check("probes", probes, "one per throttle, and nothing else", one_each && watch.intrusions == 0),
        check("left alone for", left_alone, &target, as_asked),
        check("probes of the delivery that was the last probe", repeated, "0", watch.repeated == 0),
        check("dead letters", watch.dead.to_string(), "0", watch.dead == 0),
        check("attempts used up by 429", watch.used_up.to_string(), "0", watch.used_up == 0),
        Finding::note(format!("{name}: of the quota used, and 429s"), cost),
    ]
}

fn list<'a>(lengths: impl IntoIterator<Item = &'a Millis>) -> String {
    lengths.into_iter().map(Millis::to_string).collect::<Vec<_>>().join(", ")
}

/// How long each neighbour's deliveries took, from acceptance to success, in milliseconds.
struct Latencies {
    of: Vec<Vec<i64>>,
}

impl Latencies {
    fn new() -> Self {
        Self { of: vec![Vec::new(); NEIGHBOURS] }
    }
    fn all(&self) -> Vec<i64> {
        self.of.concat()
    }
    fn count(&self) -> u64 {
        self.of.iter().map(|of| of.len() as u64).sum()
    }
}

impl Observer for Latencies {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        if let Note::Answered(lane, sending, answer) = note
            && let Outcome::Success { .. } = answer.report.outcome
            && let Some(latencies) = self.of.get_mut(lane.index())
        {
            latencies.push((view.now.wall - sending.place.occurred_at).get());
        }
    }
}

fn p99(latencies: &[i64]) -> i64 {
    let mut sorted = latencies.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() * 99 / 100).copied().unwrap_or(0)
}
