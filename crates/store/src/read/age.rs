//! Deliveries whose end has come, and how long the oldest waits.

use tidegate_core::time::Timestamp;

use super::refill::Kind;
use crate::DestinationNo;
use crate::codec::{length, time};
use crate::lane::Overdue;
use crate::shared::Reader;
use crate::source::{Result, Row, params};
use crate::sql;

impl Reader {
    /// Open deliveries that are stale or too old; in a cluster, those of the slots that this node holds.
    pub(crate) fn overdue(&self, now: Timestamp, limit: usize) -> Result<Vec<Overdue>> {
        let (now, limit) = (now.as_millis(), length(limit));
        let overdue = |row: &Row<'_>| self.overdue_of(row);
        match &self.shared.node {
            Some(node) => self.all(sql::OVERDUE, params![now, limit, &node.epochs().slots()], overdue),
            None => self.all(sql::OVERDUE, params![now, limit], overdue),
        }
    }

    /// When the oldest open delivery was accepted: the first of some priority and type, or one that waits for a retry. One that
    /// only waits for its `deliver_at` is not old.
    pub(crate) fn oldest_open(&self, destination: DestinationNo) -> Result<Option<Timestamp>> {
        let accepted_at = |row: &Row<'_>| row.get(9).map(time);
        self.at_once(|| {
            let mut found = self.all(sql::OLDEST_RETRYING, params![destination.0, 1_i64], accepted_at)?;
            for keyless in [true, false] {
                for Kind { priority, type_no, .. } in self.kinds(destination, keyless)? {
                    let first = params![destination.0, keyless, priority, type_no, i64::MIN, i64::MIN, 1_i64];
                    found.extend(self.all(sql::REFILL_READY, first, accepted_at)?);
                }
            }
            Ok(found.into_iter().min())
        })
    }
}
