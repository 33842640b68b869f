//! What is read when the store is opened, and when another node has changed it.

use tidegate_core::sequence::Sequence;

use crate::catalogue::{Account, ApiKey, Catalogue, Deleted, Destination, EventTypeRow, Route};
use crate::codec::{self, job_kind, job_state, sequence, time, uncount};
use crate::counts::{LaneRow, Running};
use crate::job::Job;
use crate::lane::StoredLane;
use crate::source::{Result, Row, Source, params};
use crate::sql;
use crate::stats::Tally;
use crate::{AccountNo, DestinationNo};

/// One of the single numbers.
pub(crate) fn meta(source: &Source, name: &str) -> Result<i64> {
    let found = source.one(sql::GET_META, params![name], |row| row.get(0))?;
    found.ok_or_else(|| codec::strange("no number", name))
}

/// What owners asked for.
pub(crate) fn catalogue(source: &Source) -> Result<Catalogue> {
    Ok(Catalogue {
        accounts: source.all(sql::LOAD_ACCOUNTS, params![], account)?,
        keys: source.all(sql::LOAD_KEYS, params![], key)?,
        destinations: source.all(sql::LOAD_DESTINATIONS, params![], destination)?,
        routes: source.all(sql::LOAD_ROUTES, params![], route)?,
        event_types: source.all(sql::LOAD_EVENT_TYPES, params![], event_type)?,
        deleted: source.all(sql::LOAD_DELETED, params![], deleted)?,
    })
}

/// A lane: `destination_no, open, state, timeouts, saved_at, in_flight`.
pub(crate) fn lane(row: &Row<'_>) -> Result<StoredLane> {
    Ok(StoredLane {
        destination: DestinationNo(row.get(0)?),
        open: uncount(row.get(1)?),
        state: row.get(2)?,
        timeouts: row.get(3)?,
        saved_at: row.get::<Option<i64>>(4)?.map(time),
        in_flight: row.get::<Option<u32>>(5)?.unwrap_or(0),
    })
}

/// A row of kept counts that begins with `destination_no, account_no, open, bytes, hour` and a tally.
pub(crate) fn lane_counts(row: &Row<'_>) -> Result<(DestinationNo, LaneRow)> {
    let running = Running { hour: row.get(4)?, tally: tally(row, 5)? };
    let lane = LaneRow { account: AccountNo(row.get(1)?), open: row.get(2)?, bytes: row.get(3)?, running };
    Ok((DestinationNo(row.get(0)?), lane))
}

/// What happened to an account: `account_no, hour` and a tally.
pub(crate) fn account_tally(row: &Row<'_>) -> Result<(AccountNo, Running)> {
    Ok((AccountNo(row.get(0)?), Running { hour: row.get(1)?, tally: tally(row, 2)? }))
}

/// The eight columns of a tally, from `first` on.
pub(crate) fn tally(row: &Row<'_>, first: usize) -> Result<Tally> {
    let column = |place: usize| row.get(first + place).map(uncount);
    Ok(Tally {
        accepted: column(0)?,
        delivered: column(1)?,
        dead_letter: column(2)?,
        expired: column(3)?,
        cancelled: column(4)?,
        attempts: column(5)?,
        successes: column(6)?,
        timeouts: column(7)?,
    })
}

/// A job, with its number among jobs.
pub(crate) fn job(row: &Row<'_>) -> Result<(Sequence, Job)> {
    let job = Job {
        id: codec::from_bits(row.get(0)?),
        account: AccountNo(row.get(1)?),
        kind: job_kind(row.get(2)?),
        request: row.get(3)?,
        created_at: time(row.get(4)?),
        state: job_state(row.get(5)?),
        position: row.get::<Option<i64>>(6)?.map(sequence),
        total: row.get::<Option<i64>>(7)?.map(uncount),
        done: uncount(row.get(8)?),
        skipped: uncount(row.get(9)?),
        finished_at: row.get::<Option<i64>>(10)?.map(time),
    };
    Ok((sequence(row.get(11)?), job))
}

fn account(row: &Row<'_>) -> Result<Account> {
    Ok(Account {
        no: AccountNo(row.get(0)?),
        id: codec::from_bits(row.get(1)?),
        external_id: row.get(2)?,
        document: row.get(3)?,
        settings: row.get(4)?,
        version: uncount(row.get(5)?),
        created_at: time(row.get(6)?),
    })
}

fn key(row: &Row<'_>) -> Result<ApiKey> {
    Ok(ApiKey {
        id: codec::from_bits(row.get(0)?),
        account: AccountNo(row.get(1)?),
        hash: row.get(2)?,
        document: row.get(3)?,
        created_at: time(row.get(4)?),
        expires_at: row.get::<Option<i64>>(5)?.map(time),
    })
}

fn destination(row: &Row<'_>) -> Result<Destination> {
    Ok(Destination {
        no: DestinationNo(row.get(0)?),
        id: codec::from_bits(row.get(1)?),
        account: AccountNo(row.get(2)?),
        external_id: row.get(3)?,
        document: row.get(4)?,
        secrets: row.get(5)?,
        version: uncount(row.get(6)?),
        created_at: time(row.get(7)?),
        updated_at: time(row.get(8)?),
    })
}

fn deleted(row: &Row<'_>) -> Result<Deleted> {
    Ok(Deleted {
        no: DestinationNo(row.get(0)?),
        id: codec::from_bits(row.get(1)?),
        account: AccountNo(row.get(2)?),
        has_open: row.get(3)?,
    })
}

fn route(row: &Row<'_>) -> Result<Route> {
    Ok(Route {
        id: codec::from_bits(row.get(0)?),
        account: AccountNo(row.get(1)?),
        destination: DestinationNo(row.get(2)?),
        document: row.get(3)?,
        created_at: time(row.get(4)?),
    })
}

fn event_type(row: &Row<'_>) -> Result<EventTypeRow> {
    Ok(EventTypeRow {
        account: AccountNo(row.get(0)?),
        event_type: row.get(1)?,
        document: row.get(2)?,
        version: uncount(row.get(3)?),
        updated_at: time(row.get(4)?),
    })
}
