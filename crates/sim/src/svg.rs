//! A report as a picture: one SVG file that needs nothing else, light or dark as its viewer is.
//!
//! Each part of a run gets four panels over one axis of time: what came in and went out, what waited and why, what was
//! in flight, and what was answered. Areas differ by pattern and place in the legend as well as by colour, and large
//! ones carry their name. The panels are drawn in [`panels`], the look is in [`look`]; figures come from
//! [`Series`](crate::series::Series).

mod axis;
mod columns;
mod frame;
mod look;
mod panels;
mod text;

use std::fmt::Write as _;

use tidegate_core::time::Millis;

use crate::report::{Finding, Report};
use crate::words::{plural, span};
use text::{clipped, escaped, lines};

/// The width of the picture.
const WIDTH: f64 = 1_080.0;
/// Where the plots begin …
const LEFT: f64 = 76.0;
/// … and end; the legends are right of it.
const RIGHT: f64 = 856.0;
/// Where text begins.
const MARGIN: f64 = 24.0;
/// Letters that fit the width at the size of the subtitle.
const LETTERS: usize = 150;
/// Checks that are listed at most: the table has all of them.
const MAX_CHECKS: usize = 8;

/// The whole picture.
pub fn render(report: &Report) -> String {
    let mut body = String::new();
    let mut y = header(report, &mut body);
    let plain = |title: &str| report.pictures.len() == 1 && title == report.scenario;
    for picture in &report.pictures {
        let title = Some(picture.title.as_str()).filter(|title| !plain(title));
        y = panels::draw(&mut body, title, &picture.series, y);
    }
    if report.pictures.is_empty() {
        y += 40.0;
        put(&mut body, MARGIN, y, "muted", "This run has no picture.");
    }
    let height = y + 20.0;
    format!(
        concat!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0}" width="{width}" "#,
            r#"height="{height:.0}" role="img" aria-labelledby="title about">"#,
            "\n<title id=\"title\">{title}</title>\n<desc id=\"about\">{about}</desc>\n{look}",
            r#"<rect class="paper" width="100%" height="100%"/>"#,
            "\n{body}</svg>\n"
        ),
        width = WIDTH,
        height = height,
        title = escaped(&report.scenario),
        about = escaped(&format!("{} Seed {}.", report.world, report.seed)),
        look = look::style(),
        body = body,
    )
}

/// Name, world, seed and checks. Says where the next thing may begin.
fn header(report: &Report, body: &mut String) -> f64 {
    let mut y = 40.0;
    put(body, MARGIN, y, "title", &clipped(&report.scenario, 80));
    y += 4.0;
    for line in lines(&report.world, LETTERS).iter().take(5) {
        y += 19.0;
        put(body, MARGIN, y, "about", line);
    }
    #[expect(clippy::cast_possible_truncation, reason = "a float as large as this saturates")]
    let simulated = Millis::new((report.simulated_seconds * 1_000.0) as i64);
    y += 22.0;
    let facts = format!(
        "seed {} · {} simulated · {} · {} · times in UTC",
        report.seed,
        span(simulated),
        plural(report.deliveries, "delivery", "deliveries"),
        plural(report.attempts, "request", "requests")
    );
    put(body, MARGIN, y, "muted", &facts);
    y += 6.0;
    let checks: Vec<&Finding> = report.findings.iter().filter(|finding| finding.target.is_some()).collect();
    // What fails comes first: it must not be cut off.
    let (failed, held): (Vec<&Finding>, Vec<&Finding>) = checks.iter().partition(|finding| !finding.holds);
    let named = failed.len() <= MAX_CHECKS;
    for finding in failed.into_iter().chain(held).take(MAX_CHECKS) {
        y = check(body, y + 18.0, finding);
    }
    if let Some(more) = checks.len().checked_sub(MAX_CHECKS).filter(|more| *more > 0) {
        y += 18.0;
        let more = if named {
            plural(more as u64, "more, which holds, too", "more, which hold, too")
        } else {
            plural(more as u64, "more", "more")
        };
        put(body, MARGIN, y, "muted", &format!("… and {more}"));
    }
    y
}

/// One check, in one or two lines.
fn check(body: &mut String, y: f64, finding: &Finding) -> f64 {
    let (class, mark) = if finding.holds { ("holds", "✓ holds") } else { ("fails", "✗ fails") };
    put(body, MARGIN, y, class, mark);
    let target = finding.target.as_deref().unwrap_or_default();
    let words = format!("{}: {} (target: {target})", finding.what, finding.value);
    let lines = lines(&clipped(&words, 2 * LETTERS - 10), LETTERS - 5);
    let mut line_y = y;
    for (number, line) in lines.iter().enumerate() {
        line_y = y + 16.0 * number as f64;
        put(body, MARGIN + 62.0, line_y, "small", line);
    }
    line_y
}

/// A line of text.
fn put(body: &mut String, x: f64, y: f64, class: &str, words: &str) {
    let _ = writeln!(body, r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{}</text>"#, escaped(words));
}

#[cfg(test)]
mod tests;
