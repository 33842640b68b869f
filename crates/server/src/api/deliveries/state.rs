//! How a delivery stands right now: its own state from the store, and what its lane says.

use std::collections::BTreeSet;

use tidegate_core::delivery::{Delivery, End, HoldReason, OwnTime, Status, Withdrawn};
use tidegate_core::gate::{Decision, Explanation, Hold};
use tidegate_core::time::Timestamp;
use tidegate_engine::View;
use tidegate_store::DestinationNo;
use tidegate_store::delivery::StoredDelivery;

use crate::api::App;
use crate::api::error::ApiError;

/// Deliveries asked about in one go: the engine stands still meanwhile.
const AT_ONCE: usize = 250;

/// How a delivery stands.
#[derive(Clone, Debug)]
pub(crate) struct Standing {
    /// Its status as it is shown: in flight, and over where that is certain but not written yet, included.
    pub(crate) status: Status,
    /// Why it waits, if it does.
    pub(crate) hold_reason: Option<HoldReason>,
    /// Until when, if that is known.
    pub(crate) retry_at: Option<Timestamp>,
    /// Whether it will be stale by then.
    pub(crate) will_expire: bool,
    /// What the lane says in full; `None` where nobody need be asked.
    pub(crate) explanation: Option<Explanation>,
}

impl Standing {
    const fn of(status: Status) -> Self {
        Self { status, hold_reason: None, retry_at: None, will_expire: false, explanation: None }
    }

    /// The hold that keeps it, as the lane tells it.
    pub(crate) fn hold(&self) -> Option<Hold> {
        match self.explanation.as_ref()?.decision {
            Decision::Wait(wait) => Some(wait.hold),
            Decision::Go(_) | Decision::Finish(_) | Decision::Nothing => None,
        }
    }
    /// Whether a gate is closed for this reason.
    pub(crate) fn is_held_by(&self, reason: HoldReason) -> bool {
        let own = self.hold_reason == Some(reason);
        let gates = self.explanation.as_ref().map(|explanation| explanation.gates.as_slice());
        own || gates
            .unwrap_or_default()
            .iter()
            .any(|view| view.hold.is_some_and(|hold| hold.reason() == reason))
    }
}

/// How one delivery stands.
pub(crate) async fn one(app: &App, stored: &StoredDelivery) -> Result<Standing, ApiError> {
    let mut all = many(app, std::slice::from_ref(stored)).await?;
    all.pop().ok_or_else(ApiError::not_found)
}

/// How deliveries stand, in their order.
pub(crate) async fn many(app: &App, stored: &[StoredDelivery]) -> Result<Vec<Standing>, ApiError> {
    let mut all = Vec::with_capacity(stored.len());
    for some in stored.chunks(AT_ONCE) {
        let mut asked = Vec::new();
        let from = all.len();
        for (index, stored) in some.iter().enumerate() {
            all.push(Standing::of(stored.delivery.status));
            if !stored.delivery.status.is_final() {
                let deleted = app.catalogue.destination(stored.destination).is_none();
                asked.push((from + index, stored.destination, stored.delivery.clone(), deleted));
            }
        }
        if asked.is_empty() {
            continue;
        }
        let lanes: BTreeSet<DestinationNo> = asked.iter().map(|(_, no, ..)| *no).collect();
        let told = app.engine.look_at(lanes, move |view| {
            let tell = |(index, no, delivery, deleted): &(usize, DestinationNo, Delivery, bool)| {
                (*index, look(view, *no, delivery, *deleted))
            };
            asked.iter().map(tell).collect::<Vec<_>>()
        });
        for (index, standing) in told.await? {
            all[index] = standing;
        }
    }
    Ok(all)
}

fn look(view: &View<'_>, destination: DestinationNo, delivery: &Delivery, deleted: bool) -> Standing {
    let lane = view.lane(destination);
    // How its attempt ended it is known when that is written: until then the gates would judge one that may have been
    // delivered. What ends without an attempt is shown at once, below.
    if lane.is_some_and(|lane| lane.is_in_flight(delivery.id) || lane.is_ending(delivery)) {
        return Standing::of(Status::Delivering);
    }
    if deleted {
        // Shown at once, written soon.
        return Standing::of(Status::Final(End::Cancelled(Withdrawn::DestinationDeleted)));
    }
    let Some(lane) = lane else { return Standing::of(delivery.status) };
    let explanation = lane.explain(view.now, delivery);
    let mut standing = Standing::of(match delivery.status {
        // Its own time has come: from now on it waits for its destination alone.
        Status::RetryScheduled { at, .. } if at <= view.now.wall => Status::Queued,
        status => status,
    });
    match explanation.decision {
        Decision::Finish(end) => standing.status = Status::Final(end),
        Decision::Wait(wait) => {
            standing.hold_reason = Some(wait.hold.reason());
            standing.retry_at = wait.until;
            standing.will_expire = wait.will_expire;
        }
        Decision::Go(_) | Decision::Nothing => {}
    }
    // A time of its own says more about this delivery than what holds all of them.
    if let Status::RetryScheduled { at, reason } = standing.status {
        standing.hold_reason = Some(match reason {
            OwnTime::Scheduled => HoldReason::Scheduled,
            OwnTime::RetryBackoff => HoldReason::RetryBackoff,
        });
        standing.retry_at = Some(at);
    }
    standing.explanation = Some(explanation);
    standing
}
