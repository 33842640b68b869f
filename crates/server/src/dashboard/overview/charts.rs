//! In and out, success and latency, over the last hour and the last day.

use maud::{Markup, html};
use tidegate_core::time::{Millis, Timestamp};

use crate::dashboard::chart::{Line, lines};
use crate::dashboard::visitor::Clock;
use crate::dashboard::wire::{Hour, Stats};
use crate::dashboard::words;

/// The last hour by the minute: of this node, since it started.
pub(super) fn hour(clock: &Clock, stats: &Stats) -> Markup {
    let minute = Millis::minutes(1);
    let note = "By the minute, as this node has seen it since it started.";
    html! { (three(clock, &stats.minutes, Millis::hours(1), minute)) p.note { (note) } }
}

/// The last day by the hour.
pub(super) fn day(clock: &Clock, stats: &Stats) -> Markup {
    let note = "By the hour. Counts are of the whole account; response times as this node has seen them since it started.";
    html! { (three(clock, &stats.hours, Millis::hours(24), Millis::hours(1))) p.note { (note) } }
}

fn three(clock: &Clock, steps: &[Hour], length: Millis, step: Millis) -> Markup {
    let span = (clock.now - length, clock.now);
    let filled = fill(clock.now, steps, length, step);
    let each = |value: fn(&Hour) -> u64| {
        filled.iter().map(|(at, hour)| (*at, hour.map_or(0.0, |hour| value(hour) as f64))).collect()
    };
    let some = |value: &dyn Fn(&Hour) -> Option<f64>| {
        filled.iter().filter_map(|(at, hour)| Some((*at, value((*hour)?)?))).collect()
    };
    let success = |hour: &Hour| {
        (hour.counts.attempts > 0).then(|| hour.counts.successes as f64 / hour.counts.attempts as f64)
    };
    html! {
        div.charts {
            (lines("Deliveries", clock, span, &[
                Line { name: "in", class: "one", points: each(|hour| hour.counts.accepted) },
                Line { name: "out", class: "two", points: each(|hour| hour.counts.delivered) },
            ], 2.0, words::short))
            (lines("Success rate", clock, span, &[Line { name: "answered 2xx", class: "one", points: some(&success) }], 1.0, words::percent))
            (lines("Response time", clock, span, &[
                Line { name: "p50", class: "one", points: some(&|hour| hour.p50_ms.map(|ms| ms as f64)) },
                Line { name: "p99", class: "two", points: some(&|hour| hour.p99_ms.map(|ms| ms as f64)) },
            ], 10.0, words::span_of))
        }
    }
}

/// Every step of the time, also those in which nothing happened.
fn fill(now: Timestamp, steps: &[Hour], length: Millis, step: Millis) -> Vec<(Timestamp, Option<&Hour>)> {
    if steps.is_empty() {
        return Vec::new();
    }
    let start = |at: Timestamp| at.as_millis() - at.as_millis().rem_euclid(step.get());
    let (first, last) = (start(now - length) + step.get(), start(now));
    let count = (last - first) / step.get();
    let starts = (0..=count).map(|number| Timestamp::from_millis(first + number * step.get()));
    starts.map(|at| (at, steps.iter().find(|hour| hour.start.0 == at))).collect()
}
