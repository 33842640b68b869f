//! Partitions by the number of acceptance: made before the first row that belongs into one, dropped by retention.

use std::collections::BTreeSet;

use super::failure::Failure;
use super::link::{Answer, Asked, Link};
use super::sql;
use super::value::{Rows, row, typed};
use crate::source::params;

/// Which there are.
#[derive(Debug)]
pub(super) struct Partitions {
    /// The first number of each.
    there: BTreeSet<i64>,
    /// Those that could not be made: their rows lie in the default partition.
    missing: BTreeSet<i64>,
    /// Numbers in one.
    width: i64,
    /// Those below it were dropped: rows with such numbers go to the default partition.
    dropped: i64,
}

impl Partitions {
    pub(super) fn load(link: &Link, width: i64, dropped: i64) -> Result<Self, Failure> {
        let firsts = |answer: Answer| answer.rows.iter().map(|row| row.get::<_, i64>(0)).collect();
        let there = firsts(link.ask(sql::PARTITIONS, Vec::new())?);
        let missing = firsts(link.ask(sql::MISSING_PARTITIONS, typed(params![dropped, width]))?);
        Ok(Self { there, missing, width, dropped })
    }

    /// Makes those into which these numbers belong, and the ones after them, so that the next one is there in time. Where
    /// one cannot be made now, its rows go to the default partition and are deleted one by one in the end.
    pub(super) fn prepare(&mut self, link: &Link, numbers: impl Iterator<Item = i64>) -> Result<(), Failure> {
        let wanted: BTreeSet<i64> = numbers
            .map(|number| number.div_euclid(self.width) * self.width)
            .flat_map(|first| [first, first.saturating_add(self.width)])
            .filter(|first| *first >= self.dropped)
            .filter(|first| !self.there.contains(first) && !self.missing.contains(first))
            .collect();
        for first in wanted {
            let add = at(sql::ADD_PARTITION, first, self.width);
            match link.batch(&format!("{}; {add} commit", sql::BEGIN_PARTITION)) {
                Ok(()) => self.there.insert(first),
                Err(Failure::Refused(text) | Failure::Again(text)) => {
                    tracing::warn!(%text, first, "a partition could not be made: its rows go to the default one");
                    link.batch("rollback")?;
                    self.missing.insert(first)
                }
                Err(failure) => return Err(failure),
            };
        }
        Ok(())
    }

    /// Drops the oldest partition if all its numbers are below `end`; what became final from `cut` on stays, with its event.
    /// Says how many events went; `None` if there is no such partition, or somebody reads it for long.
    pub(super) fn drop_oldest(&mut self, link: &Link, end: i64, cut: i64) -> Result<Option<u64>, Failure> {
        let oldest = self.there.first().into_iter().chain(self.missing.first()).min().copied();
        let Some(first) = oldest.filter(|first| first + self.width <= end) else { return Ok(None) };
        let gone = match self.missing.contains(&first) {
            false => self.drop(link, first, cut),
            true => self.pass(link, first).map(|()| 0),
        };
        match gone {
            Ok(gone) => {
                self.there.remove(&first);
                self.missing.remove(&first);
                self.dropped = first + self.width;
                Ok(Some(gone))
            }
            Err(Failure::Again(text)) => {
                tracing::info!(%text, first, "a partition is still being read: it is dropped later");
                link.batch("rollback")?;
                Ok(None)
            }
            Err(failure) => {
                link.cut();
                Err(failure)
            }
        }
    }

    /// Passes a range without a partition: its events are looked at one by one.
    fn pass(&self, link: &Link, first: i64) -> Result<(), Failure> {
        let next = first + self.width;
        let asked = [
            Asked { sql: "begin", values: Vec::new() },
            Asked { sql: sql::NOTE_KEPT, values: typed(params![first, next]) },
            Asked { sql: sql::SET_META, values: typed(params!["forget_cursor", next]) },
            Asked { sql: "commit", values: Vec::new() },
        ];
        link.send(&asked).map(|_| ())
    }

    fn drop(&self, link: &Link, first: i64, cut: i64) -> Result<u64, Failure> {
        let text = |sql: &str| at(sql, first, self.width);
        link.batch(sql::BEGIN_PARTITION)?;
        let stay = link.ask(&text(sql::SURVIVORS), typed(params![cut]))?.rows;
        let (mut kept, mut noted) = (Rows::of("i"), Rows::of("ii"));
        for row in &stay {
            let event: i64 = row.get(0);
            kept.push(row![event]);
            if !row.get::<_, bool>(2) {
                noted.push(row![row.get::<_, Option<i64>>(1), event]);
            }
        }
        let count: i64 = link.ask(&text(sql::COUNT_PARTITION), Vec::new())?.rows[0].get(0);
        link.ask(sql::KEEP_SURVIVORS, kept.values())?;
        link.ask(sql::NOTE_SURVIVORS, noted.values())?;
        link.batch(&text(sql::DROP_PARTITION))?;
        link.ask(sql::SET_META, typed(params!["forget_cursor", first + self.width]))?;
        link.batch("commit")?;
        Ok(u64::try_from(count).unwrap_or(0).saturating_sub(u64::try_from(stay.len()).unwrap_or(0)))
    }
}

/// A statement for the partition that begins with `first`.
fn at(sql: &str, first: i64, width: i64) -> String {
    sql.replace("{first}", &first.to_string()).replace("{next}", &(first + width).to_string())
}
