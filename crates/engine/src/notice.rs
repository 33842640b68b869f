//! What people who watch want to know as it happens.

use tidegate_core::breaker::BreakerChange;
use tidegate_core::delivery::{Delivery, Status};
use tidegate_core::health::DisabledCause;
use tidegate_core::id::DeliveryId;
use tidegate_core::lane::Aftermath;
use tidegate_core::time::Timestamp;
use tidegate_core::timeout::ChangeReason;
use tidegate_store::{AccountNo, DestinationNo};

use crate::dispatcher::Sending;

/// A change of state, for `/v1/stream`.
#[derive(Clone, Debug)]
pub struct Notice {
    /// Whose.
    pub account: AccountNo,
    /// Of which destination.
    pub destination: DestinationNo,
    /// When.
    pub at: Timestamp,
    /// What: `delivery`, or what happened to the destination.
    pub kind: &'static str,
    /// Which delivery, if it is about one.
    pub delivery: Option<DeliveryId>,
    /// Its status.
    pub status: Option<&'static str>,
    /// A sentence.
    pub detail: String,
}

impl Notice {
    /// An attempt starts.
    pub(crate) fn of_start(account: AccountNo, destination: DestinationNo, sending: &Sending) -> Self {
        Self {
            account,
            destination,
            at: sending.attempt.started.wall,
            kind: "delivery",
            delivery: Some(sending.delivery),
            status: Some(Status::Delivering.word()),
            detail: format!("attempt {}", sending.number),
        }
    }

    /// A delivery has a new status.
    pub(crate) fn of_delivery(
        account: AccountNo,
        destination: DestinationNo,
        at: Timestamp,
        delivery: &Delivery,
    ) -> Self {
        let detail = match delivery.status {
            Status::Final(end) => end.to_string(),
            Status::RetryScheduled { at, .. } => format!("the next attempt is due at {at}"),
            _ => String::new(),
        };
        Self {
            account,
            destination,
            at,
            kind: "delivery",
            delivery: Some(delivery.id),
            status: Some(delivery.status.word()),
            detail,
        }
    }
}

/// What the end of an attempt or of a delivery changed about the destination: a word and a sentence each.
pub(crate) fn changes(aftermath: &Aftermath) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    match aftermath.breaker {
        Some(BreakerChange::Opened { until }) => {
            all.push(("circuit_opened", format!("too many attempts failed; a probe goes at {until}")));
        }
        Some(BreakerChange::Closed) => all.push(("circuit_closed", "it works again".to_owned())),
        None => {}
    }
    if aftermath.throttled {
        all.push(("throttled", "it answered 429".to_owned()));
    }
    if let Some(cause) = aftermath.disabled {
        let why = match cause {
            DisabledCause::ByRequest => "a person switched it off",
            DisabledCause::Gone => "it answered 410 for several deliveries",
            DisabledCause::Failing => "nothing has worked for days",
        };
        all.push(("disabled", format!("{why}; enabling it releases what waits")));
    }
    if let Some(dead) = aftermath.halted {
        all.push((
            "order_halted",
            format!("its line stands because {dead} could not be delivered; a person must resume it"),
        ));
    }
    if let Some(change) = &aftermath.timeout {
        all.push((
            "timeout_changed",
            format!("from {} to {}: {}", change.from, change.to, reason(change.reason)),
        ));
    }
    all
}

const fn reason(reason: ChangeReason) -> &'static str {
    match reason {
        ChangeReason::Slower => "it has become slower",
        ChangeReason::PercentileTimedOut => "too many of its answers did not come in time",
        ChangeReason::Spike => "many of the latest attempts timed out",
        ChangeReason::SlowProbe => "a probe succeeded, but took longer than the timeout",
        ChangeReason::Step => "a step towards what it usually needs",
        ChangeReason::StepTakenBack => "timeouts rose after the last step",
        ChangeReason::Stale => "there were no samples for a week",
    }
}
