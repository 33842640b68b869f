//! Deliveries, one by one.

use rusqlite::{OptionalExtension, Row};
use tidegate_core::id::{DeliveryId, EventId};

use crate::delivery::StoredDelivery;
use crate::sqlite::codec::{self, time};
use crate::sqlite::shared::Reader;
use crate::sqlite::sql;
use crate::{AccountNo, DestinationNo};

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
        self.at_once(|| self.deliveries_of_event(event))
    }

    pub(super) fn deliveries_of_event(&self, event: EventId) -> rusqlite::Result<Vec<StoredDelivery>> {
        let number = codec::seq(event.sequence());
        let found = self
            .prepare(sql::DELIVERIES_OF_EVENT)?
            .query_row([number], |row| {
                Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?, row.get::<_, i64>(2)?))
            })
            .optional()?;
        let Some((_, first, routed)) = found.filter(|(salt, ..): &(i64, _, _)| *salt == codec::salt(event))
        else {
            return Ok(Vec::new());
        };
        let mut deliveries = match first {
            None => Vec::new(),
            Some(first) => {
                self.all(sql::DELIVERIES_OF, [first, first + routed - 1], |row| self.stored_delivery(row))?
            }
        };
        deliveries.extend(self.all(sql::REPLAYS_OF, [number], |row| self.stored_delivery(row))?);
        Ok(deliveries)
    }
}
