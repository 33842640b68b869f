//! How long a destination takes to answer, and the timeout that is made from it.

use maud::{Markup, html};
use tidegate_core::time::Millis;

use crate::dashboard::chart::{log_place, px};
use crate::dashboard::visitor::Clock;
use crate::dashboard::wire::{Bucket, Latency, Timeout};
use crate::dashboard::{ui, words};

const WIDTH: f64 = 560.0;
const LEFT: f64 = 10.0;
const RIGHT: f64 = 550.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 150.0;
/// Columns of the picture: buckets of the answer are joined into these.
const COLUMNS: usize = 40;

/// The picture.
pub(super) fn draw(latency: &Latency, timeout: &Timeout) -> Markup {
    if latency.all.samples == 0 {
        return html! { p { "Nothing is known of its response times yet. Failures in an outage say nothing about them." } };
    }
    let slowest =
        latency.buckets.iter().map(|bucket| bucket.to_ms).max().unwrap_or(1).max(timeout.ms) as f64 * 1.2;
    let fastest = latency.buckets.iter().map(|bucket| bucket.from_ms).min().unwrap_or(1).max(1) as f64 / 1.2;
    let x = |ms: f64| LEFT + (RIGHT - LEFT) * log_place(ms, fastest, slowest);
    let columns = columns(&latency.buckets, fastest, slowest);
    let most = columns.iter().map(|(answered, timeouts)| answered + timeouts).max().unwrap_or(1).max(1);
    let height = |count: u64| (BOTTOM - TOP) * count as f64 / most as f64;
    let wide = (RIGHT - LEFT) / COLUMNS as f64;
    let all = &latency.all;
    let lines = [("p50", all.p50_ms, 0), ("p95", all.p95_ms, 1), ("p99", all.p99_ms, 2)];
    let ticks = [1.0, 10.0, 100.0, 1_000.0, 10_000.0, 60_000.0];
    html! {
        figure.chart {
            figcaption {
                (words::plural(all.samples, "attempt", "attempts")) ", "
                (words::plural(all.timeouts, "timeout", "timeouts")) span.key.one { "answered" }
                span.key.warn { "▼ timed out" }
            }
            svg viewBox={ "0 0 " (WIDTH) " 172" } role="img" aria-label=(summary(latency, timeout)) {
                @for (place, (answered, timeouts)) in columns.iter().enumerate() {
                    @let left = LEFT + wide * place as f64;
                    @if *answered > 0 {
                        rect.column x=(px(left)) width=(px(wide - 1.0)) y=(px(BOTTOM - height(*answered))) height=(px(height(*answered).max(1.0))) {
                            title { (answered) " answered" }
                        }
                    }
                    @if *timeouts > 0 {
                        rect.column.warn x=(px(left)) width=(px(wide - 1.0)) y=(px(BOTTOM - height(answered + timeouts))) height=(px(height(*timeouts).max(1.0))) {
                            title { (timeouts) " timed out" }
                        }
                    }
                }
                line.axis x1=(LEFT) x2=(RIGHT) y1=(BOTTOM) y2=(BOTTOM) {}
                @for ms in ticks.into_iter().filter(|ms| *ms > fastest && *ms < slowest) {
                    text.tick x=(px(x(ms))) y=(BOTTOM + 13.0) text-anchor="middle" {
                        (words::span_of(ms))
                    }
                }
                @for (name, at, row) in lines {
                    @if let Some(at) = at { (mark(x(at as f64), row, &format!("{name} {}", words::span(Millis::new(at))), "quantile")) }
                }
                (mark(x(timeout.ms as f64), 0, &format!("timeout {}", words::span(Millis::new(timeout.ms))), "limit"))
            }
        }
    }
}

/// A line at a place, with its name at its end; names of neighbours stand in rows.
fn mark(x: f64, row: u8, name: &str, class: &str) -> Markup {
    let y = 10.0 + 12.0 * f64::from(row);
    let end = x > RIGHT - 90.0;
    html! {
        line class=(class) x1=(px(x)) x2=(px(x)) y1=(px(y - 7.0)) y2=(BOTTOM) {}
        text class={ "tick " (class) } x=(px(if end { x - 3.0 } else { x + 3.0 })) y=(px(y)) text-anchor=(if end { "end" } else { "start" }) {
            (name)
        }
    }
}

/// Answered and timed-out attempts, by columns of equal ratio.
fn columns(buckets: &[Bucket], fastest: f64, slowest: f64) -> [(u64, u64); COLUMNS] {
    let mut columns = [(0, 0); COLUMNS];
    for bucket in buckets {
        let middle = (bucket.from_ms + bucket.to_ms) as f64 / 2.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of the columns")]
        let place = (log_place(middle, fastest, slowest) * COLUMNS as f64) as usize;
        let column = &mut columns[place.min(COLUMNS - 1)];
        column.0 += u64::from(bucket.answered);
        column.1 += u64::from(bucket.timeouts);
    }
    columns
}

fn summary(latency: &Latency, timeout: &Timeout) -> String {
    let at = |name: &str, ms: Option<i64>| {
        ms.map_or(format!("{name} beyond the timeout"), |ms| {
            format!("{name} {}", words::span(Millis::new(ms)))
        })
    };
    let all = &latency.all;
    format!(
        "{}, {}, {}, timeout {}",
        at("p50", all.p50_ms),
        at("p95", all.p95_ms),
        at("p99", all.p99_ms),
        words::span(Millis::new(timeout.ms))
    )
}

/// The timeout in words: how it was found, and its next step.
pub(super) fn timeout(clock: &Clock, timeout: &Timeout) -> Markup {
    let span = |ms: i64| words::span(Millis::new(ms));
    html! {
        p {
            "An attempt gets " strong { (span(timeout.ms)) } " ("
            @match timeout.mode.as_str() {
                "manual" => "pinned by hand",
                "default" => "always the default",
                _ => "learned from its answers",
            }
            ")."
            @if let Some(p99) = timeout.p99_ms {
                " p99 was " (span(p99)) " of " (words::plural(timeout.sample_count, "sample", "samples")) "."
            }
            @if let Some(at) = timeout.computed_at { " Computed " (ui::countdown(clock, at)) "." }
            @if let Some(target) = timeout.target_ms.filter(|target| *target != timeout.ms) {
                " Its answers ask for " strong { (span(target)) } "."
                @match &timeout.next_step {
                    Some(step) => { " The next step: " strong { (span(step.ms)) } " " (ui::until(clock, step.at)) ", if it answers as it does now." }
                    None if target < timeout.ms => " It is shortened once enough is known.",
                    None => {}
                }
            }
        }
    }
}

/// Day by day: how the percentiles moved.
pub(super) fn days(latency: &Latency) -> Markup {
    let span = |ms: Option<i64>| ms.map_or("beyond".to_owned(), |ms| words::span(Millis::new(ms)));
    html! {
        @if !latency.days.is_empty() {
            details { summary { "Day by day" }
                table.rows {
                    thead {
                        tr {
                            th scope="col" { "Day (UTC)" } th scope="col" { "Attempts" }
                            th scope="col" { "Timeouts" } th scope="col" { "p50" } th scope="col" { "p95" }
                            th scope="col" { "p99" }
                        }
                    }
                    tbody { @for day in &latency.days {
                        @let of = &day.distribution;
                        tr {
                            th scope="row" { (day.date) } td.number { (words::count(of.samples)) }
                            td.number { (words::count(of.timeouts)) } td.number { (span(of.p50_ms)) }
                            td.number { (span(of.p95_ms)) } td.number { (span(of.p99_ms)) }
                        }
                    } }
                }
            }
        }
    }
}
