//! Retries that a wrong clock has put out of reach: their time was set while the clock was far ahead, and it was set back since.

use tidegate_core::delivery::{Delivery, OwnTime, Status};
use tidegate_core::draw::Draw;
use tidegate_core::limits;
use tidegate_core::time::{Millis, Now, Timestamp};
use tidegate_store::lane::Of;
use tidegate_store::{DestinationNo, StoreError};
use tokio::sync::{mpsc, oneshot};

use crate::driver::{Arrival, Asked, Order, Parts};
use crate::reading::Reading;
use crate::wish::Wish;

/// No retry is further off than this: neither by a plan nor by `Retry-After`.
const LONGEST: Millis = limits::MAX_DELAY;
/// Clocks drift, and are slewed, by less than this between two looks.
const STEP: Millis = Millis::seconds(2);
/// Deliveries looked at in one read: more than retries of one destination can be planned for one millisecond.
const PAGE: usize = 4 * limits::MAX_CONCURRENCY as usize;

/// Notices that the clock was set back.
pub(super) struct Watch {
    /// How far the wall clock was ahead of the monotonic one at the last look.
    offset: Millis,
}

impl Watch {
    /// Begins to watch. `newest` is when the newest thing in the store was accepted, by the clock of then: if that is
    /// ahead, the clock was set back while nobody watched.
    pub(super) fn new(now: Now, newest: Timestamp) -> Self {
        Self { offset: now.offset() + (newest - now.wall).max(Millis::ZERO) }
    }

    /// By how much it was set back since the last look, if it was.
    pub(super) fn look(&mut self, now: Now) -> Option<Millis> {
        let step = std::mem::replace(&mut self.offset, now.offset()) - now.offset();
        (step > STEP).then_some(step)
    }
}

/// Makes retries due that were planned by a clock which was `step` ahead of what it is now.
pub(super) async fn recall(
    parts: &Parts,
    inbox: &mpsc::UnboundedSender<Arrival>,
    step: Millis,
) -> Result<(), StoreError> {
    tracing::warn!(
        by_ms = step.get(),
        "the clock was set back: retries planned by the time before are made now"
    );
    for destination in destinations(inbox).await? {
        if parts.store.waiting(Of::Destination(destination)).deliveries > 0 {
            recall_of(parts, inbox, destination, step).await?;
        }
    }
    Ok(())
}

/// Whether it waits for a retry that nobody plans so far ahead now, but could before the clock was set back. One that is as far
/// off because of a `Retry-After` may have been asked for by the right clock: it is left alone, unless nobody may ask for that.
fn is_stranded(delivery: &Delivery, now: Timestamp, step: Millis) -> bool {
    let Status::RetryScheduled { at, reason: OwnTime::RetryBackoff } = delivery.status else { return false };
    let planned = delivery.plan.delay_after(delivery.attempts_used, Draw(u64::MAX)).unwrap_or(Millis::ZERO);
    at > now + LONGEST || (at > now + planned && at - step <= now + planned)
}

async fn recall_of(
    parts: &Parts,
    inbox: &mpsc::UnboundedSender<Arrival>,
    destination: DestinationNo,
    step: Millis,
) -> Result<(), StoreError> {
    let now = parts.clock.now().wall;
    let mut after = now;
    loop {
        let reading = Reading::begin(inbox).await.ok_or(StoreError::Closed)?;
        let found = parts.store.timed_after(destination, after, PAGE).await?;
        let next = (found.len() == PAGE).then(|| next_page(&found)).flatten();
        let stranded = found.into_iter().filter(|delivery| is_stranded(delivery, now, step));
        let wishes: Vec<_> =
            stranded.map(|delivery| (destination, Wish::Hasten(Box::new(delivery)))).collect();
        if !wishes.is_empty() {
            // What another node works is that node's to recall.
            let (left, committed) = oneshot::channel();
            let asked = Asked { wishes, audit: None };
            inbox.send(Arrival::Order(Order::Wishes(asked, left))).map_err(|_| StoreError::Closed)?;
            drop(reading);
            committed.await.map_err(|_| StoreError::Closed)?;
        }
        match next {
            Some(next) => after = next,
            None => return Ok(()),
        }
    }
}

/// The time after which the next page begins: others of the last one's time may be on it.
fn next_page(found: &[Delivery]) -> Option<Timestamp> {
    let (first, last) = (found.first()?.status.own_time()?, found.last()?.status.own_time()?);
    Some(if first < last { last - Millis::new(1) } else { last })
}

async fn destinations(inbox: &mpsc::UnboundedSender<Arrival>) -> Result<Vec<DestinationNo>, StoreError> {
    let (answer, asked) = oneshot::channel();
    let look = Order::Look(Box::new(move |view| {
        let all: Vec<DestinationNo> = view.lanes().map(|(destination, _)| destination).collect();
        drop(answer.send(all));
    }));
    inbox.send(Arrival::Order(look)).map_err(|_| StoreError::Closed)?;
    asked.await.map_err(|_| StoreError::Closed)
}

#[cfg(test)]
mod tests {
    use tidegate_core::id::DeliveryId;
    use tidegate_core::pattern::EventType;
    use tidegate_core::policy::Policy;
    use tidegate_core::settle::{self, Incoming, Terms};
    use tidegate_core::time::Mono;

    use super::*;

    fn at(mono: Millis, ahead: Millis) -> Now {
        let wall = Timestamp::from_millis(1_700_000_000_000) + mono + ahead;
        Now { wall, mono: Mono::from_millis(mono.get()) }
    }

    #[test]
    fn a_clock_that_is_set_back_is_noticed_once() {
        let begun = at(Millis::ZERO, Millis::ZERO);
        let mut watch = Watch::new(begun, begun.wall - Millis::hours(1));
        let later = |seconds, ahead| at(Millis::seconds(seconds), ahead);
        assert_eq!(
            watch.look(later(1, Millis::ZERO - Millis::seconds(1))),
            None,
            "no more than a clock is slewed"
        );
        assert_eq!(watch.look(later(2, Millis::days(3_650))), None, "ahead is not back");
        assert_eq!(watch.look(later(3, Millis::ZERO)), Some(Millis::days(3_650)));
        assert_eq!(watch.look(later(4, Millis::ZERO)), None);
    }

    #[test]
    fn a_clock_that_was_set_back_before_the_start_is_noticed_by_what_was_accepted() {
        let now = at(Millis::ZERO, Millis::ZERO);
        assert_eq!(Watch::new(now, now.wall + Millis::days(9)).look(now), Some(Millis::days(9)));
        assert_eq!(Watch::new(now, now.wall + Millis::new(1)).look(now), None);
    }

    #[test]
    fn only_what_the_wrong_clock_can_have_planned_is_stranded() {
        let now = at(Millis::ZERO, Millis::ZERO).wall;
        let incoming = Incoming::new(DeliveryId::from_bits(1), 1, EventType::parse("order.paid").unwrap());
        let mut delivery = settle::accept(now, incoming, &Policy::default(), &Terms::default());
        delivery.attempts_used = 1;
        let mut stranded = |ahead, reason, step| {
            delivery.status = Status::RetryScheduled { at: now + ahead, reason };
            is_stranded(&delivery, now, step)
        };
        let (second, hour) = (Millis::seconds(1), Millis::hours(1));
        assert!(stranded(hour + second, OwnTime::RetryBackoff, hour));
        assert!(!stranded(second, OwnTime::RetryBackoff, hour), "that is its usual delay");
        assert!(!stranded(Millis::hours(9), OwnTime::RetryBackoff, hour), "they asked for that");
        assert!(!stranded(hour + second, OwnTime::Scheduled, hour), "the publisher asked for that");
        assert!(
            stranded(Millis::days(3_651), OwnTime::RetryBackoff, Millis::days(3_650)),
            "nobody may ask for that"
        );
    }
}
