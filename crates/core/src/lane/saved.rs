//! A lane in the store, and back: what outlives the process, and what a new one makes of it.
//!
//! What is over, or too short to matter, is left out, so that a healthy lane looks the same from one success to the next
//! and need not be written again.

use super::LaneState;
use crate::delivery::HoldReason;
use crate::policy::Policy;
use crate::ramp::Ramp;
use crate::rate::Bucket;
use crate::time::{Millis, Now, Timestamp};

/// A wait for a slot comes and goes with every burst; one shorter than this is no row of the hold log either.
const PASSING_HOLD: Millis = Millis::seconds(1);

/// A lane's state as it lies in the store: with the bucket as one wall time, since another process has another
/// monotonic clock.
#[derive(Clone, Debug)]
pub struct SavedLane {
    pub(super) state: LaneState,
    pub(super) lasting: Lasting,
}

/// Those parts of the state that are stored otherwise than they are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lasting {
    pub(super) unavailable_until: Option<Timestamp>,
    pub(super) rested_until: Option<Timestamp>,
    pub(super) held: Option<(HoldReason, Timestamp)>,
    /// When the bucket is full again; [`Timestamp::MIN`] if it is.
    pub(super) full_at: Option<Timestamp>,
    pub(super) max_concurrency: u32,
}

/// How the process that wrote a saved lane ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastStop {
    /// It wrote everything and left.
    Clean,
    /// It may have started attempts that nobody wrote down.
    Crash,
}

impl LaneState {
    /// The form in which it is stored.
    pub fn save(&self, policy: &Policy, now: Now) -> SavedLane {
        SavedLane { state: self.clone(), lasting: self.lasting(policy, now) }
    }

    pub(super) fn lasting(&self, policy: &Policy, now: Now) -> Lasting {
        let ahead = |at: &Timestamp| *at > now.wall;
        let passing = |(reason, since): &(HoldReason, Timestamp)| {
            *reason == HoldReason::AtCapacity && now.wall - *since < PASSING_HOLD
        };
        let full_at = |at: Timestamp| if ahead(&at) { at } else { Timestamp::MIN };
        Lasting {
            unavailable_until: self.unavailable_until.filter(ahead),
            rested_until: self.rested_until.filter(|at| ahead(at) || self.health.counts_rest_until(*at)),
            held: self.held.filter(|held| !passing(held)),
            full_at: (self.rate.as_ref()).map(|rate| full_at(rate.bucket.full_at(&rate.limit.quota, now))),
            max_concurrency: policy.max_concurrency.get(),
        }
    }
}

impl SavedLane {
    /// The lane again, in a new process. Nothing is in flight; the ramp starts at 1; the bucket has gained nothing but
    /// the time that passed, and after a crash lost the starts that may not have been written: as many as the policy of
    /// then or of now allows at once. Until that is stored nothing starts under a limit: the next crash would not know of
    /// both.
    pub fn restore(self, policy: &Policy, now: Now, last_stop: LastStop) -> LaneState {
        let Self { mut state, lasting } = self;
        state.unavailable_until = lasting.unavailable_until;
        state.rested_until = lasting.rested_until;
        state.held = lasting.held;
        state.in_flight = 0;
        state.unsaved_starts = 0;
        state.ramp = Ramp::START;
        state.breaker.restarted();
        state.throttle.restarted();
        state.timeouts.restarted(state.breaker.open().is_some());
        if let (Some(rate), Some(full_at)) = (&mut state.rate, lasting.full_at) {
            let most = lasting.max_concurrency.max(policy.max_concurrency.get());
            rate.bucket = Bucket::restore(&rate.limit.quota, full_at, now, most);
            if last_stop == LastStop::Crash {
                rate.bucket.forfeit(&rate.limit.quota, most);
                state.unsaved_starts = most;
            }
            if let Some(pace) = &mut rate.pace {
                pace.rebase(now.mono);
            }
        }
        state.fit(policy, now);
        state
    }
}
