//! `cargo xtask bench`: what the project promises about speed, measured on this machine, with a limit from the same run
//! beside it. It prints; it never fails for being slow.
#![expect(clippy::print_stdout, reason = "a table is all it makes")]

mod gates;
mod simulation;
mod stopwatch;

/// One measured figure.
struct Row {
    what: String,
    measured: f64,
    unit: &'static str,
    promised: Option<f64>,
    /// What the same machine does at most, in the same unit, and what that is.
    limit: Option<(f64, &'static str)>,
}

fn main() {
    let simulation = simulation::measure();
    let mut rows = gates::measure();
    rows.extend(simulation);
    println!("{:<62} {:>12} {:>12}  of the limit", "measured", "figure", "promised");
    for row in rows {
        let promised = row.promised.map_or_else(String::new, grouped);
        let share = row.limit.map_or_else(String::new, |(limit, what)| {
            format!("{:>5.1}% of {} ({what})", 100.0 * row.measured / limit, grouped(limit))
        });
        let figure = format!("{} {}", grouped(row.measured), row.unit);
        println!("{:<62} {figure:>12} {promised:>12}  {share}", row.what);
    }
}

/// A number with its thousands apart.
fn grouped(number: f64) -> String {
    let whole = format!("{number:.0}");
    let mut shown = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}
