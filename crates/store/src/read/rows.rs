//! Rows of `deliveries` and `events`, turned into what they say.

use std::sync::Arc;

use tidegate_core::delivery::{Delivery, Place, Priority};
use tidegate_core::id::DeliveryId;

use crate::DestinationNo;
use crate::codec::{self, StatusColumns, strange, time};
use crate::event::Message;
use crate::lane::Overdue;
use crate::shared::Reader;
use crate::source::{Result, Row, params};
use crate::sql;

impl Reader {
    /// A row with the columns that every statement on deliveries selects, in their order.
    pub(super) fn delivery_of(&self, row: &Row<'_>) -> Result<Delivery> {
        let seq: i64 = row.get(0)?;
        let status = StatusColumns {
            stage: row.get(15)?,
            retry_at: row.get(16)?,
            retry_reason: row.get(17)?,
            end_code: row.get(18)?,
        };
        Ok(Delivery {
            id: codec::id(seq, row.get(1)?),
            place: Place { occurred_at: time(row.get(8)?), sequence: codec::sequence(seq).get() },
            priority: priority(row.get(7)?)?,
            event_type: self.shared.names.event_type(&self.source, row.get(5)?)?,
            ordering_key: row.get(12)?,
            accepted_at: time(row.get(9)?),
            expires_at: row.get::<Option<i64>>(10)?.map(time),
            too_old_at: time(row.get(11)?),
            plan: self.shared.names.plan(&self.source, row.get(6)?)?,
            attempts_made: row.get(13)?,
            attempts_used: row.get(14)?,
            status: codec::status(&status)?,
        })
    }

    pub(crate) fn overdue_of(&self, row: &Row<'_>) -> Result<Overdue> {
        Ok(Overdue { destination: DestinationNo(row.get(4)?), delivery: self.delivery_of(row)? })
    }

    /// What a delivery sends, if there is such a delivery.
    pub(crate) fn message(&self, delivery: DeliveryId) -> Result<Option<Arc<Message>>> {
        let number = params![codec::seq(delivery.sequence())];
        let found =
            self.one(sql::EVENT_OF_DELIVERY, number, |row| Ok((row.get::<i64>(0)?, row.get::<i64>(1)?)))?;
        let Some((_, event)) = found.filter(|(salt, _)| *salt == codec::salt(delivery)) else {
            return Ok(None);
        };
        self.one(sql::EVENT, params![event], |row| self.message_of(row).map(Arc::new))
    }

    /// A row that begins with the columns `seq, salt, type_no, accepted_at, body_kind, content_type, payload` of an event.
    pub(crate) fn message_of(&self, row: &Row<'_>) -> Result<Message> {
        Ok(Message {
            id: codec::id(row.get(0)?, row.get(1)?),
            event_type: self.shared.names.event_type(&self.source, row.get(2)?)?,
            accepted_at: time(row.get(3)?),
            body: codec::body(row.get(4)?, row.get(5)?)?,
            payload: row.get(6)?,
        })
    }
}

pub(super) fn priority(level: i64) -> Result<Priority> {
    u64::try_from(level)
        .ok()
        .and_then(|level| Priority::new(level).ok())
        .ok_or_else(|| strange("the priority", level))
}
