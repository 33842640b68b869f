//! A destination's policies: what its owner asks for.

use std::sync::Arc;

use crate::breaker::BreakerPolicy;
use crate::invalid::{Invalid, check_range};
use crate::limits;
use crate::order::{OnExhausted, Ordering};
use crate::quiet::QuietHours;
use crate::rate::RateLimit;
use crate::retry::RetryPolicy;
use crate::time::Timestamp;
use crate::timeout::{TimeoutMode, TimeoutParams};

/// How one destination wants its deliveries. Every part is valid by construction.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Requests in flight at most.
    pub max_concurrency: Concurrency,
    /// How fast; `None`: as fast as it takes them.
    pub rate_limit: Option<RateLimit>,
    /// When not.
    pub quiet: QuietHours,
    /// In which order.
    pub ordering: Ordering,
    /// What follows in a line when a delivery is dead.
    pub on_exhausted: OnExhausted,
    /// How long to wait for an answer.
    pub timeout: TimeoutMode,
    /// How that is learned.
    pub timeout_params: TimeoutParams,
    /// When to stop trying.
    pub breaker: BreakerPolicy,
    /// How to retry; `None`: as the account does, or the event's life suggests.
    pub retry: Option<Arc<RetryPolicy>>,
    /// Statuses that are final at once.
    pub permanent_statuses: PermanentStatuses,
    /// Since when the whole account is paused, if it is.
    pub account_paused: Option<Timestamp>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            max_concurrency: Concurrency::default(),
            rate_limit: None,
            quiet: QuietHours::none(),
            ordering: Ordering::None,
            on_exhausted: OnExhausted::Skip,
            timeout: TimeoutMode::Adaptive,
            timeout_params: TimeoutParams::default(),
            breaker: BreakerPolicy::default(),
            retry: None,
            permanent_statuses: PermanentStatuses::default(),
            account_paused: None,
        }
    }
}

impl Policy {
    /// Whether deliveries that wait stand in the same order and on the same shelves under both: then nothing need be
    /// sorted anew.
    pub fn sorts_like(&self, other: &Self) -> bool {
        self.ordering == other.ordering
            && self.on_exhausted == other.on_exhausted
            && self.quiet == other.quiet
    }
}

/// `max_concurrency`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concurrency(u32);

impl Concurrency {
    /// What a person wrote.
    pub fn new(max: u64) -> Result<Self, Invalid> {
        let max = check_range("max_concurrency", max, 1, u64::from(limits::MAX_CONCURRENCY))?;
        Ok(Self(u32::try_from(max).expect("in range")))
    }
    /// The number.
    pub const fn get(self) -> u32 {
        self.0
    }
}

impl Default for Concurrency {
    fn default() -> Self {
        Self(limits::DEFAULT_CONCURRENCY)
    }
}

/// `permanent_statuses`: answers after which a retry is pointless at this destination.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PermanentStatuses(Vec<u16>);

impl PermanentStatuses {
    /// What a person wrote: client and server errors, but not 429, which is no verdict on the event. (410 is final anyway.)
    pub fn new(statuses: Vec<u16>) -> Result<Self, Invalid> {
        for (index, status) in statuses.iter().enumerate() {
            if !(400..=599).contains(status) || *status == 429 {
                let allowed = "400 to 599, but not 429, which is about the pace and not about the event";
                return Err(Invalid::new("", status, allowed).at(index).under("permanent_statuses"));
            }
        }
        Ok(Self(statuses))
    }
    /// Whether `status` is final here.
    pub fn contains(&self, status: u16) -> bool {
        self.0.contains(&status)
    }
}
