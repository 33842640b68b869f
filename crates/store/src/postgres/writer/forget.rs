//! Retention: partitions whose time is over go whole, each in a transaction of its own. What of them had to stay, because
//! something of its event was open or young, is deleted row by row when that is old.

use std::collections::VecDeque;

use tidegate_core::sequence::Sequence;
use tidegate_core::time::{Millis, Timestamp};

use super::Writer;
use crate::codec::{self, length};
use crate::postgres::failure::Failure;
use crate::postgres::link::Asked;
use crate::postgres::sql;
use crate::postgres::value::{Rows, row, typed};
use crate::source::params;
use crate::work::Work;

/// Idempotency keys and external ids count for 24 h; they are kept for twice that, in case the clock was set.
const KEYS_KEPT: Millis = Millis::hours(48);

impl Writer {
    /// All steps of retention that a group asks for; how many events each took away, in their order.
    pub(super) fn forget_all(&mut self, group: &[Work]) -> Result<VecDeque<u64>, Failure> {
        let mut gone = VecDeque::new();
        for work in group {
            if let Work::Forget { before, limit, .. } = work {
                gone.push_back(self.forget(*before, *limit)?);
            }
        }
        Ok(gone)
    }

    /// One step: up to `limit` events that were left over, one partition, and some old rows of the logs.
    fn forget(&mut self, before: Timestamp, limit: usize) -> Result<u64, Failure> {
        let (cut, limit) = (before.as_millis(), length(limit));
        let mut gone = self.forget_noted(cut, limit)?;
        let end = codec::seq(Sequence::at(before));
        // Partitions without an event are passed over.
        while gone == 0
            && let Some(dropped) = self.partitions.drop_oldest(&self.link, end, cut)?
        {
            gone += dropped;
        }
        let keys = self.latest.map_or(Timestamp::MIN, |latest| latest - KEYS_KEPT).as_millis();
        let logs = [
            (sql::FORGET_HOLDS, cut),
            (sql::FORGET_NOTICES, cut),
            (sql::FORGET_HOURS, cut),
            (sql::FORGET_IDEMPOTENCY_KEYS, keys),
            (sql::FORGET_EXTERNAL_IDS, keys),
        ];
        let logs = logs.map(|(sql, cut)| Asked { sql, values: typed(params![cut, limit]) });
        self.link.send(&logs)?;
        Ok(gone)
    }

    fn forget_noted(&self, cut: i64, limit: i64) -> Result<u64, Failure> {
        let noted = self.link.ask(sql::NOTED_TO_FORGET, typed(params![cut, limit]))?.rows;
        if noted.is_empty() {
            return Ok(0);
        }
        let (mut notes, mut events) = (Rows::of("ii"), Rows::of("i"));
        for note in &noted {
            let (at, event): (i64, i64) = (note.get(0), note.get(1));
            notes.push(row![at, event]);
            events.push(row![event]);
        }
        let transaction = [
            Asked { sql: "begin", values: Vec::new() },
            Asked { sql: sql::FORGET_NOTES, values: notes.values() },
            Asked {
                sql: sql::FORGET_EVENTS,
                values: events.values().into_iter().chain(typed(params![cut])).collect(),
            },
            Asked { sql: "commit", values: Vec::new() },
        ];
        let answers = self.link.send(&transaction)?;
        let gone = answers[2].rows.first().map_or(0, |row| row.get::<_, i64>(0));
        Ok(u64::try_from(gone).unwrap_or(0))
    }
}
