//! A lane in the store, and back: what outlives the process, and what a new one makes of it.
//!
//! What is over, or too short to matter, is left out, so that a healthy lane looks the same from one success to the next
//! and need not be written again.

use super::{LaneState, Unavailable};
use crate::delivery::HoldReason;
use crate::policy::Policy;
use crate::ramp::Ramp;
use crate::rate::Bucket;
use crate::time::{Millis, Now, Timestamp};

/// A wait for a slot comes and goes with every burst; one shorter than this is not stored with the lane. (From when on it is a
/// row of the hold log is up to the engine.)
const PASSING_HOLD: Millis = Millis::seconds(1);

/// A lane's state as it lies in the store: with the bucket as one wall time, since another process has another
/// monotonic clock.
#[derive(Clone, Debug)]
pub struct SavedLane {
    pub(super) state: LaneState,
    pub(super) lasting: Lasting,
}

/// The parts of the state that have another form in the store than in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lasting {
    pub(super) unavailable: Option<SavedWait>,
    pub(super) rested_until: Option<Timestamp>,
    pub(super) held: Option<(HoldReason, Timestamp)>,
    /// When the bucket is full again; [`Timestamp::MIN`] if it is.
    pub(super) full_at: Option<Timestamp>,
    pub(super) max_concurrency: u32,
}

/// A wait that they asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SavedWait {
    /// Since when; `None`: the version that wrote it did not keep that.
    pub(super) since: Option<Timestamp>,
    pub(super) until: Timestamp,
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
            unavailable: (self.unavailable_at(now.wall))
                .map(|wait| SavedWait { since: Some(wait.since), until: wait.until }),
            rested_until: self.rested_until.filter(|at| ahead(at) || self.health.counts_rest_until(*at)),
            held: self.held.filter(|held| !passing(held)),
            full_at: (self.rate.as_ref()).map(|rate| full_at(rate.bucket.full_at(&rate.limit.quota, now))),
            max_concurrency: policy.max_concurrency.get(),
        }
    }
}

impl SavedLane {
    /// The lane again, in a new process: nothing in flight, the ramp at 1, the bucket filled by the time that passed. A crash
    /// may have lost starts that were not written: so the bucket loses as many tokens as the stored or the present policy
    /// allows at once. Until that loss is stored, nothing starts under a rate limit: a second crash would deduct it only once.
    pub fn restore(self, policy: &Policy, now: Now, last_stop: LastStop) -> LaneState {
        let Self { mut state, lasting } = self;
        state.unavailable = lasting.unavailable.map(|SavedWait { since, until }| {
            // Where nobody kept it, it is there since it was read.
            Unavailable { since: since.unwrap_or(now.wall), until }
        });
        (state.last_start, state.awake_since) = (now.wall, now.wall);
        state.rested_until = lasting.rested_until;
        state.held = lasting.held;
        state.in_flight = 0;
        state.unsaved_starts = 0;
        state.ramp = Ramp::START;
        state.breaker.restarted();
        state.throttle.restarted();
        state.fit_clock(now.wall);
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
