//! May this delivery go now, and if not, why and until when?
//!
//! One answer for all who ask: the dispatcher, the API, the dashboard, `explain` and the simulator. It depends on the
//! time, the delivery, the destination's policy and the lane's state, and on nothing else. Gates that are cheap and
//! take nothing come first, those that consume last; [`decide`] reads them all, so that it can name the earliest
//! moment at which every one is open.

mod destination;
mod explain;
mod hold;

pub use destination::{DestinationStatus, estimate, halted, holds, status, through_quiet_hours};
pub use explain::{Explanation, GateView, explain};
pub use hold::Hold;

use crate::breaker::BreakerGate;
use crate::delivery::{Dead, Delivery, End, HoldReason, Late, OwnTime, Status};
use crate::lane::LaneState;
use crate::limits;
use crate::order::Turn;
use crate::policy::Policy;
use crate::quiet::WindowMask;
use crate::throttle::ThrottleGate;
use crate::time::{Millis, Now, Timestamp};

/// Everything that the answer depends on.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// When.
    pub now: Now,
    /// What.
    pub delivery: &'a Delivery,
    /// Whose turn it is in the delivery's line.
    pub turn: Turn,
    /// The quiet windows that concern its event type: [`QuietHours::mask_for`](crate::quiet::QuietHours::mask_for).
    pub quiet: WindowMask,
    /// What the destination's owner asks for.
    pub policy: &'a Policy,
    /// How the destination does.
    pub lane: &'a LaneState,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send it.
    Go(Go),
    /// It will never be sent: record the end.
    Finish(End),
    /// It is over, or on its way already: nothing to do.
    Nothing,
    /// Not now.
    Wait(Wait),
}

/// How to send it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Go {
    /// How long the attempt may take.
    pub timeout: Millis,
    /// Whether expiry made that shorter than the destination's timeout: then running into it says nothing about them.
    pub cut_short: bool,
    /// What it finds out, if it goes before the others for that.
    pub probe: Option<Probe>,
}

/// Why an attempt goes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The breaker is half-open.
    Breaker,
    /// A throttle has ended.
    Throttle,
}

impl Probe {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Breaker => "breaker",
            Self::Throttle => "throttle",
        }
    }
    /// The one that `word` names.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Breaker, Self::Throttle].into_iter().find(|probe| probe.word() == word)
    }
}

/// Why not, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The first closed gate.
    pub hold: Hold,
    /// The earliest moment at which all gates are open, not counting the queue before it; `None` where that depends on
    /// something other than time: a person, an answer, a delivery before it.
    pub until: Option<Timestamp>,
    /// It cannot go before this, whatever people do about the gates that no clock opens.
    pub not_before: Timestamp,
    /// Whether it will be stale by then, as things stand: behind a hold that only a person lifts, it will if it ever is.
    pub will_expire: bool,
}

/// The gates, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// Switched off or paused.
    Standing,
    /// `deliver_at` or the next retry.
    OwnTime,
    /// The circuit breaker.
    Breaker,
    /// Their 429.
    Throttle,
    /// Their 503 with `Retry-After`.
    Unavailable,
    /// Their night.
    QuietHours,
    /// The deliveries before it in its line.
    Order,
    /// A slot.
    Concurrency,
    /// A token.
    Rate,
}

impl Gate {
    /// All of them, in the order in which they are asked.
    pub const ALL: [Self; 9] = [
        Self::Standing,
        Self::OwnTime,
        Self::Breaker,
        Self::Throttle,
        Self::Unavailable,
        Self::QuietHours,
        Self::Order,
        Self::Concurrency,
        Self::Rate,
    ];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Standing => "standing",
            Self::OwnTime => "own_time",
            Self::Breaker => "breaker",
            Self::Throttle => "throttle",
            Self::Unavailable => "unavailable",
            Self::QuietHours => "quiet_hours",
            Self::Order => "order",
            Self::Concurrency => "concurrency",
            Self::Rate => "rate",
        }
    }
}

/// May this delivery go now, and if not, why and until when?
pub fn decide(question: &Question<'_>) -> Decision {
    if !matches!(question.delivery.status, Status::Queued | Status::RetryScheduled { .. }) {
        return Decision::Nothing;
    }
    let wait = question.wait();
    if let Some(end) = question.end(wait.as_ref()) {
        return Decision::Finish(end);
    }
    wait.map_or_else(|| Decision::Go(question.go()), Decision::Wait)
}

impl Question<'_> {
    /// Why it must wait, if it must: the first closed gate, and when all will be open.
    fn wait(&self) -> Option<Wait> {
        let mut first = None;
        let mut timed = true;
        let mut not_before = self.now.wall;
        let (mut morning, mut for_a_person) = (None, false);
        for hold in Gate::ALL.into_iter().filter_map(|gate| self.hold(gate)) {
            first.get_or_insert(hold);
            timed &= hold.until().is_some();
            for_a_person |= hold.is_for_a_person();
            not_before = not_before.max(hold.until().unwrap_or(not_before));
            if let Hold::QuietHours { until } = hold {
                morning = Some(until);
            }
        }
        let hold = first?;
        // Quiet hours are the one gate that closes by the clock: at the end of another hold it may be night.
        if not_before > self.now.wall && Some(not_before) != morning {
            not_before = self.after_quiet(not_before);
        }
        let until = timed.then_some(not_before);
        let will_expire =
            if for_a_person { self.delivery.expires_at.is_some() } else { self.too_late_at(not_before) };
        Some(Wait { hold, until, not_before, will_expire })
    }

    fn after_quiet(&self, at: Timestamp) -> Timestamp {
        if self.quiet.is_empty() { at } else { self.policy.quiet.release(self.quiet, at).unwrap_or(at) }
    }

    /// What `gate` says: nothing if it is open.
    pub fn hold(&self, gate: Gate) -> Option<Hold> {
        match gate {
            Gate::OwnTime => match self.delivery.status {
                Status::RetryScheduled { at, reason } if self.now.wall < at => Some(match reason {
                    OwnTime::Scheduled => Hold::Scheduled { until: at },
                    OwnTime::RetryBackoff => Hold::RetryBackoff { until: at },
                }),
                _ => None,
            },
            Gate::Order => match self.turn {
                Turn::Its => None,
                Turn::Behind(head) => Some(Hold::OrderBlocked { head, halted: false }),
                Turn::Halted(head) => Some(Hold::OrderBlocked { head, halted: true }),
            },
            gate => destination::hold(gate, self.now, self.quiet, self.policy, self.lane),
        }
    }

    /// Whether an attempt at `at` would start too late: no time left to send it before expiry.
    fn too_late_at(&self, at: Timestamp) -> bool {
        self.delivery.expires_at.is_some_and(|expiry| expiry - at < limits::MIN_TIME_TO_SEND)
    }

    /// How it ends here and now, if it does: stale, too old, or sure to be stale at its own time.
    fn end(&self, wait: Option<&Wait>) -> Option<End> {
        let behind = wait.map(|wait| wait.hold.reason());
        // With too little time left nothing starts any more; but behind a hold it ends when its time comes, and not before.
        let is_stale = self.delivery.expires_at.is_some_and(|expiry| self.now.wall >= expiry);
        if is_stale || (wait.is_none() && self.too_late_at(self.now.wall)) {
            return Some(End::Expired(behind.map_or(Late::InQueue, Late::Behind)));
        }
        if self.now.wall >= self.delivery.too_old_at {
            return Some(End::DeadLetter(Dead::TooOld(behind)));
        }
        match self.delivery.status {
            Status::RetryScheduled { at, reason } if self.too_late_at(at) => {
                Some(End::Expired(Late::Behind(match reason {
                    OwnTime::Scheduled => HoldReason::Scheduled,
                    OwnTime::RetryBackoff => HoldReason::RetryBackoff,
                })))
            }
            _ => None,
        }
    }

    fn go(&self) -> Go {
        let probe = match (self.lane.breaker.gate(self.now.wall), self.lane.throttle.gate(self.now.wall)) {
            (BreakerGate::ForProbe, _) => Some(Probe::Breaker),
            (_, ThrottleGate::ForProbe) => Some(Probe::Throttle),
            _ => None,
        };
        let timeout = self.lane.timeout(self.policy, probe);
        let left = self.delivery.expires_at.map_or(Millis::MAX, |expiry| expiry - self.now.wall);
        Go { timeout: timeout.min(left), cut_short: left < timeout, probe }
    }
}

#[cfg(test)]
#[path = "gate/tests.rs"]
mod tests;
