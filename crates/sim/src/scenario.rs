//! The built-in experiments, one file each. A scenario builds its worlds, runs them, and reports what they show.

mod burst;
mod count;
mod fairness;
pub mod file;
pub mod fleet;
mod quiet_drain;
pub mod restart;
mod throttle;
mod ttl;

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
pub const ALL: &[Scenario] = &[
    Scenario {
        name: "quiet-drain",
        about: "a night's 10,000 events go out when quiet hours end, at the bucket's pace, oldest first",
        run: quiet_drain::run,
    },
    Scenario {
        name: "burst",
        about: "3,000 events at once for a destination that is good for 100 a minute",
        run: burst::run,
    },
    Scenario {
        name: "throttle",
        about: "429s from one of 20 destinations: the others do not notice; and an adaptive rate just under limits nobody told",
        run: throttle::run,
    },
    Scenario {
        name: "ttl",
        about: "events that go stale, at destinations with outages and quiet hours",
        run: ttl::run,
    },
    Scenario {
        name: "fairness",
        about: "one busy destination among 20, then 100 hanging ones of 1,000: the others do not notice",
        run: fairness::run,
    },
    Scenario {
        name: "fleet",
        about: "200 destinations for 60 days: a fixed timeout of 10 s against the adaptive one",
        run: fleet::run,
    },
    Scenario {
        name: "restart",
        about: "crashes, lost wake-ups and a clock that is set, under every policy at once: nothing lost, every bound holds",
        run: restart::run,
    },
];
