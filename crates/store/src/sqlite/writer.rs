//! The writer on SQLite: one connection, and what each thing that is asked for does to it.
//!
//! ```text
//!   begin immediate ► apply each ► file ► kept counts ► commit (one fsync) ► empty the log if it is long
//! ```

mod accept;
mod catalogue;
mod checkpoint;
mod counts;
mod filing;
mod forget;
mod hot;
mod jobs;
mod record;
mod replay;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, TransactionState, params_from_iter};

use super::failure::Failure;
use super::intern::Intern;
use super::sql;
use crate::AccountNo;
use crate::catalogue::AuditEntry;
use crate::codec;
use crate::counts::Counts;
use crate::record::Commit;
use crate::shared::Shared;
use crate::sql::{ADD_AUDIT_ENTRY, GET_META};
use crate::work::{Done, Forgetting, Work};
use crate::writer::{self, Engine, change};

use filing::Filing;
use hot::Hot;
use watch::Watch;

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
    match Writer::new(&connection, &path, &shared, counts) {
        Ok(engine) => writer::run(&shared, engine, &*on_commit),
        Err(error) => {
            shared.break_down(&error.to_string());
            writer::refuse_all(&shared);
        }
    }
    // The last connection that closes empties the log.
    if let Err((_, error)) = connection.close() {
        tracing::warn!(%error, "the store did not close well; it recovers when it is opened");
    }
}

struct Writer<'c> {
    connection: &'c Connection,
    shared: &'c Shared,
    hot: Hot<'c>,
    intern: Intern,
    counts: Counts,
    filing: Filing,
    /// Events up to this were looked at by retention.
    forget_cursor: i64,
    /// The same, once the group that is being written is committed.
    next_cursor: Option<i64>,
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
    ) -> rusqlite::Result<Self> {
        let meta = |name| connection.query_row(GET_META.sqlite, [name], |row| row.get::<_, i64>(0));
        let filing = Filing::new(meta("filed")?, counts.sequence);
        Ok(Self {
            connection,
            shared,
            hot: Hot::prepare(connection)?,
            intern: Intern::default(),
            counts,
            filing,
            forget_cursor: meta("forget_cursor")?,
            next_cursor: None,
            log_pages: 0,
            watch: Watch::new(path),
        })
    }

    fn apply(&mut self, work: &mut Work) -> Result<Done, Failure> {
        match work {
            Work::Accept(accepting) => self.accept(accepting).map(Done::Accepted),
            Work::Replays { replays, job, .. } => {
                self.accept_replays(replays, job.as_ref()).map(Done::Replayed)
            }
            Work::Record { record, .. } => self.record(record).map(|()| Done::Nothing),
            Work::Change { change, .. } => change::change(self, change).map(Done::Changed),
            Work::PutJob { job, .. } => self.put_job(job).map(|()| Done::Nothing),
            Work::Promote { destination, now, .. } => self.promote(*destination, *now).map(Done::Counted),
            Work::Forget(Forgetting { before, limit, .. }) => self.forget(*before, *limit).map(Done::Counted),
            // There is nobody to give orders to.
            Work::PostOrder { .. } | Work::Close(_) => Ok(Done::Nothing),
        }
    }

    fn note(&self, entry: &AuditEntry) -> Result<(), Failure> {
        let mut statement = self.connection.prepare_cached(ADD_AUDIT_ENTRY.sqlite)?;
        statement.execute(params_from_iter(codec::audit_columns(entry)))?;
        Ok(())
    }

    fn account_of(&self, destination: crate::DestinationNo) -> Result<AccountNo, Failure> {
        let no = self
            .connection
            .prepare_cached(sql::ACCOUNT_OF_DESTINATION)?
            .query_row([destination.0], |row| row.get(0))?;
        Ok(AccountNo(no))
    }
}

impl Engine for Writer<'_> {
    /// A group costs little more than its fsync.
    fn apart(&self) -> Duration {
        Duration::ZERO
    }

    fn transact(&mut self, group: &mut [Work]) -> Result<Vec<Done>, Failure> {
        #[cfg(test)]
        self.shared.limit_pages(self.connection)?;
        self.hot.begin.execute(())?;
        let mut done = Vec::with_capacity(group.len());
        for work in group {
            done.push(self.apply(work)?);
            work.audit().iter().try_for_each(|entry| self.note(entry))?;
        }
        self.file_batch()?;
        self.write_counts()?;
        self.hot.commit.execute(())?;
        Ok(done)
    }

    fn committed(&mut self, commit: &Commit) {
        self.counts.commit(self.shared);
        self.filing.commit(self.counts.sequence);
        self.forget_cursor = self.next_cursor.take().unwrap_or(self.forget_cursor);
        self.log_pages += 8 + 4 * u64::try_from(commit.accepted.len() + commit.recorded.len()).unwrap_or(0);
    }

    fn roll_back(&mut self) {
        if !matches!(self.connection.transaction_state(None::<&str>), Ok(TransactionState::None))
            && let Err(error) = self.connection.execute_batch("rollback")
        {
            tracing::debug!(%error, "the transaction had ended by itself");
        }
        self.counts.roll_back();
        self.filing.roll_back();
        self.next_cursor = None;
        self.intern.forget();
    }

    /// The log may be long and the file only a little short of what is in it: emptied, it makes its own room. Whether there is
    /// enough is known when it is tried.
    fn recover(&mut self) -> Result<bool, Failure> {
        self.empty_idle_log();
        Ok(false)
    }

    fn has_room(&self) -> bool {
        self.watch.has_room()
    }

    /// Retention, which writes now and then, comes by here.
    fn writes_empty_groups(&self) -> bool {
        false
    }

    fn tidy(&mut self, idle: bool) {
        match idle {
            false => self.empty_long_log(),
            true => self.empty_idle_log(),
        }
        self.watch_file();
    }

    /// Writes the mark of a clean stop and empties the log.
    fn close(&mut self) {
        match self.connection.execute(sql::SET_META, ("clean_stop", 1)) {
            Ok(_) => self.checkpoint("truncate"),
            Err(error) => {
                tracing::warn!(%error, "no mark of a clean stop: the next start takes it for a crash");
            }
        }
    }
}
