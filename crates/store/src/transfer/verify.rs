//! The comparison: each side reads all its rows by itself, and counts and checksums must be the same.

use std::fmt;
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;

use super::checksum::Summing;
use super::{Doing, Plan, Progress, Sum, TransferError};
use crate::postgres::Target;
use crate::source::Row;
use crate::sqlite::Origin;

/// After so many rows it is told how far it is.
const TELL_EVERY: u64 = 10_000;

/// What is not the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The rows of a table.
    Rows {
        /// Which.
        table: &'static str,
        /// In the source.
        source: Sum,
        /// In the target.
        target: Sum,
    },
    /// A single number.
    Number {
        /// Which.
        name: String,
        /// In the source.
        source: Option<i64>,
        /// In the target.
        target: Option<i64>,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows { table, source, target } if source.rows != target.rows => {
                write!(f, "{table}: {} rows in the source, {} in the target", source.rows, target.rows)
            }
            Self::Rows { table, source, target } => write!(
                f,
                "{table}: {} rows on both sides, but not the same ones (checksum {:032x} in the source, {:032x} in the target)",
                source.rows, source.checksum, target.checksum
            ),
            Self::Number { name, source, target } => {
                let shown =
                    |number: &Option<i64>| number.map_or("nothing".to_owned(), |number| number.to_string());
                write!(
                    f,
                    "the number {name}: {} in the source, {} in the target",
                    shown(source),
                    shown(target)
                )
            }
        }
    }
}

/// Reads both sides, each on a thread of its own, and gives back what they have in common, which is everything.
pub(super) fn compare(
    origin: &mut Origin,
    target: &Target,
    plans: &[Plan],
    totals: &[u64],
    tell: &mut dyn FnMut(Progress),
) -> Result<Vec<(&'static str, Sum)>, TransferError> {
    let mut differences = numbers(origin, target)?;
    let mut same = Vec::new();
    std::thread::scope(|scope| {
        let (send, receive) = channel();
        let sum = move || sum_source(origin, plans, &send);
        let summing = Builder::new().name("transfer-read".to_owned()).spawn_scoped(scope, sum);
        let summing = summing.map_err(|error| TransferError::Thread(error.to_string()))?;
        let (mut before, all_of) = (0, totals.iter().sum());
        for (plan, of) in plans.iter().zip(totals) {
            let table = plan.table.name;
            let found = sum_target(target, plan, &mut |rows| {
                tell(Progress {
                    doing: Doing::Comparing,
                    table,
                    rows,
                    of: *of,
                    all_rows: before + rows,
                    all_of,
                });
            })?;
            before += of;
            // It ends without a word where the source could not be read: that is told below.
            let Ok(source) = receive.recv() else { break };
            match source == found {
                true => same.push((table, found)),
                false => differences.push(Difference::Rows { table, source, target: found }),
            }
        }
        summing.join().map_err(|_| TransferError::Thread("reading the source".to_owned()))?
    })?;
    if differences.is_empty() { Ok(same) } else { Err(TransferError::Differ(differences)) }
}

fn sum_source(origin: &Origin, plans: &[Plan], send: &Sender<Sum>) -> Result<(), TransferError> {
    for plan in plans {
        let mut summing = Summing::default();
        origin.walk(plan, &plan.before_all(), &mut |row| {
            add(&mut summing, plan, row)?;
            Ok(true)
        })?;
        if send.send(summing.sum()).is_err() {
            break;
        }
    }
    Ok(())
}

fn sum_target(target: &Target, plan: &Plan, tell: &mut dyn FnMut(u64)) -> Result<Sum, TransferError> {
    let mut summing = Summing::default();
    target.walk(plan, &mut |row| {
        add(&mut summing, plan, row)?;
        if summing.sum().rows % TELL_EVERY == 0 {
            tell(summing.sum().rows);
        }
        Ok(())
    })?;
    tell(summing.sum().rows);
    Ok(summing.sum())
}

fn add(summing: &mut Summing, plan: &Plan, row: &Row<'_>) -> crate::source::Result<()> {
    for place in 0..plan.kinds.len() {
        summing.cell(row.cell(place)?);
    }
    summing.end_row();
    Ok(())
}

fn numbers(origin: &Origin, target: &Target) -> Result<Vec<Difference>, TransferError> {
    let (here, mut there) = (origin.numbers()?, target.numbers()?);
    let mut differences = Vec::new();
    for (name, source) in here {
        let (source, target) = (Some(source), there.remove(&name));
        if source != target {
            differences.push(Difference::Number { name, source, target });
        }
    }
    let more = there.into_iter();
    differences.extend(more.map(|(name, target)| Difference::Number {
        name,
        source: None,
        target: Some(target),
    }));
    Ok(differences)
}
