//! Time from left to right.

use maud::{Markup, html};
use tidegate_core::time::Timestamp;

use super::px;
use crate::dashboard::ui;
use crate::dashboard::visitor::Clock;

/// Steps between two ticks, in seconds.
const STEPS: [i64; 15] =
    [1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 604_800];
/// Ticks at most.
const MOST: i64 = 9;

/// A span of time between two places.
#[derive(Clone, Copy, Debug)]
pub(in crate::dashboard) struct TimeAxis {
    /// Its beginning.
    pub(in crate::dashboard) from: Timestamp,
    /// Its end.
    pub(in crate::dashboard) to: Timestamp,
    /// Where it begins.
    pub(in crate::dashboard) left: f64,
    /// Where it ends.
    pub(in crate::dashboard) right: f64,
}

impl TimeAxis {
    /// The place of a moment, within the axis.
    pub(in crate::dashboard) fn x(&self, at: Timestamp) -> f64 {
        let whole = (self.to - self.from).get().max(1) as f64;
        let share = (at - self.from).get() as f64 / whole;
        self.left + (self.right - self.left) * share.clamp(0.0, 1.0)
    }

    /// Lines and labels at round times of the viewer's clock, from `top` to `bottom`.
    pub(in crate::dashboard) fn ticks(&self, clock: &Clock, top: f64, bottom: f64) -> Markup {
        let span = (self.to - self.from).get() / 1_000;
        let step = STEPS.into_iter().find(|step| span / step <= MOST).unwrap_or(STEPS[14]);
        let format = match step {
            ..60 => "%H:%M:%S",
            60..43_200 => "%H:%M",
            _ => "%-d %b",
        };
        let offset = i64::from(clock.zone.to_offset(self.from.to_jiff()).seconds());
        let first = ((self.from.as_millis() / 1_000 + offset) / step + 1) * step - offset;
        let ticks = (0..=MOST).map(|number| Timestamp::from_millis((first + number * step) * 1_000));
        html! {
            @for at in ticks.filter(|at| *at <= self.to) {
                @let x = self.x(at);
                line.grid x1=(px(x)) x2=(px(x)) y1=(px(top)) y2=(px(bottom)) {}
                @if x < self.right - 14.0 && x > self.left + 10.0 {
                    text.tick x=(px(x)) y=(px(bottom + 12.0)) text-anchor="middle" {
                        (ui::shown(clock, at, format))
                    }
                }
            }
        }
    }
}
