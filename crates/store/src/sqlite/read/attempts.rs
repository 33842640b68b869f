//! Attempts, with what was kept of their answers.

use rusqlite::{Row, params};
use tidegate_core::id::DeliveryId;
use tidegate_core::outcome::Outcome;
use tidegate_core::sequence::Sequence;
use tidegate_core::time::Millis;

use crate::DestinationNo;
use crate::delivery::StoredAttempt;
use crate::list::Page;
use crate::sqlite::codec::{self, length, strange, time};
use crate::sqlite::shared::Reader;
use crate::sqlite::sql;

impl Reader {
    pub(in crate::sqlite) fn attempts(&self, delivery: DeliveryId) -> rusqlite::Result<Vec<StoredAttempt>> {
        let mut found = self.all(sql::ATTEMPTS_OF_DELIVERY, [codec::seq(delivery.sequence())], attempt)?;
        found.retain(|attempt| attempt.delivery == delivery);
        Ok(found)
    }

    pub(in crate::sqlite) fn destination_attempts(
        &self,
        destination: DestinationNo,
        before: Option<Sequence>,
        limit: usize,
    ) -> rusqlite::Result<Page<StoredAttempt>> {
        let before = before.map_or(i64::MAX, codec::seq);
        let items = self.at_once(|| {
            let mut items = Vec::new();
            // What is not filed yet is newer than what is.
            for sql in [sql::ATTEMPTS_UNFILED, sql::ATTEMPTS_FILED] {
                let rest = length(limit - items.len());
                items.extend(self.all(sql, params![destination.0, before, rest], attempt)?);
            }
            Ok(items)
        })?;
        let next = items.last().filter(|_| items.len() >= limit).map(|attempt| attempt.id.sequence());
        Ok(Page { items, next })
    }

    pub(in crate::sqlite) fn count_destination_attempts(
        &self,
        destination: DestinationNo,
        cap: u64,
    ) -> rusqlite::Result<u64> {
        self.at_once(|| {
            let mut found = 0;
            for sql in [sql::COUNT_ATTEMPTS_UNFILED, sql::COUNT_ATTEMPTS_FILED] {
                let rest = codec::count(cap.saturating_sub(found).saturating_add(1));
                let more = self.prepare(sql)?.query_row(params![destination.0, rest], |row| row.get(0))?;
                found += codec::uncount(more);
            }
            Ok(found)
        })
    }
}

fn attempt(row: &Row<'_>) -> rusqlite::Result<StoredAttempt> {
    let outcome: String = row.get(8)?;
    let headers: Option<String> = row.get(11)?;
    let response_headers = match headers {
        None => Vec::new(),
        Some(text) => serde_json::from_str(&text).map_err(|error| strange("the headers", error))?,
    };
    Ok(StoredAttempt {
        id: codec::id(row.get(2)?, row.get(3)?),
        delivery: codec::id(row.get(0)?, row.get(13)?),
        destination: DestinationNo(row.get(4)?),
        number: row.get(1)?,
        started_at: time(row.get(5)?),
        response_time: Millis::new(row.get(6)?),
        timeout: Millis::new(row.get(7)?),
        outcome: Outcome::from_code(&outcome).ok_or_else(|| strange("the outcome", outcome))?,
        error: row.get(10)?,
        response_headers,
        response_body: row.get::<_, Option<Vec<u8>>>(12)?.unwrap_or_default(),
        probe: codec::probe(row.get(9)?),
    })
}
