//! The node's slots, and how many of them go to lanes that are likely to keep them long.
//!
//! A slot in the hands of a hanging destination is lost for as long as its timeout lasts. So lanes whose last attempt
//! did not succeed, or that hang, and lanes without a past together hold at most a quarter of the slots; a part of that is for
//! new lanes alone. The rest always belongs to lanes whose last attempt succeeded.

use std::collections::VecDeque;

use tidegate_core::time::{Millis, Mono};

use super::LaneId;

/// A lane in which no attempt has ended for longer than this may hang.
pub(super) const HUNG_AFTER: Millis = Millis::seconds(1);

/// What a lane's past says about how long it will hold a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Its last attempt succeeded.
    Proven,
    /// It has no past.
    Unproven,
    /// Its last attempt did not succeed, or it has only hung so far.
    Suspect,
}

impl Trust {
    /// All degrees, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Proven, Self::Unproven, Self::Suspect];
}

#[derive(Debug)]
pub(super) struct Capacity {
    slots: u32,
    /// Nothing starts for now.
    held: bool,
    in_flight: [u32; Trust::ALL.len()],
    /// First attempts of lanes without a past, by start.
    first: VecDeque<(Mono, LaneId)>,
}

impl Capacity {
    pub(super) fn new(slots: u32) -> Self {
        Self { slots: slots.max(1), held: false, in_flight: [0; 3], first: VecDeque::new() }
    }
    /// No more slots: what is in flight ends, nothing starts.
    pub(super) const fn close(&mut self) {
        self.slots = 0;
    }
    /// While it is held, what is in flight ends and nothing starts; then it goes on.
    pub(super) const fn hold(&mut self, hold: bool) {
        self.held = hold;
    }
    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight.iter().sum()
    }
    pub(super) fn in_flight_of(&self, trust: Trust) -> u32 {
        self.in_flight[trust as usize]
    }

    /// Whether a lane of this trust may have one more slot.
    pub(super) fn admits(&self, trust: Trust) -> bool {
        let (unproven, suspect) = (self.in_flight_of(Trust::Unproven), self.in_flight_of(Trust::Suspect));
        !self.held
            && self.in_flight() < self.slots
            && match trust {
                Trust::Proven => true,
                Trust::Unproven => unproven + suspect < self.doubtful(),
                Trust::Suspect => unproven + suspect < self.doubtful() && suspect < self.known_doubtful(),
            }
    }

    /// Slots for lanes that may hang.
    fn doubtful(&self) -> u32 {
        (self.slots / 4).max(1)
    }
    /// Those of them for lanes that have failed or hang: not all, so that a new one, which may be well, finds a slot.
    fn known_doubtful(&self) -> u32 {
        self.doubtful() - self.doubtful() / 4
    }

    /// A lane that held `before.1` slots under the trust `before.0` now holds `after.1` under `after.0`.
    pub(super) fn moved(&mut self, before: (Trust, u32), after: (Trust, u32)) {
        let held = &mut self.in_flight[before.0 as usize];
        // To wrap around here would be to stand still for ever, without a word.
        *held = held.checked_sub(before.1).expect("a lane gives back slots that it held");
        self.in_flight[after.0 as usize] += after.1;
    }

    /// The first attempt of a lane without a past has started.
    pub(super) fn watch(&mut self, now: Mono, lane: LaneId) {
        self.first.push_back((now, lane));
    }

    /// The next lane whose first attempt has lasted too long, if it is not over by now.
    pub(super) fn next_hung(&mut self, now: Mono) -> Option<LaneId> {
        let (started, lane) = *self.first.front()?;
        if now.since(started) < HUNG_AFTER {
            return None;
        }
        self.first.pop_front();
        Some(lane)
    }
}
