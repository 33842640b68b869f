//! Lists: by filter, newest first, a bounded number of rows looked at for each page.

use std::sync::Arc;

use tidegate_core::delivery::{Delivery, Status};
use tidegate_core::id::EventId;
use tidegate_core::pattern::EventType;
use tidegate_core::sequence::Sequence;
use tidegate_core::time::Timestamp;

use crate::delivery::StoredDelivery;
use crate::{AccountNo, DestinationNo, codec};

/// Which stored status to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Not final: waiting, or in flight (the store does not tell these apart).
    Open,
    /// They have it.
    Delivered,
    /// Given up.
    DeadLetter,
    /// Stale.
    Expired,
    /// Withdrawn.
    Cancelled,
}

/// Which of what is open. (That an attempt is under way, only lanes know.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Open {
    /// Waits for no time of its own after this one.
    Ready(Timestamp),
    /// Waits for a time of its own after this one.
    Waiting(Timestamp),
    /// Its end has come by this time: stale, or too old.
    Overdue(Timestamp),
    /// To one of these destinations.
    To(Vec<DestinationNo>),
    /// One of these, by their numbers.
    These(Vec<Sequence>),
}

impl Open {
    fn means(&self, to: DestinationNo, delivery: &Delivery) -> bool {
        let own_time = match delivery.status {
            Status::RetryScheduled { at, .. } => Some(at),
            _ => None,
        };
        match self {
            Self::Ready(now) => own_time.is_none_or(|at| at <= *now),
            Self::Waiting(now) => own_time.is_some_and(|at| at > *now),
            Self::Overdue(now) => delivery.ends_at() <= *now,
            Self::To(several) => several.contains(&to),
            Self::These(numbers) => numbers.contains(&delivery.id.sequence()),
        }
    }
}

/// Which deliveries to list. Everything that is `None` is not asked for.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    /// To one of these destinations.
    pub destinations: Option<Vec<DestinationNo>>,
    /// Of this event.
    pub event: Option<EventId>,
    /// Of this type.
    pub event_type: Option<EventType>,
    /// In one of these stages.
    pub stages: Option<Vec<Stage>>,
    /// Of what is open, only this; the other stages are not concerned.
    pub open: Option<Open>,
    /// Accepted at or after.
    pub from: Option<Timestamp>,
    /// Accepted before.
    pub to: Option<Timestamp>,
    /// Of an event with this external id.
    pub external_event_id: Option<Arc<str>>,
    /// With this ordering key.
    pub ordering_key: Option<Arc<str>>,
}

impl DeliveryFilter {
    /// Whether this delivery is meant.
    pub fn means(&self, stored: &StoredDelivery) -> bool {
        let delivery = &stored.delivery;
        let stage = match &delivery.status {
            Status::Final(end) => codec::stage_of(end),
            _ => Stage::Open,
        };
        self.destinations.as_ref().is_none_or(|wanted| wanted.contains(&stored.destination))
            && self.stages.as_ref().is_none_or(|wanted| wanted.contains(&stage))
            && (stage != Stage::Open
                || self.open.as_ref().is_none_or(|open| open.means(stored.destination, delivery)))
            && self.event.is_none_or(|wanted| wanted == stored.event)
            && self.event_type.as_ref().is_none_or(|wanted| *wanted == delivery.event_type)
            && is_or_any(self.ordering_key.as_ref(), delivery.ordering_key.as_ref())
            && is_or_any(self.external_event_id.as_ref(), stored.external_event_id.as_ref())
            && self.from.is_none_or(|from| delivery.accepted_at >= from)
            && self.to.is_none_or(|to| delivery.accepted_at < to)
    }
}

fn is_or_any(wanted: Option<&Arc<str>>, found: Option<&Arc<str>>) -> bool {
    wanted.is_none() || wanted == found
}

/// Which events to list.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Of this type.
    pub event_type: Option<EventType>,
    /// Accepted at or after.
    pub from: Option<Timestamp>,
    /// Accepted before.
    pub to: Option<Timestamp>,
    /// With this external id.
    pub external_event_id: Option<Arc<str>>,
    /// With this ordering key.
    pub ordering_key: Option<Arc<str>>,
}

/// Where to go on, and how far.
#[derive(Clone, Copy, Debug)]
pub struct PageQuery {
    /// Whose.
    pub account: AccountNo,
    /// Only what comes after this in the list: lower numbers.
    pub before: Option<Sequence>,
    /// At most so many.
    pub limit: usize,
    /// Oldest first, from after `before` on: for jobs that walk through everything.
    pub oldest_first: bool,
}

/// What was counted of a list in one go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    /// So many fit.
    pub(crate) found: u64,
    /// Where to go on; `None`: that was all.
    pub(crate) next: Option<Sequence>,
}

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// What was found.
    pub items: Vec<T>,
    /// Where the next page begins; `None`: this was the last. A short page may have a next one.
    pub next: Option<Sequence>,
}
