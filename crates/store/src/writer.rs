//! The writer: one thread that commits all that waits in one transaction, whichever engine does it.
//!
//! ```text
//!   take all that waits ► the engine's transaction: apply each, kept counts, commit (one fsync)
//!                       ► on_commit: the engine goes on ► answers
//! ```
//!
//! A group fails as a whole and nothing of it is left. If there is no room, or no database, records wait and are tried again. If
//! one thing in it cannot be stored, each is tried by itself, and of a record each part. If the disk is broken, nothing is
//! acknowledged any more. If the answer to a commit was lost, the writer first finds out whether it was made.

pub(crate) mod change;
mod group;
mod parts;

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::StoreError;
use crate::queue::Taken;
use crate::record::Commit;
use crate::shared::Shared;
use crate::work::{Done, Weight, Work};

/// How long records wait before they are tried again on a full disk, or without a database.
const PAUSE: Duration = Duration::from_secs(1);
/// A group of at least this size means load.
const CROWD: usize = 8;
/// How long a group under load waits for more, a fraction of its fsync.
const GATHER: Duration = Duration::from_micros(150);
/// More than this many are never waited for.
const MOST_GATHERED: usize = 128;
/// After this long without work the engine may tidy up. Retention looks once a second, which must leave a pause as long as this.
const IDLE: Duration = Duration::from_millis(500);

/// Why a group could not be committed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No room: goes on by itself when there is.
    Full,
    /// The database cannot be reached: nothing was written; goes on by itself when it can.
    Unavailable(String),
    /// The answer to the commit was lost: it may have been made, and then this is what became of each thing.
    Unknown(String, Vec<Done>),
    /// One of the things asked for cannot be stored as it is: a fault of ours, and no reason for the others to fail.
    Refused(String),
    /// Disk or file are broken, or nothing is known about the fault.
    Broken(String),
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Full => Self::Full,
            Failure::Unavailable(text) | Failure::Unknown(text, _) => Self::Unavailable(text),
            Failure::Refused(text) => Self::Refused(text),
            Failure::Broken(text) => Self::Broken(text),
        }
    }
}

/// What the two engines do for the writer.
pub(crate) trait Engine {
    /// Under load groups begin so far apart: each costs something, however little is in it.
    fn apart(&self) -> Duration;
    /// Writes a group in one transaction and commits it. Whatever fails, nothing of the group is left.
    fn transact(&mut self, group: &mut [Work]) -> Result<Vec<Done>, Failure>;
    /// The group is durable: what it changed of kept counts holds.
    fn committed(&mut self, commit: &Commit);
    /// Nothing of the group is left, also in what the engine remembers.
    fn roll_back(&mut self);
    /// Tries to go on after [`Failure::Full`], [`Failure::Unavailable`] or [`Failure::Unknown`]. Says whether the commit
    /// whose answer was lost had been made.
    fn recover(&mut self) -> Result<bool, Failure>;
    /// Whether there seems to be room for more than a few records.
    fn has_room(&self) -> bool;
    /// Whether a group is written even if nothing is in it: then that shows whether there is room.
    fn writes_empty_groups(&self) -> bool;
    /// Between two groups.
    fn tidy(&mut self, idle: bool);
    /// Marks the stop as clean.
    fn close(&mut self);
}

/// Runs until the store is closed or let go of.
pub(crate) fn run(shared: &Arc<Shared>, engine: impl Engine, on_commit: &(dyn Fn(Commit) + Send)) {
    let _guard = Guard(shared);
    Writer { engine, shared, on_commit, unknown: None }.work();
}

/// When the writer has ended, and be it by a panic, nobody must wait for it.
struct Guard<'a>(&'a Shared);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.set_in_doubt(false);
        if std::thread::panicking() {
            self.0.break_down("its writer ended by a panic");
            refuse_all(self.0);
        }
    }
}

/// Everything that waits or comes is answered with what is wrong.
pub(crate) fn refuse_all(shared: &Shared) {
    while let Some(work) = shared.work.pop() {
        work.fail(&StoreError::Broken(shared.what_broke()));
    }
}

/// Whoever came after the close is told so.
fn refuse_rest(shared: &Shared) {
    shared.work.close();
    while let Some(work) = shared.work.pop() {
        work.fail(&StoreError::Closed);
    }
}

struct Writer<'c, E> {
    engine: E,
    shared: &'c Shared,
    on_commit: &'c (dyn Fn(Commit) + Send),
    /// A group that may or may not have been committed, and what became of each thing if it was.
    unknown: Option<(Vec<Work>, Vec<Done>)>,
}

impl<E: Engine> Writer<'_, E> {
    fn work(&mut self) {
        let mut last = Last { count: 0, began: now() };
        loop {
            if self.shared.waits().is_some() {
                self.wait();
                self.recover();
            }
            let mut weight = Weight::default();
            let gather = last.gather(self.engine.apart(), self.shared.work.is_empty());
            match self.shared.work.take(IDLE, gather, |work| weight.admits(work)) {
                Taken::Some(group) => {
                    last = Last { count: group.len(), began: now() };
                    if let Some(closed) = self.commit(group) {
                        self.close();
                        let _ = closed.send(());
                        refuse_rest(self.shared);
                        return;
                    }
                    self.engine.tidy(false);
                }
                Taken::Nothing => {
                    self.look_for_room();
                    self.engine.tidy(true);
                }
                Taken::Closed => return,
            }
            if self.shared.is_broken() {
                refuse_all(self.shared);
                return;
            }
        }
    }

    /// A moment before the next try: records wait, and whoever asks for something is told at once what is wrong.
    fn wait(&self) {
        let is_record = |work: &Work| matches!(work, Work::Record { .. });
        let closes = |work: &Work| matches!(work, Work::Close(_));
        let until = now() + PAUSE;
        loop {
            let patience = until.saturating_duration_since(now());
            let asked = self.shared.work.pick(patience, |work| !is_record(work) && !closes(work), closes);
            if asked.is_empty() {
                return;
            }
            let error = self.shared.waits().unwrap_or(StoreError::Full);
            asked.into_iter().for_each(|work| work.fail(&error));
        }
    }

    /// Results that could not be written leave no clean stop.
    fn close(&mut self) {
        if self.shared.waits().is_some() || self.shared.is_broken() {
            tracing::warn!("not everything could be written: the next start takes this for a crash");
            return;
        }
        self.engine.close();
    }
}

/// The last group.
#[derive(Clone, Copy, Debug)]
struct Last {
    count: usize,
    began: Instant,
}

impl Last {
    /// How many to wait for, and how long. Under load, those who were answered by the last commit come back within a moment:
    /// one commit for all of them costs less than two. Who comes alone, and after the last group has ended, never waits.
    fn gather(self, apart: Duration, idle: bool) -> (usize, Duration) {
        let left = apart.saturating_sub(self.began.elapsed());
        if !idle && !left.is_zero() {
            (MOST_GATHERED, left)
        } else if self.count >= CROWD {
            (self.count.saturating_mul(2).min(MOST_GATHERED), GATHER)
        } else {
            (0, Duration::ZERO)
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long something took, and when to try again: no rule depends on it"
)]
pub(crate) fn now() -> Instant {
    Instant::now()
}
