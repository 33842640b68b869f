//! What is wrong with a scenario file: all of it, with lines.

use std::fmt::{self, Display};

use tidegate_core::invalid::Invalid;

/// Problems shown at most: a file that is no scenario at all has one per line.
const SHOWN: usize = 40;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// What it is.
    pub fault: Fault,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not TOML.
    Syntax {
        /// The column, from 1.
        column: usize,
        /// What the parser says.
        message: String,
    },
    /// A field holds what it may not.
    Field(Invalid),
}

/// Everything that is wrong with one file: at least one thing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problems(Vec<Problem>);

impl Problem {
    pub(super) fn at(text: &str, offset: usize, fault: Invalid) -> Self {
        Self { line: place(text, offset).0, fault: Fault::Field(fault) }
    }
}

impl Problems {
    /// The problems, in the order of their lines.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.0.iter()
    }

    pub(super) fn syntax(text: &str, errors: &[toml::de::Error]) -> Self {
        let problem = |error: &toml::de::Error| {
            let (line, column) = place(text, error.span().map_or(text.len(), |span| span.start));
            Problem { line, fault: Fault::Syntax { column, message: error.message().to_owned() } }
        };
        let mut found: Vec<Problem> = errors.iter().map(problem).collect();
        found.sort_by_key(|problem| problem.line);
        Self(found)
    }

    /// Fine if there are none.
    pub(super) fn none_of(mut found: Vec<Problem>) -> Result<(), Self> {
        if found.is_empty() {
            return Ok(());
        }
        found.sort_by_key(|problem| problem.line);
        Err(Self(found))
    }
}

impl Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.fault {
            Fault::Syntax { column, message } => {
                write!(f, "line {}, column {column}: not TOML: {message}", self.line)
            }
            Fault::Field(fault) => write!(f, "line {}: {fault}", self.line),
        }
    }
}

impl Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().take(SHOWN).map(Problem::to_string).collect();
        f.write_str(&lines.join("\n"))?;
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, "\n… and {more} more"),
        }
    }
}

/// Line and column of a byte, both from 1.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}
