//! What every scenario counts.

use crate::run::{Note, Observer, View};

/// Deliveries that came to an end, and requests made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) ended: u64,
    pub(super) attempts: u64,
}

impl Observer for Count {
    fn note(&mut self, _: &View<'_>, note: &Note<'_>) {
        match note {
            Note::Sent(..) => self.attempts += 1,
            Note::Settled(_, delivery) if delivery.status.is_final() => self.ended += 1,
            _ => {}
        }
    }
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.ended += other.ended;
        self.attempts += other.attempts;
    }
}
