//! What a simulated world consists of.

use tidegate_core::policy::Policy;
use tidegate_core::time::{Millis, Timestamp};

use crate::backing::Storage;
use crate::traffic::Source;
use crate::world::Model;

/// A world: destinations, publishers, a node, faults, and the seed that decides all chance.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The one number that all chance comes from.
    pub seed: u64,
    /// What the wall clock says at first.
    pub start: Timestamp,
    /// Requests that the node makes at a time.
    pub slots: u32,
    /// How results reach the store.
    pub commit: Commit,
    /// What the store is.
    pub storage: Storage,
    /// Where to.
    pub destinations: Vec<Destination>,
    /// What, and when.
    pub sources: Vec<Source>,
    /// What goes wrong on our side.
    pub faults: Faults,
}

/// A destination: what its owner asks for, and how it really behaves.
#[derive(Clone, Debug)]
pub struct Destination {
    /// For tables.
    pub name: String,
    /// The account, from 0.
    pub account: u32,
    /// What its owner asks for.
    pub policy: Policy,
    /// How it behaves.
    pub model: Model,
}

/// How results reach the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// At once: for experiments with policies.
    Instant,
    /// In groups, each taking this long: for runs with crashes.
    Grouped(Millis),
}

/// What goes wrong on our side.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Faults {
    /// Mean time between two crashes of the process.
    pub crash_every: Option<Millis>,
    /// Share of these that are clean stops instead: what is in flight is called off, and everything is stored.
    pub clean_stops: f64,
    /// Share of starts after a crash that are followed by the next one before anything is committed.
    pub storms: f64,
    /// Share of wake-ups that are lost; the tick of the next second makes up for it.
    pub lost_wakes: f64,
    /// Mean time between two steps of the wall clock, and their size at most, forwards or backwards.
    pub clock_steps: Option<(Millis, Millis)>,
}
