//! Lists of deliveries, by filter.

use tidegate_core::id::EventId;
use tidegate_core::sequence::Sequence;

use super::walk::{Part, Walk, Way};
use crate::codec::{self, length};
use crate::delivery::StoredDelivery;
use crate::lane::Of;
use crate::list::{Counted, DeliveryFilter, Open, Page, PageQuery, Stage};
use crate::shared::Reader;
use crate::source::{Result, params};
use crate::sql;
use crate::{AccountNo, DestinationNo};

/// Rows that are looked at for one page, at least: a filter that matches little must not hold a reader for long.
const LOOKED_AT: usize = 2_000;
/// Rows that are looked at in one go to count: others have their turn in between.
const COUNTED: usize = 5_000;
/// Up to this many open deliveries are listed by the indexes of what is open. If there are more, the whole history is not much
/// longer, and is walked instead.
const FEW_OPEN: usize = 100_000;
/// The same, for a part of what is open where all of it is more: too much is not read in vain for each page.
const FEW_OF_MANY: usize = 10_000;
/// Events with one external id whose deliveries are listed: a day apart each, so many are years.
const SAME_EXTERNAL_ID: usize = 1_000;

impl Reader {
    pub(crate) fn deliveries(
        &self,
        page: PageQuery,
        filter: &DeliveryFilter,
    ) -> Result<Page<StoredDelivery>> {
        let way = Way::new(page.oldest_first, page.before).within(filter.from, filter.to);
        self.at_once(|| {
            if let Some(events) = self.named_events(page.account, filter)? {
                return self.page_of_events(page, filter, &events, way);
            }
            let Some(sieve) = self.sieve(page.account, filter)? else {
                return Ok(Page { items: Vec::new(), next: None });
            };
            let parts = self.parts(page.account, filter, way)?;
            let mut walk = Walk::new(self, way, &sieve, parts, page.limit);
            let mut items = Vec::new();
            for looked_at in 1.. {
                let Some((number, delivery)) = walk.next()? else { break };
                if way.is_past(number, filter.from, filter.to) {
                    break;
                }
                items.extend(delivery);
                if items.len() >= page.limit || looked_at >= LOOKED_AT.max(page.limit) {
                    let next = Some(codec::sequence(number));
                    return Ok(Page { items, next });
                }
            }
            Ok(Page { items, next: None })
        })
    }

    /// How many there are from a place on, up to some more than `cap`, as far as one go leads.
    pub(crate) fn count_deliveries(
        &self,
        account: AccountNo,
        filter: &DeliveryFilter,
        cap: u64,
        before: Option<Sequence>,
    ) -> Result<Counted> {
        if let Some(found) = self.kept_count(account, filter) {
            return Ok(Counted { found, next: None });
        }
        let way = Way::new(false, before).within(filter.from, filter.to);
        self.at_once(|| {
            let mut found = 0;
            if let Some(events) = self.named_events(account, filter)? {
                let page = PageQuery { account, before, limit: usize::MAX, oldest_first: false };
                found += self.page_of_events(page, filter, &events, way)?.items.len() as u64;
                return Ok(Counted { found, next: None });
            }
            let Some(sieve) = self.sieve(account, filter)? else { return Ok(Counted { found, next: None }) };
            let mut walk = Walk::new(self, way, &sieve, self.parts(account, filter, way)?, COUNTED);
            for looked_at in 1.. {
                let Some((number, delivery)) = walk.next()? else { break };
                if way.is_past(number, filter.from, filter.to) {
                    break;
                }
                found += u64::from(delivery.is_some());
                if found > cap || looked_at >= COUNTED {
                    return Ok(Counted { found, next: Some(codec::sequence(number)) });
                }
            }
            Ok(Counted { found, next: None })
        })
    }

    /// What is open is counted all the time: the answer, where nothing else is asked for.
    fn kept_count(&self, account: AccountNo, filter: &DeliveryFilter) -> Option<u64> {
        let DeliveryFilter {
            destinations,
            event: None,
            event_type: None,
            stages: Some(stages),
            open: None,
            from: None,
            to: None,
            external_event_id: None,
            ordering_key: None,
        } = filter
        else {
            return None;
        };
        let open = match destinations {
            None => self.shared.waiting(Of::Account(account)).deliveries,
            Some(several) => {
                several.iter().map(|destination| self.shared.open_of(account, *destination)).sum()
            }
        };
        (stages[..] == [Stage::Open]).then_some(open)
    }

    /// The parts of the indexes that hold everything that the filter can mean, and as little else as there is.
    fn parts(&self, account: AccountNo, filter: &DeliveryFilter, way: Way) -> Result<Vec<Part>> {
        let Some(stages) = filter.stages.as_deref().filter(|stages| !stages.contains(&Stage::Delivered))
        else {
            return Ok(everything(account, filter));
        };
        let mut parts = Vec::new();
        if stages.contains(&Stage::Open) {
            match self.open_numbers(account, filter, way)? {
                Some(numbers) => parts.push(Part::These(numbers.into())),
                None => return Ok(everything(account, filter)),
            }
        }
        for stage in stages.iter().filter(|stage| **stage != Stage::Open) {
            match &filter.destinations {
                None => parts.push(Part::Troubled(account, *stage)),
                Some(several) => parts.extend(
                    several.iter().map(|destination| Part::TroubledOfDestination(*destination, *stage)),
                ),
            }
        }
        Ok(parts)
    }

    /// The numbers of what is open and meant, and perhaps of some more, in the order of the walk; `None`: these are too many.
    fn open_numbers(
        &self,
        account: AccountNo,
        filter: &DeliveryFilter,
        way: Way,
    ) -> Result<Option<Vec<i64>>> {
        let numbers = match &filter.open {
            Some(Open::These(numbers)) => Some(numbers.iter().copied().map(codec::seq).collect()),
            Some(Open::Overdue(now)) => {
                let values = params![now.as_millis(), length(FEW_OPEN + 1)];
                let numbers = self.all(sql::OVERDUE_NUMBERS, values, |row| row.get::<i64>(0))?;
                Some(numbers).filter(|numbers| numbers.len() <= FEW_OPEN)
            }
            Some(Open::To(several)) => self.open_to(several, None)?,
            open => match &filter.destinations {
                Some(several) => self.open_to(several, open.as_ref())?,
                None => self.open_to(&self.shared.with_open(Some(account)), open.as_ref())?,
            },
        };
        let Some(mut numbers) = numbers else { return Ok(None) };
        numbers.retain(|number| way.is_before(way.after, *number));
        numbers.sort_unstable();
        if !way.oldest_first {
            numbers.reverse();
        }
        Ok(Some(numbers))
    }

    /// The numbers of what is open to these destinations, ready or waiting; `None`: these are too many.
    fn open_to(&self, destinations: &[DestinationNo], open: Option<&Open>) -> Result<Option<Vec<i64>>> {
        let (ready, after, up_to) = match open {
            Some(Open::Ready(now)) => (true, i64::MIN, now.as_millis()),
            Some(Open::Waiting(now)) => (false, now.as_millis(), i64::MAX),
            _ => (true, i64::MIN, i64::MAX),
        };
        let count = |no: &DestinationNo| self.shared.waiting(Of::Destination(*no)).deliveries;
        let many = destinations.iter().map(count).sum::<u64>() > FEW_OPEN as u64;
        let few = match (many, open) {
            (false, _) => FEW_OPEN,
            (true, None) => return Ok(None),
            (true, Some(_)) => FEW_OF_MANY,
        };
        let mut numbers = Vec::new();
        for destination in destinations.iter().map(|destination| destination.0) {
            let room = |numbers: &Vec<i64>| length((few + 1).saturating_sub(numbers.len()));
            if ready {
                let values = params![destination, room(&numbers)];
                numbers.extend(self.all(sql::OPEN_READY, values, |row| row.get::<i64>(0))?);
            }
            let values = params![destination, after, up_to, room(&numbers)];
            numbers.extend(self.all(sql::OPEN_WAITING, values, |row| row.get::<i64>(0))?);
            if numbers.len() > few {
                return Ok(None);
            }
        }
        Ok(Some(numbers))
    }

    /// The events that the filter names by an id, if it does.
    fn named_events(&self, account: AccountNo, filter: &DeliveryFilter) -> Result<Option<Vec<EventId>>> {
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
    ) -> Result<Page<StoredDelivery>> {
        let mut items = Vec::new();
        for event in events {
            items.extend(self.deliveries_of_event(*event)?);
        }
        items.retain(|stored| {
            way.is_before(way.after, codec::seq(stored.delivery.id.sequence()))
                && stored.account == page.account
                && filter.means(stored)
        });
        items.sort_by_key(|stored| stored.delivery.id.sequence());
        if !page.oldest_first {
            items.reverse();
        }
        let more = items.len() > page.limit;
        items.truncate(page.limit);
        let next = items.last().filter(|_| more).map(|stored| stored.delivery.id.sequence());
        Ok(Page { items, next })
    }
}

/// Open, ended and all.
fn everything(account: AccountNo, filter: &DeliveryFilter) -> Vec<Part> {
    match &filter.destinations {
        None => vec![Part::Account(account)],
        Some(several) => several.iter().flat_map(|no| [Part::Filed(*no), Part::Unfiled(*no)]).collect(),
    }
}
