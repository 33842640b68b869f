//! The figures as a picture: a bar for each that something is required of, on a scale on which 1 is just enough.

use std::fmt::Write as _;

use crate::row::Row;

const WIDTH: f64 = 1_080.0;
const LEFT: f64 = 430.0;
const RIGHT: f64 = 820.0;
const LINE: f64 = 26.0;
/// Bars end here: so many times better than required.
const MOST: f64 = 3.0;

/// One SVG file that needs nothing else.
pub(crate) fn render(rows: &[Row]) -> String {
    let rows: Vec<(&Row, f64)> = rows.iter().filter_map(|row| Some((row, row.score()?))).collect();
    let height = 100.0 + LINE * rows.len() as f64;
    let mut body = String::new();
    text(&mut body, 24.0, 40.0, "title", "Tidegate: what is promised, and what was measured");
    text(
        &mut body,
        24.0,
        62.0,
        "muted",
        "Each bar: how many times better than required. The line is just enough.",
    );
    for (index, (row, score)) in rows.iter().enumerate() {
        bar(&mut body, 92.0 + LINE * index as f64, row, *score);
    }
    let enough = place(1.0);
    let _ = writeln!(
        body,
        r#"<line class="enough" x1="{enough:.1}" x2="{enough:.1}" y1="76" y2="{:.1}"/>"#,
        height - 14.0
    );
    format!(
        concat!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0}" width="{width}" "#,
            r#"height="{height:.0}" role="img" aria-labelledby="title">"#,
            "\n<title id=\"title\">What is promised, and what was measured</title>\n{style}\n",
            r#"<rect class="paper" width="100%" height="100%"/>"#,
            "\n{body}</svg>\n"
        ),
        width = WIDTH,
        height = height,
        style = STYLE,
        body = body,
    )
}

const STYLE: &str = "<style>text{font:14px system-ui,sans-serif;fill:#1b2330}.title{font-size:20px;font-weight:600}\
.muted{fill:#5b6675}.paper{fill:#fff}.ok{fill:#3a7d5c}.not{fill:#b3472f}.enough{stroke:#1b2330;stroke-dasharray:4 3}\
@media(prefers-color-scheme:dark){text{fill:#e6e9ee}.muted{fill:#9aa5b4}.paper{fill:#14181f}.enough{stroke:#e6e9ee}}</style>";

/// A row's name, its bar, and its figure beside what is required.
fn bar(body: &mut String, y: f64, row: &Row, score: f64) {
    let (class, mark) = if row.holds() == Some(true) { ("ok", "✓") } else { ("not", "✗") };
    text(body, 24.0, y + 12.0, "", &row.what);
    // A figure that could not be measured has no bar.
    let width = if score.is_nan() { 0.0 } else { place(score) - LEFT };
    let _ = writeln!(
        body,
        r#"<rect class="{class}" x="{LEFT}" y="{y:.1}" width="{width:.1}" height="16" rx="2"/>"#
    );
    let words = format!("{mark} {} ({})", row.figure(), row.requirement());
    text(body, RIGHT + 12.0, y + 12.0, "", &words);
}

fn place(score: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * score.clamp(0.0, MOST) / MOST
}

fn text(body: &mut String, x: f64, y: f64, class: &str, words: &str) {
    let words = words.replace('&', "&amp;").replace('<', "&lt;");
    let _ = writeln!(body, r#"<text class="{class}" x="{x}" y="{y:.1}">{words}</text>"#);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Bound;

    #[test]
    fn only_what_something_is_required_of_has_a_bar() {
        let rows = [
            Row::note("a & b", 2.0, "/s").required(Bound::AtLeast(1.0)),
            Row::note("late", 3.0, "ms").required(Bound::AtMost(1.0)),
            Row::note("by the way", 1.0, ""),
        ];
        let picture = render(&rows);
        assert_eq!(picture.matches(r#"class="ok""#).count(), 1);
        assert_eq!(picture.matches(r#"class="not""#).count(), 1);
        assert!(picture.contains("a &amp; b") && !picture.contains("by the way"));
    }
}
