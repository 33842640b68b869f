//! The built-in experiments, one file each. A scenario builds its worlds, runs them, and reports what they show.

pub mod restart;

use crate::report::Report;

/// Tells how far a run is, from 0 to 1, and what it is doing.
pub type Progress<'a> = &'a mut dyn FnMut(f64, &str);

/// A built-in scenario.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is about, in a sentence.
    pub about: &'static str,
    /// Runs it under a seed.
    pub run: fn(u64, Progress<'_>) -> Report,
}

/// All of them.
pub const ALL: &[Scenario] = &[Scenario {
    name: "restart",
    about: "crashes, lost wake-ups and a clock that is set, under every policy at once: nothing lost, every bound holds",
    run: restart::run,
}];
