//! Retention: events whose deliveries are all final, and old enough, go with everything that belongs to them.
//!
//! Events are passed once, in the order of acceptance. One that still has something open, or young, is noted when that
//! becomes final and looked at again when it is old; so nothing that is open is ever walked over twice. One with a name of its
//! publisher's stays for as long as a repeat of that is to be known.

use std::collections::{BTreeSet, HashSet};

use rusqlite::{OptionalExtension, params};
use tidegate_core::time::{Millis, Timestamp};

use super::Writer;
use crate::codec;
use crate::event::REMEMBERED;
use crate::sqlite::failure::Failure;
use crate::sqlite::sql;
use crate::work::KEYS_KEPT;

/// So far ahead of the time now an acceptance cannot be, but by a clock that was wrong then.
const AHEAD: Millis = Millis::days(1);

/// The deliveries that an event was accepted with: first and last number, if it has any.
type Range = Option<(i64, i64)>;

/// An event that retention comes to.
#[derive(Clone, Copy, Debug)]
struct Next {
    seq: i64,
    deliveries: Range,
    /// A repeat of it is still to be known.
    named: bool,
}

impl Writer<'_> {
    /// One step: looks at no more than `limit` events. Says how many went.
    pub(super) fn forget(&mut self, before: Timestamp, limit: usize) -> Result<u64, Failure> {
        let limit = codec::length(limit);
        let cut = before.as_millis();
        let mut gone = self.forget_noted(cut, limit)?;
        let next = self.next_to_forget(cut, limit)?;
        gone += self.forget_runs(&next, cut)?;
        if let Some(Next { seq: cursor, .. }) = next.last().copied() {
            self.connection.prepare_cached(sql::SET_META)?.execute(("forget_cursor", cursor))?;
            self.next_cursor = Some(cursor);
        }
        let keys = self.shared.latest().map_or(Timestamp::MIN, |latest| latest - KEYS_KEPT);
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
        if event_seq <= self.passed() {
            self.connection.prepare_cached(sql::ADD_FORGET_LATER)?.execute([now.as_millis(), event_seq])?;
        }
        Ok(())
    }

    /// Events up to this were looked at.
    fn passed(&self) -> i64 {
        self.next_cursor.unwrap_or(self.forget_cursor)
    }

    fn next_to_forget(&self, cut: i64, limit: i64) -> Result<Vec<Next>, Failure> {
        let mut statement = self.connection.prepare_cached(sql::NEXT_TO_FORGET)?;
        let mut rows = statement.query(params![self.passed(), limit])?;
        let (mut found, latest) = (Vec::new(), self.shared.latest());
        while let Some(row) = rows.next()? {
            let accepted_at = codec::time(row.get(3)?);
            // What was accepted while the clock was far ahead must not keep all that came after it.
            let ahead = latest.is_some_and(|latest| accepted_at > latest + AHEAD);
            if accepted_at.as_millis() >= cut && !ahead {
                break;
            }
            let named = row.get(4)? && latest.is_some_and(|latest| accepted_at + REMEMBERED > latest);
            found.push(Next { seq: row.get(0)?, deliveries: range(row.get(1)?, row.get(2)?), named });
        }
        Ok(found)
    }

    /// Nearly all events of a day are old on the same day: runs of them go at once, the others are looked at one by one.
    fn forget_runs(&self, events: &[Next], cut: i64) -> Result<u64, Failure> {
        let special = self.special(events, cut)?;
        let mut gone = 0;
        for event in events.iter().filter(|event| special.events.contains(&event.seq)) {
            gone += u64::from(self.forget_if_old(event.seq, event.deliveries, cut)?);
        }
        for run in runs(events, &special) {
            if let Some((first, last)) = run.deliveries {
                self.forget_range(first, last)?;
            }
            self.connection.prepare_cached(sql::FORGET_EVENTS)?.execute([run.events.0, run.events.1])?;
            gone += run.count;
        }
        Ok(gone)
    }

    /// What keeps events from going as part of a run.
    fn special(&self, events: &[Next], cut: i64) -> Result<Special, Failure> {
        let mut special = Special::default();
        let (Some(Next { seq: first_event, .. }), Some(Next { seq: last_event, .. })) =
            (events.first(), events.last())
        else {
            return Ok(special);
        };
        special.events.extend(events.iter().filter(|event| event.named).map(|event| event.seq));
        let mut replayed = self.connection.prepare_cached(sql::REPLAYED_TO_FORGET)?;
        let mut rows = replayed.query([first_event, last_event])?;
        while let Some(row) = rows.next()? {
            special.events.insert(row.get(0)?);
        }
        let ranges = || events.iter().filter_map(|event| event.deliveries);
        let first = ranges().map(|(first, _)| first).min().unwrap_or(0);
        let last = ranges().map(|(_, last)| last).max().unwrap_or(-1);
        let mut obstacles = self.connection.prepare_cached(sql::FORGET_OBSTACLES)?;
        let mut rows = obstacles.query(params![first, last, cut, first_event, last_event])?;
        while let Some(row) = rows.next()? {
            special.numbers.insert(row.get(0)?);
            if !row.get::<_, bool>(2)? {
                special.events.insert(row.get(1)?);
            }
        }
        Ok(special)
    }

    /// Deliveries go with their attempts and what was kept of the answers.
    fn forget_range(&self, first: i64, last: i64) -> Result<(), Failure> {
        for sql in [
            sql::FORGET_ANSWERS,
            sql::FORGET_FILED_ATTEMPTS,
            sql::FORGET_ATTEMPTS,
            sql::FORGET_FILED_DELIVERIES,
            sql::FORGET_DELIVERIES,
        ] {
            self.connection.prepare_cached(sql)?.execute([first, last])?;
        }
        Ok(())
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

    /// What `cut` must have passed before an event may go whose name is still to be known; `None`: nothing keeps it.
    fn remembered_until(&self, event_seq: i64, cut: i64) -> Result<Option<i64>, Failure> {
        let named = self.connection.prepare_cached(sql::NAMED_AT)?.query_row([event_seq], |row| row.get(0));
        let (Some(accepted_at), Some(latest)) = (named.optional()?, self.shared.latest()) else {
            return Ok(None);
        };
        let left = codec::time(accepted_at) + REMEMBERED - latest;
        Ok((left > Millis::ZERO).then(|| cut + left.get()))
    }

    /// Deletes an event if everything of it became final before `cut`; notes it if all is final, but not so old.
    fn forget_if_old(&self, event_seq: i64, range: Range, cut: i64) -> Result<bool, Failure> {
        if let Some(at) = self.remembered_until(event_seq, cut)? {
            self.connection.prepare_cached(sql::ADD_FORGET_LATER)?.execute([at, event_seq])?;
            return Ok(false);
        }
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
            self.forget_range(first, last)?;
        }
        self.connection.prepare_cached(sql::FORGET_EVENTS)?.execute([event_seq, event_seq])?;
        Ok(true)
    }
}

/// What is in the way of runs: events that are looked at one by one, and deliveries that a run must not reach over.
#[derive(Debug, Default)]
struct Special {
    events: HashSet<i64>,
    numbers: BTreeSet<i64>,
}

/// Events in a row, with their deliveries in a row.
#[derive(Debug)]
struct Run {
    events: (i64, i64),
    deliveries: Range,
    count: u64,
}

/// The runs among `events`, which are in order and without a gap in the store.
fn runs(events: &[Next], special: &Special) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut goes_on = false;
    for Next { seq, deliveries: range, .. } in events {
        if special.events.contains(seq) {
            goes_on = false;
            continue;
        }
        let grown =
            runs.last().filter(|_| goes_on).and_then(|run| joined(run.deliveries, *range, &special.numbers));
        match (runs.last_mut(), grown) {
            (Some(run), Some(deliveries)) => {
                *run = Run { events: (run.events.0, *seq), deliveries, count: run.count + 1 };
            }
            _ => runs.push(Run { events: (*seq, *seq), deliveries: *range, count: 1 }),
        }
        goes_on = true;
    }
    runs
}

/// Two ranges as one, if nothing that must stay lies between them.
fn joined(before: Range, after: Range, stay: &BTreeSet<i64>) -> Option<Range> {
    match (before, after) {
        (Some((first, _)), Some((_, last))) if first > last => None,
        (Some((first, _)), Some((_, last))) => {
            stay.range(first..=last).next().is_none().then_some(Some((first, last)))
        }
        (range, None) | (None, range) => Some(range),
    }
}

fn range(first: Option<i64>, routed: i64) -> Range {
    first.map(|first| (first, first + routed - 1))
}
