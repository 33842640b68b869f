//! What a PATCH says about policies.

use tidegate_core::invalid::Invalid;

use super::breaker::BreakerDocument;
use super::document::{OnExhaustedWord, OrderingWord};
use super::rate::RateLimitDocument;
use super::retry::RetryDocument;
use super::schedule::{self, ScheduleDocument};
use super::timeout::TimeoutDocument;
use super::{Change, PolicyDocument};

/// What a PATCH says about policies: of a destination, or of an account's defaults.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyChanges {
    /// `max_concurrency`.
    pub(crate) max_concurrency: Change<u64>,
    /// `ordering`.
    pub(crate) ordering: Change<OrderingWord>,
    /// `on_exhausted`.
    pub(crate) on_exhausted: Change<OnExhaustedWord>,
    /// `timeout_seconds`.
    pub(crate) timeout_seconds: Change<u64>,
    /// `timeout`.
    pub(crate) timeout: Change<TimeoutDocument>,
    /// `rate_limit`.
    pub(crate) rate_limit: Change<RateLimitDocument>,
    /// `delivery_schedule`.
    pub(crate) delivery_schedule: Change<ScheduleDocument>,
    /// `delivery_schedules`.
    pub(crate) delivery_schedules: Change<Vec<ScheduleDocument>>,
    /// `retry_policy`.
    pub(crate) retry_policy: Change<RetryDocument>,
    /// `circuit_breaker`.
    pub(crate) circuit_breaker: Change<BreakerDocument>,
    /// `permanent_statuses`.
    pub(crate) permanent_statuses: Change<Vec<u16>>,
}

impl PolicyChanges {
    /// Does to `policies` what it says, or says what is wrong with it first. Only what it says is checked: what was
    /// written before stays as it is.
    pub(crate) fn apply(self, policies: &mut PolicyDocument) -> Result<(), Invalid> {
        if matches!((&self.timeout_seconds, &self.timeout), (Change::Set(_), Change::Set(_))) {
            let both = "given beside timeout_seconds";
            return Err(Invalid::new("timeout", both, "one of the two: a pin, or a mode"));
        }
        let single = matches!(self.delivery_schedule, Change::Set(_));
        let windows = self.windows()?;
        let mut said = PolicyDocument::default();
        self.write(windows.clone(), &mut said);
        said.check().map_err(|fault| if single { schedule::as_single(fault) } else { fault })?;
        // A pin ends a mode, and whatever is said about the mode ends a pin. Where there is none, unpinning changes nothing.
        if matches!(self.timeout_seconds, Change::Set(_)) || !self.timeout.is_keep() {
            (policies.timeout_seconds, policies.timeout) = (None, None);
        }
        self.write(windows, policies);
        Ok(())
    }

    /// The windows, from whichever of the two fields has them.
    fn windows(&self) -> Result<Change<Vec<ScheduleDocument>>, Invalid> {
        Ok(match (&self.delivery_schedule, &self.delivery_schedules) {
            (Change::Set(_), Change::Set(_)) => return Err(schedule::both_given()),
            (Change::Set(one), _) => Change::Set(vec![one.clone()]),
            (Change::Remove, Change::Keep) => Change::Remove,
            (_, list) => list.clone(),
        })
    }

    fn write(&self, windows: Change<Vec<ScheduleDocument>>, document: &mut PolicyDocument) {
        self.max_concurrency.clone().apply(&mut document.max_concurrency);
        self.ordering.clone().apply(&mut document.ordering);
        self.on_exhausted.clone().apply(&mut document.on_exhausted);
        self.timeout_seconds.clone().apply(&mut document.timeout_seconds);
        self.timeout.clone().apply(&mut document.timeout);
        self.rate_limit.clone().apply(&mut document.rate_limit);
        windows.apply(&mut document.delivery_schedules);
        self.retry_policy.clone().apply(&mut document.retry_policy);
        self.circuit_breaker.clone().apply(&mut document.circuit_breaker);
        self.permanent_statuses.clone().apply(&mut document.permanent_statuses);
    }
}
