//! In and out, success and latency, over the last hour and the last day.

use maud::{Markup, html};
use tidegate_core::time::{Millis, Timestamp};

use crate::dashboard::chart::{Line, lines};
use crate::dashboard::visitor::Clock;
use crate::dashboard::wire::{At, Counts, Hour, Stats};
use crate::dashboard::{ui, words};

/// What stands in place of lines.
const NOTHING: &str = "Nothing happened in this time";

/// What is drawn of a minute or an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Step {
    events: Option<f64>,
    accepted: f64,
    delivered: f64,
    success: Option<f64>,
    p50: Option<f64>,
    p99: Option<f64>,
}

/// The last hour by the minute. What was before this node started is the average of what the store has counted by the hour.
pub(super) fn hour(clock: &Clock, stats: &Stats) -> Markup {
    let minute = Millis::minutes(1);
    let since = stats.minutes_since.0;
    let steps = fill(clock.now, Millis::hours(1), minute, |start| match start < floor(since, minute) {
        true => average(start, since, stats),
        false => with_events(of(start, &stats.minutes)),
    });
    html! {
        (three(clock, &steps, Millis::hours(1)))
        p.note {
            "By the minute, as this node has seen it."
            @if since > clock.now - Millis::hours(1) {
                " This node started " (ui::moment(clock, At(since)))
                ": deliveries and success before that are averages of what the account's hours have counted; events and response times are not known."
            }
        }
    }
}

/// The last day by the hour.
pub(super) fn day(clock: &Clock, stats: &Stats) -> Markup {
    let steps = fill(clock.now, Millis::hours(24), Millis::hours(1), |start| {
        match start < floor(stats.minutes_since.0, Millis::hours(1)) {
            true => of(start, &stats.hours),
            false => with_events(of(start, &stats.hours)),
        }
    });
    html! {
        (three(clock, &steps, Millis::hours(24)))
        p.note {
            "By the hour. Deliveries and success are counted for the whole account, and kept; events and response times are as this node has seen them"
            @if stats.minutes_since.0 > clock.now - Millis::hours(24) {
                " since it started " (ui::moment(clock, stats.minutes_since))
            }
            "."
        }
    }
}

fn three(clock: &Clock, steps: &[(Timestamp, Step)], length: Millis) -> Markup {
    let span = (clock.now - length, clock.now);
    let happened = steps.iter().any(|(_, step)| {
        step.accepted + step.delivered > 0.0 || step.success.is_some() || step.events > Some(0.0)
    });
    let steps = if happened { steps } else { &[] };
    let each = |value: fn(&Step) -> f64| steps.iter().map(|(start, step)| (*start, value(step))).collect();
    let some = |value: fn(&Step) -> Option<f64>| {
        steps.iter().filter_map(|(start, step)| Some((*start, value(step)?))).collect()
    };
    html! {
        div.charts {
            (lines("Traffic", clock, span, &[
                Line { name: "events in", class: "three", points: some(|step| step.events) },
                Line { name: "deliveries in", class: "one", points: each(|step| step.accepted) },
                Line { name: "deliveries out", class: "two", points: each(|step| step.delivered) },
            ], 2.0, words::short, NOTHING))
            (lines("Success rate", clock, span, &[Line { name: "answered 2xx", class: "one", points: some(|step| step.success) }], 1.0, words::percent, NOTHING))
            (lines("Response time", clock, span, &[
                Line { name: "p50", class: "one", points: some(|step| step.p50) },
                Line { name: "p99", class: "two", points: some(|step| step.p99) },
            ], 10.0, words::span_of, "No response times are known of this time"))
        }
    }
}

/// Every step of the time, also those in which nothing happened.
fn fill(
    now: Timestamp,
    length: Millis,
    step: Millis,
    see: impl Fn(Timestamp) -> Step,
) -> Vec<(Timestamp, Step)> {
    let (first, last) = (floor(now - length, step) + step, floor(now, step));
    let count = (last - first).get() / step.get();
    (0..=count).map(|number| first + step.scaled(number, 1)).map(|start| (start, see(start))).collect()
}

fn floor(at: Timestamp, step: Millis) -> Timestamp {
    Timestamp::from_millis(at.as_millis() - at.as_millis().rem_euclid(step.get()))
}

/// What was counted in the step that begins then.
fn of(start: Timestamp, steps: &[Hour]) -> Step {
    let Some(hour) = steps.iter().find(|hour| hour.start.0 == start) else {
        return Step::default();
    };
    Step {
        events: hour.events.map(|events| events as f64),
        accepted: hour.counts.accepted as f64,
        delivered: hour.counts.delivered as f64,
        success: share(hour.counts.successes, hour.counts.attempts),
        p50: hour.p50_ms.map(|ms| ms as f64),
        p99: hour.p99_ms.map(|ms| ms as f64),
    }
}

/// A minute before `since`: its part of what its hour has counted without what this node has seen from then on.
fn average(start: Timestamp, since: Timestamp, stats: &Stats) -> Step {
    let hour = floor(start, Millis::hours(1));
    let end = hour + Millis::hours(1);
    let seen = stats.minutes.iter().filter(|minute| hour <= minute.start.0 && minute.start.0 < end);
    let mut rest = Counts::default();
    if let Some(all) = stats.hours.iter().find(|known| known.start.0 == hour) {
        rest = all.counts.clone();
    }
    for minute in seen {
        rest.accepted = rest.accepted.saturating_sub(minute.counts.accepted);
        rest.delivered = rest.delivered.saturating_sub(minute.counts.delivered);
        rest.attempts = rest.attempts.saturating_sub(minute.counts.attempts);
        rest.successes = rest.successes.saturating_sub(minute.counts.successes);
    }
    let minutes = ((end.min(since) - hour).get() as f64 / Millis::minutes(1).get() as f64).max(1.0);
    Step {
        accepted: rest.accepted as f64 / minutes,
        delivered: rest.delivered as f64 / minutes,
        success: share(rest.successes, rest.attempts),
        ..Step::default()
    }
}

/// A step that this node has seen: where it knows of no event, there was none.
fn with_events(step: Step) -> Step {
    Step { events: step.events.or(Some(0.0)), ..step }
}

fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part.min(all) as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(start: Timestamp, accepted: u64) -> Hour {
        let counts = Counts { accepted, attempts: accepted, successes: accepted / 2, ..Counts::default() };
        Hour { start: At(start), events: Some(1), counts, p50_ms: Some(5), p99_ms: Some(9) }
    }

    /// The server started at 10:40; it is 10:50.
    #[test]
    fn what_was_before_the_start_is_what_the_hours_have_counted() {
        let ten = Timestamp::from_millis(1_800_000_000_000 / 3_600_000 * 3_600_000);
        let at = |minute: i64| ten + Millis::minutes(minute);
        let stats = Stats {
            destinations: 1,
            queued_events: 0,
            queued_bytes: 0,
            inflight: 0,
            last_24h: Counts::default(),
            hours: vec![step(at(-60), 120), step(ten, 100)],
            minutes: vec![step(at(41), 15), step(at(45), 5)],
            minutes_since: At(at(40)),
            held: Vec::new(),
            oldest_queued_at: None,
        };
        let early = average(at(-5), at(40), &stats);
        assert_eq!((early.accepted, early.success), (2.0, Some(0.5)), "120 in 60 minutes");
        let late = average(at(39), at(40), &stats);
        assert_eq!((late.accepted, late.p50), (2.0, None), "100 but the 20 that were seen, in 40 minutes");
        assert_eq!(of(at(41), &stats.minutes).accepted, 15.0);
        assert_eq!(of(at(42), &stats.minutes).accepted, 0.0);
        let steps = fill(at(50), Millis::hours(1), Millis::minutes(1), |start| of(start, &stats.minutes));
        assert_eq!((steps.len(), steps[0].0), (60, at(-9)));
    }
}
