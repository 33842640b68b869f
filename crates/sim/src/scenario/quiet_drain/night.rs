//! One night: its world, and what was seen.

use tidegate_core::delivery::Place;
use tidegate_core::policy::{Concurrency, Policy};
use tidegate_core::quiet::{QuietHours, Window, WindowSpec};
use tidegate_core::rate::{Per, Quota, RateLimit, RateMode};
use tidegate_core::time::{Millis, Timestamp};

use super::super::count::Count;
use super::{BURST, EVENTS, Night, PER_MINUTE};
use crate::chance::Chance;
use crate::oracle::quiet::Quiet;
use crate::oracle::rate::Rate;
use crate::run::{Commit, Destination, Faults, Note, Observer, Setup, Sim, Storage, View};
use crate::series::Series;
use crate::traffic::{Arrivals, Source, Template};
use crate::world::{Latency, Model};

/// The type that the window lets through.
pub(super) const BYPASSED: &str = "payment.failed";
/// How long an answer takes.
pub(super) const EXCHANGE: Millis = Millis::new(200);
/// Events are told to us up to so long after they occurred.
const TOLD_AFTER: Millis = Millis::minutes(5);
/// Before it closes there is an hour of ordinary traffic.
const EVENING: Millis = Millis::hours(1);
/// After it opens it is watched for so long: the drain takes less than 100 minutes.
const MORNING: Millis = Millis::minutes(150);

/// Whether the destination was in use before it closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evening {
    NothingSent,
    InUse,
}

/// A part of a night's events, spread evenly by chance over the last `over` of the window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) event_type: &'static str,
    pub(super) count: usize,
    over: Option<Millis>,
}

/// All of them are held.
pub(super) const HELD: Part = Part { event_type: "order.updated", count: EVENTS, over: None };

/// 600 of them pass: most spread over the night, 200 in the last minute of it, so that the bucket is not full when the
/// others may go.
pub(super) fn among_bypass() -> [Part; 3] {
    let bypass = |count, over| Part { event_type: BYPASSED, count, over };
    [Part { count: EVENTS - 600, ..HELD }, bypass(400, None), bypass(200, Some(Millis::minutes(1)))]
}

/// What was seen.
pub(super) struct Ran {
    pub(super) opens: Timestamp,
    /// Held events in the order in which they were sent, from the opening on.
    pub(super) sent: Vec<(Timestamp, Place)>,
    pub(super) bypassed: u64,
    pub(super) sent_while_quiet: u64,
    pub(super) longest_bypass_wait: Millis,
    bypass_sends: Vec<Timestamp>,
    /// Requests that an oracle objects to: in quiet hours, and above the rate.
    pub(super) in_quiet_hours: u64,
    pub(super) above_rate: u64,
    pub(super) series: Series,
    pub(super) count: Count,
    pub(super) lasted: Millis,
}

impl Ran {
    pub(super) fn first(&self) -> Option<Timestamp> {
        self.sent.first().map(|(at, _)| *at)
    }
    pub(super) fn last(&self) -> Option<Timestamp> {
        self.sent.last().map(|(at, _)| *at)
    }
    /// From the opening to the last of a full bucket.
    pub(super) fn burst_took(&self) -> Option<Millis> {
        let place = usize::try_from(BURST).ok()? - 1;
        self.sent.get(place).map(|(at, _)| *at - self.opens)
    }
    /// What the bypass events left in the bucket by `at`: worked out from when they were sent.
    pub(super) fn tokens_left(&self, at: Timestamp) -> f64 {
        let gain = |from: Timestamp, to: Timestamp| (to - from).as_secs_f64() * PER_MINUTE as f64 / 60.0;
        let full = (BURST as f64, Timestamp::MIN);
        let (tokens, last) = self
            .bypass_sends
            .iter()
            .fold(full, |(tokens, last), sent| ((tokens + gain(last, *sent)).min(BURST as f64) - 1.0, *sent));
        (tokens + gain(last, at)).min(BURST as f64)
    }
}

/// Runs one night.
pub(super) fn run(seed: u64, night: &Night, parts: &[Part], evening: Evening) -> Ran {
    let (from, to) = (night.closes() - EVENING, night.opens() + MORNING);
    let setup = world(seed, night, parts, evening);
    let watch = Watch::new(night, Quiet::new(&setup));
    let oracles = (watch, Rate::new(&setup));
    let mut sim = Sim::new(setup, (oracles, (Series::new(from, to, 160), Count::default())));
    sim.run_for(to - from);
    let ((watch, rate), (series, count)) = sim.observer;
    Ran {
        opens: night.opens(),
        sent: watch.sent,
        bypassed: watch.bypass_sends.len() as u64,
        sent_while_quiet: watch.sent_while_quiet,
        longest_bypass_wait: watch.longest_bypass_wait,
        bypass_sends: watch.bypass_sends,
        in_quiet_hours: watch.quiet.count(),
        above_rate: rate.count(),
        series,
        count,
        lasted: to - from,
    }
}

fn world(seed: u64, night: &Night, parts: &[Part], evening: Evening) -> Setup {
    let mut chance = Chance::new(seed);
    let night_source = |part: &Part| {
        let from = part.over.map_or(night.closes(), |over| night.opens() - over);
        let length = (night.opens() - from).get().unsigned_abs();
        let mut drawn: Vec<i64> = (0..part.count).map(|_| chance.below(length).cast_signed()).collect();
        drawn.sort_unstable();
        let at = drawn.into_iter().map(|after| from + Millis::new(after)).collect();
        let template = Template::new(part.event_type).told_after(TOLD_AFTER);
        Source { destination: 0, template, arrivals: Arrivals::Recorded { at } }
    };
    let mut sources: Vec<Source> = parts.iter().map(night_source).collect();
    if evening == Evening::InUse {
        let (from, every) = (night.closes() - EVENING, Millis::minutes(1));
        let arrivals = Arrivals::Steady { from, every, to: night.closes() - Millis::minutes(10) };
        sources.push(Source { destination: 0, template: Template::new(HELD.event_type), arrivals });
    }
    let latency = Latency::Constant { ms: EXCHANGE.get() as f64 };
    Setup {
        seed,
        start: night.closes() - EVENING,
        slots: 2_000,
        commit: Commit::Instant,
        storage: Storage::Memory,
        destinations: vec![Destination {
            name: "shop".into(),
            account: 0,
            policy: policy(),
            model: Model::healthy(latency),
        }],
        sources,
        faults: Faults::default(),
    }
}

fn policy() -> Policy {
    let window = Window::parse(WindowSpec {
        timezone: "America/Chicago".into(),
        quiet_start: "00:00".into(),
        quiet_end: "06:00".into(),
        bypass_event_types: vec![BYPASSED.into()],
        ..WindowSpec::default()
    });
    let quota = Quota::new(PER_MINUTE, Per::Minute, Some(BURST)).expect("a valid rate");
    Policy {
        max_concurrency: Concurrency::new(250).expect("a valid concurrency"),
        rate_limit: Some(RateLimit { quota, mode: RateMode::Fixed }),
        quiet: QuietHours::new(vec![window.expect("a valid window")]).expect("it opens every day"),
        ..Policy::default()
    }
}

/// Watches one night.
struct Watch {
    closes: Timestamp,
    opens: Timestamp,
    quiet: Quiet,
    sent: Vec<(Timestamp, Place)>,
    sent_while_quiet: u64,
    bypass_sends: Vec<Timestamp>,
    /// When each bypass event that was not sent yet came in.
    bypass_waiting: Vec<(Place, Timestamp)>,
    longest_bypass_wait: Millis,
}

impl Watch {
    fn new(night: &Night, quiet: Quiet) -> Self {
        Self {
            closes: night.closes(),
            opens: night.opens(),
            quiet,
            sent: Vec::new(),
            sent_while_quiet: 0,
            bypass_sends: Vec::new(),
            bypass_waiting: Vec::new(),
            longest_bypass_wait: Millis::ZERO,
        }
    }
}

impl Observer for Watch {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        self.quiet.note(view, note);
        let now = view.now.wall;
        match note {
            Note::Accepted(_, delivery) if delivery.event_type.as_str() == BYPASSED => {
                self.bypass_waiting.push((delivery.place, now));
            }
            Note::Sent(_, sending) if sending.event_type.as_str() == BYPASSED => {
                self.bypass_sends.push(now);
                if let Some(index) = self.bypass_waiting.iter().position(|(place, _)| *place == sending.place)
                {
                    let (_, came) = self.bypass_waiting.swap_remove(index);
                    self.longest_bypass_wait = self.longest_bypass_wait.max(now - came);
                }
            }
            // Every send counts, retries too: in this world nothing fails, so there must not be any.
            Note::Sent(_, sending) if now >= self.opens => self.sent.push((now, sending.place)),
            Note::Sent(..) if now >= self.closes => self.sent_while_quiet += 1,
            _ => {}
        }
    }
}
