//! Whether a delivery ended as it may. Delivered: a receiver answered 2xx. Dead: its attempts are used up, or it was refused
//! for good, or it is too old, or its server died of it. Expired: it is stale, or would be at its next time. Cancelled:
//! somebody asked for that.

use super::word;
use crate::history::{FaultKind, Outcome, State};
use crate::invariant::retry::plan::Plan;
use crate::invariant::why_repeated;
use crate::run::{Delivery, Ending, MILLI, NEVER, Receipt, Run};

/// Nothing is sent that has less than this left.
const TOO_SHORT_MS: i64 = 250;
/// So many deaths of its server put a delivery aside.
const DEATHS: usize = 3;

pub(super) struct Ends<'a> {
    run: &'a Run,
    deaths: usize,
    somebody_deleted: bool,
}

impl<'a> Ends<'a> {
    pub(super) fn new(run: &'a Run) -> Self {
        let killed = |kind: FaultKind| matches!(kind, FaultKind::Kill | FaultKind::PowerCut);
        let deaths = run.faults.outages.iter().filter(|outage| killed(outage.kind)).count();
        let somebody_deleted = run.destinations.iter().any(|destination| destination.timeline.is_withdrawn());
        Self { run, deaths, somebody_deleted }
    }

    /// What is wrong with its end.
    pub(super) fn wrong(&self, delivery: &Delivery) -> Option<String> {
        let run = self.run;
        let mut taken = run.requests_of(delivery.id).filter(|receipt| receipt.succeeded());
        let state = delivery.state;
        if state == State::Delivered {
            let never = taken.next().is_none();
            return never.then(|| "is delivered, but no receiver answered it with 2xx".to_owned());
        }
        if !state.is_final() {
            return Some(format!("is left {}", word(state)));
        }
        if let Some(kept) = taken.find(|receipt| why_repeated(run, receipt, NEVER).is_none()) {
            return Some(format!("was answered 2xx at {}, but is {}", run.at(kept.end), word(state)));
        }
        match state {
            State::DeadLetter => self.wrongly_dead(delivery),
            State::Expired => self.wrongly_expired(delivery),
            _ => self.wrongly_cancelled(delivery),
        }
    }

    fn wrongly_dead(&self, delivery: &Delivery) -> Option<String> {
        let attempts = self.run.attempts_of(delivery.id);
        let used = attempts.iter().filter(|attempt| attempt.counted).count();
        let used_up = delivery.max_attempts.is_some_and(|most| used >= most as usize);
        let put_aside = delivery.is_put_aside && self.deaths >= DEATHS;
        // What was stale before it was ever sent is another promise's matter.
        let stale = attempts.is_empty() && ended_after_ms(delivery).is_some_and(|after| after >= 0);
        if used_up || put_aside || stale || self.is_refused(delivery) || self.is_too_old(delivery) {
            return (!delivery.has_reason).then(|| "is dead_letter and does not say why".to_owned());
        }
        let most = delivery.max_attempts.map_or_else(|| "any number".to_owned(), |most| most.to_string());
        Some(format!(
            "is dead_letter after {used} attempts that count, of {most}, and nothing else explains it"
        ))
    }

    /// Whether its receiver refused it for good.
    fn is_refused(&self, delivery: &Delivery) -> bool {
        let Some(place) = delivery.destination else { return true };
        let phases = self.run.destinations[place as usize].timeline.phases();
        let permanent =
            |status: u16| phases.iter().any(|phase| phase.policy.permanent_statuses.contains(&status));
        let refused = |receipt: &Receipt| {
            receipt.ending == Ending::Answered && (receipt.status == 410 || permanent(receipt.status))
        };
        self.run.requests_of(delivery.id).any(refused)
    }

    fn is_too_old(&self, delivery: &Delivery) -> bool {
        let age = delivery.finished_at.zip(delivery.created_at).map(|(finished, created)| finished - created);
        let most = i64::try_from(self.run.limits.max_age_seconds.saturating_mul(1_000)).unwrap_or(i64::MAX);
        age.is_some_and(|age| age >= most)
    }

    /// Before its time only what would be stale at its own next time may expire: a retry, or `deliver_at`.
    fn wrongly_expired(&self, delivery: &Delivery) -> Option<String> {
        let early = -ended_after_ms(delivery)?;
        if early <= TOO_SHORT_MS {
            return None;
        }
        let scheduled =
            self.run.accepted(delivery.event).map(|accepted| self.run.sent(accepted).is_scheduled);
        if scheduled.unwrap_or(true) || early <= self.longest_delay_ms(delivery)? + TOO_SHORT_MS {
            return None;
        }
        Some(format!("is expired {early} ms before its time, and no retry would have come later"))
    }

    /// How long its next retry may have been away; none: nobody can tell.
    fn longest_delay_ms(&self, delivery: &Delivery) -> Option<i64> {
        let attempts = self.run.attempts_of(delivery.id);
        let Some(last) = attempts.last() else { return Some(0) };
        if last.outcome == Outcome::Unavailable {
            return None;
        }
        let timeline = &self.run.destinations[delivery.destination? as usize].timeline;
        let plan = Plan::of(timeline.constant()?, delivery)?;
        let used = attempts.iter().filter(|attempt| attempt.counted).count();
        i64::try_from(plan.delay(used).1 / MILLI).ok()
    }

    fn wrongly_cancelled(&self, delivery: &Delivery) -> Option<String> {
        let asked = delivery.destination.map_or(self.somebody_deleted, |place| {
            self.run.destinations[place as usize].timeline.is_withdrawn()
        });
        (!asked).then(|| "is cancelled, but nobody asked for that".to_owned())
    }
}

/// How long after its expiry it ended, by the server's clock.
fn ended_after_ms(delivery: &Delivery) -> Option<i64> {
    delivery.finished_at.zip(delivery.expires_at).map(|(finished, expires)| finished - expires)
}
