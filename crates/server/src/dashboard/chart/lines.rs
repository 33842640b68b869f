//! A few lines over time.

use maud::{Markup, html};
use tidegate_core::time::Timestamp;

use super::{TimeAxis, px};
use crate::dashboard::visitor::Clock;

const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 150.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 128.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 392.0;

/// One line: its name, its class, and its points.
pub(in crate::dashboard) struct Line {
    /// What it shows.
    pub(in crate::dashboard) name: &'static str,
    /// How it is drawn: `one` whole, `two` dashed.
    pub(in crate::dashboard) class: &'static str,
    /// Its points in order.
    pub(in crate::dashboard) points: Vec<(Timestamp, f64)>,
}

/// A picture of lines with a legend. `show` writes the values of the axis; `nothing` stands where there are none.
pub(in crate::dashboard) fn lines(
    title: &str,
    clock: &Clock,
    span: (Timestamp, Timestamp),
    all: &[Line],
    least_top: f64,
    show: impl Fn(f64) -> String,
    nothing: &str,
) -> Markup {
    let axis = TimeAxis { from: span.0, to: span.1, left: LEFT, right: RIGHT };
    let highest = all.iter().flat_map(|line| &line.points).map(|(_, value)| *value).fold(least_top, f64::max);
    let top = round_up(highest);
    let y = |value: f64| BOTTOM - (BOTTOM - TOP) * (value / top).clamp(0.0, 1.0);
    let is_empty = all.iter().all(|line| line.points.is_empty());
    html! {
        figure.chart {
            figcaption {
                strong { (title) }
                @for line in all { span class={ "key " (line.class) } { (line.name) } }
            }
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-label={ (title) ": " (summary(all, &show)) } {
                (axis.ticks(clock, TOP, BOTTOM))
                @for share in [0.0, 0.5, 1.0] {
                    line.grid x1=(LEFT) x2=(RIGHT) y1=(px(y(top * share))) y2=(px(y(top * share))) {}
                    text.tick x=(LEFT - 5.0) y=(px(y(top * share) + 3.5)) text-anchor="end" {
                        (show(top * share))
                    }
                }
                @for line in all {
                    path class={ "line " (line.class) } d=(way(line, &axis, y)) {}
                    @if let [(at, value)] = line.points.as_slice() {
                        circle class={ "dot " (line.class) } cx=(px(axis.x(*at))) cy=(px(y(*value))) r="2.5" {}
                    }
                }
                @if is_empty {
                    text.empty x=(WIDTH / 2.0) y=(HEIGHT / 2.0) text-anchor="middle" {
                        (nothing)
                    }
                }
            }
        }
    }
}

fn way(line: &Line, axis: &TimeAxis, y: impl Fn(f64) -> f64) -> String {
    let mut way = String::new();
    for (place, (at, value)) in line.points.iter().enumerate() {
        way.push(if place == 0 { 'M' } else { 'L' });
        way.push_str(&format!("{} {}", px(axis.x(*at)), px(y(*value))));
    }
    way
}

/// The last value of each line, for those who do not see the picture.
fn summary(all: &[Line], show: &impl Fn(f64) -> String) -> String {
    let last =
        |line: &Line| line.points.last().map(|(_, value)| format!("{} last {}", line.name, show(*value)));
    let parts: Vec<String> = all.iter().filter_map(last).collect();
    if parts.is_empty() { "nothing happened".to_owned() } else { parts.join(", ") }
}

/// The next of 1, 2, 5, 10, 20, 50 …
fn round_up(value: f64) -> f64 {
    let mut step = 0.01;
    loop {
        for times in [1.0, 2.0, 5.0] {
            if step * times >= value {
                return step * times;
            }
        }
        step *= 10.0;
    }
}

#[cfg(test)]
mod tests {
    use super::round_up;

    #[test]
    fn the_axis_ends_at_a_round_number() {
        assert_eq!([0.0, 0.9, 1.0, 3.2, 7.0, 1_234.0].map(round_up), [0.01, 1.0, 1.0, 5.0, 10.0, 2_000.0]);
    }
}
