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
mod forget;
mod group;
mod hot;
mod jobs;
mod record;
mod replay;
mod work;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use tidegate_core::time::Timestamp;

use super::failure::Failure;
use super::names::Intern;
use super::queue::Taken;
use super::shared::Shared;
use super::sql;
use crate::record::Commit;
use crate::{AccountNo, StoreError};

pub(super) use counts::{Counts, LaneRow, Running, hour_of};
use hot::Hot;
pub(super) use record::PROMOTED;
use work::Weight;
pub(super) use work::{Accepting, Answer, Work};

/// How long records wait before they are tried again on a full disk.
const FULL_PAUSE: Duration = Duration::from_secs(1);
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
    let ended = Writer::new(&connection, path, &shared, counts, &*on_commit).map(|mut writer| writer.work());
    if let Err(error) = ended {
        shared.break_down(&error.to_string());
        refuse_all(&shared);
    }
    // The last connection that closes empties the log.
    if let Err((_, error)) = connection.close() {
        tracing::warn!(%error, "the store did not close well; it recovers when it is opened");
    }
}

/// Everything that waits or comes is answered with what is wrong.
fn refuse_all(shared: &Shared) {
    while let Some(work) = shared.work.pop() {
        work.fail(&StoreError::Broken(shared.what_broke()));
    }
}

struct Writer<'c> {
    connection: &'c Connection,
    path: PathBuf,
    shared: &'c Shared,
    on_commit: &'c (dyn Fn(Commit) + Send),
    hot: Hot<'c>,
    intern: Intern,
    counts: Counts,
    /// Events up to this were looked at by retention.
    forget_cursor: i64,
    /// The latest time that anybody told us.
    latest: Timestamp,
    /// Pages that the log has grown by since it was last emptied, estimated.
    log_pages: u64,
}

impl<'c> Writer<'c> {
    fn new(
        connection: &'c Connection,
        path: PathBuf,
        shared: &'c Shared,
        counts: Counts,
        on_commit: &'c (dyn Fn(Commit) + Send),
    ) -> rusqlite::Result<Self> {
        let cursor = connection.query_row(sql::GET_META, ["forget_cursor"], |row| row.get(0))?;
        Ok(Self {
            connection,
            path,
            shared,
            on_commit,
            hot: Hot::prepare(connection)?,
            intern: Intern::default(),
            counts,
            forget_cursor: cursor,
            latest: Timestamp::MIN,
            log_pages: 0,
        })
    }

    fn work(&mut self) {
        loop {
            let patience = if self.shared.is_full() { FULL_PAUSE } else { IDLE };
            let mut weight = Weight::default();
            match self.shared.work.take(patience, |work| weight.admits(work)) {
                Taken::Some(group) => {
                    if let Some(closed) = self.commit(group) {
                        self.close();
                        let _ = closed.send(());
                        return;
                    }
                    self.empty_long_log();
                }
                Taken::Nothing => self.empty_idle_log(),
                Taken::Closed => return,
            }
            if self.shared.is_broken() {
                refuse_all(self.shared);
                return;
            }
        }
    }

    /// Writes the mark of a clean stop and empties the log.
    fn close(&self) {
        let marked = self.connection.execute(sql::SET_META, ("clean_stop", 1));
        match marked {
            Ok(_) => self.checkpoint("truncate"),
            Err(error) => {
                tracing::warn!(%error, "no mark of a clean stop; the next start takes it for a crash")
            }
        }
    }

    /// Sees a time that somebody told us.
    fn saw(&mut self, now: Timestamp) {
        self.latest = self.latest.max(now);
    }

    fn account_of(&self, destination: crate::DestinationNo) -> Result<AccountNo, Failure> {
        let no = self
            .connection
            .prepare_cached(sql::ACCOUNT_OF_DESTINATION)?
            .query_row([destination.0], |row| row.get(0))?;
        Ok(AccountNo(no))
    }
}
