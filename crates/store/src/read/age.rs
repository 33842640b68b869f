//! Deliveries whose end has come, and how long the oldest waits.

use tidegate_core::time::Timestamp;

use crate::DestinationNo;
use crate::codec::length;
use crate::lane::Overdue;
use crate::shared::Reader;
use crate::source::{Result, params};
use crate::sql;

/// Deliveries of each kind that are looked at for their age: the oldest end first, but for some.
const OLDEST: usize = 64;

impl Reader {
    /// Open deliveries that are stale.
    pub(crate) fn overdue(&self, now: Timestamp, limit: usize) -> Result<Vec<Overdue>> {
        self.all(sql::OVERDUE, params![now.as_millis(), length(limit)], |row| self.overdue_of(row))
    }

    /// Open deliveries that are too old, among the oldest of each destination.
    pub(crate) fn too_old(&self, now: Timestamp, limit: usize) -> Result<Vec<Overdue>> {
        let mut found = Vec::new();
        for destination in self.shared.with_open(None) {
            let oldest = self.oldest(destination, OLDEST)?.into_iter();
            found.extend(oldest.filter(|overdue| overdue.delivery.too_old_at <= now));
            if found.len() >= limit {
                break;
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    /// When the oldest open delivery was accepted. One that only waits for its `deliver_at` is not old.
    pub(crate) fn oldest_open(&self, destination: DestinationNo) -> Result<Option<Timestamp>> {
        let oldest = self.oldest(destination, 1)?;
        Ok(oldest.into_iter().map(|overdue| overdue.delivery.accepted_at).min())
    }

    /// The oldest of each priority and type, and of those that wait for a retry.
    fn oldest(&self, destination: DestinationNo, count: usize) -> Result<Vec<Overdue>> {
        self.at_once(|| {
            let retrying = params![destination.0, length(count)];
            let mut found = self.all(sql::OLDEST_RETRYING, retrying, |row| self.overdue_of(row))?;
            for keyless in [true, false] {
                for kind in self.kinds(destination, keyless)? {
                    let (priority, type_no) = (kind.priority, kind.type_no);
                    let first = (i64::MIN, i64::MIN);
                    let params =
                        params![destination.0, keyless, priority, type_no, first.0, first.1, length(count)];
                    found.extend(self.all(sql::REFILL_READY, params, |row| self.overdue_of(row))?);
                }
            }
            Ok(found)
        })
    }
}
