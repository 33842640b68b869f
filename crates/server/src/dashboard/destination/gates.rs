//! Every gate of a destination, in the order in which they are asked, in words.

use maud::{Markup, html};
use tidegate_core::time::Millis;

use crate::dashboard::visitor::Clock;
use crate::dashboard::wire::{Destination, Hold};
use crate::dashboard::{ui, words};

/// A gate: its name, the reasons by which it holds, and what it means that it is open.
struct Gate {
    name: &'static str,
    reasons: &'static [&'static str],
    open: String,
}

fn gates(destination: &Destination) -> [Gate; 8] {
    let breaker = &destination.circuit_breaker;
    let gate = |name, reasons, open| Gate { name, reasons, open };
    [
        gate("Standing", &["disabled", "paused"][..], "switched on, not paused".to_owned()),
        gate(
            "Breaker",
            &["circuit_open"],
            match breaker.enabled {
                true => format!(
                    "closed; opens when {} of at least {} attempts in {} fail, or {} in a row",
                    words::percent(breaker.failure_ratio),
                    breaker.min_attempts,
                    words::span(Millis::seconds(i64::from(breaker.window_seconds))),
                    breaker.consecutive_failures
                ),
                false => "switched off".to_owned(),
            },
        ),
        gate(
            "Throttle",
            &["throttled"],
            match destination.consecutive_throttles {
                0 => "no 429 is in force".to_owned(),
                times => format!("no 429 is in force; {times} in a row so far"),
            },
        ),
        gate("Unavailable", &["unavailable"], "it did not ask us to wait".to_owned()),
        gate(
            "Quiet hours",
            &["quiet_hours"],
            match destination.delivery_schedules.len() {
                0 => "none are set".to_owned(),
                windows => {
                    format!("not now; {}", words::plural(windows as u64, "window is set", "windows are set"))
                }
            },
        ),
        gate(
            "Order",
            &["order_blocked"],
            match destination.ordering.as_str() {
                "fifo" => "one at a time, in order".to_owned(),
                "key" => "in order for each ordering key".to_owned(),
                _ => "no order is kept".to_owned(),
            },
        ),
        gate(
            "Concurrency",
            &["at_capacity"],
            format!("{} of {} slots taken", destination.inflight, destination.max_concurrency),
        ),
        gate(
            "Rate",
            &["rate_limited"],
            match destination.rate_now {
                Some(rate) => format!(
                    "{} of {} tokens left, {} come back",
                    words::count(rate.tokens),
                    words::count(rate.burst),
                    words::rate(rate.per_minute)
                ),
                None => "no limit is set".to_owned(),
            },
        ),
    ]
}

/// The table.
pub(super) fn table(clock: &Clock, destination: &Destination) -> Markup {
    html! {
        table.gates {
            thead {
                tr { th scope="col" { "Gate" } th scope="col" { "State" } th scope="col" { "In words" } }
            }
            tbody {
                @for gate in gates(destination) {
                    @let closed: Vec<&Hold> = destination.holds.iter().filter(|hold| gate.reasons.contains(&hold.reason.as_str())).collect();
                    tr.closed[!closed.is_empty()] {
                        th scope="row" { (gate.name) }
                        @if closed.is_empty() {
                            td { span.state.good { span.shape aria-hidden="true" { "✓" } " open" } }
                            td { (gate.open) }
                        } @else {
                            td { (ui::state(&closed[0].reason)) }
                            td { @for hold in closed { (held(clock, hold)) } }
                        }
                    }
                }
            }
        }
    }
}

/// What opens a gate that no time opens.
fn opener(reason: &str) -> &'static str {
    match reason {
        "disabled" => "when somebody switches it on",
        "paused" => "when somebody resumes it",
        "order_blocked" => "when the one before is over, or somebody resumes it",
        "at_capacity" => "when one in flight ends",
        "circuit_open" | "throttled" | "unavailable" => "when its probe succeeds",
        _ => "as soon as it may",
    }
}

fn held(clock: &Clock, hold: &Hold) -> Markup {
    html! {
        div {
            (ui::said(clock, &hold.detail))
            @if let Some(until) = hold.until { " · opens " strong { (ui::countdown(clock, until)) } }
            @else { " · opens " (opener(&hold.reason)) }
            @if let Some(since) = hold.since { small { " since " (ui::moment(clock, since)) } }
        }
    }
}
