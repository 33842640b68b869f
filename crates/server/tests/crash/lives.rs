//! The lives of the server: from one start to the next kill.

use std::time::Instant;

use jiff::Timestamp;

use crate::kit::{now, wall};

/// One life. Whatever it sent was received before the next one began: see [`World::drained`](crate::world::World::drained).
pub(crate) struct Life {
    from: Instant,
    /// The same by the clock on the wall.
    pub(crate) from_wall: Timestamp,
    /// When it was killed, or a moment before; none for the last.
    pub(crate) killed_at: Option<Instant>,
}

/// All of them.
pub(crate) struct Lives(Vec<Life>);

impl Lives {
    pub(crate) fn new() -> Self {
        Self(vec![Life::begin()])
    }

    /// The server is about to be started again.
    pub(crate) fn begin(&mut self) {
        self.0.push(Life::begin());
    }

    /// The server is about to be killed.
    pub(crate) fn end(&mut self) {
        self.0.last_mut().expect("there is one").killed_at = Some(now());
    }

    pub(crate) fn get(&self, life: usize) -> &Life {
        &self.0[life]
    }

    /// The life in which something was received.
    pub(crate) fn of(&self, received: Instant) -> usize {
        self.0.iter().rposition(|life| life.from <= received).unwrap_or(0)
    }

    /// The life in which something happened by the server's own clock.
    pub(crate) fn at(&self, time: Timestamp) -> usize {
        self.0.iter().rposition(|life| life.from_wall <= time).unwrap_or(0)
    }
}

impl Life {
    fn begin() -> Self {
        Self { from: now(), from_wall: wall(), killed_at: None }
    }
}
