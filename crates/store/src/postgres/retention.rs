//! Retention, on a thread and a connection of its own: the writer waits for it only while a partition is detached.
//!
//! ```text
//!   noted         events that had to stay, and have nothing open any more: row by row, once they are old
//!   partitions    whose time is over: detached and dropped, if few of their rows must stay; those move to the default one
//!   all others    row by row, in the order of acceptance
//!   logs          some old rows of each
//! ```
//!
//! The writer may make a delivery final, or replay an event, while retention looks at that event. Then either the writer notes
//! the event (`forget_ahead` was moved before), or one of the two locks the event's row until its commit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tidegate_core::sequence::Sequence;
use tidegate_core::time::Timestamp;

use super::cluster;
use super::failure::Failure;
use super::link::{Answer, Asked, Link};
use super::partitions::{self, at};
use super::sql;
use super::value::{Rows, row, typed};
use crate::StoreError;
use crate::codec::{self, length};
use crate::shared::Shared;
use crate::source::{Value, params};
use crate::work::{Forgetting, KEYS_KEPT};

/// Deliveries that are moved out of a partition at most, and their bytes: everybody waits for that.
const MOVED: i64 = 1_000;
const MOVED_BYTES: i64 = 8 << 20;

/// What retention works with.
pub(super) struct Retention {
    pub(super) link: Link,
    pub(super) shared: Arc<Shared>,
    /// Numbers in one partition.
    pub(super) width: i64,
}

/// What may go.
#[derive(Clone, Copy)]
struct Old {
    /// What became final before it.
    cut: i64,
    /// Events with numbers below it: the first number of a partition.
    end: i64,
    /// How many are looked at in one step.
    limit: i64,
}

/// Takes steps until the store is closed.
pub(super) fn run(retention: &Retention) {
    let Some(asked) = &retention.shared.retention else { return };
    while let Some(Forgetting { before, limit, answer }) = asked.pop() {
        let step = catch_unwind(AssertUnwindSafe(|| retention.forget(before, limit)));
        let gone = match step {
            Ok(Err(Failure::Again(text))) => {
                tracing::info!(text, "others were in the way of retention: it goes on later");
                Ok(0)
            }
            Ok(gone) => gone.map_err(StoreError::from),
            // The next step must still find somebody.
            Err(_) => Err(StoreError::Refused("a step of retention ended by a panic".to_owned())),
        };
        if gone.is_err() {
            retention.link.cut();
        }
        drop(answer.send(gone));
    }
}

impl Retention {
    /// One step; says how many events went.
    fn forget(&self, before: Timestamp, limit: usize) -> Result<u64, Failure> {
        if self.is_for_another()? {
            return Ok(0);
        }
        let end = partitions::first(codec::seq(Sequence::at(before)), self.width);
        let old = Old { cut: before.as_millis(), end, limit: length(limit) };
        self.announce(old.end)?;
        let gone = self.forget_noted(old)? + self.forget_next(old)?;
        self.forget_logs(old)?;
        Ok(gone)
    }

    /// Of several nodes the one that is there for longest does it.
    fn is_for_another(&self) -> Result<bool, Failure> {
        let Some(node) = &self.shared.node else { return Ok(false) };
        let found = self.link.ask(sql::HAS_SENIOR, typed(params![cluster::number(node.me)]))?;
        Ok(!found.rows.is_empty())
    }

    /// From now on, what becomes final of events with numbers below `end` is noted. Waits for groups that do not know it.
    fn announce(&self, end: i64) -> Result<(), Failure> {
        if self.meta("forget_ahead")? >= end {
            return Ok(());
        }
        self.transact(vec![
            Asked { sql: sql::WAIT_BRIEFLY, values: Vec::new() },
            Asked { sql: sql::LOCK_SEATS, values: Vec::new() },
            Asked { sql: sql::SET_META, values: typed(params!["forget_ahead", end]) },
        ])?;
        Ok(())
    }

    fn forget_noted(&self, old: Old) -> Result<u64, Failure> {
        let noted = self.link.ask(sql::NOTED_TO_FORGET, typed(params![old.cut, old.limit]))?.rows;
        let (mut notes, mut events) = (Rows::of("ii"), Vec::new());
        for note in &noted {
            let (at, event): (i64, i64) = (note.get(0), note.get(1));
            notes.push(row![at, event]);
            events.push(event);
        }
        match events.is_empty() {
            true => Ok(0),
            false => {
                self.forget_events(&events, old, Asked { sql: sql::FORGET_NOTES, values: notes.values() })
            }
        }
    }

    /// Goes on in the order of acceptance until some events went, partition by partition, and through what has none.
    fn forget_next(&self, old: Old) -> Result<u64, Failure> {
        let mut cursor = self.meta("forget_cursor")?;
        let mut go_on = |from: i64, to: i64| -> Result<Option<u64>, Failure> {
            let from = cursor.max(from);
            if from >= to {
                return Ok(None);
            }
            let (gone, looked_at) = self.walk(from, to, old)?;
            cursor = to;
            Ok(Some(gone).filter(|_| gone > 0 || looked_at >= old.limit))
        };
        for first in self.partitions()? {
            let next = first + self.width;
            if next > old.end {
                break;
            }
            if let Some(gone) = go_on(i64::MIN, first)? {
                return Ok(gone);
            }
            let gone = match self.is_light(first, old.cut)? {
                true => Some(self.drop(first, old.cut)?).filter(|gone| *gone > 0),
                false => go_on(first, next)?,
            };
            if let Some(gone) = gone {
                return Ok(gone);
            }
        }
        Ok(go_on(i64::MIN, old.end)?.unwrap_or(0))
    }

    /// The partitions that there are, by their first numbers. Those that were detached and left behind by a crash go.
    fn partitions(&self) -> Result<Vec<i64>, Failure> {
        let (there, detached) = partitions::all(&self.link)?;
        for first in detached {
            self.link.batch(&at(sql::DROP_PARTITION, first, self.width))?;
        }
        Ok(there)
    }

    /// Looks at the next events of a range, one by one, and moves the cursor. Says how many went, of how many.
    fn walk(&self, from: i64, to: i64, old: Old) -> Result<(u64, i64), Failure> {
        let found = self.link.ask(sql::NEXT_TO_FORGET, typed(params![from, to, old.limit]))?.rows;
        let events: Vec<i64> = found.iter().map(|row| row.get(0)).collect();
        let looked_at = length(events.len());
        let cursor = events.last().filter(|_| looked_at >= old.limit).map_or(to, |last| last + 1);
        let cursor = Asked { sql: sql::SET_META, values: typed(params!["forget_cursor", cursor]) };
        Ok((self.forget_events(&events, old, cursor)?, looked_at))
    }

    /// Deletes those of these events that have nothing open or young. A statement of its own locks them first: what somebody
    /// commits while we wait for a lock is seen only by the next statement.
    fn forget_events(&self, events: &[i64], old: Old, also: Asked<'_>) -> Result<u64, Failure> {
        let numbers = || {
            let mut numbers = Rows::of("i");
            events.iter().for_each(|event| numbers.push(row![*event]));
            numbers.values()
        };
        let cut = typed(params![old.cut]);
        let answers = self.transact(vec![
            Asked { sql: sql::LOCK_EVENTS, values: numbers() },
            also,
            Asked { sql: sql::FORGET_EVENTS, values: numbers().into_iter().chain(cut).collect() },
        ])?;
        Ok(answers.last().map_or(0, counted))
    }

    /// Whether little of a partition must stay, so that moving it is short.
    fn is_light(&self, first: i64, cut: i64) -> Result<bool, Failure> {
        let of = |sql: &str| at(sql, first, self.width);
        self.link.ask(&of(sql::SUMMARIZE_PARTITION), Vec::new())?;
        let weight = self.link.ask(&of(sql::WEIGH_PARTITION), typed(params![cut, MOVED + 1]))?.rows;
        Ok(weight
            .first()
            .is_some_and(|row| row.get::<_, i64>(0) <= MOVED && row.get::<_, i64>(1) <= MOVED_BYTES))
    }

    /// Drops a partition; what must stay moves. Files are taken away when nobody waits for it any more.
    fn drop(&self, first: i64, cut: i64) -> Result<u64, Failure> {
        let of = |sql: &str| at(sql, first, self.width).replace("{cut}", &cut.to_string());
        self.link.batch(&of(sql::DETACH_PARTITION)).inspect_err(|_| self.link.cut())?;
        let gone = self.link.ask(&of(sql::COUNT_PARTITION), Vec::new())?;
        self.link.batch(&of(sql::DROP_PARTITION))?;
        Ok(counted(&gone))
    }

    fn forget_logs(&self, old: Old) -> Result<(), Failure> {
        let keys = self.shared.latest().map_or(Timestamp::MIN, |latest| latest - KEYS_KEPT).as_millis();
        let logs = [
            (sql::FORGET_HOLDS, old.cut),
            (sql::FORGET_NOTICES, old.cut),
            (sql::FORGET_HOURS, old.cut),
            (sql::FORGET_OUTBOX, old.cut),
            (sql::FORGET_IDEMPOTENCY_KEYS, keys),
            (sql::FORGET_EXTERNAL_IDS, keys),
        ];
        let logs = logs.map(|(sql, cut)| Asked { sql, values: typed(params![cut, old.limit]) });
        self.link.send(&logs).map(|_| ())
    }

    /// All of it or nothing. Where a statement fails, the commit behind it rolls back.
    fn transact(&self, asked: Vec<Asked<'_>>) -> Result<Vec<Answer>, Failure> {
        let plain = |sql| Asked { sql, values: Vec::new() };
        let all: Vec<_> = [plain("begin")].into_iter().chain(asked).chain([plain("commit")]).collect();
        let mut answers = self.link.send(&all)?;
        answers.pop();
        Ok(answers)
    }

    fn meta(&self, name: &str) -> Result<i64, Failure> {
        let found = self.link.look(crate::sql::GET_META.postgres, &[Value::from(name)])?;
        let found = found.first().map(|row| row.get(0));
        found.ok_or_else(|| Failure::Refused(format!("the store holds no number {name}")))
    }
}

/// The number that a statement counted.
fn counted(answer: &Answer) -> u64 {
    let count = answer.rows.first().map_or(0, |row| row.get::<_, i64>(0));
    u64::try_from(count).unwrap_or(0)
}
