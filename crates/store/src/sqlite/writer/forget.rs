//! Retention: events whose deliveries are all final, and old enough, go with everything that belongs to them.
//!
//! Events are passed once, in the order of acceptance. One that still has something open, or young, is noted when that
//! becomes final and looked at again when it is old; so nothing that is open is ever walked over twice.

use rusqlite::{OptionalExtension, params};
use tidegate_core::time::{Millis, Timestamp};

use super::Writer;
use crate::sqlite::codec;
use crate::sqlite::failure::Failure;
use crate::sqlite::sql;

/// Idempotency keys count for 24 h; they are kept for twice that, in case the clock was set.
const KEYS_KEPT: Millis = Millis::hours(48);

/// The deliveries that an event was accepted with: first and last number, if it has any.
type Range = Option<(i64, i64)>;

impl Writer<'_> {
    /// One step: looks at no more than `limit` events. Says how many went.
    pub(super) fn forget(&mut self, before: Timestamp, limit: usize) -> Result<u64, Failure> {
        let limit = codec::length(limit);
        let cut = before.as_millis();
        let mut gone = self.forget_noted(cut, limit)?;
        let next = self.next_to_forget(cut, limit)?;
        let cursor = next.last().map(|(seq, _)| *seq);
        for (seq, range) in next {
            gone += u64::from(self.forget_if_old(seq, range, cut)?);
        }
        if let Some(cursor) = cursor {
            self.connection.prepare_cached(sql::SET_META)?.execute(("forget_cursor", cursor))?;
            // Should the group fail, events above the stored cursor are only noted once too often.
            self.forget_cursor = cursor;
        }
        let keys = self.latest - KEYS_KEPT;
        for (sql, cut) in [
            (sql::FORGET_HOLDS, cut),
            (sql::FORGET_NOTICES, cut),
            (sql::FORGET_HOURS, cut),
            (sql::FORGET_IDEMPOTENCY_KEYS, keys.as_millis()),
        ] {
            self.connection.prepare_cached(sql)?.execute([cut, limit])?;
        }
        Ok(gone)
    }

    /// A delivery became final: where retention has passed its event, that is looked at again.
    pub(super) fn note_to_forget(&self, event_seq: i64, now: Timestamp) -> Result<(), Failure> {
        if event_seq <= self.forget_cursor {
            self.connection.prepare_cached(sql::ADD_FORGET_LATER)?.execute([now.as_millis(), event_seq])?;
        }
        Ok(())
    }

    fn next_to_forget(&self, cut: i64, limit: i64) -> Result<Vec<(i64, Range)>, Failure> {
        let mut statement = self.connection.prepare_cached(sql::NEXT_TO_FORGET)?;
        let mut rows = statement.query(params![self.forget_cursor, limit])?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            if row.get::<_, i64>(3)? >= cut {
                break;
            }
            found.push((row.get(0)?, range(row.get(1)?, row.get(2)?)));
        }
        Ok(found)
    }

    fn forget_noted(&self, cut: i64, limit: i64) -> Result<u64, Failure> {
        let noted = self
            .connection
            .prepare_cached(sql::NOTED_TO_FORGET)?
            .query_map([cut, limit], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<Vec<(i64, i64)>>>()?;
        let mut gone = 0;
        for (at, seq) in noted {
            self.connection.prepare_cached(sql::FORGET_NOTE)?.execute([at, seq])?;
            let event = self
                .connection
                .prepare_cached(sql::EVENT_TO_FORGET)?
                .query_row([seq], |row| Ok(range(row.get(0)?, row.get(1)?)))
                .optional()?;
            if let Some(range) = event {
                gone += u64::from(self.forget_if_old(seq, range, cut)?);
            }
        }
        Ok(gone)
    }

    /// Deletes an event if everything of it became final before `cut`; notes it if all is final, but not so old.
    fn forget_if_old(&self, event_seq: i64, range: Range, cut: i64) -> Result<bool, Failure> {
        let replays = self
            .connection
            .prepare_cached(sql::REPLAYS_TO_FORGET)?
            .query_map([event_seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
            .collect::<rusqlite::Result<Vec<(i64, i64, Option<i64>)>>>()?;
        let (mut open, mut last) = match range {
            None => (0, None),
            Some((first, last)) => self
                .connection
                .prepare_cached(sql::DELIVERIES_TO_FORGET)?
                .query_row([first, last], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(1)?)))?,
        };
        for (_, stage, finished_at) in &replays {
            open += i64::from(*stage == 0);
            last = last.max(*finished_at);
        }
        match last {
            _ if open > 0 => return Ok(false),
            Some(last) if last >= cut => {
                self.connection.prepare_cached(sql::ADD_FORGET_LATER)?.execute([last, event_seq])?;
                return Ok(false);
            }
            _ => {}
        }
        for (first, last) in replays.iter().map(|(seq, ..)| (*seq, *seq)).chain(range) {
            self.connection.prepare_cached(sql::FORGET_ANSWERS)?.execute([first, last])?;
            self.connection.prepare_cached(sql::FORGET_ATTEMPTS)?.execute([first, last])?;
            self.connection.prepare_cached(sql::FORGET_DELIVERIES)?.execute([first, last])?;
        }
        self.connection.prepare_cached(sql::FORGET_EVENT)?.execute([event_seq])?;
        Ok(true)
    }
}

fn range(first: Option<i64>, routed: i64) -> Range {
    first.map(|first| (first, first + routed - 1))
}
