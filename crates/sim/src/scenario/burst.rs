//! `burst`: 3,000 events at once for a destination that takes 100 a minute and answers 503 when it gets more. Shaped to
//! that rate nothing is refused and hardly a token is wasted; not shaped, most of the requests are.

use tidegate_core::delivery::{End, Status};
use tidegate_core::outcome::Outcome;
use tidegate_core::policy::Policy;
use tidegate_core::rate::{Per, Quota, RateLimit, RateMode};
use tidegate_core::time::{Millis, Mono, Timestamp};

use super::Progress;
use super::count::Count;
use crate::oracle::rate::Rate;
use crate::report::{Finding, Picture, Report};
use crate::run::{Commit, Destination, Faults, Note, Observer, Setup, Sim, Storage, View};
use crate::series::Series;
use crate::traffic::{Arrivals, Source, Template};
use crate::world::{Buffer, Latency, Model, Trouble, TroubleKind};

const EVENTS: u32 = 3_000;
const PER_MINUTE: u32 = 100;
/// The destination has room for so many requests that it has not worked on yet.
const ROOM: u32 = 100;
/// The picture: the drain takes half an hour.
const SHOWN: Millis = Millis::minutes(45);
/// After so long everything has come to an end: the default retries span an hour and a quarter.
const LIMIT: Millis = Millis::days(2);

/// What the owner of the destination asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shaping {
    None,
    Burst(u32),
}

/// What was seen.
struct Ran {
    watch: Watch,
    above: u64,
    series: Series,
    count: Count,
    lasted: Millis,
}

/// Runs it.
pub(super) fn run(seed: u64, progress: Progress<'_>) -> Report {
    progress(0.0, "shaped, burst 100");
    let shaped = burst(seed, Shaping::Burst(ROOM), &[]);
    progress(0.25, "shaped, burst 1");
    let strict = burst(seed, Shaping::Burst(1), &[]);
    progress(0.5, "shaped, with an outage");
    let outage = burst(seed, Shaping::Burst(ROOM), &[outage()]);
    progress(0.75, "not shaped");
    let unshaped = burst(seed, Shaping::None, &[]);

    let mut findings = judge("burst_capacity 100", ROOM, &shaped);
    findings.extend(judge("burst_capacity 1", 1, &strict));
    findings.push(judge_bound("through an outage of 5 min, retries included", &outage));
    findings.push(judge_refusals("through an outage of 5 min", &outage));
    findings.extend(judge_unshaped(&unshaped));
    let mut count = Count::default();
    let mut simulated_seconds = 0.0;
    for ran in [&shaped, &strict, &outage, &unshaped] {
        count += ran.count;
        simulated_seconds += ran.lasted.as_secs_f64();
    }
    Report {
        scenario: "burst".into(),
        seed,
        world: "3,000 events at 02:00 for a destination that answers at once, works off 100 a minute, has room for 100 \
                that wait, and answers 503 when there is none"
            .into(),
        deliveries: count.ended,
        attempts: count.attempts,
        simulated_seconds,
        findings,
        pictures: vec![
            Picture { title: "shaped to 100/min, burst 100".into(), series: shaped.series },
            Picture { title: "not shaped".into(), series: unshaped.series },
        ],
    }
}

fn judge(name: &str, burst: u32, ran: &Ran) -> Vec<Finding> {
    let used = ran.watch.share_used(burst);
    vec![
        judge_bound(name, ran),
        Finding::check(
            format!("{name}: share of the allowed rate used while a backlog exists"),
            format!("{:.2}%", used * 100.0),
            "≥ 99.5%",
            used >= 0.995 && ran.watch.delivered == EVENTS,
        ),
        judge_refusals(name, ran),
    ]
}

fn judge_bound(name: &str, ran: &Ran) -> Finding {
    Finding::check(
        format!("{name}: requests above burst + rate · T, for any T"),
        format!("{} of {}", ran.above, ran.count.attempts),
        "none",
        ran.above == 0,
    )
}

fn judge_refusals(name: &str, ran: &Ran) -> Finding {
    let Watch { unavailable, delivered, .. } = ran.watch;
    Finding::check(
        format!("{name}: 503 caused"),
        format!("{unavailable}, {delivered} of {EVENTS} delivered"),
        "none",
        unavailable == 0 && delivered == EVENTS,
    )
}

fn judge_unshaped(ran: &Ran) -> Vec<Finding> {
    let watch = &ran.watch;
    vec![
        Finding::check(
            "not shaped: 503 caused",
            format!("{} of {} requests", watch.unavailable, ran.count.attempts),
            "some: this is what shaping prevents",
            watch.unavailable > 0,
        ),
        Finding::note(
            "not shaped: delivered",
            format!("{} of {EVENTS}, the last after {}", watch.delivered, hours(watch.last_end())),
        ),
    ]
}

fn hours(span: Millis) -> String {
    format!("{:.1} h", span.as_secs_f64() / 3_600.0)
}

fn start() -> Timestamp {
    Timestamp::parse("2026-05-01T02:00:00Z").expect("a valid time")
}

fn outage() -> Trouble {
    let from = start() + Millis::minutes(10);
    Trouble { from, to: from + Millis::minutes(5), kind: TroubleKind::Hangs }
}

fn burst(seed: u64, shaping: Shaping, troubles: &[Trouble]) -> Ran {
    let setup = world(seed, shaping, troubles);
    let rate = Rate::new(&setup);
    let series = Series::new(start(), start() + SHOWN, 150);
    let mut sim = Sim::new(setup, ((Watch::default(), rate), (series, Count::default())));
    sim.run_until_quiet(LIMIT);
    let lasted = sim.now().wall - start();
    let ((watch, rate), (series, count)) = sim.observer;
    Ran { watch, above: rate.count(), series, count, lasted }
}

fn world(seed: u64, shaping: Shaping, troubles: &[Trouble]) -> Setup {
    let quota = |burst: u32| Quota::new(u64::from(PER_MINUTE), Per::Minute, Some(u64::from(burst)));
    let rate_limit = match shaping {
        Shaping::None => None,
        Shaping::Burst(burst) => {
            Some(RateLimit { quota: quota(burst).expect("a valid rate"), mode: RateMode::Fixed })
        }
    };
    let model = Model::healthy(Latency::LogNormal { median_ms: 300.0, sigma: 0.4 });
    Setup {
        seed,
        start: start(),
        slots: 2_000,
        commit: Commit::Instant,
        storage: Storage::Memory,
        destinations: vec![Destination {
            name: "warehouse".into(),
            account: 0,
            policy: Policy { rate_limit, ..Policy::default() },
            model: model.buffered(Buffer::new(PER_MINUTE, ROOM)).troubled(troubles.to_vec()),
        }],
        sources: vec![Source {
            destination: 0,
            template: Template::new("stock.changed"),
            arrivals: Arrivals::Burst { at: start(), count: EVENTS },
        }],
        faults: Faults::default(),
    }
}

/// Watches one burst.
#[derive(Default)]
struct Watch {
    starts: u32,
    first: Option<Mono>,
    last: Mono,
    ended: Mono,
    unavailable: u64,
    delivered: u32,
}

impl Watch {
    /// Requests made, as a share of `burst + rate · T` with T from the first to the last of them.
    fn share_used(&self, burst: u32) -> f64 {
        let minutes = self.last.since(self.first.unwrap_or_default()).as_secs_f64() / 60.0;
        f64::from(self.starts) / (f64::from(burst) + f64::from(PER_MINUTE) * minutes)
    }
    /// From the burst to the last end.
    fn last_end(&self) -> Millis {
        self.ended.since(self.first.unwrap_or_default())
    }
}

impl Observer for Watch {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        match note {
            Note::Sent(..) => {
                self.starts += 1;
                self.first.get_or_insert(view.now.mono);
                self.last = view.now.mono;
            }
            Note::Answered(_, _, answer) if answer.report.outcome == (Outcome::HttpError { status: 503 }) => {
                self.unavailable += 1;
            }
            Note::Settled(_, delivery) if delivery.status.is_final() => {
                self.delivered += u32::from(delivery.status == Status::Final(End::Delivered));
                self.ended = view.now.mono;
            }
            _ => {}
        }
    }
}
