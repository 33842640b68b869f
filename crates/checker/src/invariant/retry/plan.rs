//! The retry plan of a delivery, as the destination's policy and the event's life have it.

use crate::history::Policy;
use crate::history::policy::{Jitter, RetryPolicy};
use crate::run::{Delivery, SECOND};

/// When a delivery is tried again.
pub(in crate::invariant) enum Plan<'a> {
    Policy(&'a RetryPolicy),
    BuiltIn,
    /// A life under 2 minutes: every 15 s, without jitter.
    Short,
    /// A life under 15 minutes: four times 30 s, then every 60 s.
    Minutes,
}

impl<'a> Plan<'a> {
    /// The plan of a delivery; none where the API shows that an event type or the account has its own.
    pub(in crate::invariant) fn of(policy: &'a Policy, delivery: &Delivery) -> Option<Self> {
        let life = delivery.expires_at.zip(delivery.created_at).map(|(expires, created)| expires - created);
        let plan = match (&policy.retry_policy, life) {
            (Some(policy), _) => Self::Policy(policy),
            (None, Some(life)) if life < 120_000 => Self::Short,
            (None, Some(life)) if life < 900_000 => Self::Minutes,
            (None, _) => Self::BuiltIn,
        };
        (plan.max_attempts() == delivery.max_attempts).then_some(plan)
    }

    fn max_attempts(&self) -> Option<u32> {
        match self {
            Self::Policy(policy) => Some(policy.max_attempts),
            Self::BuiltIn => Some(5),
            Self::Short | Self::Minutes => None,
        }
    }

    /// How long after the end of the `used`-th used attempt the next may begin: at least, and at most if nothing holds it.
    pub(in crate::invariant) fn delay(&self, used: usize) -> (u64, u64) {
        let place = used.saturating_sub(1);
        let listed = |delays: &[f64]| delays.get(place).or(delays.last()).copied().unwrap_or(0.0);
        let (seconds, jitter) = match self {
            Self::Policy(policy) => (listed(&policy.delays_seconds), policy.jitter),
            Self::BuiltIn => (listed(&[30.0, 120.0, 600.0, 3_600.0]), Jitter::Proportional),
            Self::Short => (15.0, Jitter::None),
            Self::Minutes if used <= 4 => (30.0, Jitter::Proportional),
            Self::Minutes => (60.0, Jitter::Proportional),
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a week at most")]
        let nanos = (seconds.max(0.0) * SECOND as f64) as u64;
        match jitter {
            Jitter::None => (nanos, nanos),
            Jitter::Proportional => (nanos - nanos / 5, nanos + nanos / 5),
            Jitter::Full => (0, nanos),
        }
    }
}
