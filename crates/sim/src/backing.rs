//! What survives a crash: open deliveries, lanes and what owners asked for, behind the verbs of the store.
//!
//! ```text
//!   node ── commit(group) ──►┐
//!        ── refill(lane) ───►│ Backing ─┬─► Memory   the reference: a map, for experiments that need speed
//!        ── stale, expiry ──►│          └─► Sqlite   the real store, in a directory of its own: for runs with faults
//!        ── restart(how) ───►┘
//! ```
//!
//! Nothing reaches a backing but through [`Backing::commit`], so what a crash takes with it is exactly what was not
//! committed. Both give the same answers: one seed is one trace, whichever of the two stands behind it.

mod folder;
mod memory;
mod sqlite;

use std::sync::Arc;

use tidegate_core::delivery::Delivery;
use tidegate_core::id::{AttemptId, EventId};
use tidegate_core::lane::{Attempt, LastStop, Report, SavedLane};
use tidegate_core::policy::Policy;
use tidegate_core::refill::Refill;
use tidegate_core::sequence::Sequence;
use tidegate_core::time::Timestamp;
use tidegate_engine::dispatcher::{AccountNo, Lane, LaneId, Mark};

pub(crate) use memory::Memory;
use sqlite::Sqlite;

/// Stale deliveries that the sweeper takes at once; the next round takes the rest.
const SWEEP: usize = 1_000;

/// Which of the two stands behind a simulated node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Storage {
    /// A map: for experiments with policies.
    #[default]
    Memory,
    /// The real store: for runs that show that nothing is lost.
    Sqlite,
}

/// One thing that is to be written.
#[derive(Debug)]
pub enum Op {
    /// An event with its delivery is accepted.
    Accept {
        /// For which destination.
        lane: LaneId,
        /// The event.
        event: EventId,
        /// Its delivery.
        delivery: Box<Delivery>,
        /// Who publishes it again if it is lost.
        publisher: u32,
    },
    /// A delivery has a new state. One that is final already stays so.
    Settle {
        /// Of which destination.
        lane: LaneId,
        /// The delivery as it is now.
        delivery: Box<Delivery>,
        /// The attempt that led to it, if one did.
        attempt: Option<(AttemptId, Attempt, Report)>,
        /// For the lane, once it is committed.
        mark: Mark,
        /// Said by the commit: whether it was open until then.
        changed: bool,
    },
    /// A lane has a new state.
    Save {
        /// Which lane.
        lane: LaneId,
        /// The state behind its gates.
        state: Vec<u8>,
        /// What its timeouts have learned: seldom.
        timeouts: Option<Vec<u8>>,
        /// For the lane, once it is committed.
        mark: Mark,
    },
}

/// What a node that starts again finds.
#[derive(Debug)]
pub struct Restarted {
    /// How the last life ended, as far as the store knows.
    pub last_stop: LastStop,
    /// The highest number that was ever given to anything that was stored.
    pub sequence: Sequence,
    /// Each destination, in the order of the set-up.
    pub lanes: Vec<RestartedLane>,
}

/// A destination that is found again.
#[derive(Debug)]
pub struct RestartedLane {
    /// Its state, if it was ever stored.
    pub saved: Option<SavedLane>,
    /// Whether anything of it is open.
    pub backlog: bool,
}

/// The durable state of a simulated node.
#[derive(Debug)]
pub enum Backing {
    /// In memory.
    Memory(Memory),
    /// In the real store.
    Sqlite(Box<Sqlite>),
}

impl Backing {
    /// An empty one, with these destinations.
    pub fn new(storage: Storage, now: Timestamp, destinations: &[(AccountNo, Arc<Policy>)]) -> Self {
        match storage {
            Storage::Memory => Self::Memory(Memory::new(destinations.len())),
            Storage::Sqlite => Self::Sqlite(Box::new(Sqlite::new(now, destinations))),
        }
    }

    /// Deliveries of a lane that are not final.
    pub fn open_count(&self, lane: LaneId) -> usize {
        match self {
            Self::Memory(memory) => memory.open_count(lane.index()),
            Self::Sqlite(sqlite) => sqlite.open_count(lane.index()),
        }
    }
    /// Deliveries of all lanes that are not final.
    pub fn open_total(&self) -> usize {
        match self {
            Self::Memory(memory) => memory.open_total(),
            Self::Sqlite(sqlite) => sqlite.open_total(),
        }
    }
    /// The first of a lane's oldest `looks` open deliveries that is such a one.
    pub fn find_open(
        &self,
        lane: LaneId,
        looks: usize,
        such: impl FnMut(&Delivery) -> bool,
    ) -> Option<Delivery> {
        match self {
            Self::Memory(memory) => memory.find_open(lane.index(), looks, such),
            Self::Sqlite(sqlite) => sqlite.find_open(lane.index(), looks, such),
        }
    }

    /// Writes a group: all of it or nothing. Says in each settled one whether it was open until then.
    pub fn commit(&mut self, now: Timestamp, group: &mut [Op]) {
        match self {
            Self::Memory(memory) => memory.commit(group),
            Self::Sqlite(sqlite) => sqlite.commit(now, group),
        }
    }

    /// The first open deliveries of each shelf and line of `lane`.
    pub fn refill(&mut self, lane: &Lane, now: Timestamp) -> Refill {
        match self {
            Self::Memory(memory) => memory.refill(lane, now),
            Self::Sqlite(sqlite) => sqlite.refill(lane, now),
        }
    }

    /// When the next open delivery goes stale.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        match self {
            Self::Memory(memory) => memory.next_expiry(),
            Self::Sqlite(sqlite) => sqlite.next_expiry(),
        }
    }

    /// Open deliveries that are stale at `now`, each with its destination: the sweeper ends those that no lane has in
    /// memory.
    pub fn stale(&self, now: Timestamp) -> Vec<(usize, Delivery)> {
        let mut stale = match self {
            Self::Memory(memory) => memory.stale(now),
            Self::Sqlite(sqlite) => sqlite.stale(now),
        };
        stale.sort_by_key(|(lane, delivery)| (delivery.expires_at, *lane, delivery.place));
        stale
    }

    /// The process ends as `last_stop` says, and another one starts.
    pub fn restart(&mut self, last_stop: LastStop) -> Restarted {
        match self {
            Self::Memory(memory) => memory.restart(last_stop),
            Self::Sqlite(sqlite) => sqlite.restart(last_stop),
        }
    }
}
