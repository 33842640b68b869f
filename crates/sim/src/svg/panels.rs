//! The panels of one part of a run.

use std::fmt::Write as _;

use tidegate_core::delivery::HoldReason;

use super::axis::{Mark, times};
use super::columns::{Column, Columns};
use super::frame::{Area, Frame};
use super::look::{self, Fill};
use super::text::clipped;
use super::{LEFT, MARGIN, RIGHT, put};
use crate::series::Series;
use crate::words::{count, span};

/// Space above a panel, for its heading.
const ABOVE: f64 = 46.0;
/// The height of a line of a legend: the waiting panel grows with its reasons.
const LEGEND_LINE: f64 = 19.0;

/// Draws them below `y`. Says where the next thing may begin.
pub(super) fn draw(body: &mut String, title: Option<&str>, series: &Series, y: f64) -> f64 {
    let columns = Columns::of(series);
    let marks = marks(&columns);
    let mut y = y;
    if let Some(title) = title {
        y += 44.0;
        put(body, MARGIN, y, "part", &clipped(title, 110));
        y -= 8.0;
    }
    for panel in [traffic, waiting, in_flight, answers] {
        y = panel(body, &columns, &marks, y + ABOVE);
    }
    time_axis(body, &marks, y);
    y + 36.0
}

/// The marks of the time axis, with their places.
fn marks(columns: &Columns) -> Vec<(f64, Mark)> {
    let (from, to) = (columns.from_ms, columns.to_ms());
    let length = to.saturating_sub(from).max(1) as f64;
    let place = |mark: Mark| (LEFT + (RIGHT - LEFT) * mark.at_ms.saturating_sub(from) as f64 / length, mark);
    times(from, to).into_iter().map(place).collect()
}

/// What came in, as an area, and what went out, as a line.
fn traffic(body: &mut String, columns: &Columns, marks: &[(f64, Mark)], y: f64) -> f64 {
    let height = 110.0;
    let (arrived, sent) = (columns.values(|column| column.arrived), columns.values(|column| column.sent));
    let frame = Frame::new(y, height, columns.columns.len(), most(&arrived).max(most(&sent)));
    let heading = format!("Arrivals and requests per {}", step(columns));
    frame.ground(body, &heading, marks);
    let areas = [Area { fill: look::ARRIVED, note: count(total(&arrived)), values: arrived }];
    frame.stack(body, &areas, false);
    frame.curve(body, "sent", &sent);
    frame.legend(body, &areas);
    frame.legend_line(body, 1, "sent", "requests", &count(total(&sent)));
    y + height
}

/// What waited, by what held it.
fn waiting(body: &mut String, columns: &Columns, marks: &[(f64, Mark)], y: f64) -> f64 {
    let in_line = (look::IN_LINE, columns.values(|column| column.in_line));
    let held = HoldReason::ALL.into_iter().enumerate();
    let held = held.map(|(place, reason)| (look::hold(reason), columns.values(|column| column.held[place])));
    let areas: Vec<Area> = std::iter::once(in_line)
        .chain(held)
        .filter(|(_, values)| values.iter().any(|value| *value > 0))
        .map(|(fill, values)| Area { fill, note: format!("most {}", count(most(&values))), values })
        .collect();
    let height = (LEGEND_LINE * areas.len() as f64).max(170.0);
    let all = columns.values(waiting_in);
    let frame = Frame::new(y, height, columns.columns.len(), most(&all));
    frame.ground(body, "Waiting deliveries by what holds them, the most in each step", marks);
    frame.stack(body, &areas, true);
    frame.legend(body, &areas);
    if areas.is_empty() {
        put(body, RIGHT + 20.0, y + 10.0, "muted", "nothing ever waited");
    }
    y + height
}

fn waiting_in(column: &Column) -> u64 {
    column.held.iter().sum::<u64>() + column.in_line
}

fn in_flight(body: &mut String, columns: &Columns, marks: &[(f64, Mark)], y: f64) -> f64 {
    let height = 70.0;
    let values = columns.values(|column| column.in_flight);
    let frame = Frame::new(y, height, columns.columns.len(), most(&values));
    frame.ground(body, "Requests in flight, the most in each step", marks);
    let areas = [Area { fill: look::IN_FLIGHT, note: format!("most {}", count(most(&values))), values }];
    frame.stack(body, &areas, false);
    frame.legend(body, &areas);
    y + height
}

/// What was answered, in the three kinds that lead to different things.
fn answers(body: &mut String, columns: &Columns, marks: &[(f64, Mark)], y: f64) -> f64 {
    let height = 110.0;
    let area = |fill: Fill, values: Vec<u64>| Area { fill, note: count(total(&values)), values };
    let areas = [
        area(look::SUCCESS, columns.values(|column| column.succeeded)),
        area(look::LIMITED, columns.values(|column| column.throttled)),
        area(look::FAILED, columns.values(|column| column.failed)),
    ];
    let all = columns.values(|column| column.succeeded + column.throttled + column.failed);
    let frame = Frame::new(y, height, columns.columns.len(), most(&all));
    frame.ground(body, &format!("Answers per {}", step(columns)), marks);
    frame.stack(body, &areas, false);
    frame.legend(body, &areas);
    y + height
}

fn time_axis(body: &mut String, marks: &[(f64, Mark)], y: f64) {
    for (x, mark) in marks {
        let _ = writeln!(body, r#"<path class="base" d="M{x:.1} {y:.1}v5"/>"#);
        if let Some(clock) = &mark.clock {
            put(body, *x, y + 18.0, "tick middle", clock);
        }
        if let Some(date) = &mark.date {
            let below = if mark.clock.is_some() { 32.0 } else { 18.0 };
            put(body, *x, y + below, "date middle", date);
        }
    }
}

/// The length of a column after `per`: `minute`, `5 min`.
fn step(columns: &Columns) -> String {
    match columns.width_ms {
        60_000 => "minute".to_owned(),
        3_600_000 => "hour".to_owned(),
        86_400_000 => "day".to_owned(),
        _ => span(columns.width()),
    }
}

fn most(values: &[u64]) -> u64 {
    values.iter().copied().max().unwrap_or(0)
}

fn total(values: &[u64]) -> u64 {
    values.iter().sum()
}
