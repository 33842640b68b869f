//! When a destination is given up: it says so itself (410), or nothing has worked there for days.

use crate::id::DeliveryId;
use crate::lane::bytes::{Reader, Writer};
use crate::limits;
use crate::outcome::{Bearing, Outcome};
use crate::time::{Millis, Timestamp};

/// Signs that a destination is gone for good.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Health {
    gone: Distinct,
    failing: Option<Failing>,
}

/// All attempts since the first of these have failed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Failing {
    attempts: u32,
    deliveries: Distinct,
    /// Time under attempts: not paused, throttled, quiet, or without any.
    lasted: Millis,
    last_at: Timestamp,
}

/// Different deliveries, up to as many as matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
struct Distinct([Option<DeliveryId>; 3]);

impl Distinct {
    fn add(&mut self, id: DeliveryId) {
        if self.0.contains(&Some(id)) {
            return;
        }
        if let Some(free) = self.0.iter_mut().find(|known| known.is_none()) {
            *free = Some(id);
        }
    }
    fn count(&self) -> usize {
        self.0.iter().flatten().count()
    }
    fn write(&self, out: &mut Writer) {
        self.0.iter().for_each(|id| out.option(*id, Writer::id));
    }
    fn read(from: &mut Reader<'_>) -> Option<Self> {
        Some(Self([from.option(Reader::id)?, from.option(Reader::id)?, from.option(Reader::id)?]))
    }
}

/// Why a destination was disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisabledCause {
    /// A person switched it off.
    ByRequest,
    /// It answered 410 for several deliveries.
    Gone,
    /// Nothing worked for days.
    Failing,
}

impl Health {
    /// An attempt for `delivery` ended at `now`. `rested_until` is the end of the last time the destination was left
    /// alone on purpose. Says so when that was one too many.
    pub fn observe(
        &mut self,
        now: Timestamp,
        delivery: DeliveryId,
        outcome: &Outcome,
        rested_until: Option<Timestamp>,
    ) -> Option<DisabledCause> {
        if outcome.bearing() == Bearing::Success {
            *self = Self::default();
            return None;
        }
        if *outcome == Outcome::Gone {
            self.gone.add(delivery);
            return (self.gone.count() >= limits::GONE_TO_DISABLE).then_some(DisabledCause::Gone);
        }
        if outcome.bearing() != Bearing::Failure {
            return None;
        }
        let failing = self.failing.get_or_insert_with(|| Failing {
            attempts: 0,
            deliveries: Distinct::default(),
            lasted: Millis::ZERO,
            last_at: now,
        });
        failing.attempts = failing.attempts.saturating_add(1);
        failing.deliveries.add(delivery);
        let from = rested_until.map_or(failing.last_at, |rested| rested.min(now).max(failing.last_at));
        failing.lasted += (now - from).max(Millis::ZERO).min(limits::FAILING_GAP);
        failing.last_at = now;
        let enough = failing.attempts >= limits::FAILURES_TO_DISABLE
            && failing.deliveries.count() >= limits::FAILING_DELIVERIES_TO_DISABLE
            && failing.lasted >= limits::FAILING_TIME_TO_DISABLE;
        enough.then_some(DisabledCause::Failing)
    }

    /// A person enabled it: what was before does not count any more.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether a rest until then still makes a difference: it ended after the last of the failures.
    pub fn counts_rest_until(&self, until: Timestamp) -> bool {
        self.failing.as_ref().is_some_and(|failing| until > failing.last_at)
    }

    pub(crate) fn write(&self, out: &mut Writer) {
        self.gone.write(out);
        out.option(self.failing.as_ref(), |out, failing| {
            out.number(failing.attempts.into());
            failing.deliveries.write(out);
            out.millis(failing.lasted);
            out.time(failing.last_at);
        });
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Option<Self> {
        let gone = Distinct::read(from)?;
        let failing = from.option(|from| {
            Some(Failing {
                attempts: from.number_u32()?,
                deliveries: Distinct::read(from)?,
                lasted: from.millis()?,
                last_at: from.time()?,
            })
        })?;
        Some(Self { gone, failing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn id(n: u128) -> DeliveryId {
        DeliveryId::from_bits(n)
    }
    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn three_deliveries_answered_410_disable_it() {
        let mut health = Health::default();
        for delivery in [1, 1, 2, 2] {
            assert_eq!(health.observe(at(0), id(delivery), &Outcome::Gone, None), None);
        }
        health.observe(at(0), id(9), &Outcome::Success { status: 200 }, None);
        for (delivery, expected) in [(3, None), (4, None), (5, Some(DisabledCause::Gone))] {
            assert_eq!(health.observe(at(0), id(delivery), &Outcome::Gone, None), expected);
        }
    }

    #[test]
    fn five_days_of_nothing_but_failures_disable_it() {
        let mut health = Health::default();
        let failed = |health: &mut Health, hour: i64| {
            health.observe(at(hour * HOUR), id(hour.unsigned_abs().into()), &Outcome::Timeout, None)
        };
        for hour in 0..120 {
            assert_eq!(failed(&mut health, hour), None, "hour {hour}");
        }
        assert_eq!(failed(&mut health, 120), Some(DisabledCause::Failing));
    }

    #[test]
    fn time_without_attempts_or_at_rest_does_not_count() {
        let mut health = Health::default();
        for day in 0..20 {
            assert_eq!(
                health.observe(at(day * 24 * HOUR), id(day.unsigned_abs().into()), &Outcome::Timeout, None),
                None
            );
        }
        let mut health = Health::default();
        for hour in 0..400 {
            let now = at(hour * HOUR);
            let rested = now - Millis::new(1_000);
            assert_eq!(
                health.observe(now, id(hour.unsigned_abs().into()), &Outcome::Timeout, Some(rested)),
                None
            );
        }
    }
}
