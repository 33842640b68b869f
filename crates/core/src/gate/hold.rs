//! A closed gate, in words and times.

use std::fmt;

use crate::delivery::HoldReason;
use crate::health::DisabledCause;
use crate::id::DeliveryId;
use crate::time::Timestamp;

/// Why a delivery is not being sent. In order of precedence; the words are shown to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// The destination is switched off. Enabling it lifts it.
    Disabled {
        /// Since when.
        since: Timestamp,
        /// By whom or what.
        cause: DisabledCause,
    },
    /// A person paused the whole account. Only resuming that lifts it.
    AccountPaused {
        /// Since when.
        since: Timestamp,
    },
    /// A person paused the destination. Only `resume` lifts it.
    Paused {
        /// Since when.
        since: Timestamp,
    },
    /// Its publisher asked for a later time.
    Scheduled {
        /// That time.
        until: Timestamp,
    },
    /// Its last attempt failed.
    RetryBackoff {
        /// When the next one is due.
        until: Timestamp,
    },
    /// The breaker is open.
    CircuitOpen {
        /// When the next probe may go; `None` while one is out.
        until: Option<Timestamp>,
    },
    /// Their 429. One probe goes first when it ends.
    Throttled {
        /// When that is; `None` while the probe is out.
        until: Option<Timestamp>,
        /// Which of the episodes in a row this is.
        episode: u32,
    },
    /// Their 503 with `Retry-After`.
    Unavailable {
        /// The time they named.
        until: Timestamp,
    },
    /// It is quiet there.
    QuietHours {
        /// The first instant that no window covers.
        until: Timestamp,
    },
    /// It is quiet there for some event types, and something of these waits. Of a destination only: a delivery's type is known.
    QuietForSome {
        /// When the first of what waits may go.
        until: Timestamp,
    },
    /// An earlier delivery of its line is not final, or the line was halted by one that died.
    OrderBlocked {
        /// That delivery.
        head: DeliveryId,
        /// Whether only a person can lift it.
        halted: bool,
    },
    /// Some ordering keys were halted by deliveries that died; others go. Of a destination only: a delivery has one line.
    HaltedForSome {
        /// The first of those deliveries.
        head: DeliveryId,
        /// How many keys stand.
        lines: usize,
    },
    /// Every slot is taken: a finishing attempt wakes the lane, no timer does.
    AtCapacity {
        /// How many slots there are just now.
        limit: u32,
    },
    /// The destination's own rate is spent; the next token comes at `until`.
    RateLimited {
        /// That time.
        until: Timestamp,
    },
}

impl Hold {
    /// The word for it.
    pub const fn reason(&self) -> HoldReason {
        match self {
            Self::Disabled { .. } => HoldReason::Disabled,
            Self::AccountPaused { .. } | Self::Paused { .. } => HoldReason::Paused,
            Self::Scheduled { .. } => HoldReason::Scheduled,
            Self::RetryBackoff { .. } => HoldReason::RetryBackoff,
            Self::CircuitOpen { .. } => HoldReason::CircuitOpen,
            Self::Throttled { .. } => HoldReason::Throttled,
            Self::Unavailable { .. } => HoldReason::Unavailable,
            Self::QuietHours { .. } | Self::QuietForSome { .. } => HoldReason::QuietHours,
            Self::OrderBlocked { .. } | Self::HaltedForSome { .. } => HoldReason::OrderBlocked,
            Self::AtCapacity { .. } => HoldReason::AtCapacity,
            Self::RateLimited { .. } => HoldReason::RateLimited,
        }
    }

    /// Whether only a person lifts it: as things stand, it lasts for ever.
    pub const fn is_for_a_person(&self) -> bool {
        matches!(
            self,
            Self::Disabled { .. }
                | Self::AccountPaused { .. }
                | Self::Paused { .. }
                | Self::OrderBlocked { halted: true, .. }
                | Self::HaltedForSome { .. }
        )
    }

    /// When it ends by itself; `None` where it does not.
    pub const fn until(&self) -> Option<Timestamp> {
        match *self {
            Self::Scheduled { until }
            | Self::RetryBackoff { until }
            | Self::Unavailable { until }
            | Self::QuietHours { until }
            | Self::QuietForSome { until }
            | Self::RateLimited { until } => Some(until),
            Self::CircuitOpen { until } | Self::Throttled { until, .. } => until,
            Self::Disabled { .. }
            | Self::AccountPaused { .. }
            | Self::Paused { .. }
            | Self::OrderBlocked { .. }
            | Self::HaltedForSome { .. }
            | Self::AtCapacity { .. } => None,
        }
    }
}

/// A sentence for the person who asks.
impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled { since, cause: DisabledCause::ByRequest } => {
                write!(f, "switched off since {since}; enabling it releases what waits")
            }
            Self::Disabled { since, cause: DisabledCause::Gone } => {
                write!(
                    f,
                    "disabled at {since} because it answered 410 for several deliveries; enabling it releases what waits"
                )
            }
            Self::Disabled { since, cause: DisabledCause::Failing } => {
                write!(f, "disabled at {since} after days without a success; enabling it releases what waits")
            }
            Self::AccountPaused { since } => {
                write!(f, "the account is paused since {since}; resuming it releases what waits")
            }
            Self::Paused { since } => write!(f, "paused since {since}; resuming it releases what waits"),
            Self::Scheduled { until } => write!(f, "its publisher asked for {until}"),
            Self::RetryBackoff { until } => write!(f, "its last attempt failed; the next is due at {until}"),
            Self::CircuitOpen { until: Some(until) } => {
                write!(f, "too many attempts failed; a probe goes at {until}")
            }
            Self::CircuitOpen { until: None } => {
                f.write_str("too many attempts failed; a probe is on its way")
            }
            Self::Throttled { until: Some(until), episode } => {
                write!(f, "the destination answered 429 (episode {episode}); a probe goes at {until}")
            }
            Self::Throttled { until: None, episode } => {
                write!(f, "the destination answered 429 (episode {episode}); a probe is on its way")
            }
            Self::Unavailable { until } => {
                write!(f, "the destination answered 503 and asked to wait until {until}")
            }
            Self::QuietHours { until } => write!(f, "quiet hours; they end at {until}"),
            Self::QuietForSome { until } => {
                write!(f, "quiet hours for some event types; they end at {until}, and other types go")
            }
            Self::OrderBlocked { head, halted: false } => {
                write!(f, "waits for {head}, which comes before it")
            }
            Self::OrderBlocked { head, halted: true } => {
                write!(f, "halted because {head} could not be delivered; a person must resume it")
            }
            Self::HaltedForSome { head, lines: 1 } => {
                write!(
                    f,
                    "one ordering key is halted because {head} could not be delivered; a person must resume it, and others go"
                )
            }
            Self::HaltedForSome { head, lines } => {
                write!(
                    f,
                    "{lines} ordering keys are halted, the first because {head} could not be delivered; a person must resume \
                     them, and others go"
                )
            }
            Self::AtCapacity { limit } => {
                write!(f, "all {limit} slots are taken; the next free one wakes it")
            }
            Self::RateLimited { until } => {
                write!(f, "the rate limit is spent; the next token comes at {until}")
            }
        }
    }
}
