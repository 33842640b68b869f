//! Failures in a row, held back until it is known whether the breaker opens on them.

use crate::sketch::Sketch;
use crate::time::Millis;

/// What the breaker's state means for failures that come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Watch {
    /// It is closed, but may open on these.
    Closed(Incident),
    /// It has opened: failures teach nothing until it closes.
    Outage,
}

impl Default for Watch {
    fn default() -> Self {
        Self::Closed(Incident::default())
    }
}

impl Watch {
    /// The outage is over. What is held back stays.
    pub(super) fn close(&mut self) {
        if let Self::Outage = self {
            *self = Self::default();
        }
    }

    /// What is held back, if anything.
    pub(super) fn take_held(&mut self) -> Option<Incident> {
        match self {
            Self::Closed(held) if held.attempts() > 0 => Some(std::mem::take(held)),
            Self::Closed(_) | Self::Outage => None,
        }
    }
}

/// Failures with no good answer between them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Incident {
    failed: Sketch,
    timed_out: Sketch,
    answers: u32,
    timeouts: u32,
    longest: Millis,
}

impl Incident {
    /// An answer that the breaker counts as a failure.
    pub(super) fn failed(&mut self, elapsed: Millis) {
        self.failed.record(elapsed);
        self.answers = self.answers.saturating_add(1);
    }

    pub(super) fn timed_out(&mut self, timeout: Millis) {
        self.timed_out.record_censored(timeout);
        self.timeouts = self.timeouts.saturating_add(1);
        self.longest = self.longest.max(timeout);
    }

    pub(super) fn attempts(&self) -> u32 {
        self.answers.saturating_add(self.timeouts)
    }
    pub(super) fn answers(&self) -> u32 {
        self.answers
    }
    pub(super) fn timeouts(&self) -> u32 {
        self.timeouts
    }
    /// The longest timeout that ran out; zero if none did.
    pub(super) fn longest(&self) -> Millis {
        self.longest
    }

    /// Adds each attempt as a sample of its own.
    pub(super) fn add_each_to(&self, sketch: &mut Sketch) {
        sketch.merge(&self.failed);
        sketch.merge(&self.timed_out);
    }

    /// Adds the answers, and all timeouts together as one sample.
    pub(super) fn add_as_one_to(&self, sketch: &mut Sketch) {
        sketch.merge(&self.failed);
        if self.timeouts > 0 {
            sketch.record_censored(self.longest);
        }
    }

    /// Forgets all and keeps the memory for the next one.
    pub(super) fn clear(&mut self) {
        self.failed.clear();
        self.timed_out.clear();
        (self.answers, self.timeouts, self.longest) = (0, 0, Millis::ZERO);
    }
}
