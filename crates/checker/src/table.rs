//! Verdicts as a table, for people.

use std::fmt::Write;

use crate::verdict::Verdict;

/// One line for each verdict, then what is wrong, in words.
pub fn render(verdicts: &[Verdict]) -> String {
    let width = verdicts.iter().map(|verdict| verdict.promise.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let mut line = |arguments: std::fmt::Arguments<'_>| text.write_fmt(arguments).unwrap_or_default();
    line(format_args!("{:<4} {:<width$} {:>10} {:>10}  notes\n", "", "promise", "judged", "violated"));
    for verdict in verdicts {
        let Verdict { name, promise, checked, violated, .. } = verdict;
        let mut notes = verdict.notes.clone();
        if *checked == 0 {
            notes.insert(0, "nothing to judge".to_owned());
        }
        line(format_args!(
            "{name:<4} {promise:<width$} {checked:>10} {violated:>10}  {}\n",
            notes.join("; ")
        ));
    }
    for verdict in verdicts.iter().filter(|verdict| !verdict.holds()) {
        line(format_args!("\n{} {}: {} violated\n", verdict.name, verdict.promise, verdict.violated));
        for what in &verdict.violations {
            line(format_args!("  {what}\n"));
        }
    }
    text
}
