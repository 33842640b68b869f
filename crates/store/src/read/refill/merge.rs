//! Several parts of the ready index, merged by place. Each part is read a little at a time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use tidegate_core::delivery::{Delivery, Place};

use super::Kind;
use crate::DestinationNo;
use crate::codec::length;
use crate::shared::Reader;
use crate::source::{Result, params};
use crate::sql;

/// Rows of one part that are read at once, at least: a look-up costs as much as a few rows.
const AT_LEAST: usize = 8;

/// A merge over parts that are sorted by place.
pub(super) struct Merge<'a> {
    reader: &'a Reader,
    destination: DestinationNo,
    parts: Vec<Part>,
    /// The first place of each part that is not empty.
    heads: BinaryHeap<Reverse<(Place, usize)>>,
    chunk: usize,
    begun: bool,
}

struct Part {
    kind: Kind,
    read: VecDeque<Delivery>,
    /// Where to read on; `None`: there is no more.
    after: Option<(i64, i64)>,
}

impl<'a> Merge<'a> {
    /// A merge of which about `wanted` will be taken.
    pub(super) fn new(
        reader: &'a Reader,
        destination: DestinationNo,
        kinds: Vec<Kind>,
        wanted: usize,
    ) -> Self {
        let chunk = (wanted / kinds.len().max(1) + 1).max(AT_LEAST).min(wanted.max(1));
        let parts = kinds.into_iter();
        let parts = parts.map(|kind| Part { kind, read: VecDeque::new(), after: Some((i64::MIN, i64::MIN)) });
        Self { reader, destination, parts: parts.collect(), heads: BinaryHeap::new(), chunk, begun: false }
    }

    /// The next in order.
    pub(super) fn next(&mut self) -> Result<Option<Delivery>> {
        if !self.begun {
            self.begun = true;
            (0..self.parts.len()).try_for_each(|part| self.advance(part))?;
        }
        let Some(Reverse((_, part))) = self.heads.pop() else { return Ok(None) };
        let delivery = self.parts[part].read.pop_front();
        self.advance(part)?;
        Ok(delivery)
    }

    /// The next `count`, or as many as there are.
    pub(super) fn take(&mut self, count: usize) -> Result<Vec<Delivery>> {
        let mut taken = Vec::new();
        while taken.len() < count {
            match self.next()? {
                Some(delivery) => taken.push(delivery),
                None => break,
            }
        }
        Ok(taken)
    }

    /// Names the head of a part, and reads on where nothing of it is left.
    fn advance(&mut self, index: usize) -> Result<()> {
        let part = &mut self.parts[index];
        if let (true, Some((occurred_at, seq))) = (part.read.is_empty(), part.after) {
            let params = params![
                self.destination.0,
                part.kind.keyless,
                part.kind.priority,
                part.kind.type_no,
                occurred_at,
                seq,
                length(self.chunk)
            ];
            let found = self.reader.all(sql::REFILL_READY, params, |row| {
                part.after = Some((row.get(8)?, row.get(0)?));
                self.reader.delivery_of(row)
            })?;
            if found.len() < self.chunk {
                part.after = None;
            }
            part.read.extend(found);
        }
        if let Some(head) = part.read.front() {
            self.heads.push(Reverse((head.place, index)));
        }
        Ok(())
    }
}
