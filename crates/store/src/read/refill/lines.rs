//! Lines by key, in the order of their keys: with very many of them each has its turn at being looked at.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use tidegate_core::order::Line;
use tidegate_core::refill::Group;
use tidegate_core::time::Timestamp;

use super::Search;
use crate::codec::{length, time};
use crate::source::{Result, params};
use crate::sql;

/// Keys that one refill looks at when it has as many lines as wanted for some shelf: the rest has its turn next time.
const LOOKED_AT: usize = 20_000;
/// Keys that are read at once.
const CHUNK: usize = 500;

/// A line, as far as it must be known to choose it.
struct Head {
    key: Arc<str>,
    /// The last retry that waits in it: while there is one, the line waits.
    last_retry: Option<Timestamp>,
    /// The shelf of the first that is ready.
    group: Option<Group>,
}

/// What is known while the keys are gone through.
#[derive(Default)]
struct Found {
    /// Lines taken, by the shelf of their heads.
    heads: HashMap<Group, usize>,
    /// Shelves of lines that were left out.
    other: BTreeSet<Group>,
    looked_at: usize,
    last: Option<Arc<str>>,
    taken: Vec<Arc<str>>,
}

impl Search<'_> {
    /// The first of each line that does not stand and whose head does not wait for its next retry.
    pub(super) fn take_lines(&mut self, cut: Option<Timestamp>) -> Result<()> {
        let halted: HashSet<Arc<str>> = (self.query.halted.iter())
            .filter_map(|line| match line {
                Line::Key(key) => Some(Arc::clone(key)),
                Line::Whole => None,
            })
            .collect();
        let start = self.query.after_key.clone();
        let mut found = Found::default();
        // From after the key where the last refill ended to the last one, then from the first one to that.
        let past = |key: &Arc<str>| start.as_ref().is_some_and(|start| key > start);
        let mut ended = false;
        for (from, until_start) in [(start.clone(), false), (None, true)] {
            if ended || (until_start && start.is_none()) {
                break;
            }
            let mut key = self.next_key(from.as_deref())?;
            while let (Some(first), false) = (&key, ended) {
                for head in self.heads(first)? {
                    ended = (until_start && past(&head.key))
                        || (found.looked_at >= LOOKED_AT && !found.other.is_empty());
                    if ended {
                        break;
                    }
                    let halted = halted.contains(&head.key);
                    self.see_line(&head, halted, cut, &mut found);
                    found.last = Some(head.key);
                }
                key = if ended { None } else { self.next_key(found.last.as_deref())? };
            }
        }
        self.take_chosen(&found.taken)?;
        self.refill.more.other_lines.extend(found.other);
        Ok(())
    }

    fn next_key(&self, after: Option<&str>) -> Result<Option<Arc<str>>> {
        let destination = self.query.destination.0;
        match after {
            None => self.reader.one(sql::REFILL_FIRST_KEY, params![destination], |row| row.get(0)),
            Some(after) => {
                self.reader.one(sql::REFILL_NEXT_KEY, params![destination, after], |row| row.get(0))
            }
        }
    }

    /// Some lines in the order of their keys, from this one on.
    fn heads(&self, first: &Arc<str>) -> Result<Vec<Head>> {
        let params = params![self.query.destination.0, first, length(CHUNK)];
        self.reader.all(sql::REFILL_HEADS, params, |row| {
            let group = match (row.get(2)?, row.get(3)?) {
                (Some(priority), Some(type_no)) => Some(self.group(priority, type_no)?),
                _ => None,
            };
            Ok(Head { key: row.get(0)?, last_retry: row.get::<Option<i64>>(1)?.map(time), group })
        })
    }

    fn see_line(&mut self, head: &Head, halted: bool, cut: Option<Timestamp>, found: &mut Found) {
        found.looked_at += 1;
        if let Some(last) = head.last_retry {
            let taken = cut.is_none_or(|cut| last < cut);
            // If the lane gets the head that waits, it must know that there is more behind it.
            if taken && head.group.is_some() {
                self.refill.more.lines.push(Line::Key(Arc::clone(&head.key)));
            }
            return;
        }
        let Some(group) = head.group.filter(|_| !halted) else { return };
        let heads = found.heads.entry(group).or_default();
        if *heads >= self.query.wanted.lines {
            if found.other.is_empty() {
                self.after_key.clone_from(&found.last);
            }
            found.other.insert(group);
            return;
        }
        *heads += 1;
        found.taken.push(Arc::clone(&head.key));
    }

    /// The first of each line that was chosen.
    fn take_chosen(&mut self, keys: &[Arc<str>]) -> Result<()> {
        let wanted = self.query.wanted.per_line;
        let asked: Vec<_> = keys
            .iter()
            .map(|key| params![self.query.destination.0, key, length(wanted + 1)].to_vec())
            .collect();
        let lines = self.reader.each(sql::REFILL_LINE, &asked, |row| self.reader.delivery_of(row))?;
        for (key, line) in keys.iter().zip(lines) {
            if line.len() > wanted {
                self.refill.more.lines.push(Line::Key(Arc::clone(key)));
            }
            self.refill.deliveries.extend(line.into_iter().take(wanted));
        }
        Ok(())
    }
}
