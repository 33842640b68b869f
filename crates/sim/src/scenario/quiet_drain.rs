//! `quiet-drain`: what piles up over the night goes out when the destination opens, as fast as its bucket allows and no
//! faster, oldest first. On an ordinary night, and on the two on which the clocks change.

mod night;

use tidegate_core::time::{Millis, Timestamp};

use super::Progress;
use super::count::Count;
use crate::report::{Finding, Picture, Report};
use night::{BYPASSED, EXCHANGE, Evening, HELD, Ran, among_bypass};

/// Tokens that a full bucket has.
const BURST: u64 = 250;
/// Tokens that it gains.
const PER_MINUTE: u64 = 100;
/// Events of one night.
const EVENTS: usize = 10_000;

/// A night in Chicago: quiet from 00:00 to 06:00 on its clocks.
#[derive(Clone, Copy, Debug)]
struct Night {
    name: &'static str,
    closes: &'static str,
    opens: &'static str,
    hours: i64,
}

/// The instants are written out, not computed: they are what the rules are judged by.
const NIGHTS: [Night; 3] = [
    Night { name: "2026-05-01", closes: "2026-05-01T05:00:00Z", opens: "2026-05-01T11:00:00Z", hours: 6 },
    Night { name: "2026-03-08", closes: "2026-03-08T06:00:00Z", opens: "2026-03-08T11:00:00Z", hours: 5 },
    Night { name: "2026-11-01", closes: "2026-11-01T05:00:00Z", opens: "2026-11-01T12:00:00Z", hours: 7 },
];

impl Night {
    fn closes(&self) -> Timestamp {
        Timestamp::parse(self.closes).expect("written above")
    }
    fn opens(&self) -> Timestamp {
        Timestamp::parse(self.opens).expect("written above")
    }
}

/// What all nights together have shown so far.
#[derive(Default)]
struct Story {
    findings: Vec<Finding>,
    pictures: Vec<Picture>,
    count: Count,
    lasted: Millis,
    above_rate: u64,
}

impl Story {
    fn add(&mut self, ran: Ran, findings: Vec<Finding>, picture: Option<String>) {
        self.findings.extend(findings);
        self.pictures.extend(picture.map(|title| Picture { title, series: ran.series }));
        self.count += ran.count;
        self.lasted += ran.lasted;
        self.above_rate += ran.above_rate;
    }
}

/// Runs it.
pub(super) fn run(seed: u64, progress: Progress<'_>) -> Report {
    let mut story = Story::default();
    progress(0.0, "a destination never used before");
    let cold = night::run(seed, &NIGHTS[0], &[HELD], Evening::NothingSent);
    let ramp = judge_ramp(&cold);
    story.add(cold, vec![ramp], None);
    for (night, done) in NIGHTS.iter().zip([1.0, 3.0, 5.0]) {
        progress(done / 7.0, &format!("the night of {}, no bypass events", night.name));
        let plain = night::run(seed, night, &[HELD], Evening::InUse);
        let findings = judge_plain(night, &plain);
        story.add(plain, findings, Some(format!("the night of {}: held, then drained", night.name)));
        progress((done + 1.0) / 7.0, &format!("the night of {}, with bypass events", night.name));
        let mixed = night::run(seed, night, &among_bypass(), Evening::InUse);
        let findings = judge_bypass(night, &mixed);
        story.add(mixed, findings, None);
    }
    let Story { mut findings, pictures, count, lasted, above_rate } = story;
    findings.push(Finding::check(
        "all nights: requests above burst + rate · T, for any T",
        format!("{above_rate} of {}", count.attempts),
        "none",
        above_rate == 0,
    ));
    Report {
        scenario: "quiet-drain".into(),
        seed,
        world: "10,000 events during 00:00 to 06:00 America/Chicago, told up to 5 minutes after they occurred, for one \
                destination with 100/min, burst 250, max_concurrency 250; each of three nights without and with 600 \
                events of a bypass type among them"
            .into(),
        deliveries: count.ended,
        attempts: count.attempts,
        simulated_seconds: lasted.as_secs_f64(),
        findings,
        pictures,
    }
}

/// A destination that nothing was sent to before: the burst comes as fast as the ramp allows.
fn judge_ramp(ran: &Ran) -> Finding {
    let took = ran.burst_took();
    let most = EXCHANGE.scaled(3, 1);
    Finding::check(
        format!("a destination never used before: the first {BURST} after the opening"),
        shown(took),
        format!("within {most}: 3 exchanges, since each success doubles the ramp"),
        took.is_some_and(|took| took <= most),
    )
}

fn judge_plain(night: &Night, ran: &Ran) -> Vec<Finding> {
    let name = night.name;
    let expected = drain(EVENTS as f64 - BURST as f64);
    vec![
        judge_silence(name, ran),
        Finding::check(
            format!("{name}: the first event goes"),
            ran.first().map_or("never".into(), |at| at.to_string()),
            format!("at the opening, after {} h: {}", night.hours, night.opens()),
            ran.first() == Some(night.opens())
                && night.opens() - night.closes() == Millis::hours(night.hours),
        ),
        Finding::check(
            format!("{name}: the first {BURST}, destination in use the evening before"),
            shown(ran.burst_took()),
            "all at the opening: 0 s",
            ran.burst_took() == Some(Millis::ZERO),
        ),
        judge_last(format!("{name}: the last of {EVENTS}"), ran, EVENTS, expected),
        judge_order(name, ran),
    ]
}

fn judge_bypass(night: &Night, ran: &Ran) -> Vec<Finding> {
    let name = format!("{} with bypass events", night.name);
    let held = among_bypass().iter().filter(|part| part.event_type != BYPASSED).map(|part| part.count).sum();
    let tokens = ran.tokens_left(night.opens());
    let waited = ran.longest_bypass_wait;
    vec![
        judge_silence(&name, ran),
        Finding::check(
            format!("{name}: longest wait of these {}", ran.bypassed),
            shown(Some(waited)),
            "0 s: they pass the window",
            waited == Millis::ZERO && ran.bypassed == (EVENTS - held) as u64,
        ),
        judge_last(
            format!("{name}: the last of {held}, {tokens:.0} tokens left"),
            ran,
            held,
            drain(held as f64 - tokens),
        ),
        judge_order(&name, ran),
    ]
}

fn judge_silence(name: &str, ran: &Ran) -> Finding {
    let bypassed = ran.bypassed;
    Finding::check(
        format!("{name}: sent while quiet"),
        format!("{bypassed} of a bypass type, {} others", ran.sent_while_quiet),
        "nothing but bypass types",
        ran.sent_while_quiet == 0 && ran.in_quiet_hours == 0,
    )
}

fn judge_last(what: String, ran: &Ran, held: usize, expected: Millis) -> Finding {
    let took = ran.last().map(|at| at - ran.opens);
    let within = |took: Millis| (took - expected).get().abs() * 100 <= expected.get();
    let minutes = |span: Millis| format!("{:.2} min", span.as_secs_f64() / 60.0);
    Finding::check(
        what,
        took.map_or("never".into(), |took| format!("{} after the opening", minutes(took))),
        format!("{} ± 1%", minutes(expected)),
        ran.sent.len() == held && took.is_some_and(within),
    )
}

fn judge_order(name: &str, ran: &Ran) -> Finding {
    let out_of_order = ran.sent.windows(2).filter(|pair| pair[0].1 > pair[1].1).count();
    Finding::check(
        format!("{name}: sent before one that occurred earlier"),
        format!("{out_of_order} of {}", ran.sent.len()),
        "none",
        out_of_order == 0,
    )
}

/// How long a bucket takes to gain so many tokens.
fn drain(tokens: f64) -> Millis {
    #[expect(clippy::cast_possible_truncation, reason = "10,000 tokens are 100 minutes")]
    let ms = (tokens * 60_000.0 / PER_MINUTE as f64) as i64;
    Millis::new(ms)
}

fn shown(span: Option<Millis>) -> String {
    span.map_or("never".into(), |span| span.to_string())
}
