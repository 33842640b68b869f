//! One measured figure with what it is compared with, and the table of all of them.

use std::fmt::Write as _;

/// One measured figure.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) measured: f64,
    pub(crate) unit: &'static str,
    pub(crate) required: Option<Bound>,
    /// What the same machine does at most, in the same unit, and what that is.
    pub(crate) limit: Option<(f64, &'static str)>,
}

/// What a figure has to be, in its own unit.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

impl Row {
    /// A figure that nothing is asked of.
    pub(crate) fn note(what: impl Into<String>, measured: f64, unit: &'static str) -> Self {
        Self { what: what.into(), measured, unit, required: None, limit: None }
    }

    /// With what is required of it.
    pub(crate) fn required(self, bound: Bound) -> Self {
        Self { required: Some(bound), ..self }
    }

    /// With a limit of this machine beside it.
    pub(crate) fn limit(self, limit: f64, what: &'static str) -> Self {
        Self { limit: Some((limit, what)), ..self }
    }

    /// Whether it is as required; none where nothing is. A figure that could not be measured is not.
    pub(crate) fn holds(&self) -> Option<bool> {
        self.required.map(|bound| match bound {
            Bound::AtLeast(bound) => self.measured >= bound,
            Bound::AtMost(bound) => self.measured <= bound,
        })
    }

    /// How good it is beside what is required: 1 is just enough, more is better.
    pub(crate) fn score(&self) -> Option<f64> {
        self.required.map(|bound| match bound {
            Bound::AtLeast(bound) => self.measured / bound,
            Bound::AtMost(bound) => bound / self.measured,
        })
    }

    pub(crate) fn figure(&self) -> String {
        format!("{} {}", shown(self.measured), self.unit).trim_end().to_owned()
    }

    pub(crate) fn requirement(&self) -> String {
        match self.required {
            Some(Bound::AtLeast(bound)) => format!("≥ {}", shown(bound)),
            Some(Bound::AtMost(bound)) => format!("≤ {}", shown(bound)),
            None => String::new(),
        }
    }

    pub(crate) fn verdict(&self) -> &'static str {
        match self.holds() {
            Some(true) => "ok",
            Some(false) => "NOT",
            None => "",
        }
    }
}

/// All figures as text for a terminal.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let widest = rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0).max(8);
    let _ = writeln!(
        text,
        "{:<widest$}  {:>16}  {:>12}  {:<4} of the limit",
        "measured", "figure", "required", ""
    );
    for row in rows {
        let share = row.limit.map_or_else(String::new, |(limit, what)| {
            format!("{:>6.1}% of {} ({what})", 100.0 * row.measured / limit, shown(limit))
        });
        let (figure, required) = (row.figure(), row.requirement());
        let line =
            format!("{:<widest$}  {figure:>16}  {required:>12}  {:<4} {share}", row.what, row.verdict());
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// A number as a person reads it: small ones with digits behind the point, large ones with their thousands apart.
pub(crate) fn shown(number: f64) -> String {
    if number.abs() < 1.0 {
        return format!("{number:.3}");
    }
    if number.abs() < 100.0 {
        return format!("{number:.2}");
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_stands_beside_its_limit_and_what_is_required() {
        let rows = [
            Row::note("published", 12_345.0, "/s").limit(24_690.0, "relay").required(Bound::AtLeast(9_876.0)),
            Row::note("latency", 2.5, "ms").required(Bound::AtMost(1.7)),
        ];
        let expected = "\
measured             figure      required       of the limit
published         12,345 /s       ≥ 9,876  ok     50.0% of 24,690 (relay)
latency             2.50 ms        ≤ 1.70  NOT
";
        assert_eq!(table(&rows), expected);
        assert_eq!(Row::note("lost", f64::NAN, "").required(Bound::AtMost(0.0)).holds(), Some(false));
    }
}
