//! Expiry: no request begins for a delivery that is stale, or with so little time left that it could only be cut off, and
//! none is waited for longer than its event lives. The wall clock decides, as it reads when the request begins.

use tidegate_core::limits::MIN_TIME_TO_SEND;
use tidegate_core::time::Millis;

use super::Violations;
use crate::run::{Note, Observer, View};

/// Watches the expiry of every delivery.
#[derive(Clone, Debug, Default)]
pub struct Expiry {
    slack: Millis,
    violations: Violations,
}

impl Expiry {
    /// For any destinations: what expires is the delivery.
    pub fn new() -> Self {
        Self::default()
    }
    /// The same where clocks differ by so much.
    #[must_use]
    pub fn within(mut self, slack: Millis) -> Self {
        self.slack = slack;
        self
    }
    /// What was wrong, if anything: the first few.
    pub fn violations(&self) -> &[String] {
        self.violations.kept()
    }
    /// How often.
    pub const fn count(&self) -> u64 {
        self.violations.count()
    }
}

impl Observer for Expiry {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        let Note::Sent(lane, sending) = note else { return };
        let Some(expires_at) = sending.expires_at else { return };
        let left = expires_at - view.now.wall + self.slack;
        let what = if left < MIN_TIME_TO_SEND {
            "begins too late for"
        } else if sending.attempt.timeout > left {
            "may last past"
        } else {
            return;
        };
        self.violations.add(|| {
            let (destination, sequence) = (lane.index(), sending.place.sequence);
            let (at, timeout) = (view.now.wall, sending.attempt.timeout);
            format!(
                "destination {destination}, sequence {sequence}: the request at {at}, timeout {timeout}, {what} the expiry at \
                 {expires_at}"
            )
        });
    }
}
