//! Publishers: what they publish, and when.

use std::sync::Arc;

use tidegate_core::delivery::Priority;
use tidegate_core::pattern::EventType;
use tidegate_core::settle::Terms;
use tidegate_core::time::{Millis, Timestamp};

use crate::chance::Chance;

/// One publisher: events of one kind for one destination.
#[derive(Clone, Debug)]
pub struct Source {
    /// The destination, by its place in the set-up.
    pub destination: usize,
    /// What its events are like.
    pub template: Template,
    /// When they come.
    pub arrivals: Arrivals,
}

/// What an event is like.
#[derive(Clone, Debug)]
pub struct Template {
    /// Its type.
    pub event_type: EventType,
    /// How urgent.
    pub priority: Priority,
    /// Stale so long after receipt.
    pub ttl: Option<Millis>,
    /// To be delivered so long after receipt.
    pub deliver_after: Option<Millis>,
    /// Told to us up to so long after it happened.
    pub told_after: Option<Millis>,
    /// Keys are drawn from so many; `None`: no key.
    pub keys: Option<u64>,
    /// What the event type and the account say.
    pub terms: Arc<Terms>,
}

impl Template {
    /// An ordinary event of this type.
    pub fn new(event_type: &str) -> Self {
        Self {
            event_type: EventType::parse(event_type).expect("scenarios name valid types"),
            priority: Priority::NORMAL,
            ttl: None,
            deliver_after: None,
            told_after: None,
            keys: None,
            terms: Arc::default(),
        }
    }
    /// The same with a time to live.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Millis) -> Self {
        self.ttl = Some(ttl);
        self
    }
    /// The same, told to us up to so long after it happened.
    #[must_use]
    pub fn told_after(mut self, most: Millis) -> Self {
        self.told_after = Some(most);
        self
    }
}

/// When events come.
#[derive(Clone, Debug)]
pub enum Arrivals {
    /// One every so often.
    Steady {
        /// The first.
        from: Timestamp,
        /// The time between two.
        every: Millis,
        /// None after this.
        to: Timestamp,
    },
    /// By chance, at this mean distance.
    Poisson {
        /// None before this.
        from: Timestamp,
        /// Mean time between two.
        every: Millis,
        /// None after this.
        to: Timestamp,
    },
    /// By chance, several at a time: a job that runs now and then and publishes what it finds.
    Batches {
        /// None before this.
        from: Timestamp,
        /// Mean time from the end of a batch to the next one.
        every: Millis,
        /// Events in a batch.
        size: u32,
        /// Mean time between two of them.
        spacing: Millis,
        /// None after this.
        to: Timestamp,
    },
    /// So many, all at once.
    Burst {
        /// When.
        at: Timestamp,
        /// How many.
        count: u32,
    },
    /// So many from each of several times on: a job that runs by a timetable.
    Timetable {
        /// When it runs, in order.
        at: Vec<Timestamp>,
        /// How many it publishes each time …
        count: u32,
        /// … spread evenly over so long, which is shorter than from one time to the next.
        over: Millis,
    },
    /// The recorded past: times in order.
    Recorded {
        /// The times.
        at: Vec<Timestamp>,
    },
}

impl Arrivals {
    /// Mean events a day: as [`Arrivals::Poisson`] from `from` to `to`.
    pub fn per_day(count: f64, from: Timestamp, to: Timestamp) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a day is 86,400,000 ms")]
        let every = (86_400_000.0 / count.max(0.001)) as i64;
        Self::Poisson { from, every: Millis::new(every), to }
    }

    /// The arrival after the `index`-th, which was at `last`.
    pub(crate) fn next(&self, index: u32, last: Option<Timestamp>, chance: &mut Chance) -> Option<Timestamp> {
        match self {
            Self::Steady { from, every, to } => {
                Some(last.map_or(*from, |last| last + *every)).filter(|at| at <= to)
            }
            Self::Poisson { from, every, to } => {
                Some(last.unwrap_or(*from) + wait(*every, chance)).filter(|at| at <= to)
            }
            Self::Batches { from, every, size, spacing, to } => {
                let mean = if index.is_multiple_of(*size) { *every } else { *spacing };
                Some(last.unwrap_or(*from) + wait(mean, chance)).filter(|at| at <= to)
            }
            Self::Burst { at, count } => (index < *count).then_some(*at),
            Self::Timetable { at, count, over } => {
                let begin = at.get(usize::try_from(index.checked_div(*count)?).ok()?)?;
                Some(*begin + over.scaled(i64::from(index % count), i64::from(*count)))
            }
            Self::Recorded { at } => at.get(index as usize).copied(),
        }
    }
}

/// A waiting time with this mean, rounded up.
fn wait(mean: Millis, chance: &mut Chance) -> Millis {
    #[expect(clippy::cast_possible_truncation, reason = "a float as large as this saturates")]
    let ms = chance.exponential(mean.get() as f64).ceil() as i64;
    Millis::new(ms)
}
