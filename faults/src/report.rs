//! The report: one line for each scenario, and for each failure what happened and how to see it again.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;

use crate::rig::{Form, Outcome, Place};

/// What came of a scenario.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) seed: u64,
    pub(crate) figures: String,
    /// How much was judged by each promise.
    pub(crate) judgements: String,
    pub(crate) notes: Vec<String>,
    /// Parts that cannot be done here.
    pub(crate) left_out: Vec<String>,
    pub(crate) ended: Result<Outcome>,
    pub(crate) took: Duration,
    /// What a long form was given.
    pub(crate) time: Duration,
    pub(crate) home: PathBuf,
}

impl Row {
    pub(crate) fn failed(&self) -> bool {
        self.ended.is_err()
    }

    fn verdict(&self) -> &'static str {
        match self.ended {
            Ok(Outcome::Passed) if !self.left_out.is_empty() => "in part",
            Ok(Outcome::Passed) => "holds",
            Ok(Outcome::Skipped(_)) => "skipped",
            Err(_) => "FAILED",
        }
    }

    /// One line about it.
    pub(crate) fn line(&self) -> String {
        let figures = match &self.ended {
            Ok(Outcome::Skipped(why)) => why.clone(),
            _ => {
                let judged = format!("judged {}", self.judgements);
                let judged = if self.judgements.is_empty() { vec![] } else { vec![judged] };
                [&[self.figures.clone()][..], &judged, &self.notes].concat().join("; ")
            }
        };
        format!(
            "{:16} {:>8} {:>8} {:>7.1} s  {figures}",
            self.name,
            self.seed,
            self.verdict(),
            self.took.as_secs_f64()
        )
    }

    /// What went wrong, and where its histories are.
    pub(crate) fn story(&self) -> String {
        let why = self.ended.as_ref().err().map(|error| format!("{error:#}")).unwrap_or_default();
        format!("{} failed: {why}\n  kept: {}", self.name, self.home.display())
    }

    /// How to run it again, just so.
    pub(crate) fn command(&self, form: Form, place: &Place) -> String {
        let mut command = format!("cargo xtask faults --only {} --seed {}", self.name, self.seed);
        // Alone it gets all of the time.
        match form {
            Form::Short => command += " --short",
            Form::Long => drop(write!(command, " --minutes {}", self.time.as_secs().div_ceil(60))),
        }
        for (name, value) in
            [("kills", place.wanted.kills), ("events", place.wanted.events), ("cuts", place.wanted.cuts)]
        {
            if let Some(value) = value {
                let _ = write!(command, " --{name} {value}");
            }
        }
        command
    }
}

/// How many of each, and why some were left out.
pub(crate) fn summary(rows: &[Row]) -> String {
    let count = |verdict| rows.iter().filter(|row| row.verdict() == verdict).count();
    let mut summary = format!(
        "{} passed, {} in part, {} skipped, {} failed",
        count("holds"),
        count("in part"),
        count("skipped"),
        count("FAILED")
    );
    let took: Duration = rows.iter().map(|row| row.took).sum();
    let _ = write!(summary, ", in {} min {} s", took.as_secs() / 60, took.as_secs() % 60);
    for row in rows {
        if let Ok(Outcome::Skipped(why)) = &row.ended {
            let _ = write!(summary, "\n  skipped: {}: {why}", row.name);
        }
        for part in &row.left_out {
            let _ = write!(summary, "\n  left out of {}: {part}", row.name);
        }
    }
    summary
}

/// All of them.
pub(crate) fn table(rows: &[Row]) -> String {
    let head = format!("{:16} {:>8} {:>8} {:>9}  figures", "scenario", "seed", "verdict", "time");
    let lines: Vec<String> = std::iter::once(head).chain(rows.iter().map(Row::line)).collect();
    lines.join("\n")
}
