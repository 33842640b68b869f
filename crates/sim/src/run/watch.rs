//! What happens in a run, told to whoever watches it.

use tidegate_core::delivery::{Delivery, HoldReason};
use tidegate_core::lane::Aftermath;
use tidegate_core::time::{Now, Timestamp};
use tidegate_engine::dispatcher::{Dispatcher, LaneId, Sending};

use crate::backing::Backing;
use crate::world::Answer;

/// What an observer may look at.
pub struct View<'a> {
    /// The time.
    pub now: Now,
    /// The machine.
    pub dispatcher: &'a Dispatcher,
    /// The store.
    pub backing: &'a Backing,
}

/// What happened.
pub enum Note<'a> {
    /// A delivery was accepted and is in the store.
    Accepted(LaneId, &'a Delivery),
    /// A request goes out.
    Sent(LaneId, &'a Sending),
    /// Its answer came, or its time ran out.
    Answered(LaneId, &'a Sending, &'a Answer),
    /// A delivery's new state is in the store.
    Settled(LaneId, &'a Delivery),
    /// Work waited, from when to when.
    Held(LaneId, HoldReason, Timestamp, Timestamp),
    /// Something about a destination changed.
    Changed(LaneId, &'a Aftermath),
    /// The process died: what was in flight is cut off.
    Crashed,
    /// Whoever worked a lane is gone, or has lost it: what was in flight, or answered and not stored, counts no more.
    Lost(LaneId),
    /// A lane's state, as it was then, is in the store.
    Kept(LaneId, Timestamp),
    /// It is back.
    Restarted,
    /// The wall clock was set.
    ClockSet,
    /// Nothing happens from now until then: as things stand, they stay.
    Passes {
        /// Until then, on the wall clock.
        to: Timestamp,
    },
    /// A step is over.
    Stepped,
}

/// Watches a run: collects figures, or checks bounds.
pub trait Observer {
    /// `note` happened.
    fn note(&mut self, view: &View<'_>, note: &Note<'_>);
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    fn note(&mut self, view: &View<'_>, note: &Note<'_>) {
        self.0.note(view, note);
        self.1.note(view, note);
    }
}

/// Watches nothing.
impl Observer for () {
    fn note(&mut self, _: &View<'_>, _: &Note<'_>) {}
}
