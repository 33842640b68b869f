//! Filing: deliveries and attempts into the lists of their destinations, many at a time.
//!
//! ```text
//!   numbers   ──────────────┬───────────────┬──────────────►
//!                         filed            mark       the newest
//!             in the lists  │ filed next    │ found at the end of their tables
//! ```
//!
//! Rows are stored about in the order of their numbers, not exactly. One that comes when those around it are filed already
//! is filed at once; the mark, at which many rows came after it, makes that rare.

use super::Writer;
use crate::DestinationNo;
use crate::sqlite::failure::Failure;
use crate::sqlite::sql;

/// Rows that are filed at a time, about. A list looks through up to twice as many that are not filed.
const BATCH: u64 = 4_096;

#[derive(Debug)]
pub(super) struct Filing {
    /// Rows with numbers up to this are filed.
    filed: i64,
    /// Rows with numbers up to this are filed next.
    mark: i64,
    /// Rows that were stored since the mark was set.
    since: u64,
    /// Rows of the group that is being written.
    added: u64,
    /// Whether that group files what is before the mark.
    files: bool,
}

impl Filing {
    /// After a start. What the last process left is filed with the first group.
    pub(super) const fn new(filed: i64, newest: i64) -> Self {
        Self { filed, mark: newest, since: BATCH, added: 0, files: false }
    }

    /// The group is committed; `newest` is the highest number in the store now.
    pub(super) fn commit(&mut self, newest: i64) {
        self.since += std::mem::take(&mut self.added);
        if std::mem::take(&mut self.files) {
            (self.filed, self.mark, self.since) = (self.mark, newest, 0);
        }
    }

    /// The group is not.
    pub(super) const fn roll_back(&mut self) {
        (self.added, self.files) = (0, false);
    }

    /// A row with this number was stored. Says whether it is too late to be filed with others.
    const fn add(&mut self, seq: i64) -> bool {
        self.added += 1;
        seq <= self.filed
    }
}

impl Writer<'_> {
    pub(super) fn file_delivery(&mut self, destination: DestinationNo, seq: i64) -> Result<(), Failure> {
        if self.filing.add(seq) {
            self.connection.prepare_cached(sql::FILE_DELIVERY)?.execute((destination.0, seq))?;
        }
        Ok(())
    }

    pub(super) fn file_attempt(&mut self, destination: DestinationNo, seq: i64) -> Result<(), Failure> {
        if self.filing.add(seq) {
            self.connection.prepare_cached(sql::FILE_ATTEMPT)?.execute((destination.0, seq))?;
        }
        Ok(())
    }

    /// At the end of a group: files what is before the mark, once enough came after it.
    pub(super) fn file_batch(&mut self) -> Result<(), Failure> {
        let Filing { filed, mark, since, added, .. } = self.filing;
        if since + added < BATCH {
            return Ok(());
        }
        for sql in [sql::FILE_DELIVERIES, sql::FILE_ATTEMPTS] {
            self.connection.prepare_cached(sql)?.execute((filed, mark))?;
        }
        self.connection.prepare_cached(sql::SET_META)?.execute(("filed", mark))?;
        self.filing.files = true;
        Ok(())
    }
}
