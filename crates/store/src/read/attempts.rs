//! Attempts, with what was kept of their answers.

use tidegate_core::id::DeliveryId;
use tidegate_core::outcome::Outcome;
use tidegate_core::sequence::Sequence;
use tidegate_core::time::Millis;

use super::beyond;
use crate::DestinationNo;
use crate::codec::{self, length, strange, time};
use crate::delivery::{Attempts, Room, StoredAttempt};
use crate::list::Page;
use crate::shared::Reader;
use crate::source::{Result, Row, Source, Sql, params};
use crate::{sql, sqlite};

/// Attempts of one look. Some hold a few KiB of an answer, so it is some MiB at most.
const AT_ONCE: usize = 1_000;

impl Reader {
    pub(crate) fn attempts(&self, delivery: DeliveryId) -> Result<Vec<StoredAttempt>> {
        let mut found =
            self.all(sql::ATTEMPTS_OF_DELIVERY, params![codec::seq(delivery.sequence())], attempt)?;
        found.retain(|attempt| attempt.delivery == delivery);
        Ok(found)
    }

    pub(crate) fn attempts_of(&self, deliveries: &[DeliveryId], room: Room) -> Result<Attempts> {
        self.at_once(|| {
            let (mut found, mut bytes) = (Attempts::default(), 0);
            while let [first, ..] = &deliveries[found.looked_at..] {
                if found.items.len() >= room.attempts || bytes >= room.bytes {
                    break;
                }
                let run = run(&deliveries[found.looked_at..]);
                let first = codec::seq(first.sequence());
                let values = params![first, first + length(run) - 1, length(AT_ONCE)];
                let mut read = self.all(sql::ATTEMPTS_BETWEEN, values, attempt)?;
                // The last delivery of a full look may have more. If it is not the only one, the next look begins with it.
                let last = read.last().filter(|_| read.len() == AT_ONCE).map(|last| last.delivery);
                found.looked_at += match last.map(|last| codec::seq(last.sequence()) - first) {
                    None => run,
                    Some(0) => {
                        found.cut += 1;
                        1
                    }
                    Some(whole) => {
                        read.retain(|attempt| Some(attempt.delivery) != last);
                        usize::try_from(whole).unwrap_or(run)
                    }
                };
                bytes += read.iter().map(StoredAttempt::kept_bytes).sum::<usize>();
                found.items.append(&mut read);
            }
            Ok(found)
        })
    }

    pub(crate) fn destination_attempts(
        &self,
        destination: DestinationNo,
        before: Option<Sequence>,
        limit: usize,
    ) -> Result<Page<StoredAttempt>> {
        let before = before.map_or(i64::MAX, codec::seq);
        let items = self.at_once(|| {
            let mut items = Vec::new();
            for sql in self.in_parts(sqlite::ATTEMPTS_UNFILED, sql::ATTEMPTS_FILED) {
                let rest = length(limit - items.len());
                items.extend(self.all(sql, params![destination.0, before, rest], attempt)?);
            }
            Ok(items)
        })?;
        let next = items.last().filter(|_| items.len() >= limit).map(|attempt| attempt.id.sequence());
        Ok(Page { items, next })
    }

    pub(crate) fn count_destination_attempts(&self, destination: DestinationNo, cap: u64) -> Result<u64> {
        self.at_once(|| {
            let mut found = 0;
            for sql in self.in_parts(sqlite::COUNT_ATTEMPTS_UNFILED, sql::COUNT_ATTEMPTS_FILED) {
                found += self.count(sql, params![destination.0, beyond(cap.saturating_sub(found))])?;
            }
            Ok(found)
        })
    }

    /// A statement on attempts that are filed, after the one on those that are not yet: these are newer. PostgreSQL files
    /// everything at once.
    fn in_parts(&self, unfiled: &'static str, filed: Sql) -> Vec<Sql> {
        match self.source {
            Source::Sqlite(_) => vec![Sql { sqlite: unfiled, ..filed }, filed],
            Source::Postgres(_) => vec![filed],
        }
    }
}

/// How many of these, from the first on, have numbers that follow one another.
fn run(deliveries: &[DeliveryId]) -> usize {
    let follows = |pair: &&[DeliveryId]| pair[1].sequence().get() == pair[0].sequence().get() + 1;
    1 + deliveries.windows(2).take_while(follows).count()
}

fn attempt(row: &Row<'_>) -> Result<StoredAttempt> {
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
        response_body: row.get::<Option<Vec<u8>>>(12)?.unwrap_or_default(),
        probe: codec::probe(row.get(9)?),
    })
}
