//! Events, one by one and in lists.

use std::sync::Arc;

use rusqlite::{OptionalExtension, Row, params};
use tidegate_core::id::EventId;

use super::rows::priority;
use super::walk::Way;
use crate::AccountNo;
use crate::event::StoredEvent;
use crate::list::{EventFilter, Page, PageQuery};
use crate::sqlite::codec::{self, length, time};
use crate::sqlite::names::find_type;
use crate::sqlite::shared::Reader;
use crate::sqlite::sql;

/// Rows that are looked at for one page, and for one count.
const LOOKED_AT: usize = 2_000;
const COUNTED: usize = 50_000;
/// Rows that are read at once: each brings its payload.
const CHUNK: usize = 128;
/// Events with one external id that are listed: a day apart each, so many are years.
const SAME_EXTERNAL_ID: usize = 1_000;

impl Reader {
    fn stored_event(&self, row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
        Ok(StoredEvent {
            account: AccountNo(row.get(7)?),
            message: Arc::new(self.message_of(row, 0)?),
            occurred_at: time(row.get(8)?),
            expires_at: row.get::<_, Option<i64>>(9)?.map(time),
            deliver_at: row.get::<_, Option<i64>>(10)?.map(time),
            ordering_key: row.get(11)?,
            priority: priority(row.get(12)?)?,
            external_id: row.get(13)?,
            routed: row.get(14)?,
        })
    }

    pub(in crate::sqlite) fn event(
        &self,
        account: AccountNo,
        id: EventId,
    ) -> rusqlite::Result<Option<StoredEvent>> {
        let found = self
            .prepare(sql::EVENT)?
            .query_row([codec::seq(id.sequence())], |row| self.stored_event(row))
            .optional()?;
        Ok(found.filter(|event| event.account == account && event.message.id == id))
    }

    /// The events of an account with this external id.
    pub(super) fn events_by_external_id(
        &self,
        account: AccountNo,
        external_id: &str,
        limit: usize,
    ) -> rusqlite::Result<Vec<EventId>> {
        self.all(sql::EVENTS_BY_EXTERNAL_ID, params![account.0, external_id, length(limit)], |row| {
            Ok(codec::id(row.get(0)?, row.get(1)?))
        })
    }

    pub(in crate::sqlite) fn events(
        &self,
        page: PageQuery,
        filter: &EventFilter,
    ) -> rusqlite::Result<Page<StoredEvent>> {
        let mut items = Vec::new();
        let mut looked_at = 0;
        let mut next = None;
        self.walk_events(page, filter, |number, event| {
            looked_at += 1;
            items.extend(event);
            if items.len() >= page.limit || looked_at >= LOOKED_AT {
                next = Some(codec::sequence(number));
            }
            next.is_none()
        })?;
        Ok(Page { items, next })
    }

    /// How many there are; `None`: more than `cap`, or too many to look at.
    pub(in crate::sqlite) fn count_events(
        &self,
        account: AccountNo,
        filter: &EventFilter,
        cap: u64,
    ) -> rusqlite::Result<Option<u64>> {
        let page = PageQuery { account, before: None, limit: CHUNK, oldest_first: false };
        let (mut looked_at, mut found) = (0, 0);
        self.walk_events(page, filter, |_, event| {
            looked_at += 1;
            found += u64::from(event.is_some());
            found <= cap && looked_at < COUNTED
        })?;
        Ok((found <= cap && looked_at < COUNTED).then_some(found))
    }

    /// Goes through what may be meant, in order, until `take` has enough: the number, and the event if it is meant.
    fn walk_events(
        &self,
        page: PageQuery,
        filter: &EventFilter,
        mut take: impl FnMut(i64, Option<StoredEvent>) -> bool,
    ) -> rusqlite::Result<()> {
        let way = Way::new(page.oldest_first, page.before).within(filter.from, filter.to);
        self.at_once(|| {
            let type_no = match &filter.event_type {
                None => None,
                Some(event_type) => match find_type(&self.connection, event_type)? {
                    None => return Ok(()),
                    found => found,
                },
            };
            let turn = |row: &Row<'_>| -> rusqlite::Result<(i64, Option<StoredEvent>)> {
                let key: Option<Arc<str>> = if filter.ordering_key.is_some() { row.get(11)? } else { None };
                let meant =
                    type_no.is_none_or(|wanted| row.get(2) == Ok(wanted)) && key == filter.ordering_key;
                Ok((row.get(0)?, meant.then(|| self.stored_event(row)).transpose()?))
            };
            if let Some(external_id) = &filter.external_event_id {
                let mut ids = self.events_by_external_id(page.account, external_id, SAME_EXTERNAL_ID)?;
                ids.sort_unstable_by_key(|id| id.sequence());
                if !page.oldest_first {
                    ids.reverse();
                }
                for id in ids {
                    let number = codec::seq(id.sequence());
                    if way.is_before(way.after, number) && !way.is_past(number, filter.from, filter.to) {
                        let (number, event) = self.prepare(sql::EVENT)?.query_row([number], turn)?;
                        if !take(number, event) {
                            break;
                        }
                    }
                }
                return Ok(());
            }
            let sql = if page.oldest_first { sql::LIST_EVENTS_OLDEST } else { sql::LIST_EVENTS_NEWEST };
            let chunk = page.limit.clamp(1, CHUNK);
            let mut after = way.after;
            loop {
                let found = self.all(sql, params![page.account.0, after, length(chunk)], turn)?;
                let more = found.len() >= chunk;
                for (number, event) in found {
                    after = number;
                    if way.is_past(number, filter.from, filter.to) || !take(number, event) {
                        return Ok(());
                    }
                }
                if !more {
                    return Ok(());
                }
            }
        })
    }
}
