//! How far a long command is: one line on standard error, only where a person is looking at it.

use std::io::{self, IsTerminal, Write};

/// The line. It is rewritten in place, and gone when this is dropped.
pub(super) struct ProgressLine {
    /// Whether somebody is looking.
    seen: bool,
    /// What stands there now.
    shown: String,
}

impl ProgressLine {
    pub(super) fn new() -> Self {
        Self { seen: io::stderr().is_terminal(), shown: String::new() }
    }

    /// `done` of 1 is done, and this is what it is doing.
    pub(super) fn show(&mut self, done: f64, doing: &str) {
        if !self.seen {
            return;
        }
        let doing: String = doing.chars().filter(|letter| !letter.is_control()).take(60).collect();
        let line = format!("{:3.0}%  {doing}", done.clamp(0.0, 1.0) * 100.0);
        if line == self.shown {
            return;
        }
        self.write(&line);
        self.shown = line;
    }

    /// Replaces the line, blanks over what was longer. What cannot be shown is no reason to stop the work.
    fn write(&self, line: &str) {
        let blanks = self.shown.chars().count().saturating_sub(line.chars().count());
        let mut err = io::stderr().lock();
        let _ = write!(err, "\r{line}{}", " ".repeat(blanks));
        let _ = err.flush();
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if !self.shown.is_empty() {
            self.write("");
            let _ = write!(io::stderr(), "\r");
        }
    }
}
