//! Cells in columns. Each column is as wide as it needs to be, as long as all of them fit; else the widest are wrapped.

/// Where a cell's text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// Space between two columns, and before the first.
const GAP: usize = 2;
/// No column is made narrower than this.
const NARROWEST: usize = 7;

/// Rows of cells under headings.
pub(super) struct Grid<const N: usize> {
    headings: [(&'static str, Align); N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Grid<N> {
    pub(super) const fn new(headings: &[(&'static str, Align); N]) -> Self {
        Self { headings: *headings, rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// All of it, no line wider than `width`.
    pub(super) fn render(&self, width: usize) -> String {
        let widths = self.widths(width);
        let mut text = String::new();
        if self.headings.iter().any(|(heading, _)| !heading.is_empty()) {
            self.render_row(&self.headings.map(|(heading, _)| heading), &widths, &mut text);
        }
        for row in &self.rows {
            self.render_row(&row.each_ref().map(String::as_str), &widths, &mut text);
        }
        text
    }

    fn widths(&self, width: usize) -> [usize; N] {
        let mut widths = self.headings.map(|(heading, _)| length(heading));
        for row in &self.rows {
            for (widest, cell) in widths.iter_mut().zip(row) {
                *widest = length(cell).max(*widest);
            }
        }
        let room = width.saturating_sub(GAP * N);
        let narrowest = self.narrowest();
        while widths.iter().sum::<usize>() > room {
            let widest_above = |floor: [usize; N]| {
                let above = (0..N).filter(|column| widths[*column] > floor[*column].max(NARROWEST));
                above.max_by_key(|column| widths[*column])
            };
            // Between words first; through them only where nothing else is left.
            let Some(column) = widest_above(narrowest).or_else(|| widest_above([0; N])) else { break };
            widths[column] -= 1;
        }
        widths
    }

    /// How narrow each column can be without breaking a word, or a number from its unit.
    fn narrowest(&self) -> [usize; N] {
        let longest = |text: &str| text.split_whitespace().map(length).max().unwrap_or(0);
        let mut narrowest = self.headings.map(|(heading, _)| longest(heading));
        for row in &self.rows {
            for ((least, cell), (_, align)) in narrowest.iter_mut().zip(row).zip(&self.headings) {
                let needed = if *align == Align::Right { length(cell) } else { longest(cell) };
                *least = needed.max(*least);
            }
        }
        narrowest
    }

    fn render_row(&self, cells: &[&str; N], widths: &[usize; N], text: &mut String) {
        let mut lines: Vec<Vec<String>> = Vec::with_capacity(N);
        for (cell, width) in cells.iter().zip(widths) {
            lines.push(wrapped(cell, *width));
        }
        for number in 0..lines.iter().map(Vec::len).max().unwrap_or(0) {
            let mut line = String::new();
            for ((cell, width), (_, align)) in lines.iter().zip(widths).zip(&self.headings) {
                let part = cell.get(number).map_or("", String::as_str);
                let pad = " ".repeat(width.saturating_sub(length(part)));
                line.push_str(&" ".repeat(GAP));
                match align {
                    Align::Left => line.extend([part, &pad]),
                    Align::Right => line.extend([&pad, part]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
}

/// `text` in lines of at most `width` characters, broken between words where that is possible.
pub(super) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        let line = lines.last_mut().expect("there is always a last line");
        if line.is_empty() || length(line) + 1 + word.len() <= width {
            if !line.is_empty() {
                line.push(' ');
            }
        } else {
            lines.push(String::new());
        }
        while word.len() > width {
            let rest = word.split_off(width);
            lines.last_mut().expect("there is always a last line").extend(word);
            lines.push(String::new());
            word = rest;
        }
        lines.last_mut().expect("there is always a last line").extend(word);
    }
    lines
}

fn length(text: &str) -> usize {
    text.chars().count()
}
