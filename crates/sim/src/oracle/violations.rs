//! What an oracle found wrong: the first few in words, all of them counted.

/// So many are kept in words: the first one tells what is wrong, the next few whether it is always the same.
const KEPT: usize = 20;

/// Breaches of a bound.
#[derive(Clone, Debug, Default)]
pub struct Violations {
    kept: Vec<String>,
    count: u64,
}

impl Violations {
    /// One more.
    pub fn add(&mut self, describe: impl FnOnce() -> String) {
        self.count += 1;
        if self.kept.len() < KEPT {
            self.kept.push(describe());
        }
    }
    /// The first of them.
    pub fn kept(&self) -> &[String] {
        &self.kept
    }
    /// How many there were.
    pub const fn count(&self) -> u64 {
        self.count
    }
}
