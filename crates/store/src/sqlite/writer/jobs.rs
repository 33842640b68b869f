//! Jobs, and their progress.

use rusqlite::params;

use super::Writer;
use crate::codec::{self, count, maybe_ms};
use crate::job::Job;
use crate::sqlite::failure::Failure;
use crate::sqlite::sql;

impl Writer<'_> {
    pub(super) fn put_job(&self, job: &Job) -> Result<(), Failure> {
        self.connection.prepare_cached(sql::PUT_JOB)?.execute(params![
            codec::bits(job.id),
            job.account.0,
            codec::job_kind_column(job.kind),
            job.request,
            job.created_at.as_millis(),
            codec::job_state_column(job.state),
            job.position.map(codec::seq),
            job.total.map(count),
            count(job.done),
            count(job.skipped),
            maybe_ms(job.finished_at)
        ])?;
        Ok(())
    }
}
