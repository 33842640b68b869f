//! What becomes of a delivery: when it is accepted, and after each attempt.

use std::sync::Arc;

use crate::delivery::{Dead, Delivery, End, HoldReason, Late, OwnTime, Place, Priority, Status};
use crate::draw::Draw;
use crate::id::DeliveryId;
use crate::limits;
use crate::outcome::Outcome;
use crate::pattern::EventType;
use crate::policy::Policy;
use crate::retry::{RetryPlan, RetryPolicy, RetrySources};
use crate::sequence::Sequence;
use crate::time::{Millis, Timestamp};

/// What an event type or the account says about deliveries.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    /// The type's `delivery_ttl_seconds`.
    pub type_ttl: Option<Millis>,
    /// The type's retry policy.
    pub type_retry: Option<Arc<RetryPolicy>>,
    /// The type's `max_attempts`.
    pub type_max_attempts: Option<u32>,
    /// The account's default retry policy.
    pub account_retry: Option<Arc<RetryPolicy>>,
    /// How long a delivery is tried at most; `None`: 7 days.
    pub max_age: Option<Millis>,
}

/// An event as it comes in, for one destination.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The new delivery's id.
    pub id: DeliveryId,
    /// The sequence of acceptance.
    pub sequence: u64,
    /// What happened.
    pub event_type: EventType,
    /// When, if the publisher says; never later than now.
    pub occurred_at: Option<Timestamp>,
    /// Stale from then on.
    pub expires_at: Option<Timestamp>,
    /// Stale when this time has passed since receipt.
    pub ttl: Option<Millis>,
    /// Not before then.
    pub deliver_at: Option<Timestamp>,
    /// Keeps its order among those with the same key.
    pub ordering_key: Option<Arc<str>>,
    /// How urgent.
    pub priority: Priority,
}

impl Incoming {
    /// An ordinary event: it occurs now, does not expire, keeps no order.
    pub const fn new(id: DeliveryId, sequence: u64, event_type: EventType) -> Self {
        Self {
            id,
            sequence,
            event_type,
            occurred_at: None,
            expires_at: None,
            ttl: None,
            deliver_at: None,
            ordering_key: None,
            priority: Priority::NORMAL,
        }
    }
}

/// A delivery is accepted at `now`, on our clock: its expiry, its plan and its first status.
pub fn accept(now: Timestamp, incoming: Incoming, policy: &Policy, terms: &Terms) -> Delivery {
    let expires_at =
        [incoming.expires_at, incoming.ttl.map(|ttl| now + ttl), terms.type_ttl.map(|ttl| now + ttl)];
    let expires_at = expires_at.into_iter().flatten().min();
    let plan = RetryPlan::choose(RetrySources {
        event_type: terms.type_retry.as_ref(),
        event_type_max_attempts: terms.type_max_attempts,
        destination: policy.retry.as_ref(),
        ttl: expires_at.map(|expiry| expiry - now),
        account: terms.account_retry.as_ref(),
    });
    let status = match (expires_at, incoming.deliver_at) {
        (Some(expiry), _) if now >= expiry => Status::Final(End::Expired(Late::OnArrival)),
        (Some(expiry), Some(at)) if expiry - at < limits::MIN_TIME_TO_SEND => {
            Status::Final(End::Expired(Late::Behind(HoldReason::Scheduled)))
        }
        (_, Some(at)) if at > now => Status::RetryScheduled { at, reason: OwnTime::Scheduled },
        _ => Status::Queued,
    };
    let max_age = terms.max_age.unwrap_or(limits::DEFAULT_MAX_AGE).min(limits::MAX_MAX_AGE);
    Delivery {
        id: incoming.id,
        place: place(now, incoming.occurred_at, incoming.sequence),
        priority: incoming.priority,
        event_type: incoming.event_type,
        ordering_key: incoming.ordering_key,
        accepted_at: now,
        expires_at,
        too_old_at: incoming.deliver_at.map_or(now, |at| at.max(now)) + max_age,
        plan,
        attempts_made: 0,
        attempts_used: 0,
        status,
    }
}

/// A delivery's place is never behind one that is accepted later. So it goes by the number of acceptance, which grows over all
/// nodes and also when a clock is set back; `now` may be some milliseconds off on each node.
fn place(now: Timestamp, occurred_at: Option<Timestamp>, sequence: u64) -> Place {
    let accepted_at = Sequence::from_stored(sequence).made_at().max(now);
    Place { occurred_at: occurred_at.map_or(accepted_at, |at| at.min(accepted_at)), sequence }
}

/// What a replay does about the time to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReplayTtl {
    /// It lives as long again as the original did.
    #[default]
    Reset,
    /// It expires when the original did.
    Keep,
    /// It does not expire.
    None,
}

/// A new delivery of the same event to the same destination, asked for at `now`. It occurs now, so it comes after what is
/// there; the original is left as it is.
pub fn replay(
    now: Timestamp,
    original: &Delivery,
    incoming: ReplayAs,
    ttl: ReplayTtl,
    policy: &Policy,
    terms: &Terms,
) -> Delivery {
    let life = original.expires_at.map(|expiry| expiry - original.accepted_at);
    let (expires_at, type_ttl) = match (ttl, life) {
        // It was stale when it came in, and had no life that it could get again: it gets that of its type.
        (ReplayTtl::Reset, Some(life)) if life <= Millis::ZERO => (None, terms.type_ttl),
        (ReplayTtl::Reset, life) => (life.map(|life| now + life), None),
        (ReplayTtl::Keep, _) => (original.expires_at, None),
        (ReplayTtl::None, _) => (None, None),
    };
    let incoming = Incoming {
        expires_at,
        ordering_key: original.ordering_key.clone(),
        priority: incoming.priority,
        ..Incoming::new(incoming.id, incoming.sequence, original.event_type.clone())
    };
    accept(now, incoming, policy, &Terms { type_ttl, ..terms.clone() })
}

/// What is new about a replay.
#[derive(Clone, Copy, Debug)]
pub struct ReplayAs {
    /// The new delivery's id.
    pub id: DeliveryId,
    /// The sequence of acceptance.
    pub sequence: u64,
    /// By default [`Priority::BULK`], so that it never crowds out live traffic.
    pub priority: Priority,
}

/// An attempt for `delivery` ended with `outcome`: what it is now. The attempt counts in any case; what is over stays so.
pub fn settle(now: Timestamp, delivery: &mut Delivery, policy: &Policy, outcome: Outcome, draw: Draw) {
    delivery.attempts_made = delivery.attempts_made.saturating_add(1);
    if outcome.uses_attempt() {
        delivery.attempts_used = delivery.attempts_used.saturating_add(1);
    }
    if delivery.status.is_final() {
        return;
    }
    delivery.status = match outcome {
        Outcome::Success { .. } => Status::Final(End::Delivered),
        Outcome::Gone => Status::Final(End::DeadLetter(Dead::Gone)),
        Outcome::RateLimited { .. } | Outcome::Cancelled => Status::Queued,
        failure => match failure.status().filter(|status| policy.permanent_statuses.contains(*status)) {
            Some(status) => Status::Final(End::DeadLetter(Dead::PermanentStatus(status))),
            None => after_failure(now, delivery, failure, draw),
        },
    };
}

/// Retry, expire or give up: in that order of preference, without ever starting at or after expiry.
fn after_failure(now: Timestamp, delivery: &Delivery, failure: Outcome, draw: Draw) -> Status {
    let late = Status::Final(End::Expired(Late::RetryTooLate(failure)));
    let too_late =
        |at| delivery.expires_at.is_some_and(|expiry: Timestamp| expiry - at < limits::MIN_TIME_TO_SEND);
    if too_late(now) {
        return late;
    }
    let Some(delay) = delivery.plan.delay_after(delivery.attempts_used, draw) else {
        return Status::Final(End::DeadLetter(Dead::AttemptsUsedUp(failure)));
    };
    let at = match failure {
        Outcome::Unavailable { retry_after } => now + retry_after,
        _ => now + delay,
    };
    if too_late(at) {
        late
    } else if at >= delivery.too_old_at {
        Status::Final(End::DeadLetter(Dead::TooOld(None)))
    } else {
        Status::RetryScheduled { at, reason: OwnTime::RetryBackoff }
    }
}

#[cfg(test)]
#[path = "settle/tests.rs"]
mod tests;
