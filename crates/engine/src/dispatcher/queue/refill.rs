//! How a lane's window is filled again from the store.
//!
//! The lane asks once and waits for the answer, which may be older than what happened meanwhile. So the lane notes where it has
//! left deliveries to the store since it asked (`Left`), and skips rows of deliveries that are in flight or were just settled.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::delivery::{Delivery, Place, Priority, Status};
use tidegate_core::order::Line;
use tidegate_core::policy::Policy;
use tidegate_core::refill::{Group, More, Refill, Wanted};
use tidegate_core::time::Timestamp;

use super::parts::{LineQueue, Shelf};
use super::{MOST_ROOM, Queue, TIMED, earliest, sort_for_insertion};

#[derive(Debug, Default)]
pub(super) enum RefillState {
    #[default]
    Idle,
    /// Asked for. What was left to the store meanwhile may be missing in the answer.
    Asked(Left),
}

/// The parts from which something was left to the store since the refill was asked for.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub(super) shelves: BTreeSet<Group>,
    pub(super) lines: BTreeSet<Line>,
    pub(super) other_lines: BTreeSet<Group>,
    pub(super) timed_from: Option<Timestamp>,
    /// Something was left in lines that were not here: any line of the answer may have more.
    pub(super) in_any_line: bool,
}

impl Queue {
    /// Whether to ask the store for more, now. Asked once, it waits for the answer.
    pub(in crate::dispatcher) fn ask_for_more(&mut self, now: Timestamp) -> bool {
        if self.awaits_refill() {
            return false;
        }
        let low = self.other_lines.iter().any(|group| self.heads_on(*group) < self.room / 2)
            || self.shelves.values().any(|shelf| shelf.more && shelf.free.len() <= self.room / 4)
            || self.lines.values().any(LineQueue::runs_dry);
        if low {
            self.room = (2 * self.room).min(MOST_ROOM);
        }
        let wanted = low || self.timed_from.is_some_and(|from| from <= now);
        if wanted {
            self.refill = RefillState::Asked(Left::default());
        }
        wanted
    }

    /// Whether a refill is on its way.
    pub(in crate::dispatcher) const fn awaits_refill(&self) -> bool {
        matches!(self.refill, RefillState::Asked(_))
    }

    /// Whether something more urgent than this is only in the store, and on its way here.
    pub(in crate::dispatcher) fn awaits_more_urgent(&self, priority: Priority) -> bool {
        let dry = |shelf: &Shelf| shelf.more && shelf.free.is_empty();
        self.awaits_refill()
            && self.shelves.iter().any(|(group, shelf)| group.priority < priority && dry(shelf))
    }

    /// How much to ask for. `out`: deliveries that are under way and that the store may still show as waiting.
    pub(in crate::dispatcher) const fn wanted(&self, out: usize) -> Wanted {
        Wanted {
            per_shelf: self.room + out,
            per_line: self.behind() + 1 + out,
            lines: self.room,
            timed: TIMED / 2,
        }
    }

    /// Something is left to the store: a refill that is on its way may not know of it.
    pub(super) fn leave(&mut self, note: impl FnOnce(&mut Left)) {
        if let RefillState::Asked(left) = &mut self.refill {
            note(left);
        }
    }

    /// Takes in what the store found. `known` says which deliveries are in flight, or settled without a confirmed commit: the
    /// store's rows of these are outdated and skipped. If the line of such a delivery is not in memory, the whole line is
    /// skipped and asked for again: the store does not know yet what became of its head.
    pub(in crate::dispatcher) fn refilled(
        &mut self,
        refill: Refill,
        policy: &Policy,
        now: Timestamp,
        known: impl Fn(&Delivery) -> bool,
    ) {
        let line_of = |delivery: &Delivery| policy.ordering.line(delivery);
        let left = match std::mem::take(&mut self.refill) {
            RefillState::Idle => Left::default(),
            RefillState::Asked(left) => left,
        };
        self.shelves.values_mut().for_each(|shelf| shelf.more = false);
        self.lines.values_mut().filter(|line| !line.is_halted()).for_each(|line| line.more = false);
        self.other_lines.clear();
        self.timed_from = None;
        let mut stale: BTreeMap<Line, Group> = BTreeMap::new();
        for delivery in refill.deliveries.iter().filter(|delivery| known(delivery)) {
            if let Some(line) = line_of(delivery).filter(|line| !self.lines.contains_key(line)) {
                stale.insert(line, Group::of(delivery, policy));
            }
        }
        let mut found = refill.deliveries;
        found.retain(|delivery| !known(delivery) && !self.has(delivery, policy));
        found.retain(|delivery| {
            stale.is_empty() || line_of(delivery).is_none_or(|line| !stale.contains_key(&line))
        });
        sort_for_insertion(&mut found);
        for delivery in found {
            self.insert(delivery, policy, now);
        }
        self.note_more(refill.more);
        let Left { shelves, lines, other_lines, timed_from, in_any_line } = left;
        if in_any_line {
            self.expect_more_of_lines();
        }
        let other_lines = other_lines.into_iter().chain(stale.into_values()).collect();
        self.note_more(More {
            shelves: shelves.into_iter().collect(),
            lines: lines.into_iter().collect(),
            other_lines,
            timed_from,
        });
        self.lines.retain(|_, line| !line.is_over());
    }

    fn note_more(&mut self, more: More) {
        for group in more.shelves {
            self.shelves.entry(group).or_default().more = true;
        }
        for line in more.lines {
            self.lines.entry(line).or_default().more = true;
        }
        self.other_lines.extend(more.other_lines);
        self.timed_from = earliest(self.timed_from, more.timed_from);
    }

    /// The store may have deliveries that are not here: ask at the next look. Until then a new delivery of a line does not go
    /// ahead of earlier ones that may be in the store.
    pub(in crate::dispatcher) fn look_again(&mut self) {
        self.timed_from = Some(Timestamp::MIN);
        self.expect_more_of_lines();
        self.leave(|left| {
            left.timed_from = Some(Timestamp::MIN);
            left.in_any_line = true;
        });
    }

    fn expect_more_of_lines(&mut self) {
        self.lines.values_mut().for_each(|line| line.more = true);
    }

    /// Whether what has this place waits here, whatever it waits for.
    pub(in crate::dispatcher) fn holds(&self, place: Place) -> bool {
        self.shelves.values().any(|shelf| shelf.get(place).is_some())
            || self.timed.keys().any(|(_, timed)| *timed == place)
            || self.lines.values().any(|line| line.behind.contains_key(&place))
    }

    /// Whether it waits here.
    pub(in crate::dispatcher) fn has(&self, delivery: &Delivery, policy: &Policy) -> bool {
        let behind = || {
            let line = policy.ordering.line(delivery)?;
            self.lines.get(&line)?.behind.get(&delivery.place)
        };
        let timed = || match delivery.status {
            Status::RetryScheduled { at, .. } => self.timed.get(&(at, delivery.place)),
            _ => None,
        };
        let shelf =
            self.shelves.get(&Group::of(delivery, policy)).and_then(|shelf| shelf.get(delivery.place));
        shelf.or_else(behind).or_else(timed).is_some()
    }
}
