//! Rows of `deliveries` and `events`, turned into what they say.

use std::sync::Arc;

use bytes::Bytes;
use rusqlite::{OptionalExtension, Row};
use tidegate_core::delivery::{Delivery, Place, Priority};
use tidegate_core::id::DeliveryId;

use crate::DestinationNo;
use crate::event::Message;
use crate::lane::Overdue;
use crate::sqlite::codec::{self, StatusColumns, strange, time};
use crate::sqlite::shared::Reader;
use crate::sqlite::sql;

impl Reader {
    /// A row with the columns that every statement on deliveries selects, in their order.
    pub(super) fn delivery_of(&self, row: &Row<'_>) -> rusqlite::Result<Delivery> {
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
            event_type: self.shared.names.event_type(&self.connection, row.get(5)?)?,
            ordering_key: row.get(12)?,
            accepted_at: time(row.get(9)?),
            expires_at: row.get::<_, Option<i64>>(10)?.map(time),
            too_old_at: time(row.get(11)?),
            plan: self.shared.names.plan(&self.connection, row.get(6)?)?,
            attempts_made: row.get(13)?,
            attempts_used: row.get(14)?,
            status: codec::status(&status)?,
        })
    }

    pub(super) fn overdue_of(&self, row: &Row<'_>) -> rusqlite::Result<Overdue> {
        Ok(Overdue { destination: DestinationNo(row.get(4)?), delivery: self.delivery_of(row)? })
    }

    /// What a delivery sends, if there is such a delivery.
    pub(in crate::sqlite) fn message(&self, delivery: DeliveryId) -> rusqlite::Result<Option<Arc<Message>>> {
        let mut statement = self.prepare(sql::MESSAGE)?;
        let found = statement.query_row([codec::seq(delivery.sequence())], |row| {
            if row.get::<_, i64>(0)? != codec::salt(delivery) {
                return Ok(None);
            }
            let message = self.message_of(row, 1)?;
            Ok(Some(Arc::new(message)))
        });
        Ok(found.optional()?.flatten())
    }

    /// The columns `seq, salt, type_no, accepted_at, body_kind, content_type, payload` of an event, from `first` on.
    pub(super) fn message_of(&self, row: &Row<'_>, first: usize) -> rusqlite::Result<Message> {
        Ok(Message {
            id: codec::id(row.get(first)?, row.get(first + 1)?),
            event_type: self.shared.names.event_type(&self.connection, row.get(first + 2)?)?,
            accepted_at: time(row.get(first + 3)?),
            body: codec::body(row.get(first + 4)?, row.get(first + 5)?)?,
            payload: Bytes::copy_from_slice(row.get_ref(first + 6)?.as_blob()?),
        })
    }
}

pub(super) fn priority(level: i64) -> rusqlite::Result<Priority> {
    u64::try_from(level)
        .ok()
        .and_then(|level| Priority::new(level).ok())
        .ok_or_else(|| strange("the priority", level))
}
