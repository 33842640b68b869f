//! What is written about destinations and accounts: lanes, holds, notices, the audit log, jobs, hours.

use tidegate_core::id::ReplayId;
use tidegate_core::sequence::Sequence;
use tidegate_core::time::Timestamp;

use super::beyond;
use crate::catalogue::AuditEntry;
use crate::codec::{self, length, sequence, time};
use crate::job::{Job, JobKind};
use crate::lane::{Of, StoredLane};
use crate::list::{Page, PageQuery};
use crate::record::{HoldRow, LogPlace, NoticeRow};
use crate::shared::Reader;
use crate::source::{Result, Row, Value, params};
use crate::stats::Hour;
use crate::{AccountNo, DestinationNo};
use crate::{load, sql};

impl Reader {
    /// Intervals that end after `from` and began before a place. A destination has one hold at a time, so the first that ended
    /// before it ends the search.
    pub(crate) fn holds(
        &self,
        destination: DestinationNo,
        from: Timestamp,
        to: LogPlace,
        limit: usize,
    ) -> Result<Vec<(LogPlace, HoldRow)>> {
        let values = params![destination.0, to.at.as_millis(), to.no, length(limit)];
        let mut found = self.all(sql::HOLDS, values, |row| {
            let since = time(row.get(1)?);
            let reason = codec::hold_reason(&row.get::<String>(0)?)?;
            let hold = HoldRow { destination, reason, since, until: time(row.get(2)?) };
            Ok((LogPlace { at: since, no: row.get(3)? }, hold))
        })?;
        let over = found.iter().position(|(_, hold)| hold.until <= from);
        found.truncate(over.unwrap_or(found.len()));
        Ok(found)
    }

    pub(crate) fn notices(
        &self,
        destination: DestinationNo,
        from: Timestamp,
        to: LogPlace,
        limit: usize,
    ) -> Result<Vec<(LogPlace, NoticeRow)>> {
        let values = params![destination.0, from.as_millis(), to.at.as_millis(), to.no, length(limit)];
        self.all(sql::NOTICES, values, |row| {
            let at = time(row.get(0)?);
            let notice = NoticeRow { destination, at, kind: row.get(1)?, detail: row.get(2)? };
            Ok((LogPlace { at, no: row.get(3)? }, notice))
        })
    }

    pub(crate) fn audit_log(
        &self,
        account: AccountNo,
        before: Option<Sequence>,
        limit: usize,
    ) -> Result<Page<(Sequence, AuditEntry)>> {
        let before = before.map_or(i64::MAX, codec::seq);
        let items = self.all(sql::AUDIT_LOG, params![account.0, before, length(limit)], |row| {
            let entry = AuditEntry {
                account,
                at: time(row.get(1)?),
                actor: row.get::<Option<[u8; 16]>>(2)?.map(codec::from_bits),
                action: row.get(3)?,
                subject: row.get(4)?,
                detail: row.get(5)?,
            };
            Ok((sequence(row.get(0)?), entry))
        })?;
        let next = items.last().filter(|_| items.len() >= limit).map(|(number, _)| *number);
        Ok(Page { items, next })
    }

    pub(crate) fn count_audit_log(&self, account: AccountNo, cap: u64) -> Result<u64> {
        self.count(sql::COUNT_AUDIT_LOG, params![account.0, beyond(cap)])
    }

    pub(crate) fn count_jobs(&self, account: AccountNo, kind: JobKind, cap: u64) -> Result<u64> {
        self.count(sql::COUNT_JOBS, params![account.0, codec::job_kind_column(kind), beyond(cap)])
    }

    pub(crate) fn job(&self, account: AccountNo, id: ReplayId) -> Result<Option<Job>> {
        self.one(sql::JOB, params![codec::bits(id), account.0], |row| load::job(row).map(|(_, job)| job))
    }

    pub(crate) fn jobs(&self, page: PageQuery, kind: JobKind) -> Result<Page<Job>> {
        let sql = if page.oldest_first { sql::JOBS_OLDEST_FIRST } else { sql::JOBS_NEWEST_FIRST };
        let start = if page.oldest_first { -1 } else { i64::MAX };
        let after = page.before.map_or(start, codec::seq);
        let params = params![page.account.0, codec::job_kind_column(kind), after, length(page.limit)];
        let found = self.all(sql, params, load::job)?;
        let next = found.last().filter(|_| found.len() >= page.limit).map(|(number, _)| *number);
        Ok(Page { items: found.into_iter().map(|(_, job)| job).collect(), next })
    }

    /// Lanes as they were last stored.
    pub(crate) fn lanes(&self, destinations: &[DestinationNo]) -> Result<Vec<StoredLane>> {
        let asked: Vec<_> = destinations.iter().map(|destination| vec![Value::from(destination.0)]).collect();
        Ok(self.each(sql::LANE, &asked, load::lane)?.into_iter().flatten().collect())
    }

    /// Hours from `from` on, the one that runs included, oldest first.
    pub(crate) fn hours(&self, of: Of, from: Timestamp) -> Result<Vec<Hour>> {
        let (owner, no, running) = match of {
            Of::Destination(destination) => (0_i64, destination.0, sql::RUNNING_HOUR_OF_DESTINATION),
            Of::Account(account) => (1, account.0, sql::RUNNING_HOUR_OF_ACCOUNT),
        };
        let first = crate::counts::hour_of(from);
        let hour = |row: &Row<'_>| Ok(Hour { start: time(row.get(0)?), tally: load::tally(row, 1)? });
        self.at_once(|| {
            let mut hours = self.all(sql::HOURS, params![owner, no, first], hour)?;
            // One for each node that counts.
            let running = self.all(running, params![no], hour)?;
            hours.extend(running.into_iter().filter(|hour| hour.start.as_millis() >= first));
            hours.sort_by_key(|hour| hour.start);
            hours.dedup_by(|later, earlier| {
                let same = later.start == earlier.start;
                if same {
                    earlier.tally.add(&later.tally);
                }
                same
            });
            Ok(hours)
        })
    }
}
