//! What came of judging one promise.

use serde::Serialize;

/// So many violations are kept in words: the first tells what is wrong, the next few whether it is always the same.
const KEPT: usize = 20;

/// The verdict on one promise.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// `I1` …
    pub name: &'static str,
    /// What is promised, in a few words.
    pub promise: &'static str,
    /// How many things were judged. Zero: the run says nothing about this promise.
    pub checked: u64,
    /// How many of them were wrong.
    pub violated: u64,
    /// The first of these, with ids and times.
    pub violations: Vec<String>,
    /// What else a reader should know: what was excused, what could not be judged.
    pub notes: Vec<String>,
}

impl Verdict {
    /// Nothing judged yet.
    pub const fn new(name: &'static str, promise: &'static str) -> Self {
        Self { name, promise, checked: 0, violated: 0, violations: Vec::new(), notes: Vec::new() }
    }

    /// One more thing was judged.
    pub const fn judge(&mut self) {
        self.checked += 1;
    }

    /// It was wrong.
    pub fn wrong(&mut self, describe: impl FnOnce() -> String) {
        self.violated += 1;
        if self.violations.len() < KEPT {
            self.violations.push(describe());
        }
    }

    /// Something a reader should know, if there is any of it.
    pub fn note(&mut self, count: u64, what: &str) {
        if count > 0 {
            self.notes.push(format!("{count} {what}"));
        }
    }

    /// Whether nothing was found wrong.
    pub const fn holds(&self) -> bool {
        self.violated == 0
    }
}
