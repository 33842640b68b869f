//! When a destination is not well.

use tidegate_core::time::{Millis, Timestamp};

use crate::chance::Chance;

/// A time in which a destination is not well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// From then …
    pub from: Timestamp,
    /// … up to, but not including, then.
    pub to: Timestamp,
    /// What is wrong.
    pub kind: TroubleKind,
}

/// What is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TroubleKind {
    /// Nothing.
    None,
    /// It takes the request and never answers.
    Hangs,
    /// Nobody listens.
    Refuses,
    /// It answers with this status.
    Errors {
        /// The status.
        status: u16,
    },
    /// 503 with `Retry-After`.
    Unavailable {
        /// Whole seconds of it.
        retry_after: Millis,
    },
    /// It takes longer.
    Slow {
        /// In percent of the usual time.
        factor: u32,
    },
    /// It hangs and works in turn.
    Flaps {
        /// How long it works.
        up: Millis,
        /// How long it hangs.
        down: Millis,
    },
}

impl TroubleKind {
    /// What that is at `now`: flapping is one of two things.
    pub(super) fn at(self, now: Timestamp) -> Self {
        match self {
            Self::Flaps { up, down } => {
                let phase = now.as_millis().rem_euclid((up + down).get().max(1));
                if phase < up.get() { Self::None } else { Self::Hangs }
            }
            other => other,
        }
    }
}

/// Outages by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outages {
    /// Mean time from the end of one to the start of the next.
    pub between: Millis,
    /// Their mean length.
    pub lasting: Millis,
    /// What is wrong then.
    pub kind: TroubleKind,
}

impl Outages {
    /// All those from `from` to `to`.
    pub fn draw(&self, from: Timestamp, to: Timestamp, chance: &mut Chance) -> Vec<Trouble> {
        let mut troubles = Vec::new();
        let mut at = from;
        loop {
            let start = at + exponential(self.between, chance);
            let end = start + exponential(self.lasting, chance);
            if start >= to {
                return troubles;
            }
            troubles.push(Trouble { from: start, to: end, kind: self.kind });
            at = end;
        }
    }
}

fn exponential(mean: Millis, chance: &mut Chance) -> Millis {
    #[expect(clippy::cast_possible_truncation, reason = "a float as large as this saturates")]
    let ms = chance.exponential(mean.get() as f64) as i64;
    Millis::new(ms.max(1))
}
