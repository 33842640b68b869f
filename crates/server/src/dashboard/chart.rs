//! Pictures as SVG: places are attributes, looks are classes of the style sheet, and every mark has words.

mod lines;
mod time_axis;

pub(super) use lines::{Line, lines};
pub(super) use time_axis::TimeAxis;

use maud::{Markup, html};

/// A number for an attribute: a tenth of a pixel is enough.
pub(super) fn px(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// A mark by outcome: its shape says it without colour.
pub(super) fn mark(outcome: &str, x: f64, y: f64, words: &str) -> Markup {
    let class = format!("mark {}", super::words::state(outcome).1.class());
    let at = |dx: f64, dy: f64| format!("{} {}", px(x + dx), px(y + dy));
    let shape = match outcome {
        "success" => html! { circle cx=(px(x)) cy=(px(y)) r="3" {} },
        "rate_limited" | "unavailable" => {
            html! { path d={ "M" (at(0.0, -4.5)) "L" (at(4.5, 0.0)) "L" (at(0.0, 4.5)) "L" (at(-4.5, 0.0)) "Z" } {} }
        }
        "timeout" => html! { path d={ "M" (at(-4.0, -3.5)) "L" (at(4.0, -3.5)) "L" (at(0.0, 4.0)) "Z" } {} },
        "cancelled" => html! { path d={ "M" (at(-4.0, 0.0)) "L" (at(4.0, 0.0)) } {} },
        _ => {
            html! { path d={ "M" (at(-3.5, -3.5)) "L" (at(3.5, 3.5)) "M" (at(-3.5, 3.5)) "L" (at(3.5, -3.5)) } {} }
        }
    };
    html! { g class=(class) { title { (words) } (shape) } }
}

/// Where a length lies between two others, on a scale on which each step is a multiple.
pub(super) fn log_place(value: f64, low: f64, high: f64) -> f64 {
    let (low, high) = (low.max(0.1).ln(), high.max(0.2).ln());
    ((value.max(0.1).ln() - low) / (high - low)).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_short_numbers() {
        assert_eq!([px(1.0), px(2.04), px(-0.26)], ["1", "2", "-0.3"]);
        assert_eq!(
            [log_place(1.0, 1.0, 100.0), log_place(10.0, 1.0, 100.0), log_place(1e9, 1.0, 100.0)],
            [0.0, 0.5, 1.0]
        );
    }
}
