//! What a scenario gets: its seed, its place, how long it may go on, and where it counts.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Instant;

use crate::clock::now;
use crate::dice::Dice;

/// How much of a scenario runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A few seconds of it, as a test.
    Short,
    /// For as long as it was told.
    Long,
}

/// Figures that were asked for, whatever time they take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) kills: Option<u64>,
    pub(crate) events: Option<u64>,
    pub(crate) cuts: Option<u64>,
}

/// How a scenario ended, if it did not fail.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    Passed,
    /// It cannot be done here, and why.
    Skipped(String),
}

/// What a scenario gets.
pub(crate) struct Rig {
    pub(crate) name: &'static str,
    pub(crate) seed: u64,
    pub(crate) form: Form,
    pub(crate) dice: Dice,
    /// Everything of this scenario lies below.
    pub(crate) home: PathBuf,
    pub(crate) binary: PathBuf,
    /// A server that was built to lose what it acknowledged in a power cut.
    pub(crate) weak_binary: Option<PathBuf>,
    pub(crate) wanted: Wanted,
    until: Instant,
    tally: Tally,
    left_out: Vec<String>,
}

/// What was counted.
#[derive(Default)]
struct Tally {
    counts: Vec<(&'static str, u64)>,
    judged: Vec<(&'static str, u64)>,
    notes: Vec<String>,
}

impl Rig {
    pub(crate) fn new(place: Place, name: &'static str, seed: u64, until: Instant) -> Self {
        let Place { directory, binary, weak_binary, form, wanted } = place;
        let home = directory.join(format!("{name}-{seed}"));
        // A seed means something else in each scenario.
        let mixed = name.bytes().fold(seed, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let dice = Dice::new(mixed);
        Self {
            name,
            seed,
            form,
            dice,
            home,
            binary,
            weak_binary,
            wanted,
            until,
            tally: Tally::default(),
            left_out: vec![],
        }
    }

    pub(crate) fn is_short(&self) -> bool {
        self.form == Form::Short
    }

    /// Whether the long form has time for more.
    pub(crate) fn has_time(&self) -> bool {
        now() < self.until
    }

    /// Whether to go on: a short form up to a number, a long one up to what was asked for, or else as long as there is time.
    pub(crate) fn goes_on(&self, done: u64, short: u64, wanted: Option<u64>) -> bool {
        match (self.form, wanted) {
            (Form::Short, _) => done < short,
            (Form::Long, Some(wanted)) => done < wanted,
            (Form::Long, None) => done < short || self.has_time(),
        }
    }

    /// Adds to a figure of the report.
    pub(crate) fn count(&mut self, what: &'static str, more: u64) {
        add(&mut self.tally.counts, what, more);
    }

    /// So much was judged by a promise.
    pub(crate) fn judged(&mut self, promise: &'static str, more: u64) {
        add(&mut self.tally.judged, promise, more);
    }

    /// A part of the scenario cannot be done here, and why.
    pub(crate) fn leave_out(&mut self, part: &str, why: impl Display) {
        self.left_out.push(format!("{part}: {why}"));
    }

    pub(crate) fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// How much was judged by each promise, in words.
    pub(crate) fn judgements(&self) -> String {
        let judged = self.tally.judged.iter().map(|(name, count)| format!("{name} {count}"));
        judged.collect::<Vec<_>>().join(", ")
    }

    /// A line for the report.
    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.tally.notes.push(text.into());
    }

    /// The figures in words.
    pub(crate) fn figures(&self) -> String {
        let counts = self.tally.counts.iter().map(|(name, count)| format!("{count} {name}"));
        counts.collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn notes(&self) -> &[String] {
        &self.tally.notes
    }

    /// What is done to another server than the one under test is counted by itself: its figures become a note.
    pub(crate) async fn apart<T>(&mut self, whose: &str, what: impl AsyncFnOnce(&mut Self) -> T) -> T {
        let own = std::mem::take(&mut self.tally);
        let done = what(self).await;
        let said = [&[self.figures(), format!("judged {}", self.judgements())][..], self.notes()].concat();
        self.tally = own;
        self.note(format!("apart, of {whose}: {}", said.join("; ")));
        done
    }
}

fn add(counts: &mut Vec<(&'static str, u64)>, what: &'static str, more: u64) {
    match counts.iter_mut().find(|(name, _)| *name == what) {
        Some((_, count)) => *count += more,
        None => counts.push((what, more)),
    }
}

/// Where scenarios run, and with what.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) directory: PathBuf,
    pub(crate) binary: PathBuf,
    pub(crate) weak_binary: Option<PathBuf>,
    pub(crate) form: Form,
    pub(crate) wanted: Wanted,
}
