//! Events, one by one and in lists.

use std::sync::Arc;

use tidegate_core::id::EventId;
use tidegate_core::sequence::Sequence;
use tidegate_core::time::Timestamp;

use super::rows::priority;
use super::walk::Way;
use crate::AccountNo;
use crate::codec::{self, length, time};
use crate::event::{Accepted, IdempotencyKey, REMEMBERED, StoredEvent};
use crate::list::{Counted, EventFilter, Page, PageQuery};
use crate::names::find_type;
use crate::shared::Reader;
use crate::source::{Result, Row, params};
use crate::sql;

/// Rows that are looked at for one page, and in one go to count.
const LOOKED_AT: usize = 2_000;
const COUNTED: usize = 10_000;
/// Rows that are read at once: each brings its payload.
const CHUNK: usize = 128;
/// Events with one external id that are listed: a day apart each, so many are years.
const SAME_EXTERNAL_ID: usize = 1_000;

impl Reader {
    pub(crate) fn answered(&self, key: &IdempotencyKey, now: Timestamp) -> Result<Option<Accepted>> {
        let found =
            self.one(sql::ANSWERED, params![key.account.0, key.endpoint, key.key.as_str()], |row| {
                Ok((row.get::<Vec<u8>>(0)?, row.get::<Vec<u8>>(1)?, time(row.get(2)?)))
            })?;
        let known = found.filter(|(_, _, at)| *at + REMEMBERED > now);
        Ok(known.map(|(hash, answer, _)| match hash == key.body_hash {
            true => Accepted::Again(answer),
            false => Accepted::KeyReused,
        }))
    }

    fn stored_event(&self, row: &Row<'_>) -> Result<StoredEvent> {
        Ok(StoredEvent {
            account: AccountNo(row.get(7)?),
            message: Arc::new(self.message_of(row)?),
            occurred_at: time(row.get(8)?),
            expires_at: row.get::<Option<i64>>(9)?.map(time),
            deliver_at: row.get::<Option<i64>>(10)?.map(time),
            ordering_key: row.get(11)?,
            priority: priority(row.get(12)?)?,
            external_id: row.get(13)?,
            routed: row.get(14)?,
        })
    }

    pub(crate) fn event(&self, account: AccountNo, id: EventId) -> Result<Option<StoredEvent>> {
        let number = params![codec::seq(id.sequence())];
        let found = self.one(sql::EVENT, number, |row| self.stored_event(row))?;
        Ok(found.filter(|event| event.account == account && event.message.id == id))
    }

    /// The events of an account with this external id.
    pub(super) fn events_by_external_id(
        &self,
        account: AccountNo,
        external_id: &str,
        limit: usize,
    ) -> Result<Vec<EventId>> {
        self.all(sql::EVENTS_BY_EXTERNAL_ID, params![account.0, external_id, length(limit)], |row| {
            Ok(codec::id(row.get(0)?, row.get(1)?))
        })
    }

    pub(crate) fn events(&self, page: PageQuery, filter: &EventFilter) -> Result<Page<StoredEvent>> {
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

    /// How many there are from a place on, as far as one go leads.
    pub(crate) fn count_events(
        &self,
        account: AccountNo,
        filter: &EventFilter,
        before: Option<Sequence>,
    ) -> Result<Counted> {
        if filter.external_event_id.is_some() {
            let page = PageQuery { account, before, limit: CHUNK, oldest_first: false };
            let mut found = 0;
            self.walk_events(page, filter, |_, event| {
                found += u64::from(event.is_some());
                true
            })?;
            return Ok(Counted { found, next: None });
        }
        let type_no = match &filter.event_type {
            None => None,
            Some(event_type) => match find_type(&self.source, event_type)? {
                None => return Ok(Counted { found: 0, next: None }),
                found => found,
            },
        };
        let way = Way::new(false, before).within(filter.from, filter.to);
        let first = filter.from.map_or(i64::MIN, |from| codec::seq(Sequence::at(from)));
        let (key, limit) = (filter.ordering_key.as_ref(), length(COUNTED));
        let values = params![account.0, way.after, type_no, key, first, limit];
        let counted = self.one(sql::COUNT_EVENTS, values, |row| {
            Ok((row.get(0).map(codec::uncount)?, row.get::<i64>(1)?, row.get::<Option<i64>>(2)?))
        })?;
        let (found, looked_at, last) = counted.unwrap_or_default();
        let next = last.filter(|_| looked_at >= limit).map(codec::sequence);
        Ok(Counted { found, next })
    }

    /// Goes through what may be meant, in order, until `take` has enough: the number, and the event if it is meant.
    fn walk_events(
        &self,
        page: PageQuery,
        filter: &EventFilter,
        mut take: impl FnMut(i64, Option<StoredEvent>) -> bool,
    ) -> Result<()> {
        let way = Way::new(page.oldest_first, page.before).within(filter.from, filter.to);
        self.at_once(|| {
            let type_no = match &filter.event_type {
                None => None,
                Some(event_type) => match find_type(&self.source, event_type)? {
                    None => return Ok(()),
                    found => found,
                },
            };
            let turn = |row: &Row<'_>| -> Result<(i64, Option<StoredEvent>)> {
                let key: Option<Arc<str>> = if filter.ordering_key.is_some() { row.get(11)? } else { None };
                let meant = type_no
                    .is_none_or(|wanted| matches!(row.get::<i64>(2), Ok(found) if found == wanted))
                    && key == filter.ordering_key;
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
                        let found = self.one(sql::EVENT, params![number], turn)?;
                        if found.is_some_and(|(number, event)| !take(number, event)) {
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
