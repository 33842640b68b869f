//! Attempts as marks by outcome, holds as bands: one sees when a hold began, and the gap that it made.

use maud::{Markup, html};
use tidegate_core::time::{Millis, Timestamp};

use crate::dashboard::chart::{TimeAxis, log_place, mark, px};
use crate::dashboard::visitor::Clock;
use crate::dashboard::wire::{Attempt, PastHold};
use crate::dashboard::{ui, words};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = 168.0;
/// Response times of the axis, in milliseconds.
const SCALE: [f64; 5] = [1.0, 10.0, 100.0, 1_000.0, 10_000.0];
const SLOWEST: f64 = 60_000.0;
/// What is shown at least, and at most.
const SHORTEST: Millis = Millis::minutes(2);
const LONGEST: Millis = Millis::hours(24);

/// The picture, and the latest attempts as a table.
pub(super) fn draw(clock: &Clock, attempts: &[Attempt], holds: &[PastHold]) -> Markup {
    if attempts.is_empty() && holds.is_empty() {
        return html! { p { "No attempt has been made, and nothing was held in the last 24 hours." } };
    }
    let first = attempts
        .iter()
        .map(|attempt| attempt.started_at.0)
        .chain(holds.iter().map(|hold| hold.since.0))
        .min();
    let from = first.unwrap_or(clock.now).max(clock.now - LONGEST).min(clock.now - SHORTEST);
    let axis = TimeAxis { from, to: clock.now, left: LEFT + 6.0, right: WIDTH - 8.0 };
    let y = |ms: f64| BOTTOM - (BOTTOM - TOP) * log_place(ms, 1.0, SLOWEST);
    let recent: Vec<&Attempt> = attempts.iter().filter(|attempt| attempt.started_at.0 >= from).collect();
    html! {
        figure.chart.latest tabindex="0" aria-label="Attempts and holds over time" {
            figcaption {
                @if recent.is_empty() { "No attempt in this time" } @else { "The last " (words::plural(recent.len() as u64, "attempt", "attempts")) " by how long they took" }
                span.key.good { "● success" } span.key.bad { "✕ failed" } span.key.warn { "▼ timeout" }
                span.key.wait { "◆ 429 or 503" } span.key.band { "▒ held" }
            }
            svg viewBox={ "0 0 " (WIDTH) " 190" } role="img"
                aria-label={ (words::plural(recent.len() as u64, "attempt", "attempts")) " and " (words::plural(holds.len() as u64, "hold", "holds")) " since " (ui::shown(clock, from, "%-d %b %H:%M")) "; the latest are listed below" } {
                @for hold in holds { (band(&axis, clock, hold)) }
                (axis.ticks(clock, TOP, BOTTOM))
                // Names come last, so that no line runs through them.
                @for hold in holds { (band_name(&axis, clock, hold)) }
                @for ms in SCALE {
                    line.grid x1=(LEFT) x2=(px(axis.right)) y1=(px(y(ms))) y2=(px(y(ms))) {}
                    text.tick x=(LEFT - 5.0) y=(px(y(ms) + 3.5)) text-anchor="end" {
                        (words::span_of(ms))
                    }
                }
                @for attempt in &recent {
                    (mark(&attempt.outcome, axis.x(attempt.started_at.0), y(attempt.response_time_ms as f64), &words_of(clock, attempt)))
                }
            }
        }
        (table(clock, attempts, holds))
    }
}

fn band(axis: &TimeAxis, clock: &Clock, hold: &PastHold) -> Markup {
    let end = hold.until.map_or(clock.now, |until| until.0);
    let (left, right) = (axis.x(hold.since.0), axis.x(end));
    let name = words::state(&hold.reason).2;
    html! {
        @if right > axis.left {
            g class={ "band " (words::state(&hold.reason).1.class()) } {
                title {
                    (name) " from " (ui::shown(clock, hold.since.0, "%-d %b %H:%M:%S")) " for "
                    (words::span(end - hold.since.0))
                }
                rect x=(px(left)) y=(px(TOP - 12.0)) width=(px((right - left).max(1.5))) height=(px(BOTTOM - TOP + 12.0)) {}
            }
        }
    }
}

fn band_name(axis: &TimeAxis, clock: &Clock, hold: &PastHold) -> Markup {
    let (left, right) = (axis.x(hold.since.0), axis.x(hold.until.map_or(clock.now, |until| until.0)));
    html! {
        @if right - left > 60.0 {
            text.tick.name x=(px(left + 4.0)) y=(px(TOP - 3.0)) { (words::state(&hold.reason).2) }
        }
    }
}

fn words_of(clock: &Clock, attempt: &Attempt) -> String {
    let status = attempt.status_code.map(|status| format!(" {status}")).unwrap_or_default();
    let took = words::span(Millis::new(attempt.response_time_ms));
    format!(
        "{}: {}{status} after {took}",
        ui::shown(clock, attempt.started_at.0, "%-d %b %H:%M:%S"),
        attempt.outcome.replace('_', " ")
    )
}

fn table(clock: &Clock, attempts: &[Attempt], holds: &[PastHold]) -> Markup {
    let end = |hold: &PastHold| -> Timestamp { hold.until.map_or(clock.now, |until| until.0) };
    html! {
        div.columns {
            details open { summary { "Latest attempts" }
                @if attempts.is_empty() { p { "None was made." } } @else {
                div.scroll tabindex="0" role="region" aria-label="Latest attempts" { table.rows {
                    thead {
                        tr {
                            th scope="col" { "When" } th scope="col" { "Outcome" } th scope="col" { "Took" }
                            th scope="col" { "Delivery" }
                        }
                    }
                    tbody { @for attempt in attempts.iter().take(10) {
                        tr {
                            td { (ui::moment(clock, attempt.started_at)) }
                            td {
                                (ui::state(&attempt.outcome))
                                @if let Some(status) = attempt.status_code { " " (status) }
                                @if let Some(probe) = &attempt.probe { small { " probe for the " (probe) } }
                            }
                            td.number {
                                (words::span(Millis::new(attempt.response_time_ms)))
                                small { " of " (words::span(Millis::new(attempt.timeout_ms))) }
                            }
                            td {
                                a href={ "/deliveries/" (attempt.delivery_id) } {
                                    "attempt " (attempt.number)
                                }
                            }
                        }
                    } }
                } }
                }
            }
            details open { summary { "Holds of the last 24 hours" }
                @if holds.is_empty() { p { "Nothing was held." } } @else {
                    div.scroll tabindex="0" role="region" aria-label="Holds" { table.rows {
                        thead {
                            tr { th scope="col" { "Why" } th scope="col" { "From" } th scope="col" { "For" } }
                        }
                        tbody { @for hold in holds.iter().take(10) {
                            tr {
                                td { (ui::state(&hold.reason)) } td { (ui::moment(clock, hold.since)) }
                                td.number {
                                    (words::span(end(hold) - hold.since.0))
                                    @if hold.until.is_none() { " so far" }
                                }
                            }
                        } }
                    } }
                }
            }
        }
    }
}
