//! A lane's window, filled again: the first deliveries of each shelf and line, each found by index.
//!
//! ```text
//!   timed     deliveries_waiting, by their time
//!   shelves   deliveries_ready: one cursor for each priority and event type, merged by place within each shelf
//!   fifo      the same cursors, all merged into one line; deliveries_tried first
//!   by key    deliveries_keyed, key after key, from after the one where the last refill ended
//! ```
//!
//! All looks of one refill see the same commit.

mod lines;
mod merge;

use std::sync::Arc;

use tidegate_core::delivery::Delivery;
use tidegate_core::order::{Line, Ordering};
use tidegate_core::refill::{Group, Refill};
use tidegate_core::time::Timestamp;

use crate::DestinationNo;
use crate::codec::{length, time};
use crate::lane::{RefillQuery, Refilled};
use crate::shared::Reader;
use crate::source::{Result, params};
use crate::sql;
use merge::Merge;

/// Deliveries of one priority and event type, with or without an ordering key.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    pub(super) keyless: bool,
    pub(super) priority: i64,
    pub(super) type_no: i64,
}

/// What a refill found.
pub(crate) enum Due {
    /// The answer.
    Found(Box<Refilled>),
    /// Something came due and is not marked ready yet: that is for the writer to do first.
    First,
}

impl Reader {
    /// Whether something waits for its own time although that has come.
    fn is_due(&self, destination: DestinationNo, now: Timestamp) -> Result<Option<Timestamp>> {
        let params = params![destination.0, now.as_millis()];
        self.one(sql::IS_DUE, params, |row| row.get(0).map(time))
    }

    /// What waits for a time of its own after this one, by that.
    pub(crate) fn timed_after(
        &self,
        destination: DestinationNo,
        after: Timestamp,
        limit: usize,
    ) -> Result<Vec<Delivery>> {
        let params = params![destination.0, after.as_millis(), length(limit)];
        self.all(sql::REFILL_TIMED, params, |row| self.delivery_of(row))
    }

    /// The priorities and types of what is ready: a skip scan, so its cost is their number.
    pub(super) fn kinds(&self, destination: DestinationNo, keyless: bool) -> Result<Vec<Kind>> {
        let mut kinds = Vec::new();
        let mut last: (i64, i64) = (0, 0);
        loop {
            let params = params![destination.0, keyless, last.0, last.1];
            let next = self.one(sql::REFILL_KINDS, params, |row| Ok((row.get(0)?, row.get(1)?)))?;
            let Some((priority, type_no)) = next else { return Ok(kinds) };
            kinds.push(Kind { keyless, priority, type_no });
            last = (priority, type_no);
        }
    }

    /// Fills a window. With `insist`, what is due but not marked ready is left for the next time.
    pub(crate) fn refill(&self, query: &RefillQuery, insist: bool) -> Result<Due> {
        self.at_once(|| {
            let due = self.is_due(query.destination, query.now)?;
            if due.is_some() && !insist {
                return Ok(Due::First);
            }
            let mut search = Search { reader: self, query, refill: Refill::default(), after_key: None };
            let cut = search.take_timed()?;
            match query.policy.ordering {
                Ordering::None => search.take_shelves(&[true, false])?,
                Ordering::Key => {
                    search.take_shelves(&[true])?;
                    search.take_lines(cut)?;
                }
                Ordering::Fifo => search.take_whole(cut)?,
            }
            let mut refill = search.refill;
            refill.more.timed_from = [refill.more.timed_from, due].into_iter().flatten().min();
            Ok(Due::Found(Box::new(Refilled { refill, after_key: search.after_key })))
        })
    }
}

/// One refill.
struct Search<'a> {
    reader: &'a Reader,
    query: &'a RefillQuery,
    refill: Refill,
    after_key: Option<Arc<str>>,
}

impl Search<'_> {
    fn kinds(&self, keyless: bool) -> Result<Vec<Kind>> {
        self.reader.kinds(self.query.destination, keyless)
    }

    fn group(&self, priority: i64, type_no: i64) -> Result<Group> {
        let event_type = self.reader.shared.names.event_type(&self.reader.source, type_no)?;
        let quiet = self.query.policy.quiet.mask_for(&event_type);
        Ok(Group { priority: super::rows::priority(priority)?, quiet })
    }

    /// Those that wait for their own time, by that; those of one time stay together. Returns the time of the first that is
    /// left out.
    fn take_timed(&mut self) -> Result<Option<Timestamp>> {
        let wanted = self.query.wanted.timed;
        let mut timed = self.reader.timed_after(self.query.destination, self.query.now, wanted + 1)?;
        let cut = timed.get(wanted).and_then(|delivery| delivery.status.own_time());
        if cut.is_some() {
            timed.retain(|delivery| delivery.status.own_time() < cut);
        }
        self.refill.deliveries.append(&mut timed);
        self.refill.more.timed_from = cut;
        Ok(cut)
    }

    /// The first of each shelf of those that keep no order.
    fn take_shelves(&mut self, keyless: &[bool]) -> Result<()> {
        let mut shelves: Vec<(Group, Vec<Kind>)> = Vec::new();
        for keyless in keyless {
            for kind in self.kinds(*keyless)? {
                let group = self.group(kind.priority, kind.type_no)?;
                match shelves.iter_mut().find(|(known, _)| *known == group) {
                    Some((_, kinds)) => kinds.push(kind),
                    None => shelves.push((group, vec![kind])),
                }
            }
        }
        let wanted = self.query.wanted.per_shelf;
        for (group, kinds) in shelves {
            let mut merge = Merge::new(self.reader, self.query.destination, kinds, wanted + 1);
            let mut taken = merge.take(wanted)?;
            self.refill.deliveries.append(&mut taken);
            if merge.next()?.is_some() {
                self.refill.more.shelves.push(group);
            }
        }
        Ok(())
    }

    /// The whole line: one that was tried has its turn before those of an earlier place.
    fn take_whole(&mut self, cut: Option<Timestamp>) -> Result<()> {
        let waits = self.retry_from(self.query.now)?;
        let taken = waits && !cut.map(|cut| self.retry_from(cut)).transpose()?.unwrap_or(false);
        let halted = self.query.halted.contains(&Line::Whole);
        if waits || halted {
            if taken && self.is_ready()? {
                self.refill.more.lines.push(Line::Whole);
            }
            return Ok(());
        }
        let wanted = self.query.wanted.per_line;
        let tried = params![self.query.destination.0, length(wanted + 1)];
        let mut line = self.reader.all(sql::REFILL_TRIED, tried, |row| self.reader.delivery_of(row))?;
        if line.len() <= wanted {
            let kinds = [self.kinds(true)?, self.kinds(false)?].concat();
            let mut merge = Merge::new(self.reader, self.query.destination, kinds, wanted + 1 - line.len());
            while line.len() <= wanted {
                match merge.next()? {
                    Some(delivery) if delivery.attempts_made == 0 => line.push(delivery),
                    Some(_) => {}
                    None => break,
                }
            }
        }
        if line.len() > wanted {
            line.truncate(wanted);
            self.refill.more.lines.push(Line::Whole);
        }
        self.refill.deliveries.append(&mut line);
        Ok(())
    }

    /// Whether one that was tried waits for its retry, from `from` on.
    fn retry_from(&self, from: Timestamp) -> Result<bool> {
        let params = params![self.query.destination.0, from.as_millis()];
        Ok(self.reader.one(sql::REFILL_LAST_RETRY, params, |_| Ok(()))?.is_some())
    }

    fn is_ready(&self) -> Result<bool> {
        Ok(!self.kinds(true)?.is_empty() || !self.kinds(false)?.is_empty())
    }
}
