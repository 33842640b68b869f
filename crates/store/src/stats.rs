//! Kept counts, by the hour.

use tidegate_core::time::Timestamp;

/// What happened in some time, of a destination or an account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Deliveries accepted.
    pub accepted: u64,
    /// Deliveries that ended: they have it.
    pub delivered: u64,
    /// Given up.
    pub dead_letter: u64,
    /// Stale.
    pub expired: u64,
    /// Withdrawn.
    pub cancelled: u64,
    /// Requests made.
    pub attempts: u64,
    /// Of these, answered 2xx.
    pub successes: u64,
    /// Of these, not answered in time.
    pub timeouts: u64,
}

impl Tally {
    /// Nothing happened.
    pub const ZERO: Self = Self {
        accepted: 0,
        delivered: 0,
        dead_letter: 0,
        expired: 0,
        cancelled: 0,
        attempts: 0,
        successes: 0,
        timeouts: 0,
    };

    /// Takes in what happened in another time, too.
    pub fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.delivered += other.delivered;
        self.dead_letter += other.dead_letter;
        self.expired += other.expired;
        self.cancelled += other.cancelled;
        self.attempts += other.attempts;
        self.successes += other.successes;
        self.timeouts += other.timeouts;
    }
}

/// One hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hour {
    /// Its beginning.
    pub start: Timestamp,
    /// What happened in it.
    pub tally: Tally,
}

/// How a destination does, as far as that must be read for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surveyed {
    /// When the oldest of its open deliveries was accepted.
    pub oldest_open: Option<Timestamp>,
    /// What happened.
    pub tally: Tally,
}

/// How the store does, for `/metrics` and `/readyz`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// Commits made.
    pub commits: u64,
    /// Events accepted by these.
    pub events: u64,
    /// Bytes of the write-ahead log.
    pub wal_bytes: u64,
    /// Results that were refused, because another node owned their destination by then.
    pub stale: u64,
    /// Rows of records that could not be stored as they were, and were left out: a fault of ours.
    pub refused: u64,
    /// Whether what is written must wait: the disk is full, or the database is out of reach.
    pub waits: bool,
    /// Nothing is acknowledged any more: the process must leave.
    pub broken: bool,
}
