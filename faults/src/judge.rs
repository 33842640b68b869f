//! Has the checker judge a run by its histories.

use std::fmt::{self, Display, Formatter};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use tidegate_checker::{Verdict, judge_all, table};

use crate::rig::Rig;

/// Promises that a run did not keep.
#[derive(Debug)]
pub(crate) struct Violations(Vec<Verdict>);

impl Violations {
    /// Whether one of them is of this promise, such as `I1`.
    pub(crate) fn are_of(&self, name: &str) -> bool {
        self.0.iter().any(|verdict| verdict.name == name)
    }
}

impl Display for Violations {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (index, verdict) in self.0.iter().enumerate() {
            let first = verdict.violations.first().map(String::as_str).unwrap_or_default();
            let comma = if index > 0 { "; " } else { "" };
            write!(
                f,
                "{comma}{} violated {} times ({}), first: {first}",
                verdict.name, verdict.violated, verdict.promise
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}

/// Judges every promise. What the checker says is left beside the histories. A promise that nothing was found to judge by is a
/// failure, too, unless the run is silent about it: who judges nothing finds nothing.
pub(crate) fn judge(home: &Path, rig: &mut Rig, silent_about: &[&str]) -> Result<()> {
    let run = tidegate_checker::Run::load(home).context("the histories cannot be read")?;
    let verdicts = judge_all(&run);
    fs::write(home.join("verdict.txt"), table::render(&verdicts))?;
    verdicts.iter().for_each(|verdict| rig.judged(verdict.name, verdict.checked));
    // How evenly equal backlogs were served is worth a word, as few runs have any.
    let evenness = verdicts.iter().flat_map(|verdict| &verdict.notes).find(|note| note.starts_with("Jain"));
    evenness.into_iter().for_each(|note| rig.note(note.as_str()));
    let unjudged: Vec<String> = verdicts
        .iter()
        .filter(|verdict| verdict.checked == 0 && !silent_about.contains(&verdict.name))
        .map(|verdict| format!("{} ({})", verdict.name, verdict.promise))
        .collect();
    let violated: Vec<Verdict> = verdicts.into_iter().filter(|verdict| !verdict.holds()).collect();
    ensure!(violated.is_empty(), Violations(violated));
    ensure!(unjudged.is_empty(), "nothing was judged of {}", unjudged.join(", "));
    Ok(())
}
