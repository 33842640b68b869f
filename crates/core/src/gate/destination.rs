//! The gates of a destination, whichever delivery asks: its status, all its holds, and how long a queue before it takes.

use super::{Gate, Hold};
use crate::breaker::BreakerGate;
use crate::delivery::HoldReason;
use crate::lane::{LaneState, Standing};
use crate::order::{Line, Ordering};
use crate::policy::Policy;
use crate::quiet::WindowMask;
use crate::throttle::ThrottleGate;
use crate::time::{Millis, Now, Timestamp};

/// The one word for how a destination does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestinationStatus {
    /// Something holds it: the first that does.
    Held(Hold),
    /// Nothing does.
    Active,
}

impl DestinationStatus {
    /// The word.
    pub const fn word(&self) -> &'static str {
        match self {
            // It stands until a person resumes it, as if somebody had paused it.
            Self::Held(Hold::OrderBlocked { .. }) => HoldReason::Paused.word(),
            Self::Held(hold) => hold.reason().word(),
            Self::Active => "active",
        }
    }
}

/// What one of the destination's own gates says to deliveries that the windows of `quiet` concern; the gates that belong
/// to a delivery say nothing here.
pub(super) fn hold(
    gate: Gate,
    now: Now,
    quiet: WindowMask,
    policy: &Policy,
    lane: &LaneState,
) -> Option<Hold> {
    let wall = now.wall;
    match gate {
        Gate::OwnTime | Gate::Order => None,
        Gate::Standing => standing(policy, lane).next(),
        Gate::Breaker => match lane.breaker.gate(wall) {
            BreakerGate::Closed | BreakerGate::ForProbe => None,
            BreakerGate::OpenUntil(until) => Some(Hold::CircuitOpen { until: Some(until) }),
            BreakerGate::AwaitsProbe => Some(Hold::CircuitOpen { until: None }),
        },
        Gate::Throttle => {
            let episode = lane.throttle.episodes();
            match lane.throttle.gate(wall) {
                ThrottleGate::Open | ThrottleGate::ForProbe => None,
                ThrottleGate::ShutUntil(until) => Some(Hold::Throttled { until: Some(until), episode }),
                ThrottleGate::AwaitsProbe => Some(Hold::Throttled { until: None, episode }),
            }
        }
        Gate::Unavailable => lane.unavailable_at(wall).map(|wait| Hold::Unavailable { until: wait.until }),
        Gate::QuietHours if quiet.is_empty() => None,
        Gate::QuietHours => policy.quiet.release(quiet, wall).map(|until| Hold::QuietHours { until }),
        Gate::Concurrency => lane.full(policy).map(|limit| Hold::AtCapacity { limit }),
        Gate::Rate => lane.token_wait(policy, now.mono).map(|wait| Hold::RateLimited { until: wall + wait }),
    }
}

/// What people decided about it, or its own answers (410) did.
fn standing(policy: &Policy, lane: &LaneState) -> impl Iterator<Item = Hold> {
    let Standing { disabled, paused } = lane.standing;
    let disabled = disabled.map(|(since, cause)| Hold::Disabled { since, cause });
    let account = policy.account_paused.map(|since| Hold::AccountPaused { since });
    disabled.into_iter().chain(account).chain(paused.map(|since| Hold::Paused { since }))
}

/// The whole line stands behind one that died, until a person resumes it.
pub fn halted(policy: &Policy, lane: &LaneState) -> Option<Hold> {
    let whole = lane.halted.iter().find(|halted| halted.line == Line::Whole);
    let head = whole.filter(|_| policy.ordering == Ordering::Fifo)?.head;
    Some(Hold::OrderBlocked { head, halted: true })
}

/// Everything that holds a destination now, in the order of the gates. Quiet windows that concern only some event types
/// hold those, not the destination (a lane adds them while something waits for them); so do halted ordering keys.
pub fn holds(now: Now, policy: &Policy, lane: &LaneState) -> Vec<Hold> {
    let quiet = policy.quiet.mask_without_type();
    let mut holds: Vec<Hold> = standing(policy, lane).collect();
    for gate in Gate::ALL.into_iter().filter(|gate| *gate != Gate::Standing) {
        let found =
            if gate == Gate::Order { halted(policy, lane) } else { hold(gate, now, quiet, policy, lane) };
        holds.extend(found);
    }
    holds
}

/// The status of a destination that all of `holds` hold: the first of them in the order of the words, in which what a person
/// must lift comes early, and a spent rate before taken slots. Where some ordering keys stand, others go: it is active.
pub fn status(holds: &[Hold]) -> DestinationStatus {
    let rank = |hold: &&Hold| match hold {
        Hold::Disabled { .. } => 0,
        Hold::AccountPaused { .. } | Hold::Paused { .. } | Hold::OrderBlocked { .. } => 1,
        Hold::CircuitOpen { .. } => 2,
        Hold::Throttled { .. } => 3,
        Hold::Unavailable { .. } => 4,
        Hold::QuietHours { .. } | Hold::QuietForSome { .. } => 5,
        Hold::RateLimited { .. } => 6,
        Hold::AtCapacity { .. } => 7,
        // Those of one delivery, and of one line.
        Hold::Scheduled { .. } | Hold::RetryBackoff { .. } | Hold::HaltedForSome { .. } => 8,
    };
    let of_all = holds.iter().filter(|hold| rank(hold) < 8);
    of_all.min_by_key(rank).map_or(DestinationStatus::Active, |hold| DestinationStatus::Held(*hold))
}

/// When a delivery will go if its destination begins to send at `opens` and `ahead` others go before it: after the tokens that
/// they take, and after their exchanges (`exchange` each) on the destination's slots, behind those in flight. An estimate:
/// others may come or fail.
pub fn estimate(
    now: Now,
    opens: Timestamp,
    ahead: u64,
    exchange: Millis,
    policy: &Policy,
    lane: &LaneState,
) -> Timestamp {
    let opens = opens.max(now.wall);
    // What comes back until it opens is there then, but never more than the burst.
    let then = now.mono + (opens - now.wall);
    let tokens = lane.tokens_wait(policy, then, ahead.saturating_add(1)).unwrap_or(Millis::ZERO);
    let before = ahead.saturating_add(u64::from(lane.in_flight));
    let turns = before / u64::from(policy.max_concurrency.get());
    // While the ramp is low, fewer slots than that are there: then one at least must come free.
    let turns = i64::try_from(turns.max(lane.full(policy).is_some().into())).unwrap_or(i64::MAX);
    let slots = exchange.scaled(turns, 1);
    opens + tokens.max(slots)
}

/// Nights that a backlog is followed through; one that takes longer is told too early.
const MAX_NIGHTS: usize = 60;

/// A moment up to which work goes on from `opens`, later by the quiet hours that come between: nothing is sent in them.
pub fn through_quiet_hours(
    opens: Timestamp,
    until: Timestamp,
    policy: &Policy,
    mask: WindowMask,
) -> Timestamp {
    let (mut until, mut from) = (until, opens);
    for _ in 0..MAX_NIGHTS {
        let Some((start, end)) = policy.quiet.intervals(mask, from, 1).pop() else { break };
        if start >= until {
            break;
        }
        until = until + (end - start.max(from));
        from = end;
    }
    until
}
