//! What a changed policy would have done to the last day's traffic, before anybody saves it.

use std::collections::BTreeMap;

use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;
use tidegate_core::time::Millis;

use crate::dashboard::ask::{Refused, segment};
use crate::dashboard::visitor::Visitor;
use crate::dashboard::wire::{At, Destination};
use crate::dashboard::{ui, words};

#[derive(Debug, Deserialize)]
struct Preview {
    from: At,
    to: At,
    deliveries: u64,
    cut: bool,
    assumes: Vec<String>,
    before: Played,
    after: Played,
}

#[derive(Debug, Deserialize)]
struct Played {
    delivered: u64,
    dead_letter: u64,
    expired: u64,
    still_open: u64,
    requests: u64,
    p50_ms: Option<i64>,
    p99_ms: Option<i64>,
    longest_wait_ms: Option<i64>,
    longest_wait_reason: Option<String>,
    held_seconds: BTreeMap<String, f64>,
    busiest_minute: u64,
    peak_in_flight: u32,
    breaker_opened: u64,
}

/// Has both policies played, and shows them side by side.
pub(super) async fn run(
    visitor: &Visitor,
    destination: &Destination,
    changes: &Value,
) -> Result<Markup, Refused> {
    let path = format!("/v1/destinations/{}/preview", segment(&destination.id));
    let preview: Preview = visitor.api.post(&path, changes).await?;
    Ok(draw(visitor, &preview, changes))
}

fn draw(visitor: &Visitor, preview: &Preview, changes: &Value) -> Markup {
    let changed: Vec<&str> =
        changes.as_object().map(|changes| changes.keys().map(String::as_str).collect()).unwrap_or_default();
    html! {
        section.preview aria-labelledby="preview" {
            h2 #preview { "What this change would have done" }
            p {
                @if changed.is_empty() {
                    "Nothing is changed yet. "
                } @else { "Changed: " @for (place, name) in changed.iter().enumerate() { @if place > 0 { ", " } (name.replace('_', " ")) } ". " }
                "Nothing is saved."
            }
            @if preview.deliveries == 0 { p { "No delivery came in during the last 24 hours: there is nothing to play again." } } @else {
                p {
                    (words::plural(preview.deliveries, "delivery", "deliveries")) " from " (ui::moment(&visitor.clock, preview.from)) " to " (ui::moment(&visitor.clock, preview.to))
                    @if preview.cut { " (there were more; these are the newest)" }
                    ", played again by the simulator under both policies. It assumes that "
                    (preview.assumes.join("; ")) "."
                }
                (table(preview))
            }
        }
    }
}

fn table(preview: &Preview) -> Markup {
    let (before, after) = (&preview.before, &preview.after);
    let time = |ms: Option<i64>| ms.map_or("–".to_owned(), |ms| words::span(Millis::new(ms)));
    let longest = |played: &Played| match &played.longest_wait_reason {
        Some(reason) => format!("{}, mostly {}", time(played.longest_wait_ms), reason.replace('_', " ")),
        None => time(played.longest_wait_ms),
    };
    let reasons: std::collections::BTreeSet<&String> =
        before.held_seconds.keys().chain(after.held_seconds.keys()).collect();
    let held = |played: &Played, reason: &str| {
        let seconds = played.held_seconds.get(reason).copied().unwrap_or(0.0);
        #[expect(clippy::cast_possible_truncation, reason = "days in milliseconds")]
        words::span(Millis::new((seconds * 1_000.0) as i64))
    };
    let rows = [
        ("Delivered", words::count(before.delivered), words::count(after.delivered)),
        ("Expired", words::count(before.expired), words::count(after.expired)),
        ("Given up", words::count(before.dead_letter), words::count(after.dead_letter)),
        ("Still waiting a day later", words::count(before.still_open), words::count(after.still_open)),
        ("Wait, half within", time(before.p50_ms), time(after.p50_ms)),
        ("Wait, 99 of 100 within", time(before.p99_ms), time(after.p99_ms)),
        ("Longest wait", longest(before), longest(after)),
        ("Requests", words::count(before.requests), words::count(after.requests)),
        (
            "Requests in the busiest minute",
            words::count(before.busiest_minute),
            words::count(after.busiest_minute),
        ),
        ("In flight at most", before.peak_in_flight.to_string(), after.peak_in_flight.to_string()),
        ("Breaker opened", words::count(before.breaker_opened), words::count(after.breaker_opened)),
    ];
    let row = |name: &str, before: &str, after: &str| {
        html! { tr.changed[before != after] { th scope="row" { (name) } td.number { (before) } td.number { (after) @if before != after { " ◂" span.hidden { "changed" } } } } }
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label="Before and after" { table.rows.compare {
            thead {
                tr {
                    th scope="col" { "" span.hidden { "Figure" } } th scope="col" { "As it is" }
                    th scope="col" { "With the change" }
                }
            }
            tbody {
                @for (name, before, after) in &rows { (row(name, before, after)) }
                @for reason in reasons { (row(&format!("Held by {}", reason.replace('_', " ")), &held(before, reason), &held(after, reason))) }
            }
        } }
    }
}
