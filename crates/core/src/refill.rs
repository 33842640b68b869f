//! What a lane asks of the store when its window onto the backlog runs low, and what it gets.
//!
//! The lane keeps the first deliveries of each part of its backlog in memory; the store finds these by index, without
//! walking past what is held. Both sides speak of the parts in these words.

use crate::delivery::{Delivery, Priority};
use crate::order::Line;
use crate::policy::Policy;
use crate::quiet::WindowMask;
use crate::time::Timestamp;

/// A shelf: what lies on it differs only in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group {
    /// How urgent.
    pub priority: Priority,
    /// Which quiet windows concern it.
    pub quiet: WindowMask,
}

impl Group {
    /// The shelf that `delivery` belongs on.
    pub fn of(delivery: &Delivery, policy: &Policy) -> Self {
        let quiet = &policy.quiet;
        let quiet = if quiet.is_empty() { WindowMask::NONE } else { quiet.mask_for(&delivery.event_type) };
        Self { priority: delivery.priority, quiet }
    }
}

/// What the store answered to a refill.
#[derive(Debug, Default)]
pub struct Refill {
    /// Open deliveries of the lane, the first of each shelf and line.
    pub deliveries: Vec<Delivery>,
    /// Whether the store has more than these, and where.
    pub more: More,
}

/// Parts of the backlog that did not fit.
#[derive(Debug, Default)]
pub struct More {
    /// Shelves of unordered deliveries with more to come.
    pub shelves: Vec<Group>,
    /// Lines with more to come.
    pub lines: Vec<Line>,
    /// There are more lines, with heads for these shelves.
    pub other_lines: Vec<Group>,
    /// The earliest time of a delivery that waits for its own time and is not among these.
    pub timed_from: Option<Timestamp>,
}

/// How much a refill brings at most of each part. The lane adds what it has in flight or just settled: the store may still show
/// that as waiting.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Deliveries per shelf.
    pub per_shelf: usize,
    /// Deliveries per line.
    pub per_line: usize,
    /// Lines whose head belongs on the same shelf.
    pub lines: usize,
    /// Deliveries that wait for their own time.
    pub timed: usize,
}
