//! Deliveries, one by one.

use std::collections::{HashMap, HashSet};

use tidegate_core::id::{DeliveryId, EventId};
use tidegate_core::sequence::Sequence;

use crate::codec::{self, time};
use crate::delivery::StoredDelivery;
use crate::shared::Reader;
use crate::source::{Result, Row, params};
use crate::sql;
use crate::{AccountNo, DestinationNo};

impl Reader {
    pub(super) fn stored_delivery(&self, row: &Row<'_>) -> Result<StoredDelivery> {
        Ok(StoredDelivery {
            account: AccountNo(row.get(3)?),
            event: codec::id(row.get(2)?, row.get(21)?),
            destination: DestinationNo(row.get(4)?),
            delivery: self.delivery_of(row)?,
            deliver_at: row.get::<Option<i64>>(22)?.map(time),
            finished_at: row.get::<Option<i64>>(19)?.map(time),
            replay_of: row.get::<Option<[u8; 16]>>(20)?.map(codec::from_bits),
            external_event_id: row.get(23)?,
        })
    }

    pub(crate) fn delivery(&self, account: AccountNo, id: DeliveryId) -> Result<Option<StoredDelivery>> {
        let number = params![codec::seq(id.sequence())];
        let found = self.one(sql::DELIVERY, number, |row| self.stored_delivery(row))?;
        Ok(found.filter(|stored| stored.account == account && stored.delivery.id == id))
    }

    /// Those that it was accepted with, then its replays.
    pub(crate) fn deliveries_of(&self, event: EventId) -> Result<Vec<StoredDelivery>> {
        self.at_once(|| self.deliveries_of_event(event))
    }

    pub(super) fn deliveries_of_event(&self, event: EventId) -> Result<Vec<StoredDelivery>> {
        let number = codec::seq(event.sequence());
        let found = self.one(sql::DELIVERIES_OF_EVENT, params![number], |row| {
            Ok((row.get(0)?, row.get::<Option<i64>>(1)?, row.get::<i64>(2)?))
        })?;
        let Some((_, first, routed)) = found.filter(|(salt, ..): &(i64, _, _)| *salt == codec::salt(event))
        else {
            return Ok(Vec::new());
        };
        let mut deliveries = match first {
            None => Vec::new(),
            Some(first) => self.all(sql::DELIVERIES_OF, params![first, first + routed - 1], |row| {
                self.stored_delivery(row)
            })?,
        };
        deliveries.extend(self.all(sql::REPLAYS_OF, params![number], |row| self.stored_delivery(row))?);
        Ok(deliveries)
    }

    pub(crate) fn newest_replays(
        &self,
        events: &[EventId],
    ) -> Result<HashMap<(EventId, DestinationNo), Sequence>> {
        let by_number: HashMap<i64, EventId> =
            events.iter().map(|event| (codec::seq(event.sequence()), *event)).collect();
        let numbers: Vec<String> = by_number.keys().map(i64::to_string).collect();
        let mut newest = HashMap::new();
        for (event, destination, number) in
            self.all(sql::NEWEST_REPLAYS, params![numbers.join(",")], |row| {
                Ok((row.get::<i64>(0)?, DestinationNo(row.get(1)?), codec::sequence(row.get(2)?)))
            })?
        {
            let Some(event) = by_number.get(&event) else { continue };
            let known = newest.entry((*event, destination)).or_insert(number);
            *known = number.max(*known);
        }
        Ok(newest)
    }

    pub(crate) fn open_among(&self, deliveries: &[Sequence]) -> Result<HashSet<Sequence>> {
        let numbers: Vec<String> =
            deliveries.iter().map(|delivery| codec::seq(*delivery).to_string()).collect();
        let open =
            self.all(sql::OPEN_AMONG, params![numbers.join(",")], |row| Ok(codec::sequence(row.get(0)?)))?;
        Ok(open.into_iter().collect())
    }
}
