//! A report as text for a terminal: aligned, at most 110 columns wide, with marks and words and no colours.

mod grid;

use tidegate_core::time::Millis;

use crate::report::{Finding, Report};
use crate::scenario::file::Figures;
use crate::words::{count, plural, short_span, span};
use grid::{Align, Grid, wrapped};

/// The width that all of it fits.
pub const WIDTH: usize = 110;
/// Rows of destinations shown at most; the report as JSON has all of them.
const MAX_ROWS: usize = 20;

/// Names, each with a sentence.
pub fn list(entries: &[(&str, &str)]) -> String {
    let mut grid = Grid::new(&[("", Align::Left), ("", Align::Left)]);
    for (name, about) in entries {
        grid.row([(*name).to_owned(), (*about).to_owned()]);
    }
    grid.render(WIDTH)
}

/// What was simulated, and what it shows.
pub fn report(report: &Report) -> String {
    let mut text = format!("{}\n", report.scenario);
    for line in wrapped(&report.world, WIDTH - 2) {
        text.push_str(&format!("  {line}\n"));
    }
    #[expect(clippy::cast_possible_truncation, reason = "a float as large as this saturates")]
    let simulated = Millis::new((report.simulated_seconds * 1_000.0) as i64);
    text.push_str(&format!(
        "  {} simulated, {}, {}\n\n",
        span(simulated),
        plural(report.deliveries, "delivery", "deliveries"),
        plural(report.attempts, "request", "requests")
    ));
    let mut grid =
        Grid::new(&[("", Align::Left), ("", Align::Left), ("result", Align::Left), ("target", Align::Left)]);
    for finding in &report.findings {
        grid.row([mark(finding).to_owned(), finding.what.clone(), finding.value.clone(), target(finding)]);
    }
    text.push_str(&grid.render(WIDTH));
    text
}

/// Whether everything is as it should be, in a line.
pub fn verdict(report: &Report) -> String {
    let checks = report.findings.iter().filter(|finding| finding.target.is_some()).count() as u64;
    let failed = report.findings.iter().filter(|finding| !finding.holds).count() as u64;
    match (checks, failed) {
        (0, 0) => "Nothing was checked.".to_owned(),
        (1, 0) => "✓ The one check holds.".to_owned(),
        (checks, 0) => format!("✓ All {checks} checks hold."),
        (_, 1) => format!("✗ 1 of {} does not hold.", plural(checks, "check", "checks")),
        (_, failed) => format!("✗ {failed} of {} do not hold.", plural(checks, "check", "checks")),
    }
}

/// A row for each destination, the last two columns with the most requests in flight and in a minute of the clock. Where
/// there are many destinations, those whose deliveries took longest.
pub fn destinations(figures: &[Figures]) -> String {
    let headings = [
        ("destination", Align::Left),
        ("accepted", Align::Right),
        ("delivered", Align::Right),
        ("otherwise", Align::Left),
        ("p50", Align::Right),
        ("p99", Align::Right),
        ("longest wait", Align::Right),
        ("mostly", Align::Left),
        ("in flight", Align::Right),
        ("a minute", Align::Right),
    ];
    let mut shown: Vec<&Figures> = figures.iter().collect();
    if shown.len() > MAX_ROWS {
        shown.sort_by_key(|row| std::cmp::Reverse((row.p99_ms, row.longest_wait_ms)));
        shown.truncate(MAX_ROWS);
    }
    let time = |ms: Option<i64>| ms.map_or("–".to_owned(), |ms| short_span(Millis::new(ms)));
    let mut grid = Grid::new(&headings);
    for row in &shown {
        grid.row([
            row.name.clone(),
            count(row.accepted),
            count(row.ends.delivered),
            otherwise(row),
            time(row.p50_ms),
            time(row.p99_ms),
            time(row.longest_wait_ms),
            row.longest_wait_reason.unwrap_or("–").to_owned(),
            count(row.peak_in_flight.into()),
            count(row.busiest_minute),
        ]);
    }
    let mut text = grid.render(WIDTH);
    if shown.len() < figures.len() {
        let left = count((figures.len() - shown.len()) as u64);
        text.push_str(&format!("  … the {} slowest; {left} more are in the report as JSON\n", shown.len()));
    }
    text
}

/// What was not delivered, in words.
fn otherwise(row: &Figures) -> String {
    let kinds = [
        (row.ends.dead_letter, "dead"),
        (row.ends.expired, "expired"),
        (row.ends.cancelled, "cancelled"),
        (row.still_open, "open"),
    ];
    let words: Vec<String> = kinds
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{} {word}", count(number)))
        .collect();
    words.join(", ")
}

const fn mark(finding: &Finding) -> &'static str {
    match (&finding.target, finding.holds) {
        (None, true) => "",
        (Some(_), true) => "✓ holds",
        (_, false) => "✗ fails",
    }
}

fn target(finding: &Finding) -> String {
    finding.target.clone().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(findings: Vec<Finding>) -> Report {
        Report {
            scenario: "example".to_owned(),
            seed: 7,
            world: "One destination.".to_owned(),
            deliveries: 1,
            attempts: 1_234,
            simulated_seconds: 90.0,
            findings,
            pictures: Vec::new(),
        }
    }

    #[test]
    fn a_report_reads_like_this() {
        let example = example(vec![
            Finding::check("requests in any minute", "100", "at most 100", true),
            Finding::note("longest wait", "6 h"),
            Finding::check("lost", "1", "0", false),
        ]);
        let expected = "\
example
  One destination.
  1 min 30 s simulated, 1 delivery, 1,234 requests

                                   result  target
  ✓ holds  requests in any minute  100     at most 100
           longest wait            6 h
  ✗ fails  lost                    1       0
";
        assert_eq!(report(&example), expected);
        assert_eq!(verdict(&example), "✗ 1 of 2 checks does not hold.");
    }

    #[test]
    fn no_line_is_wider_than_a_terminal() {
        let long = "word ".repeat(60) + &"x".repeat(300);
        let text = report(&Report {
            world: long.clone(),
            ..example(vec![Finding::check(long.clone(), long.clone(), long, true)])
        });
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= WIDTH), "{widest:?}\n{text}");
    }
}
