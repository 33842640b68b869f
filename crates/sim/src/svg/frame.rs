//! One panel: where its values lie, its lines and ticks, its areas and their legend.

use std::fmt::Write as _;

use super::axis::{Mark, numbers};
use super::look::Fill;
use super::text::escaped;
use super::{LEFT, MARGIN, RIGHT, put};
use crate::words::count;

/// The height of a line of a legend.
const LEGEND_LINE: f64 = 19.0;
/// Where legends begin.
const LEGEND: f64 = RIGHT + 20.0;
/// The width of a letter of an area's name, about.
const LETTER: f64 = 6.8;
/// How tall an area must be to carry its name.
const NAME_HEIGHT: f64 = 17.0;

/// A panel's place and scale.
pub(super) struct Frame {
    top: f64,
    height: f64,
    columns: usize,
    lines: Vec<u64>,
}

/// One area of a stack.
pub(super) struct Area {
    pub(super) fill: Fill,
    pub(super) values: Vec<u64>,
    /// What the legend says of it, beside its word.
    pub(super) note: String,
}

impl Frame {
    /// A panel for values up to `most`, in so many columns.
    pub(super) fn new(top: f64, height: f64, columns: usize, most: u64) -> Self {
        Self { top, height, columns: columns.max(1), lines: numbers(most) }
    }

    fn bottom(&self) -> f64 {
        self.top + self.height
    }
    fn x(&self, column: usize) -> f64 {
        LEFT + (RIGHT - LEFT) * column as f64 / self.columns as f64
    }
    fn y(&self, value: u64) -> f64 {
        let most = self.lines.last().copied().unwrap_or(1).max(1);
        self.bottom() - self.height * value as f64 / most as f64
    }

    /// Heading, lines and their numbers, and the lines of the time axis.
    pub(super) fn ground(&self, body: &mut String, heading: &str, marks: &[(f64, Mark)]) {
        put(body, MARGIN, self.top - 11.0, "heading", heading);
        for (x, mark) in marks {
            let class =
                if mark.date.is_some() && mark.at_ms.rem_euclid(86_400_000) == 0 { "day" } else { "grid" };
            let (top, bottom) = (self.top, self.bottom());
            let _ = writeln!(body, r#"<path class="{class}" d="M{x:.1} {top:.1}V{bottom:.1}"/>"#);
        }
        for line in &self.lines {
            let y = self.y(*line);
            let class = if *line == 0 { "base" } else { "grid" };
            let _ = writeln!(body, r#"<path class="{class}" d="M{LEFT:.1} {y:.1}H{RIGHT:.1}"/>"#);
            put(body, LEFT - 8.0, y + 4.0, "tick end", &short(*line));
        }
    }

    /// Areas on top of each other, the first at the bottom. Large ones carry their names if `named`.
    pub(super) fn stack(&self, body: &mut String, areas: &[Area], named: bool) {
        let mut base = vec![0_u64; self.columns];
        let mut names = String::new();
        for area in areas {
            let top: Vec<u64> = base
                .iter()
                .zip(area.values.iter().chain(std::iter::repeat(&0)))
                .map(|(a, b)| a.saturating_add(*b))
                .collect();
            let path = self.between(&base, &top);
            if !path.is_empty() {
                let _ = writeln!(body, r##"<path fill="url(#{})" d="{path}"/>"##, area.fill.id());
                let _ = writeln!(body, r#"<path class="edge" d="{}"/>"#, self.line(&top));
            }
            if named && let Some((x, y)) = self.room(area.fill.word, &base, &top) {
                put(&mut names, x, y, "name", area.fill.word);
            }
            base = top;
        }
        body.push_str(&names);
    }

    /// A line through the values.
    pub(super) fn curve(&self, body: &mut String, class: &str, values: &[u64]) {
        let _ = writeln!(body, r#"<path class="{class}" d="{}"/>"#, self.line(values));
    }

    /// Steps through the values: each is level over its column. Equal neighbours make one step.
    fn line(&self, values: &[u64]) -> String {
        let mut path = String::new();
        let mut last = None;
        for (column, value) in values.iter().enumerate() {
            if last != Some(*value) {
                let (x, y) = (self.x(column), self.y(*value));
                let _ = if last.is_none() {
                    write!(path, "M{x:.1} {y:.1}")
                } else {
                    write!(path, "H{x:.1}V{y:.1}")
                };
                last = Some(*value);
            }
        }
        let _ = write!(path, "H{:.1}", self.x(values.len()));
        path
    }

    /// The area between two lines of steps; nothing where they are the same.
    fn between(&self, low: &[u64], high: &[u64]) -> String {
        let mut path = String::new();
        let mut column = 0;
        while column < self.columns {
            if low[column] == high[column] {
                column += 1;
                continue;
            }
            let start = column;
            while column < self.columns && low[column] != high[column] {
                column += 1;
            }
            self.outline(&mut path, start, &low[start..column], &high[start..column]);
        }
        path
    }

    /// One piece of an area: along the top, and back along the bottom.
    fn outline(&self, path: &mut String, start: usize, low: &[u64], high: &[u64]) {
        let end = start + low.len();
        let _ = write!(path, "M{:.1} {:.1}", self.x(start), self.y(high[0]));
        for (place, pair) in high.windows(2).enumerate() {
            if pair[0] != pair[1] {
                let _ = write!(path, "H{:.1}V{:.1}", self.x(start + place + 1), self.y(pair[1]));
            }
        }
        let _ = write!(path, "H{:.1}V{:.1}", self.x(end), self.y(low[low.len() - 1]));
        for (place, pair) in low.windows(2).enumerate().rev() {
            if pair[0] != pair[1] {
                let _ = write!(path, "H{:.1}V{:.1}", self.x(start + place + 1), self.y(pair[0]));
            }
        }
        let _ = write!(path, "H{:.1}Z", self.x(start));
    }

    /// Where a name fits into an area: the tallest place that is wide enough for it.
    fn room(&self, word: &str, low: &[u64], high: &[u64]) -> Option<(f64, f64)> {
        let needed = word.len() as f64 * LETTER + 8.0;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most some hundred columns"
        )]
        let wide = (needed / (self.x(1) - self.x(0))).ceil() as usize;
        let mut best: Option<(f64, usize, f64)> = None;
        for start in 0..=self.columns.checked_sub(wide)? {
            let over = start..start + wide;
            let roof = high[over.clone()].iter().map(|value| self.y(*value)).fold(self.top, f64::max);
            let floor = low[over].iter().map(|value| self.y(*value)).fold(self.bottom(), f64::min);
            if floor - roof >= NAME_HEIGHT && best.is_none_or(|(tallest, ..)| floor - roof > tallest) {
                best = Some((floor - roof, start, f64::midpoint(roof, floor) + 4.0));
            }
        }
        best.map(|(_, start, y)| (f64::midpoint(self.x(start), self.x(start + wide)), y))
    }

    /// The areas by name, in the order in which they lie on each other.
    pub(super) fn legend(&self, body: &mut String, areas: &[Area]) {
        let mut y = self.top + 10.0;
        for area in areas.iter().rev() {
            let fill = area.fill.id();
            let _ = writeln!(
                body,
                r##"<rect fill="url(#{fill})" x="{LEGEND:.1}" y="{:.1}" width="16" height="12" rx="2"/>"##,
                y - 10.0
            );
            let _ = writeln!(
                body,
                r#"<rect class="box" x="{LEGEND:.1}" y="{:.1}" width="16" height="12" rx="2"/>"#,
                y - 10.0
            );
            entry(body, y, area.fill.word, &area.note);
            y += LEGEND_LINE;
        }
    }

    /// A line by name, below so many areas.
    pub(super) fn legend_line(&self, body: &mut String, after: usize, class: &str, word: &str, note: &str) {
        let y = self.top + 10.0 + LEGEND_LINE * after as f64;
        let (from, to) = (LEGEND, LEGEND + 16.0);
        let _ = writeln!(body, r#"<path class="{class}" d="M{from:.1} {0:.1}H{to:.1}"/>"#, y - 4.0);
        entry(body, y, word, note);
    }
}

fn entry(body: &mut String, y: f64, word: &str, note: &str) {
    let _ = writeln!(
        body,
        r#"<text class="small" x="{:.1}" y="{y:.1}">{} <tspan class="muted">{}</tspan></text>"#,
        LEGEND + 23.0,
        escaped(word),
        escaped(note)
    );
}

/// A number in the margin: `12,000`, `1.5M`.
fn short(number: u64) -> String {
    match number {
        0..1_000_000 => count(number),
        _ => {
            let tenths = number / 100_000;
            if tenths.is_multiple_of(10) {
                format!("{}M", count(tenths / 10))
            } else {
                format!("{}.{}M", count(tenths / 10), tenths % 10)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_follows_its_top_and_returns_along_its_base() {
        let frame = Frame::new(0.0, 100.0, 4, 4);
        let width = (RIGHT - LEFT) / 4.0;
        let at = |column: f64| format!("{:.1}", LEFT + width * column);
        let path = frame.between(&[0, 0, 1, 0], &[0, 2, 2, 4]);
        let (one, two, three, four) = (at(1.0), at(2.0), at(3.0), at(4.0));
        assert_eq!(path, format!("M{one} 50.0H{three}V0.0H{four}V100.0H{three}V75.0H{two}V100.0H{one}Z"),);
        assert_eq!(frame.between(&[1; 4], &[1; 4]), "");
    }

    #[test]
    fn a_name_stands_where_its_area_is_tallest_and_nowhere_if_it_is_thin() {
        let frame = Frame::new(0.0, 100.0, 100, 100);
        let mut high = [30; 100];
        high[60..90].fill(90);
        let (x, y) = frame.room("paused", &[0; 100], &high).expect("there is room");
        assert!((LEFT + 4.6 * 100.0..RIGHT - 70.0).contains(&x) && (50.0..62.0).contains(&y), "{x} {y}");
        assert_eq!(frame.room("paused", &[0; 100], &[10; 100]), None);
        assert_eq!(
            Frame::new(0.0, 100.0, 1, 1).room("paused", &[0], &[1]),
            Some((f64::midpoint(LEFT, RIGHT), 54.0))
        );
    }
}
