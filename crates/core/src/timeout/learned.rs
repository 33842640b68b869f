//! The figures that a destination's attempts have led to, as they are stored.

use super::params::TimeoutParams;
use super::recent::Tally;
use crate::sketch::Quantile;
use crate::time::{Millis, Timestamp};

/// The figures of [`Timeouts`](super::Timeouts), for the store. Any values are safe: they are held within their bounds
/// when used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// What an ordinary attempt gets when adaptive; none while that is still the default.
    pub timeout: Option<Millis>,
    /// The first sample since the last start from the default.
    pub first_sample_at: Timestamp,
    /// The newest sample.
    pub last_sample_at: Timestamp,
    /// When it is computed again.
    pub recompute_at: Timestamp,
    /// The last computation.
    pub estimate: Option<Estimate>,
    /// What became of the attempts since the timeout last changed.
    pub tally: Tally,
    /// Whether a step is on trial, or must wait.
    pub rollout: Rollout,
}

/// The result of one computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// When.
    pub at: Timestamp,
    /// The wanted percentile over the window.
    pub percentile: Quantile,
}

/// How far shortening has come. Every step is a roll-out of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rollout {
    /// The next step may be taken as soon as the samples allow one.
    Settled,
    /// A step was taken and is being watched. The next one may follow when its week is over.
    Trial {
        /// The timeout before the step, to which it goes back if the share of timeouts rises.
        baseline: Millis,
        /// When the step was taken.
        since: Timestamp,
        /// What became of the attempts before the step.
        before: Tally,
    },
    /// The timeout has grown, or a step was taken back: no step before `until`.
    Waiting {
        /// When steps are allowed again.
        until: Timestamp,
    },
}

impl Rollout {
    /// When the next step may be taken; none if it may be taken any time.
    pub(super) fn step_due(self, params: &TimeoutParams) -> Option<Timestamp> {
        match self {
            Self::Settled => None,
            Self::Trial { since, .. } => Some(since + params.step_every),
            Self::Waiting { until } => Some(until),
        }
    }
}

impl Learned {
    /// The first sample has come.
    pub(super) fn since(now: Timestamp, params: &TimeoutParams) -> Self {
        let mut learned = Self {
            timeout: None,
            first_sample_at: now,
            last_sample_at: now,
            recompute_at: now,
            estimate: None,
            tally: Tally::default(),
            rollout: Rollout::Settled,
        };
        learned.recompute_at = learned.next_run(now, params);
        learned
    }

    /// Whether the times do not fit the clock: it was set back, or the parameters have changed.
    pub(super) fn is_ahead_of(&self, now: Timestamp, params: &TimeoutParams) -> bool {
        self.last_sample_at > now || self.recompute_at > now + params.recompute_every
    }

    /// What lies in the future by the clock is happening now.
    pub(super) fn heed_clock(&mut self, now: Timestamp, params: &TimeoutParams) {
        self.first_sample_at = self.first_sample_at.min(now);
        self.last_sample_at = self.last_sample_at.min(now);
        self.recompute_at = self.recompute_at.min(now + params.recompute_every);
        match &mut self.rollout {
            Rollout::Settled => {}
            Rollout::Trial { since, .. } => *since = (*since).min(now),
            Rollout::Waiting { until } => *until = (*until).min(now + params.step_every),
        }
    }

    /// A day from now, or when a rule falls due before that: so a step is never a day late.
    pub(super) fn next_run(&self, now: Timestamp, params: &TimeoutParams) -> Timestamp {
        let rules = [
            Some(now + params.recompute_every),
            Some(self.first_sample_at + params.min_age),
            Some(self.last_sample_at + params.stale_after),
            self.rollout.step_due(params),
        ];
        rules.into_iter().flatten().filter(|&at| at > now).min().unwrap_or(now)
    }
}
