//! `[[traffic]]`: who publishes what, and when.

use std::sync::Arc;

use jiff::ToSpan;
use jiff::tz::TimeZone;
use tidegate_core::delivery::Priority;
use tidegate_core::invalid::Invalid;
use tidegate_core::limits;
use tidegate_core::pattern::EventType;
use tidegate_core::settle::Terms;
use tidegate_core::time::{Millis, Timestamp};

use super::MAX_LENGTH;
use super::fields::Fields;
use super::policy::{allowed_by, retry_policy};
use super::recorded::{Recording, Recordings};
use crate::traffic::{Arrivals, Source, Template};

/// Names of destinations that an error lists at most.
const NAMES_SHOWN: usize = 20;
/// Events of a run at most.
const MAX_EVENTS: f64 = 20_000_000.0;
/// Events in one batch at most.
const MAX_BATCH: u32 = 1_000_000;
/// How long a batch may be spread: shorter than from one day's to the next, where the clocks go forward.
const MAX_SPREAD: Millis = Millis::hours(22);
/// Events a second of one kind at most, for one destination: as fast as a lane can be asked to send.
const MAX_PER_SECOND: f64 = 10_000.0;
/// The slowest rate that can be written.
const LEAST_RATE: f64 = 0.000_1;
/// A mean distance between two events, in milliseconds, in which a millisecond does not count.
const SLOW_ENOUGH_MS: f64 = 500.0;
/// Why a file needs an event type, or none.
const TYPE_RULE: &str = "the type of its events, such as \"order.created\"";

/// What the traffic of a file refers to.
pub(super) struct Around<'a> {
    /// When the run starts.
    pub(super) start: Timestamp,
    /// When its traffic ends.
    pub(super) end: Timestamp,
    /// Whether the file says so: if not, how much comes until then means nothing.
    pub(super) bounded: bool,
    /// The names that traffic can go to, each with the places of the destinations that it stands for.
    pub(super) names: &'a [(String, Vec<usize>)],
    /// Files with recorded arrivals.
    pub(super) recordings: &'a Recordings<'a>,
}

/// When events come, and of which type where a recording says.
struct Stream {
    event_type: Option<EventType>,
    arrivals: Arrivals,
    /// How many come, about.
    events: f64,
}

/// The publishers of one `[[traffic]]`, and how many events they make in all, about.
pub(super) fn traffic(fields: &mut Fields<'_>, around: &Around<'_>) -> Option<(Vec<Source>, f64)> {
    let destinations = addressees(fields, around.names);
    fields.require("arrivals", "when they come, such as { every = \"1s\" }");
    let event_type = fields
        .text("event_type")
        .map(|text| fields.accept(EventType::parse(text).map_err(|fault| fault.under("event_type"))));
    let streams = fields.table("arrivals", |fields| arrivals(fields, around));
    let template = template(fields);
    let streams = streams?;
    let typed = streams.iter().any(|stream| stream.event_type.is_some());
    match (&event_type, typed) {
        (None, false) => fields.refuse(Invalid::missing("event_type", TYPE_RULE)),
        (Some(Some(given)), true) => {
            let allowed = "no event type here, since the recording has a column of them";
            fields.refuse(Invalid::new("event_type", format_args!("\"{given}\""), allowed));
        }
        _ => {}
    }
    let event_type = event_type.flatten();
    let (destinations, template) = (destinations?, template?);
    let each: f64 = streams.iter().map(|stream| stream.events).sum();
    let events = if around.bounded { each * destinations.len() as f64 } else { 0.0 };
    check_events(fields, "arrivals", events)?;
    let mut sources = Vec::new();
    for stream in streams {
        let event_type = stream.event_type.or(event_type.clone())?;
        let template = Template { event_type, ..template.clone() };
        for &destination in &destinations {
            let (template, arrivals) = (template.clone(), stream.arrivals.clone());
            sources.push(Source { destination, template, arrivals });
        }
    }
    Some((sources, events))
}

/// `to`: one name, several, or `*` for all.
fn addressees(fields: &mut Fields<'_>, names: &[(String, Vec<usize>)]) -> Option<Vec<usize>> {
    let known: Vec<&str> = names.iter().map(|(name, _)| name.as_str()).take(NAMES_SHOWN).collect();
    let more = if names.len() > NAMES_SHOWN { ", …" } else { "" };
    let allowed = match &known[..] {
        [] => "\"*\", or one or several names of destinations".to_owned(),
        known => format!("\"*\", or one or several of {}{more}", known.join(", ")),
    };
    fields.require("to", &allowed);
    let wanted = fields.one_or_more("to", &allowed)?;
    let mut found = Vec::new();
    for (index, name) in wanted.iter().enumerate() {
        let places = names.iter().filter(|(known, _)| *name == "*" || known == name);
        let before = found.len();
        found.extend(places.flat_map(|(_, places)| places.iter().copied()));
        // Without destinations, their absence was named already.
        if found.len() == before && !names.is_empty() {
            let field = if wanted.len() == 1 { "to".to_owned() } else { format!("to[{index}]") };
            fields.refuse(Invalid::new(field, format_args!("\"{name}\""), allowed.as_str()));
            return None;
        }
    }
    found.sort_unstable();
    found.dedup();
    Some(found)
}

/// What its events are like. The type is filled in later.
fn template(fields: &mut Fields<'_>) -> Option<Template> {
    let most = u64::try_from(limits::MAX_TTL.get() / 1_000).unwrap_or(u64::MAX);
    let ttl = fields.whole("ttl_seconds", 1, most);
    let deliver_after = fields.length("deliver_after", Millis::new(1), limits::MAX_DELIVER_AHEAD);
    let keys = fields.whole("ordering_keys", 1, 1_000_000);
    let priority = fields
        .count("priority", &allowed_by(Priority::new(0)))
        .map(|level| fields.accept(Priority::new(level)));
    let type_retry = fields.table("retry_policy", retry_policy).map(Arc::new);
    let type_max_attempts = fields.whole_u32("max_attempts", 1, limits::MAX_ATTEMPTS);
    let terms = Terms { type_retry, type_max_attempts, ..Terms::default() };
    let ttl = ttl.map(|seconds| Millis::seconds(i64::try_from(seconds).unwrap_or(i64::MAX)));
    if let (Some(ttl), Some(wait)) = (ttl, deliver_after)
        && wait >= ttl
    {
        fields.refuse(Invalid::new("deliver_after", wait, format!("less than the time to live, {ttl}")));
    }
    Some(Template {
        priority: priority.flatten().unwrap_or_default(),
        ttl,
        deliver_after,
        keys,
        terms: Arc::new(terms),
        ..Template::new("unnamed")
    })
}

fn arrivals(fields: &mut Fields<'_>, around: &Around<'_>) -> Option<Vec<Stream>> {
    let forms = ["every", "poisson_per_minute", "poisson", "at", "daily_at", "recorded"];
    let one = |(arrivals, events)| vec![Stream { event_type: None, arrivals, events }];
    match fields.form(&forms)? {
        "every" => steady(fields, around).map(one),
        "poisson_per_minute" => {
            let count = fields.number("poisson_per_minute", LEAST_RATE, 60.0 * MAX_PER_SECOND);
            poisson(fields, around, count, Some(Millis::minutes(1)))
        }
        "poisson" => {
            fields.require("per", "second, minute, hour or day");
            let per = per(fields);
            let most = per.unwrap_or(Millis::days(1)).as_secs_f64() * MAX_PER_SECOND;
            let count = fields.number("poisson", LEAST_RATE, most);
            poisson(fields, around, count, per)
        }
        "at" => burst(fields, around).map(one),
        "daily_at" => daily(fields, around).map(one),
        _ => recorded(fields, around),
    }
}

fn steady(fields: &mut Fields<'_>, around: &Around<'_>) -> Option<(Arrivals, f64)> {
    let every = fields.length("every", Millis::new(1), Millis::days(366));
    let (from, to) = limits_in_time(fields, around)?;
    let every = every?;
    Some((Arrivals::Steady { from, every, to }, (to - from).as_secs_f64() / every.as_secs_f64()))
}

fn poisson(
    fields: &mut Fields<'_>,
    around: &Around<'_>,
    count: Option<f64>,
    per: Option<Millis>,
) -> Option<Vec<Stream>> {
    let (from, to) = limits_in_time(fields, around)?;
    let mean = per?.get() as f64 / count?;
    // Such streams add up to one of their kind. A few slow ones keep whole milliseconds from distorting a fast one.
    let streams = (SLOW_ENOUGH_MS / mean).ceil().max(1.0);
    #[expect(clippy::cast_possible_truncation, reason = "at most a day by ten thousand")]
    let every = Millis::new((mean * streams).round() as i64);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 5,000,000")]
    let streams = streams as usize;
    let events = (to - from).as_secs_f64() / every.as_secs_f64();
    let stream = || Stream { event_type: None, arrivals: Arrivals::Poisson { from, every, to }, events };
    Some(std::iter::repeat_with(stream).take(streams).collect())
}

fn per(fields: &mut Fields<'_>) -> Option<Millis> {
    let words = [
        ("second", Millis::seconds(1)),
        ("minute", Millis::minutes(1)),
        ("hour", Millis::hours(1)),
        ("day", Millis::days(1)),
    ];
    fields.choice("per", &words)
}

/// `from` and `to`: by default the whole run. No event comes after the end of the run.
fn limits_in_time(fields: &mut Fields<'_>, around: &Around<'_>) -> Option<(Timestamp, Timestamp)> {
    let from = if fields.given("from") { fields.moment("from", around.start) } else { Some(around.start) };
    let to = if fields.given("to") { fields.moment("to", around.start) } else { Some(around.end) };
    let (from, to) = (from?, to?);
    within(fields, "from", from, around)?;
    within(fields, "to", to, around)?;
    if from >= to {
        fields.refuse(Invalid::new("to", to, format!("after `from`, which is {from}")));
        return None;
    }
    Some((from, to - Millis::new(1)))
}

fn within(fields: &Fields<'_>, name: &str, at: Timestamp, around: &Around<'_>) -> Option<()> {
    if at < around.start || at > around.end {
        let allowed = format!("within the run: {} to {}", around.start, around.end);
        fields.refuse(Invalid::new(name, at, allowed));
        return None;
    }
    Some(())
}

fn burst(fields: &mut Fields<'_>, around: &Around<'_>) -> Option<(Arrivals, f64)> {
    let at = fields.moment("at", around.start);
    let (count, over) = batch(fields);
    let at = at?;
    within(fields, "at", at, around)?;
    Some(timetable(vec![at], count?, over?))
}

fn batch(fields: &mut Fields<'_>) -> (Option<u32>, Option<Millis>) {
    fields.require("count", "how many events");
    let count = fields.whole_u32("count", 1, MAX_BATCH);
    let over = if fields.given("over") {
        fields.length("over", Millis::ZERO, MAX_SPREAD)
    } else {
        Some(Millis::ZERO)
    };
    (count, over)
}

/// A batch job: every day, when the clocks of a time zone show the same time.
fn daily(fields: &mut Fields<'_>, around: &Around<'_>) -> Option<(Arrivals, f64)> {
    const ZONE: &str = "a name of the IANA time zone database, such as Europe/Berlin";
    let clock = fields.clock("daily_at");
    let zone = match fields.text("timezone") {
        Some(name) => {
            let zone = TimeZone::get(name).ok().filter(|zone| !zone.is_unknown());
            fields.accept(zone.ok_or_else(|| Invalid::new("timezone", format_args!("\"{name}\""), ZONE)))
        }
        None if fields.has("timezone") => None,
        None => Some(TimeZone::UTC),
    };
    let (count, over) = batch(fields);
    let at = days(&zone?, clock?, around);
    if at.is_empty() {
        let allowed = format!("a time that comes between {} and {}", around.start, around.end);
        fields.refuse(Invalid::new("daily_at", "a time that never comes", allowed));
        return None;
    }
    Some(timetable(at, count?, over?))
}

fn timetable(at: Vec<Timestamp>, count: u32, over: Millis) -> (Arrivals, f64) {
    let events = at.len() as f64 * f64::from(count);
    (Arrivals::Timetable { at, count, over }, events)
}

/// Each day's instant within the run. A time that the clocks skip comes after the gap; one that they repeat, once.
fn days(zone: &TimeZone, clock: jiff::civil::Time, around: &Around<'_>) -> Vec<Timestamp> {
    let mut date = around.start.to_jiff().to_zoned(zone.clone()).date();
    // Where the file does not say when it ends, a year is enough to go on with.
    let end = around.end.min(around.start + MAX_LENGTH);
    let mut found = Vec::new();
    loop {
        let Ok(at) = date.to_datetime(clock).to_zoned(zone.clone()) else { return found };
        let at = Timestamp::from_millis(at.timestamp().as_millisecond());
        if at >= end {
            return found;
        }
        if at >= around.start {
            found.push(at);
        }
        let Ok(next) = date.checked_add(1.day()) else { return found };
        date = next;
    }
}

fn recorded(fields: &mut Fields<'_>, around: &Around<'_>) -> Option<Vec<Stream>> {
    let path = fields.text("recorded")?;
    let recording = match around.recordings.read(path, around.start, around.end) {
        Ok(recording) => recording,
        Err(faults) => {
            for fault in faults {
                fields.refuse(fault.under("recorded"));
            }
            return None;
        }
    };
    let Recording { streams } = recording;
    let stream = |(event_type, at): (_, Vec<Timestamp>)| {
        let events = at.len() as f64;
        Stream { event_type, arrivals: Arrivals::Recorded { at }, events }
    };
    Some(streams.into_iter().map(stream).collect())
}

/// A file that asks for more than a machine does in a few minutes is refused.
pub(super) fn check_events(fields: &Fields<'_>, name: &str, events: f64) -> Option<()> {
    if events > MAX_EVENTS {
        let allowed = "at most 20 million in all, over all destinations";
        fields.refuse(Invalid::new(name, format_args!("about {:.0} million events", events / 1e6), allowed));
        return None;
    }
    Some(())
}
