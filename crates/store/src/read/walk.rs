//! Lists of deliveries: the parts of the indexes that can hold what is asked for, merged by number, and looked through row
//! by row up to a limit.

use std::collections::VecDeque;

use tidegate_core::sequence::Sequence;
use tidegate_core::time::Timestamp;

use super::sieve::Sieve;
use crate::codec::{self, length, seq};
use crate::delivery::StoredDelivery;
use crate::list::Stage;
use crate::shared::Reader;
use crate::source::{Result, Row, params};
use crate::sql;
use crate::{AccountNo, DestinationNo};

/// A part of an index, in the order of numbers.
#[derive(Debug)]
pub(super) enum Part {
    Filed(DestinationNo),
    Unfiled(DestinationNo),
    Account(AccountNo),
    TroubledOfDestination(DestinationNo, Stage),
    Troubled(AccountNo, Stage),
    /// Deliveries by their numbers, in the order of the walk.
    These(VecDeque<i64>),
}

/// Which way a list goes, and where it begins: after this number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) oldest_first: bool,
    pub(super) after: i64,
}

impl Way {
    pub(super) fn new(oldest_first: bool, before: Option<Sequence>) -> Self {
        let start = if oldest_first { -1 } else { i64::MAX };
        Self { oldest_first, after: before.map_or(start, seq) }
    }
    /// Numbers grow with the clock, so a list of a time begins at that time's numbers. (What was accepted while the clock
    /// was set back has numbers of the time that it was set back from, and is listed there.)
    pub(super) fn within(self, from: Option<Timestamp>, to: Option<Timestamp>) -> Self {
        let edge = match self.oldest_first {
            true => from.map(|from| seq(Sequence::at(from)).saturating_sub(1)),
            false => to.map(|to| seq(Sequence::at(to))),
        };
        let after = edge.filter(|edge| self.is_before(self.after, *edge)).unwrap_or(self.after);
        Self { after, ..self }
    }
    /// Whether nothing of that time can come from here on.
    pub(super) fn is_past(self, number: i64, from: Option<Timestamp>, to: Option<Timestamp>) -> bool {
        match self.oldest_first {
            true => to.is_some_and(|to| number >= seq(Sequence::at(to))),
            false => from.is_some_and(|from| number < seq(Sequence::at(from))),
        }
    }
    /// Whether `a` comes before `b`.
    pub(super) const fn is_before(self, a: i64, b: i64) -> bool {
        if self.oldest_first { a < b } else { a > b }
    }
}

/// A row: its number, and the delivery if the sieve lets it pass.
type Found = (i64, Option<StoredDelivery>);

/// A walk over parts.
pub(super) struct Walk<'a> {
    reader: &'a Reader,
    way: Way,
    sieve: &'a Sieve,
    parts: Vec<Reading>,
    chunk: usize,
}

struct Reading {
    part: Part,
    read: VecDeque<Found>,
    /// Where to read on; `None`: there is no more.
    after: Option<i64>,
}

impl<'a> Walk<'a> {
    /// A walk of which about `wanted` rows will be taken.
    pub(super) fn new(
        reader: &'a Reader,
        way: Way,
        sieve: &'a Sieve,
        parts: Vec<Part>,
        wanted: usize,
    ) -> Self {
        let chunk = (wanted.saturating_mul(2) / parts.len().max(1)).clamp(2, 256);
        let parts = parts.into_iter();
        let parts = parts.map(|part| Reading { part, read: VecDeque::new(), after: Some(way.after) });
        Self { reader, way, sieve, parts: parts.collect(), chunk }
    }

    /// The next row: the first of the heads of all parts, which are few. One that several parts have comes once.
    pub(super) fn next(&mut self) -> Result<Option<Found>> {
        let mut first: Option<i64> = None;
        for index in 0..self.parts.len() {
            let Some(number) = self.head(index)? else { continue };
            if first.is_none_or(|best| self.way.is_before(number, best)) {
                first = Some(number);
            }
        }
        let Some(number) = first else { return Ok(None) };
        let mut found = None;
        for part in &mut self.parts {
            if part.read.front().is_some_and(|(head, _)| *head == number) {
                found = part.read.pop_front();
            }
        }
        Ok(found)
    }

    fn head(&mut self, index: usize) -> Result<Option<i64>> {
        if let (true, Some(after)) = (self.parts[index].read.is_empty(), self.parts[index].after) {
            let nothing = Part::These(VecDeque::new());
            let mut part = std::mem::replace(&mut self.parts[index].part, nothing);
            let found = self.read(&mut part, after)?;
            let reading = &mut self.parts[index];
            reading.part = part;
            reading.after =
                if found.len() < self.chunk { None } else { found.last().map(|(number, _)| *number) };
            reading.read.extend(found);
        }
        Ok(self.parts[index].read.front().map(|(number, _)| *number))
    }

    fn read(&self, part: &mut Part, after: i64) -> Result<Vec<Found>> {
        let reader = self.reader;
        let turn = |row: &Row<'_>| -> Result<Found> {
            let passes = self.sieve.passes(row)?;
            Ok((row.get(0)?, passes.then(|| reader.stored_delivery(row)).transpose()?))
        };
        let limit = length(self.chunk);
        let either = |newest, oldest| if self.way.oldest_first { oldest } else { newest };
        match part {
            Part::Filed(destination) => {
                let sql = either(sql::LIST_FILED_NEWEST, sql::LIST_FILED_OLDEST);
                reader.all(sql, params![destination.0, after, limit], turn)
            }
            Part::Unfiled(destination) => {
                let sql = either(sql::LIST_UNFILED_NEWEST, sql::LIST_UNFILED_OLDEST);
                reader.all(sql, params![destination.0, after, limit], turn)
            }
            Part::Account(account) => {
                let sql = either(sql::LIST_BY_ACCOUNT_NEWEST, sql::LIST_BY_ACCOUNT_OLDEST);
                reader.all(sql, params![account.0, after, limit], turn)
            }
            Part::TroubledOfDestination(destination, stage) => {
                let sql = either(
                    sql::LIST_TROUBLED_OF_DESTINATION_NEWEST,
                    sql::LIST_TROUBLED_OF_DESTINATION_OLDEST,
                );
                reader.all(sql, params![destination.0, codec::stage(*stage), after, limit], turn)
            }
            Part::Troubled(account, stage) => {
                let sql = either(sql::LIST_TROUBLED_NEWEST, sql::LIST_TROUBLED_OLDEST);
                reader.all(sql, params![account.0, codec::stage(*stage), after, limit], turn)
            }
            Part::These(numbers) => {
                let mut found = Vec::new();
                while found.len() < self.chunk {
                    let Some(number) = numbers.pop_front() else { break };
                    found.extend(reader.one(sql::DELIVERY, params![number], turn)?);
                }
                Ok(found)
            }
        }
    }
}
