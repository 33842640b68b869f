//! What lies in the outbox.

use tidegate_core::slots::NodeNo;

use super::cluster::number;
use super::lanes::all;
use super::sql;
use crate::codec::{self, length, time};
use crate::outbox::{Outboxed, Refused};
use crate::source::{Result, Row, Source, params};

/// Events that this node is to accept.
pub(crate) fn outbox(source: &Source, me: NodeNo, limit: usize) -> Result<Vec<Outboxed>> {
    all(source, sql::OUTBOX, params![number(me), length(limit)], outboxed)
}

/// Events that were refused, the newest first.
pub(crate) fn refused_outbox(source: &Source, limit: usize) -> Result<Vec<Refused>> {
    all(source, sql::REFUSED_OUTBOX, params![length(limit)], |row| {
        Ok(Refused { outboxed: outboxed(row)?, error: row.get(7)?, refused_at: time(row.get(8)?) })
    })
}

/// How many that are, up to a limit.
pub(crate) fn count_refused_outbox(source: &Source, limit: i64) -> Result<u64> {
    let found = all(source, sql::COUNT_REFUSED_OUTBOX, params![limit], |row| row.get(0).map(codec::uncount))?;
    Ok(found.first().copied().unwrap_or(0))
}

/// Keeps one, with the reason why it was refused.
pub(crate) fn refuse_outbox(source: &Source, no: u64, error: &str) -> Result<()> {
    // Text in PostgreSQL has no NUL.
    let error = error.replace('\0', " ");
    all(source, sql::REFUSE_OUTBOX, params![codec::count(no), error], |_| Ok(())).map(|_| ())
}

fn outboxed(row: &Row<'_>) -> Result<Outboxed> {
    Ok(Outboxed {
        no: codec::uncount(row.get(0)?),
        event: codec::id(row.get(1)?, row.get(2)?),
        event_type: row.get(3)?,
        payload: row.get(4)?,
        options: row.get(5)?,
        created_at: time(row.get(6)?),
    })
}
