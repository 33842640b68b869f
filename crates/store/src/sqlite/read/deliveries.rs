//! Deliveries, one by one and in lists.

use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row};
use tidegate_core::id::{DeliveryId, EventId};
use tidegate_core::time::Timestamp;

use super::walk::{Part, Walk, Way};
use crate::delivery::StoredDelivery;
use crate::lane::Overdue;
use crate::list::{DeliveryFilter, Page, PageQuery, Stage};
use crate::sqlite::codec::{self, length, time};
use crate::sqlite::names::find_type;
use crate::sqlite::shared::Reader;
use crate::sqlite::sql;
use crate::{AccountNo, DestinationNo};

/// Rows that are looked at for one page: a filter that matches little must not hold a reader for long.
const LOOKED_AT: usize = 2_000;
/// Rows that are looked at for one count, whatever its cap.
const COUNTED: usize = 50_000;
/// Open deliveries of a destination that are looked at for their age: the oldest end first, but for some.
const OLDEST: usize = 64;
/// Events with one external id whose deliveries are listed: a day apart each, so many are years.
const SAME_EXTERNAL_ID: usize = 1_000;

const STAGES: [Stage; 5] =
    [Stage::Open, Stage::Delivered, Stage::DeadLetter, Stage::Expired, Stage::Cancelled];

/// What of a filter is asked of each row.
pub(super) struct Sieve {
    account: i64,
    type_no: Option<i64>,
    destinations: Option<Vec<i64>>,
    stages: Option<Vec<i64>>,
    from: Option<i64>,
    to: Option<i64>,
    ordering_key: Option<Arc<str>>,
}

impl Sieve {
    pub(super) fn passes(&self, row: &Row<'_>) -> rusqlite::Result<bool> {
        let accepted_at: i64 = row.get(9)?;
        let among = |wanted: &Option<Vec<i64>>, column: usize| -> rusqlite::Result<bool> {
            let value: i64 = row.get(column)?;
            Ok(wanted.as_ref().is_none_or(|wanted| wanted.contains(&value)))
        };
        let keyed = match (&self.ordering_key, row.get_ref(12)?) {
            (None, _) => true,
            (Some(key), ValueRef::Text(text)) => key.as_bytes() == text,
            _ => false,
        };
        Ok(keyed
            && row.get::<_, i64>(3)? == self.account
            && self.type_no.is_none_or(|wanted| row.get(5) == Ok(wanted))
            && among(&self.destinations, 4)?
            && among(&self.stages, 15)?
            && self.from.is_none_or(|from| accepted_at >= from)
            && self.to.is_none_or(|to| accepted_at < to))
    }
}

impl Reader {
    pub(super) fn stored_delivery(&self, row: &Row<'_>) -> rusqlite::Result<StoredDelivery> {
        Ok(StoredDelivery {
            account: AccountNo(row.get(3)?),
            event: codec::id(row.get(2)?, row.get(21)?),
            destination: DestinationNo(row.get(4)?),
            delivery: self.delivery_of(row)?,
            deliver_at: row.get::<_, Option<i64>>(22)?.map(time),
            finished_at: row.get::<_, Option<i64>>(19)?.map(time),
            replay_of: row.get::<_, Option<[u8; 16]>>(20)?.map(codec::from_bits),
            external_event_id: row.get(23)?,
        })
    }

    pub(in crate::sqlite) fn delivery(
        &self,
        account: AccountNo,
        id: DeliveryId,
    ) -> rusqlite::Result<Option<StoredDelivery>> {
        let found = self
            .prepare(sql::DELIVERY)?
            .query_row([codec::seq(id.sequence())], |row| self.stored_delivery(row))
            .optional()?;
        Ok(found.filter(|stored| stored.account == account && stored.delivery.id == id))
    }

    /// Those that it was accepted with, then its replays.
    pub(in crate::sqlite) fn deliveries_of(&self, event: EventId) -> rusqlite::Result<Vec<StoredDelivery>> {
        self.at_once(|| {
            let number = codec::seq(event.sequence());
            let row = self
                .prepare(sql::DELIVERIES_OF_EVENT)?
                .query_row([number], |row| {
                    Ok((row.get::<_, i64>(0)?, row.get::<_, Option<i64>>(2)?, row.get::<_, i64>(3)?))
                })
                .optional()?;
            let Some((_, first, routed)) = row.filter(|(salt, ..)| *salt == codec::salt(event)) else {
                return Ok(Vec::new());
            };
            let first = first.unwrap_or(0);
            let mut found =
                self.all(sql::DELIVERIES_OF, [first, first + routed - 1], |row| self.stored_delivery(row))?;
            found.retain(|stored| stored.event == event && stored.replay_of.is_none());
            found.extend(self.all(sql::REPLAYS_OF, [number], |row| self.stored_delivery(row))?);
            Ok(found)
        })
    }

    pub(in crate::sqlite) fn deliveries(
        &self,
        page: PageQuery,
        filter: &DeliveryFilter,
    ) -> rusqlite::Result<Page<StoredDelivery>> {
        let way = Way::new(page.oldest_first, page.before);
        self.at_once(|| {
            if let Some(events) = self.named_events(page.account, filter)? {
                return self.page_of_events(page, filter, &events, way);
            }
            let Some(sieve) = self.sieve(page.account, filter)? else {
                return Ok(Page { items: Vec::new(), next: None });
            };
            let way = way.within(filter.from, filter.to);
            let mut walk = Walk::new(self, way, self.parts(page.account, filter), page.limit);
            let mut items = Vec::new();
            for looked_at in 1.. {
                let Some((number, delivery)) = walk.next(&sieve)? else { break };
                if way.is_past(number, filter.from, filter.to) {
                    break;
                }
                items.extend(delivery);
                if items.len() >= page.limit || looked_at >= LOOKED_AT {
                    let next = Some(codec::sequence(number));
                    return Ok(Page { items, next });
                }
            }
            Ok(Page { items, next: None })
        })
    }

    /// How many there are; `None`: more than `cap`, or too many to look at.
    pub(in crate::sqlite) fn count_deliveries(
        &self,
        account: AccountNo,
        filter: &DeliveryFilter,
        cap: u64,
    ) -> rusqlite::Result<Option<u64>> {
        self.at_once(|| {
            let page = PageQuery { account, before: None, limit: usize::MAX, oldest_first: false };
            let way = Way::new(false, None);
            if let Some(events) = self.named_events(account, filter)? {
                let found = self.page_of_events(page, filter, &events, way)?.items.len();
                return Ok(u64::try_from(found).ok().filter(|found| *found <= cap));
            }
            let Some(sieve) = self.sieve(account, filter)? else { return Ok(Some(0)) };
            let way = way.within(filter.from, filter.to);
            let mut walk = Walk::new(self, way, self.parts(account, filter), 256);
            let mut found = 0;
            for _ in 0..COUNTED {
                match walk.next(&sieve)? {
                    Some((number, _)) if way.is_past(number, filter.from, filter.to) => {
                        return Ok(Some(found));
                    }
                    Some((_, delivery)) => found += u64::from(delivery.is_some()),
                    None => return Ok(Some(found)),
                }
                if found > cap {
                    return Ok(None);
                }
            }
            Ok(None)
        })
    }

    /// The sieve for a filter; `None` if nothing can pass.
    fn sieve(&self, account: AccountNo, filter: &DeliveryFilter) -> rusqlite::Result<Option<Sieve>> {
        let type_no = match &filter.event_type {
            None => None,
            Some(event_type) => match find_type(&self.connection, event_type)? {
                None => return Ok(None),
                found => found,
            },
        };
        Ok(Some(Sieve {
            account: i64::from(account.0),
            type_no,
            destinations: filter
                .destinations
                .as_ref()
                .map(|wanted| wanted.iter().map(|destination| i64::from(destination.0)).collect()),
            stages: filter.stages.as_ref().map(|wanted| wanted.iter().copied().map(codec::stage).collect()),
            from: filter.from.map(Timestamp::as_millis),
            to: filter.to.map(Timestamp::as_millis),
            ordering_key: filter.ordering_key.clone(),
        }))
    }

    /// The parts of the indexes that hold everything that the filter can mean, and as little else as there is.
    fn parts(&self, account: AccountNo, filter: &DeliveryFilter) -> Vec<Part> {
        let stages = filter.stages.as_deref().unwrap_or(&STAGES);
        let of_destinations = |destinations: &[DestinationNo], stage: Stage| {
            destinations.iter().map(|destination| Part::Destination(*destination, stage)).collect::<Vec<_>>()
        };
        if let Some(destinations) = &filter.destinations {
            return stages.iter().flat_map(|stage| of_destinations(destinations, *stage)).collect();
        }
        if stages.contains(&Stage::Delivered) {
            return vec![Part::Account(account)];
        }
        let parts = stages.iter().flat_map(|stage| match stage {
            Stage::Open => of_destinations(&self.shared.with_open(Some(account)), Stage::Open),
            ended => vec![Part::Troubled(account, *ended)],
        });
        parts.collect()
    }

    /// The events that the filter names by an id, if it does.
    fn named_events(
        &self,
        account: AccountNo,
        filter: &DeliveryFilter,
    ) -> rusqlite::Result<Option<Vec<EventId>>> {
        match (&filter.event, &filter.external_event_id) {
            (Some(event), _) => Ok(Some(vec![*event])),
            (None, Some(external)) => {
                self.events_by_external_id(account, external, SAME_EXTERNAL_ID).map(Some)
            }
            (None, None) => Ok(None),
        }
    }

    fn page_of_events(
        &self,
        page: PageQuery,
        filter: &DeliveryFilter,
        events: &[EventId],
        way: Way,
    ) -> rusqlite::Result<Page<StoredDelivery>> {
        let mut items = Vec::new();
        for event in events {
            let number = codec::seq(event.sequence());
            let row = self
                .prepare(sql::DELIVERIES_OF_EVENT)?
                .query_row([number], |row| {
                    Ok((row.get::<_, Option<i64>>(2)?.unwrap_or(0), row.get::<_, i64>(3)?))
                })
                .optional()?;
            let Some((first, routed)) = row else { continue };
            items.extend(
                self.all(sql::DELIVERIES_OF, [first, first + routed - 1], |row| self.stored_delivery(row))?,
            );
            items.extend(self.all(sql::REPLAYS_OF, [number], |row| self.stored_delivery(row))?);
        }
        let wanted = |stored: &StoredDelivery| {
            let delivery = &stored.delivery;
            let stage = match &delivery.status {
                tidegate_core::delivery::Status::Final(end) => codec::stage_of(end),
                _ => Stage::Open,
            };
            events.contains(&stored.event)
                && stored.account == page.account
                && way.is_before(way.after, codec::seq(delivery.id.sequence()))
                && filter.destinations.as_ref().is_none_or(|wanted| wanted.contains(&stored.destination))
                && filter.stages.as_ref().is_none_or(|wanted| wanted.contains(&stage))
                && filter.event_type.as_ref().is_none_or(|wanted| *wanted == delivery.event_type)
                && filter
                    .ordering_key
                    .as_ref()
                    .is_none_or(|wanted| Some(wanted) == delivery.ordering_key.as_ref())
                && filter
                    .external_event_id
                    .as_ref()
                    .is_none_or(|wanted| Some(wanted) == stored.external_event_id.as_ref())
                && filter.from.is_none_or(|from| delivery.accepted_at >= from)
                && filter.to.is_none_or(|to| delivery.accepted_at < to)
        };
        items.retain(wanted);
        items.sort_by_key(|stored| stored.delivery.id.sequence());
        items.dedup_by_key(|stored| stored.delivery.id);
        if !page.oldest_first {
            items.reverse();
        }
        let more = items.len() > page.limit;
        items.truncate(page.limit);
        let next = items.last().filter(|_| more).map(|stored| stored.delivery.id.sequence());
        Ok(Page { items, next })
    }

    pub(in crate::sqlite) fn overdue(&self, now: Timestamp, limit: usize) -> rusqlite::Result<Vec<Overdue>> {
        self.all(sql::OVERDUE, [now.as_millis(), length(limit)], |row| self.overdue_of(row))
    }

    pub(in crate::sqlite) fn too_old(&self, now: Timestamp, limit: usize) -> rusqlite::Result<Vec<Overdue>> {
        let mut found = Vec::new();
        for destination in self.shared.with_open(None) {
            let oldest = self.all(sql::OLDEST_OPEN, [i64::from(destination.0), length(OLDEST)], |row| {
                let too_old = row.get::<_, i64>(11)? <= now.as_millis();
                too_old.then(|| self.overdue_of(row)).transpose()
            })?;
            found.extend(oldest.into_iter().flatten());
            if found.len() >= limit {
                break;
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    pub(in crate::sqlite) fn oldest_open(
        &self,
        destination: DestinationNo,
    ) -> rusqlite::Result<Option<Timestamp>> {
        self.prepare(sql::OLDEST_OPEN)?
            .query_row([i64::from(destination.0), 1], |row| row.get(9).map(time))
            .optional()
    }
}
