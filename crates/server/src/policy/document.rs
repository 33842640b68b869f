//! All policies that a destination, or an account for its destinations, may name.

use serde::{Deserialize, Serialize};
use tidegate_core::invalid::Invalid;
use tidegate_core::order::{OnExhausted, Ordering};
use tidegate_core::policy::PermanentStatuses;
use utoipa::ToSchema;

use super::breaker::BreakerDocument;
use super::rate::RateLimitDocument;
use super::retry::RetryDocument;
use super::schedule::ScheduleDocument;
use super::timeout::TimeoutDocument;

/// Statuses that may be listed as permanent: there are no more to list.
const MAX_PERMANENT_STATUSES: usize = 198;

/// Policies. What is not there is not said.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = Policies)]
pub(crate) struct PolicyDocument {
    /// Requests in flight at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000)]
    pub(crate) max_concurrency: Option<u64>,
    /// How fast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_limit: Option<RateLimitDocument>,
    /// When not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_items = 20)]
    pub(crate) delivery_schedules: Option<Vec<ScheduleDocument>>,
    /// In which order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ordering: Option<OrderingWord>,
    /// What follows in a line when a delivery is dead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on_exhausted: Option<OnExhaustedWord>,
    /// How long to wait for an answer: pinned.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 120)]
    pub(crate) timeout_seconds: Option<u64>,
    /// How that is found otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timeout: Option<TimeoutDocument>,
    /// How to retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retry_policy: Option<RetryDocument>,
    /// When to stop trying.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) circuit_breaker: Option<BreakerDocument>,
    /// Statuses after which a retry is pointless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) permanent_statuses: Option<Vec<u16>>,
}

/// In which order a destination gets its deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Ordering)]
pub(crate) enum OrderingWord {
    /// In none: several at a time.
    None,
    /// One at a time.
    Fifo,
    /// One at a time for each `ordering_key`.
    Key,
}

/// What follows in a line when a delivery is dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = OnExhausted)]
pub(crate) enum OnExhaustedWord {
    /// The next one goes.
    Skip,
    /// Nothing goes until a person resumes it.
    Halt,
}

impl From<OrderingWord> for Ordering {
    fn from(word: OrderingWord) -> Self {
        match word {
            OrderingWord::None => Self::None,
            OrderingWord::Fifo => Self::Fifo,
            OrderingWord::Key => Self::Key,
        }
    }
}

impl From<Ordering> for OrderingWord {
    fn from(ordering: Ordering) -> Self {
        match ordering {
            Ordering::None => Self::None,
            Ordering::Fifo => Self::Fifo,
            Ordering::Key => Self::Key,
        }
    }
}

impl From<OnExhaustedWord> for OnExhausted {
    fn from(word: OnExhaustedWord) -> Self {
        match word {
            OnExhaustedWord::Skip => Self::Skip,
            OnExhaustedWord::Halt => Self::Halt,
        }
    }
}

impl From<OnExhausted> for OnExhaustedWord {
    fn from(then: OnExhausted) -> Self {
        match then {
            OnExhausted::Skip => Self::Skip,
            OnExhausted::Halt => Self::Halt,
        }
    }
}

/// `permanent_statuses`.
pub(super) fn permanent_statuses(statuses: Vec<u16>) -> Result<PermanentStatuses, Invalid> {
    if statuses.len() > MAX_PERMANENT_STATUSES {
        let allowed = format!("at most {MAX_PERMANENT_STATUSES} statuses");
        return Err(Invalid::new(
            "permanent_statuses",
            format_args!("a list of {}", statuses.len()),
            allowed,
        ));
    }
    PermanentStatuses::new(statuses)
}

impl PolicyDocument {
    /// What it says, and where it says nothing, what `defaults` say.
    #[must_use]
    pub(crate) fn or(&self, defaults: &Self) -> Self {
        let own = self.clone();
        let says_of_timeout = own.timeout_seconds.is_some() || own.timeout.is_some();
        let of_timeout = if says_of_timeout { &own } else { defaults };
        Self {
            max_concurrency: own.max_concurrency.or(defaults.max_concurrency),
            rate_limit: own.rate_limit.or(defaults.rate_limit),
            delivery_schedules: own
                .delivery_schedules
                .clone()
                .or_else(|| defaults.delivery_schedules.clone()),
            ordering: own.ordering.or(defaults.ordering),
            on_exhausted: own.on_exhausted.or(defaults.on_exhausted),
            timeout_seconds: of_timeout.timeout_seconds,
            timeout: of_timeout.timeout,
            retry_policy: own.retry_policy.clone().or_else(|| defaults.retry_policy.clone()),
            circuit_breaker: own.circuit_breaker.or(defaults.circuit_breaker),
            permanent_statuses: own
                .permanent_statuses
                .clone()
                .or_else(|| defaults.permanent_statuses.clone()),
        }
    }

    /// What is wrong with it first, if something is: for documents that are written by a person.
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let ground = super::Ground::default();
        let (_, faults) = super::compile(self, &ground, super::Reading::Written);
        faults.into_iter().next().map_or(Ok(()), Err)
    }
}
