//! The writer: one thread, one connection, one commit for all that waits.
//!
//! ```text
//!   take all that waits ► begin immediate ► apply each ► kept counts ► commit (one fsync)
//!                       ► on_commit: the engine goes on ► answers ► empty the log if it is long
//! ```
//!
//! A group fails as a whole and nothing of it is left. Where there is no room, records wait and are tried again; where one
//! thing cannot be stored, the others are tried one by one; where the disk is broken, nothing is acknowledged any more.

mod accept;
mod catalogue;
mod checkpoint;
mod counts;
mod filing;
mod forget;
mod group;
mod hot;
mod jobs;
mod record;
mod replay;
mod watch;
mod work;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tidegate_core::time::Timestamp;

use super::failure::Failure;
use super::load;
use super::names::Intern;
use super::queue::Taken;
use super::shared::Shared;
use super::sql;
use crate::record::Commit;
use crate::{AccountNo, StoreError};

pub(super) use counts::{Counts, LaneRow, Running, hour_of};
use filing::Filing;
use hot::Hot;
pub(super) use record::PROMOTED;
use watch::Watch;
use work::Weight;
pub(super) use work::{Accepting, Answer, Work};

/// How long records wait before they are tried again on a full disk.
const FULL_PAUSE: Duration = Duration::from_secs(1);
/// A group of so many means load.
const CROWD: usize = 8;
/// How long a group under load waits for more, a fraction of its fsync.
const GATHER: Duration = Duration::from_micros(300);
/// More than this many are never waited for.
const MOST_GATHERED: usize = 128;
/// After so long without work the log is emptied.
const IDLE: Duration = Duration::from_secs(1);

/// What the thread starts from.
pub(super) struct Start {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
    pub(super) shared: Arc<Shared>,
    pub(super) counts: Counts,
    pub(super) on_commit: Box<dyn Fn(Commit) + Send>,
}

/// Runs until the store is closed or let go of.
pub(super) fn run(start: Start) {
    let Start { connection, path, shared, counts, on_commit } = start;
    let _guard = Guard(&shared);
    let ended = Writer::new(&connection, &path, &shared, counts, &*on_commit).map(|mut writer| writer.work());
    if let Err(error) = ended {
        shared.break_down(&error.to_string());
        refuse_all(&shared);
    }
    // The last connection that closes empties the log.
    if let Err((_, error)) = connection.close() {
        tracing::warn!(%error, "the store did not close well; it recovers when it is opened");
    }
}

/// If the writer ends by a panic, nobody must wait for it.
struct Guard<'a>(&'a Shared);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_down("its writer ended by a panic");
            refuse_all(self.0);
        }
    }
}

/// Everything that waits or comes is answered with what is wrong.
fn refuse_all(shared: &Shared) {
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

struct Writer<'c> {
    connection: &'c Connection,
    shared: &'c Shared,
    on_commit: &'c (dyn Fn(Commit) + Send),
    hot: Hot<'c>,
    intern: Intern,
    counts: Counts,
    filing: Filing,
    /// Events up to this were looked at by retention.
    forget_cursor: i64,
    /// The same, once the group that is being written is committed.
    next_cursor: Option<i64>,
    /// The time that somebody told us last.
    latest: Option<Timestamp>,
    /// Pages that the log has grown by since it was last emptied, estimated.
    log_pages: u64,
    watch: Watch,
}

impl<'c> Writer<'c> {
    fn new(
        connection: &'c Connection,
        path: &Path,
        shared: &'c Shared,
        counts: Counts,
        on_commit: &'c (dyn Fn(Commit) + Send),
    ) -> rusqlite::Result<Self> {
        let watch = Watch::new(path);
        let cursor = load::meta(connection, "forget_cursor")?;
        let filing = Filing::new(load::meta(connection, "filed")?, counts.sequence);
        Ok(Self {
            connection,
            shared,
            on_commit,
            hot: Hot::prepare(connection)?,
            intern: Intern::default(),
            counts,
            filing,
            forget_cursor: cursor,
            next_cursor: None,
            latest: None,
            log_pages: 0,
            watch,
        })
    }

    fn work(&mut self) {
        let mut last = 0;
        loop {
            if self.shared.is_full() {
                self.wait_for_room();
            }
            let mut weight = Weight::default();
            match self.shared.work.take(IDLE, gather(last), |work| weight.admits(work)) {
                Taken::Some(group) => {
                    last = group.len();
                    if let Some(closed) = self.commit(group) {
                        self.close();
                        let _ = closed.send(());
                        refuse_rest(self.shared);
                        return;
                    }
                    self.empty_long_log();
                }
                Taken::Nothing => self.empty_idle_log(),
                Taken::Closed => return,
            }
            self.watch_file();
            if self.shared.is_broken() {
                refuse_all(self.shared);
                return;
            }
        }
    }

    /// A moment before the next try: records wait, and whoever asks for something is told at once that there is no room.
    /// The log may be long and the file only a little short of what is in it: emptied, it makes its own room.
    fn wait_for_room(&mut self) {
        self.empty_idle_log();
        let is_record = |work: &Work| matches!(work, Work::Record(_));
        let closes = |work: &Work| matches!(work, Work::Close(_));
        let until = now() + FULL_PAUSE;
        loop {
            let patience = until.saturating_duration_since(now());
            let asked = self.shared.work.pick(patience, |work| !is_record(work) && !closes(work), closes);
            if asked.is_empty() {
                return;
            }
            asked.into_iter().for_each(|work| work.fail(&StoreError::Full));
        }
    }

    /// Writes the mark of a clean stop and empties the log. On a full disk results are left unwritten: that is no clean stop.
    fn close(&mut self) {
        if self.shared.is_full() || self.shared.is_broken() {
            tracing::warn!("not everything could be written: the next start takes this for a crash");
            return;
        }
        match self.connection.execute(sql::SET_META, ("clean_stop", 1)) {
            Ok(_) => self.checkpoint("truncate"),
            Err(error) => {
                tracing::warn!(%error, "no mark of a clean stop: the next start takes it for a crash");
            }
        }
    }

    /// Sees a time that somebody told us.
    const fn saw(&mut self, now: Timestamp) {
        self.latest = Some(now);
    }

    fn account_of(&self, destination: crate::DestinationNo) -> Result<AccountNo, Failure> {
        let no = self
            .connection
            .prepare_cached(sql::ACCOUNT_OF_DESTINATION)?
            .query_row([destination.0], |row| row.get(0))?;
        Ok(AccountNo(no))
    }
}

/// How many to wait for, and how long. Under load, those who were answered by the last commit come back within a moment:
/// one commit for all of them costs less than two. Who comes alone never waits.
fn gather(last: usize) -> (usize, Duration) {
    if last < CROWD { (0, Duration::ZERO) } else { (last.saturating_mul(2).min(MOST_GATHERED), GATHER) }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long something took, and when to try again: no rule depends on it"
)]
fn now() -> Instant {
    Instant::now()
}
