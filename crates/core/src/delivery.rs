//! A delivery: one event on its way to one destination, the unit of all scheduling and state.

mod code;

use std::fmt;
use std::sync::Arc;

use crate::id::DeliveryId;
use crate::invalid::{Invalid, check_range};
use crate::outcome::Outcome;
use crate::pattern::EventType;
use crate::retry::RetryPlan;
use crate::time::Timestamp;
#[cfg(test)]
pub(crate) use code::tests::any_end;

/// One event on its way to one destination, as far as the rules need to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its id.
    pub id: DeliveryId,
    /// Its place among the deliveries of its destination.
    pub place: Place,
    /// How urgent it is among those.
    pub priority: Priority,
    /// What happened; patterns in policies match on it.
    pub event_type: EventType,
    /// Deliveries of one destination with the same key keep their order, where the destination asks for that.
    pub ordering_key: Option<Arc<str>>,
    /// When it was accepted, on our clock.
    pub accepted_at: Timestamp,
    /// From when on it is stale.
    pub expires_at: Option<Timestamp>,
    /// From when on it is too old to be tried further.
    pub too_old_at: Timestamp,
    /// How it is retried.
    pub plan: RetryPlan,
    /// Requests made for it.
    pub attempts_made: u32,
    /// Attempts that count against the plan.
    pub attempts_used: u32,
    /// Where it stands.
    pub status: Status,
}

impl Delivery {
    /// When it happened, for people. Its place may name a moment later: that goes by the number of acceptance, which may be
    /// ahead of the accepting node's clock.
    pub fn occurred_at(&self) -> Timestamp {
        self.place.occurred_at.min(self.accepted_at)
    }
    /// When it is over at the latest: stale, or too old.
    pub fn ends_at(&self) -> Timestamp {
        self.expires_at.map_or(self.too_old_at, |expiry| expiry.min(self.too_old_at))
    }
}

/// Where a delivery stands in the order of its destination: by occurrence, then by acceptance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// When it happened, never later than its acceptance by the number.
    pub occurred_at: Timestamp,
    /// The sequence of acceptance: unique in the store.
    pub sequence: u64,
}

/// 1 critical … 4 bulk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// Goes before everything else.
    pub const CRITICAL: Self = Self(1);
    /// What an event has that says nothing.
    pub const NORMAL: Self = Self(3);
    /// Never crowds out live traffic: replays.
    pub const BULK: Self = Self(4);

    /// The priority that a person wrote.
    pub fn new(level: u64) -> Result<Self, Invalid> {
        check_range("priority", level, 1, 4).map(|level| Self(u8::try_from(level).expect("1 to 4")))
    }
    /// Its number.
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::NORMAL
    }
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// May go as soon as its destination's gates open.
    Queued,
    /// Waits for its own time.
    RetryScheduled {
        /// That time.
        at: Timestamp,
        /// What set it.
        reason: OwnTime,
    },
    /// An attempt is in flight.
    Delivering,
    /// It is over.
    Final(End),
}

/// Why a delivery waits for a time of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnTime {
    /// The publisher asked for it: `deliver_at`.
    Scheduled,
    /// The last attempt failed.
    RetryBackoff,
}

/// How many deliveries wait for a time of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnTimes {
    /// For the time that their publisher asked for.
    pub scheduled: u64,
    /// For their next try.
    pub retries: u64,
}

/// How a delivery ended, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// They have it.
    Delivered,
    /// It could not be delivered.
    DeadLetter(Dead),
    /// It went stale before it could be sent.
    Expired(Late),
    /// Somebody withdrew it.
    Cancelled(Withdrawn),
}

/// Why a delivery is given up although it was still valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dead {
    /// Every attempt was used; the last one ended so.
    AttemptsUsedUp(Outcome),
    /// They said 410.
    Gone,
    /// They answered with one of the destination's `permanent_statuses`.
    PermanentStatus(u16),
    /// It passed the maximum age while it waited behind this, if behind anything.
    TooOld(Option<HoldReason>),
    /// The server died several times while it was at work on this one.
    PutAside,
}

/// What made an expired delivery late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// It was stale when it came in.
    OnArrival,
    /// It waited behind this hold.
    Behind(HoldReason),
    /// Its turn did not come: others were before it.
    InQueue,
    /// Its time was over before a server worked its destination again.
    NoServer,
    /// The attempt ended so, and the next one would have started too late.
    RetryTooLate(Outcome),
}

/// Who withdrew a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawn {
    /// A person or an API call.
    ByRequest,
    /// Its destination is gone.
    DestinationDeleted,
}

/// The word for a hold, in API, log and dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HoldReason {
    /// The destination was switched off, by a person or by its failures.
    Disabled,
    /// A person paused it.
    Paused,
    /// `deliver_at` lies ahead.
    Scheduled,
    /// The next retry lies ahead.
    RetryBackoff,
    /// The breaker is open.
    CircuitOpen,
    /// Their 429.
    Throttled,
    /// Their 503 with `Retry-After`.
    Unavailable,
    /// It is night there.
    QuietHours,
    /// An earlier delivery of its order is not final.
    OrderBlocked,
    /// Every slot is taken.
    AtCapacity,
    /// Our own shaping.
    RateLimited,
}

impl HoldReason {
    /// Every reason, in the order of the gates.
    pub const ALL: [Self; 11] = [
        Self::Disabled,
        Self::Paused,
        Self::Scheduled,
        Self::RetryBackoff,
        Self::CircuitOpen,
        Self::Throttled,
        Self::Unavailable,
        Self::QuietHours,
        Self::OrderBlocked,
        Self::AtCapacity,
        Self::RateLimited,
    ];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::Paused => "paused",
            Self::Scheduled => "scheduled",
            Self::RetryBackoff => "retry_backoff",
            Self::CircuitOpen => "circuit_open",
            Self::Throttled => "throttled",
            Self::Unavailable => "unavailable",
            Self::QuietHours => "quiet_hours",
            Self::OrderBlocked => "order_blocked",
            Self::AtCapacity => "at_capacity",
            Self::RateLimited => "rate_limited",
        }
    }
}

impl fmt::Display for HoldReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Status {
    /// The time of its own that it waits for, if it does.
    pub const fn own_time(&self) -> Option<Timestamp> {
        match self {
            Self::RetryScheduled { at, .. } => Some(*at),
            _ => None,
        }
    }
    /// The word for it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::RetryScheduled { .. } => "retry_scheduled",
            Self::Delivering => "delivering",
            Self::Final(end) => end.word(),
        }
    }
    /// Whether it is over.
    pub const fn is_final(&self) -> bool {
        matches!(self, Self::Final(_))
    }
}

impl End {
    /// The word for it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::DeadLetter(_) => "dead_letter",
            Self::Expired(_) => "expired",
            Self::Cancelled(_) => "cancelled",
        }
    }
}

/// The `final_reason` of the API.
impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delivered => f.write_str("delivered"),
            Self::DeadLetter(Dead::AttemptsUsedUp(last)) => {
                write!(f, "every attempt was used; the last ended with {last}")
            }
            Self::DeadLetter(Dead::Gone) => {
                f.write_str("the destination answered 410: it never wants this again")
            }
            Self::DeadLetter(Dead::PermanentStatus(status)) => {
                write!(f, "the destination answered {status}, which it lists as permanent")
            }
            Self::DeadLetter(Dead::TooOld(Some(hold))) => write!(f, "passed the maximum age behind {hold}"),
            Self::DeadLetter(Dead::TooOld(None)) => f.write_str("passed the maximum age"),
            Self::DeadLetter(Dead::PutAside) => f.write_str(
                "put aside: the server died three times while it was at work on this delivery; replay it to try again",
            ),
            Self::Expired(Late::OnArrival) => f.write_str("was already expired when it was accepted"),
            Self::Expired(Late::Behind(hold)) => write!(f, "expired behind {hold}"),
            Self::Expired(Late::InQueue) => f.write_str("expired before its turn came in the queue"),
            Self::Expired(Late::NoServer) => f.write_str("expired while no server ran that could send it"),
            Self::Expired(Late::RetryTooLate(last)) => {
                write!(f, "ended with {last}, and the next retry would start after its expiry")
            }
            Self::Cancelled(Withdrawn::ByRequest) => f.write_str("withdrawn by request"),
            Self::Cancelled(Withdrawn::DestinationDeleted) => f.write_str("its destination was deleted"),
        }
    }
}

/// An event's status, from those of the newest delivery to each destination. If any is not final, it is the least advanced of
/// these; if all are delivered, `delivered`; else the worst end. Without deliveries there was nothing to do.
pub fn event_status<'a>(deliveries: impl IntoIterator<Item = &'a Status>) -> &'static str {
    let rank = |status: &&Status| match status {
        Status::Queued => 0,
        Status::RetryScheduled { .. } => 1,
        Status::Delivering => 2,
        Status::Final(End::DeadLetter(_)) => 3,
        Status::Final(End::Expired(_)) => 4,
        Status::Final(End::Cancelled(_)) => 5,
        Status::Final(End::Delivered) => 6,
    };
    deliveries.into_iter().min_by_key(rank).map_or(End::Delivered.word(), Status::word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_as_far_as_its_least_advanced_delivery() {
        let retry = Status::RetryScheduled { at: Timestamp::from_millis(0), reason: OwnTime::RetryBackoff };
        let (done, dead) = (Status::Final(End::Delivered), Status::Final(End::DeadLetter(Dead::Gone)));
        let (late, gone) =
            (Status::Final(End::Expired(Late::InQueue)), Status::Final(End::Cancelled(Withdrawn::ByRequest)));
        for (deliveries, expected) in [
            (&[][..], "delivered"),
            (&[done, done], "delivered"),
            (&[done, Status::Queued, retry], "queued"),
            (&[dead, retry, Status::Delivering], "retry_scheduled"),
            (&[done, dead, Status::Delivering], "delivering"),
            (&[done, gone, late, dead], "dead_letter"),
            (&[done, gone, late], "expired"),
            (&[done, gone], "cancelled"),
        ] {
            assert_eq!(event_status(deliveries), expected, "{deliveries:?}");
        }
    }
}
