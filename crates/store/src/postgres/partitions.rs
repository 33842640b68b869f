//! Partitions by the number of acceptance: made by the writer before the first row that belongs into one, dropped by
//! retention.

use std::collections::BTreeSet;

use super::failure::Failure;
use super::link::Link;
use super::sql;

/// What the writer knows of them.
#[derive(Debug)]
pub(super) struct Partitions {
    /// The first number of each.
    there: BTreeSet<i64>,
    /// Those that could not be made: their rows lie in the default partition.
    missing: BTreeSet<i64>,
    /// Numbers in one.
    width: i64,
}

impl Partitions {
    pub(super) fn load(link: &Link, width: i64) -> Result<Self, Failure> {
        let (there, _) = all(link)?;
        Ok(Self { there: there.into_iter().collect(), missing: BTreeSet::new(), width })
    }

    /// Makes those into which these numbers belong, and the ones after them, so that the next one is there in time. Where
    /// one cannot be made now, its rows go to the default partition and are deleted one by one in the end.
    pub(super) fn prepare(&mut self, link: &Link, numbers: impl Iterator<Item = i64>) -> Result<(), Failure> {
        let wanted: BTreeSet<i64> = numbers
            .map(|number| first(number, self.width))
            .flat_map(|first| [first, first.saturating_add(self.width)])
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
}

/// Partitions that there are, by their first numbers; and those that were detached, and are to be dropped.
pub(super) fn all(link: &Link) -> Result<(Vec<i64>, Vec<i64>), Failure> {
    let rows = link.ask(sql::PARTITIONS, Vec::new())?.rows;
    let (there, detached): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row.get::<_, bool>(1));
    let firsts = |rows: Vec<&tokio_postgres::Row>| rows.into_iter().map(|row| row.get(0)).collect();
    Ok((firsts(there), firsts(detached)))
}

/// The first number of the partition that a number belongs into.
pub(super) const fn first(number: i64, width: i64) -> i64 {
    number.div_euclid(width) * width
}

/// A statement for the partition that begins with `first`.
pub(super) fn at(sql: &str, first: i64, width: i64) -> String {
    sql.replace("{first}", &first.to_string()).replace("{next}", &(first + width).to_string())
}
