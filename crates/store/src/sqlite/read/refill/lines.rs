//! Lines by key, in the order of their keys: with very many of them each has its turn at being looked at.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use rusqlite::{OptionalExtension, params};
use tidegate_core::order::Line;
use tidegate_core::refill::Group;
use tidegate_core::time::Timestamp;

use super::Search;
use crate::sqlite::codec::{length, time};
use crate::sqlite::sql;

/// Keys that one refill looks at when it has as many lines as wanted for some shelf: the rest has its turn next time.
const LOOKED_AT: usize = 20_000;

/// What is known while the keys are gone through.
#[derive(Default)]
struct Found {
    /// Lines taken, by the shelf of their heads.
    heads: HashMap<Group, usize>,
    /// Shelves of lines that were left out.
    other: BTreeSet<Group>,
    looked_at: usize,
    last: Option<Arc<str>>,
}

impl Search<'_> {
    /// The first of each line that does not stand and whose head does not wait for its next retry.
    pub(super) fn take_lines(&mut self, cut: Option<Timestamp>) -> rusqlite::Result<()> {
        let halted: HashSet<Arc<str>> = (self.query.halted.iter())
            .filter_map(|line| match line {
                Line::Key(key) => Some(Arc::clone(key)),
                Line::Whole => None,
            })
            .collect();
        let start = self.query.after_key.clone();
        let mut found = Found::default();
        let (mut key, mut wrapped) = (self.next_key(start.as_deref())?, start.is_none());
        loop {
            match key {
                None if wrapped => break,
                None => {
                    wrapped = true;
                    key = self.next_key(None)?;
                    if key.is_none() {
                        break;
                    }
                    continue;
                }
                Some(ref key) if wrapped && start.as_ref().is_some_and(|start| key > start) => break,
                Some(_) if found.looked_at >= LOOKED_AT && !found.other.is_empty() => break,
                Some(ref now) => {
                    let now = Arc::clone(now);
                    self.take_line(&now, halted.contains(&now), cut, &mut found)?;
                    key = self.next_key(Some(&now))?;
                    found.last = Some(now);
                }
            }
        }
        self.refill.more.other_lines.extend(found.other);
        Ok(())
    }

    fn next_key(&self, after: Option<&str>) -> rusqlite::Result<Option<Arc<str>>> {
        let destination = self.query.destination.0;
        match after {
            None => self.reader.prepare(sql::REFILL_FIRST_KEY)?.query_row([destination], |row| row.get(0)),
            Some(after) => self
                .reader
                .prepare(sql::REFILL_NEXT_KEY)?
                .query_row(params![destination, after], |row| row.get(0)),
        }
        .optional()
    }

    fn take_line(
        &mut self,
        key: &Arc<str>,
        halted: bool,
        cut: Option<Timestamp>,
        found: &mut Found,
    ) -> rusqlite::Result<()> {
        found.looked_at += 1;
        let wanted = self.query.wanted.per_line;
        let params = params![self.query.destination.0, key, length(wanted + 1)];
        let due = self.reader.all(sql::REFILL_LINE, params, |row| self.reader.delivery_of(row))?;
        let name = || Line::Key(Arc::clone(key));
        let last_retry: Option<i64> = self
            .reader
            .prepare(sql::REFILL_LINE_WAITS)?
            .query_row(params![self.query.destination.0, key], |row| row.get(0))?;
        if let Some(last) = last_retry {
            let taken = cut.is_none_or(|cut| time(last) < cut);
            // If the lane gets the head that waits, it must know that there is more behind it.
            if taken && !due.is_empty() {
                self.refill.more.lines.push(name());
            }
            return Ok(());
        }
        let Some(head) = due.first().filter(|_| !halted) else { return Ok(()) };
        let group = Group::of(head, &self.query.policy);
        let heads = found.heads.entry(group).or_default();
        if *heads >= self.query.wanted.lines {
            if found.other.is_empty() {
                self.after_key.clone_from(&found.last);
            }
            found.other.insert(group);
            return Ok(());
        }
        *heads += 1;
        let more = due.len() > wanted;
        self.refill.deliveries.extend(due.into_iter().take(wanted));
        if more {
            self.refill.more.lines.push(name());
        }
        Ok(())
    }
}
