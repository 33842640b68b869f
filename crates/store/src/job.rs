//! Jobs: replays and cancellations of many deliveries, with progress, across restarts.

use tidegate_core::id::ReplayId;
use tidegate_core::sequence::Sequence;
use tidegate_core::time::Timestamp;

use crate::AccountNo;

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Sends deliveries again.
    Replay,
    /// Withdraws open deliveries.
    Cancellation,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobState {
    /// It goes on.
    Running,
    /// It has seen everything.
    Done,
    /// It goes no further: a person stopped it, or what was asked for cannot be read.
    Stopped,
}

/// What became of a job's progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is written.
    Written,
    /// Nothing is, and whoever brings it should go no further: the job has ended, or another node works at it by now.
    Lost,
}

/// A job.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its id.
    pub id: ReplayId,
    /// Whose.
    pub account: AccountNo,
    /// What it does.
    pub kind: JobKind,
    /// What was asked for, as JSON: the store does not look into it.
    pub request: String,
    /// When it was asked for: nothing accepted later belongs to it.
    pub created_at: Timestamp,
    /// How far it is.
    pub state: JobState,
    /// Where it goes on.
    pub position: Option<Sequence>,
    /// Deliveries that it found to begin with, if they were counted.
    pub total: Option<u64>,
    /// Deliveries that it has replayed or withdrawn.
    pub done: u64,
    /// Deliveries that it had to leave alone: no longer there, or in another state by now.
    pub skipped: u64,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}
