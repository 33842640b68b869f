//! What is read once, when the store is opened.

use rusqlite::{Connection, Row};
use tidegate_core::sequence::Sequence;

use super::codec::{self, job_kind, job_state, sequence, time, uncount};
use super::sql;
use super::writer::{Counts, LaneRow, Running};
use crate::catalogue::{Account, ApiKey, Catalogue, Deleted, Destination, EventTypeRow, Route};
use crate::job::Job;
use crate::lane::StoredLane;
use crate::stats::Tally;
use crate::{AccountNo, DestinationNo};

fn all<T>(
    connection: &Connection,
    sql: &str,
    turn: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare(sql)?.query_map((), turn)?.collect()
}

/// One of the single numbers.
pub(super) fn meta(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.query_row(sql::GET_META, [name], |row| row.get(0))
}

/// What owners asked for.
pub(super) fn catalogue(connection: &Connection) -> rusqlite::Result<Catalogue> {
    Ok(Catalogue {
        accounts: all(connection, sql::LOAD_ACCOUNTS, account)?,
        keys: all(connection, sql::LOAD_KEYS, key)?,
        destinations: all(connection, sql::LOAD_DESTINATIONS, destination)?,
        routes: all(connection, sql::LOAD_ROUTES, route)?,
        event_types: all(connection, sql::LOAD_EVENT_TYPES, event_type)?,
        deleted: all(connection, sql::LOAD_DELETED, deleted)?,
    })
}

/// Jobs to go on with.
pub(super) fn running_jobs(connection: &Connection) -> rusqlite::Result<Vec<Job>> {
    all(connection, sql::RUNNING_JOBS, |row| job(row).map(|(_, job)| job))
}

/// Lanes, and the counts kept with them.
pub(super) fn lanes(connection: &Connection) -> rusqlite::Result<(Vec<StoredLane>, Counts)> {
    let mut counts = Counts::default();
    let lanes = all(connection, sql::LOAD_LANES, |row| {
        let destination = DestinationNo(row.get(0)?);
        let open: i64 = row.get(2)?;
        let running = Running { hour: row.get(4)?, tally: tally(row, 5)? };
        let lane = LaneRow { account: AccountNo(row.get(1)?), open, bytes: row.get(3)?, running };
        counts.lanes.insert(destination, lane);
        Ok(StoredLane { destination, state: row.get(13)?, timeouts: row.get(14)?, open: uncount(open) })
    })?;
    all(connection, sql::LOAD_ACCOUNT_TALLIES, |row| {
        let running = Running { hour: row.get(1)?, tally: tally(row, 2)? };
        counts.accounts.insert(AccountNo(row.get(0)?), running);
        Ok(())
    })?;
    counts.sequence = meta(connection, "sequence")?;
    Ok((lanes, counts))
}

/// The eight columns of a tally, from `first` on.
pub(super) fn tally(row: &Row<'_>, first: usize) -> rusqlite::Result<Tally> {
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
pub(super) fn job(row: &Row<'_>) -> rusqlite::Result<(Sequence, Job)> {
    let job = Job {
        id: codec::from_bits(row.get(0)?),
        account: AccountNo(row.get(1)?),
        kind: job_kind(row.get(2)?),
        request: row.get(3)?,
        created_at: time(row.get(4)?),
        state: job_state(row.get(5)?),
        position: row.get::<_, Option<i64>>(6)?.map(sequence),
        total: row.get::<_, Option<i64>>(7)?.map(uncount),
        done: uncount(row.get(8)?),
        skipped: uncount(row.get(9)?),
        finished_at: row.get::<_, Option<i64>>(10)?.map(time),
    };
    Ok((sequence(row.get(11)?), job))
}

fn account(row: &Row<'_>) -> rusqlite::Result<Account> {
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

fn key(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    Ok(ApiKey {
        id: codec::from_bits(row.get(0)?),
        account: AccountNo(row.get(1)?),
        hash: row.get(2)?,
        document: row.get(3)?,
        created_at: time(row.get(4)?),
        expires_at: row.get::<_, Option<i64>>(5)?.map(time),
    })
}

fn destination(row: &Row<'_>) -> rusqlite::Result<Destination> {
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

fn deleted(row: &Row<'_>) -> rusqlite::Result<Deleted> {
    Ok(Deleted {
        no: DestinationNo(row.get(0)?),
        id: codec::from_bits(row.get(1)?),
        account: AccountNo(row.get(2)?),
        has_open: row.get(3)?,
    })
}

fn route(row: &Row<'_>) -> rusqlite::Result<Route> {
    Ok(Route {
        id: codec::from_bits(row.get(0)?),
        account: AccountNo(row.get(1)?),
        destination: DestinationNo(row.get(2)?),
        document: row.get(3)?,
        created_at: time(row.get(4)?),
    })
}

fn event_type(row: &Row<'_>) -> rusqlite::Result<EventTypeRow> {
    Ok(EventTypeRow {
        account: AccountNo(row.get(0)?),
        event_type: row.get(1)?,
        document: row.get(2)?,
        version: uncount(row.get(3)?),
        updated_at: time(row.get(4)?),
    })
}
