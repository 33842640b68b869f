//! How a modelled destination behaves: its answering times, its limits, and when and how it fails.

use tidegate_core::invalid::Invalid;
use tidegate_core::time::{Millis, Timestamp};

use super::fields::Fields;
use crate::world::{Latency, Limiter, Model, Outages, Says, Trouble, TroubleKind};

/// What a destination takes that says nothing of it.
const USUAL_LATENCY: Latency = Latency::LogNormal { median_ms: 100.0, sigma: 0.4 };
/// How wide a latency is that gives only its median.
const USUAL_SIGMA: f64 = 0.4;
/// The longest answer, in milliseconds: beyond every timeout.
const LONGEST_MS: f64 = 600_000.0;
/// A slow degradation is made of so many small ones.
const DEGRADING_STEPS: i64 = 24;
/// No trouble lasts longer than a run may.
const LONGEST: Millis = Millis::days(400);

/// `[destination.behaviour]`, without its troubles.
pub(super) fn model(fields: &mut Fields<'_>) -> Option<Model> {
    let latency =
        if fields.given("latency") { fields.table("latency", latency) } else { Some(USUAL_LATENCY) };
    let limiter = fields.table("limiter", limiter);
    let max_parallel = fields.whole_u32("max_parallel", 1, 100_000);
    let status = fields.whole("status", 200, 599).and_then(|status| u16::try_from(status).ok());
    Some(Model { limiter, max_parallel, status: status.unwrap_or(200), ..Model::healthy(latency?) })
}

/// A destination of which nothing is said.
pub(super) fn usual() -> Model {
    Model::healthy(USUAL_LATENCY)
}

fn latency(fields: &mut Fields<'_>) -> Option<Latency> {
    match fields.form(&["ms", "median_ms", "fast_ms"])? {
        "ms" => Some(Latency::Constant { ms: fields.number("ms", 1.0, LONGEST_MS)? }),
        "median_ms" => {
            let (median_ms, sigma) = (fields.number("median_ms", 1.0, LONGEST_MS), sigma(fields));
            Some(Latency::LogNormal { median_ms: median_ms?, sigma: sigma? })
        }
        _ => {
            fields.require("slow_ms", "the median of the slow way, in milliseconds");
            fields.require("slow_share", "the share of the slow way, 0 to 1");
            let (fast_ms, slow_ms) =
                (fields.number("fast_ms", 1.0, LONGEST_MS), fields.number("slow_ms", 1.0, LONGEST_MS));
            let (slow_share, sigma) = (fields.number("slow_share", 0.0, 1.0), sigma(fields));
            Some(Latency::TwoPaths {
                fast_ms: fast_ms?,
                slow_ms: slow_ms?,
                slow_share: slow_share?,
                sigma: sigma?,
            })
        }
    }
}

fn sigma(fields: &mut Fields<'_>) -> Option<f64> {
    if fields.given("sigma") { fields.number("sigma", 0.0, 3.0) } else { Some(USUAL_SIGMA) }
}

fn limiter(fields: &mut Fields<'_>) -> Option<Limiter> {
    fields.require("max", "how many requests it takes per window");
    fields.require("per", "second, minute, hour or day");
    fields.require("says", "nothing, seconds, http_date or headers");
    let max = fields.whole_u32("max", 1, 10_000_000);
    let words = [
        ("second", Millis::seconds(1)),
        ("minute", Millis::minutes(1)),
        ("hour", Millis::hours(1)),
        ("day", Millis::days(1)),
    ];
    let window = fields.choice("per", &words);
    let words = [
        ("nothing", Says::Nothing),
        ("seconds", Says::Seconds),
        ("http_date", Says::HttpDate),
        ("headers", Says::Headers),
    ];
    let says = fields.choice("says", &words);
    Some(Limiter::new(max?, window?, says?))
}

/// One `[[destination.trouble]]`: a slow degradation becomes many.
pub(super) fn trouble(fields: &mut Fields<'_>, start: Timestamp, end: Timestamp) -> Option<Vec<Trouble>> {
    fields.require("from", "when it begins: a time, or after how long");
    let from = fields.moment("from", start);
    let to = fields.moment("to", start);
    let kind = kind(fields, &["degrades"]);
    let last = if matches!(kind, Some(Kind::Degrades { .. })) { end } else { end + LONGEST };
    let to = if fields.has("to") { to? } else { last };
    let from = from?;
    if from >= to {
        fields.refuse(Invalid::new("to", to, format!("after `from`, which is {from}")));
        return None;
    }
    Some(match kind? {
        Kind::Steady(kind) => vec![Trouble { from, to, kind }],
        Kind::Degrades { percent } => degradation(from, to, percent),
    })
}

/// `[destination.outages]`: troubles by chance.
pub(super) fn outages(fields: &mut Fields<'_>) -> Option<Outages> {
    fields.require("between", "the mean time from one to the next");
    fields.require("lasting", "their mean length");
    let (second, longest) = (Millis::seconds(1), LONGEST);
    let (between, lasting) =
        (fields.length("between", second, longest), fields.length("lasting", second, longest));
    match kind(fields, &[])? {
        Kind::Steady(kind) => Some(Outages { between: between?, lasting: lasting?, kind }),
        Kind::Degrades { .. } => None,
    }
}

/// Troubles of one destination in `length`, those by chance about.
pub(super) fn expected(written: &[Trouble], outages: Option<Outages>, length: Millis) -> f64 {
    let by_chance = outages.map_or(0.0, |Outages { between, lasting, .. }| {
        length.as_secs_f64() / (between + lasting).as_secs_f64()
    });
    written.len() as f64 + by_chance
}

#[derive(Clone, Copy)]
enum Kind {
    Steady(TroubleKind),
    Degrades { percent: u32 },
}

/// `kind`, and the fields that belong to it.
fn kind(fields: &mut Fields<'_>, also: &[&'static str]) -> Option<Kind> {
    let words = ["hangs", "refuses", "errors", "unavailable", "slow", "flaps", "gone"];
    let words: Vec<(&str, &str)> = words.iter().chain(also).map(|word| (*word, *word)).collect();
    let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    fields.require("kind", &all.join(", "));
    let Some(word) = fields.choice("kind", &words) else {
        fields.leave_unknown();
        return None;
    };
    let steady = match word {
        "hangs" => TroubleKind::Hangs,
        "refuses" => TroubleKind::Refuses,
        "gone" => TroubleKind::Errors { status: 410 },
        "errors" => {
            let status = if fields.given("status") { fields.whole("status", 300, 599) } else { Some(500) };
            TroubleKind::Errors { status: u16::try_from(status?).ok()? }
        }
        "unavailable" => {
            let (least, most) = (Millis::seconds(1), Millis::hours(24));
            let after = if fields.given("retry_after") {
                fields.length("retry_after", least, most)
            } else {
                Some(Millis::minutes(1))
            };
            TroubleKind::Unavailable { retry_after: after? }
        }
        "slow" => TroubleKind::Slow { factor: percent(fields)? },
        "degrades" => return Some(Kind::Degrades { percent: percent(fields)? }),
        _ => {
            fields.require("up", "how long it works");
            fields.require("down", "how long it hangs");
            let (least, most) = (Millis::new(1), LONGEST);
            let (up, down) = (fields.length("up", least, most), fields.length("down", least, most));
            TroubleKind::Flaps { up: up?, down: down? }
        }
    };
    Some(Kind::Steady(steady))
}

/// `factor`, how many times longer it takes, as a percentage.
fn percent(fields: &mut Fields<'_>) -> Option<u32> {
    fields.require("factor", "how many times longer it takes, 1 to 1000");
    let factor = fields.number("factor", 1.0, 1_000.0)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 1,000, times 100")]
    let percent = (factor * 100.0).round() as u32;
    Some(percent)
}

/// From the usual time at `from` to `percent` of it at `to`, in small steps.
fn degradation(from: Timestamp, to: Timestamp, percent: u32) -> Vec<Trouble> {
    let length = to - from;
    let edge = |step: i64| from + length.scaled(step, DEGRADING_STEPS);
    let step = |step: i64| {
        let more = Millis::new(i64::from(percent) - 100).scaled(step + 1, DEGRADING_STEPS).get();
        let factor = u32::try_from(100 + more).unwrap_or(percent);
        Trouble { from: edge(step), to: edge(step + 1), kind: TroubleKind::Slow { factor } }
    };
    (0..DEGRADING_STEPS).map(step).filter(|trouble| trouble.from < trouble.to).collect()
}

/// Where two troubles of one destination are at the same time: it can have one at a time.
pub(super) fn in_order(fields: &Fields<'_>, mut troubles: Vec<Trouble>) -> Vec<Trouble> {
    troubles.sort_by_key(|trouble| (trouble.from, trouble.to));
    if let Some([first, second]) = troubles.array_windows().find(|[first, second]| second.from < first.to) {
        let value = format!("two at a time at {}", second.from);
        let allowed = format!("one at a time: the one before lasts until {}", first.to);
        fields.refuse(Invalid::new("trouble", value, allowed));
    }
    troubles
}

/// Troubles that come by chance do not come on top of those that are written.
pub(super) fn fit_between(written: &[Trouble], drawn: Vec<Trouble>) -> Vec<Trouble> {
    let meets = |drawn: &Trouble| written.iter().any(|other| drawn.from < other.to && other.from < drawn.to);
    let mut all: Vec<Trouble> = drawn.into_iter().filter(|drawn| !meets(drawn)).collect();
    all.extend(written);
    all.sort_by_key(|trouble| trouble.from);
    all
}
