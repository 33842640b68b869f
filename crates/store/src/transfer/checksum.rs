//! A checksum of rows that does not depend on their order, so that each side may read them as it likes.

use sha2::{Digest, Sha256};

use super::storable;
use crate::source::Cell;

/// Rows, and the sum of their hashes: 128 bits of SHA-256 each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// How many.
    pub rows: u64,
    /// The sum.
    pub checksum: u128,
}

/// Sums up rows.
#[derive(Debug, Default)]
pub(super) struct Summing {
    sum: Sum,
    row: Vec<u8>,
}

impl Summing {
    /// The next column of the row. What it holds is written down with its kind and its length: no two rows look the same.
    pub(super) fn cell(&mut self, cell: Cell<'_>) {
        match cell {
            Cell::Null => self.put(0, &[]),
            Cell::Integer(number) => self.put(1, &number.to_be_bytes()),
            Cell::Text(text) => self.put(2, storable(text).as_bytes()),
            Cell::Blob(bytes) => self.put(3, bytes),
        }
    }

    fn put(&mut self, kind: u8, bytes: &[u8]) {
        self.row.push(kind);
        self.row.extend((bytes.len() as u64).to_be_bytes());
        self.row.extend(bytes);
    }

    /// The row is whole.
    pub(super) fn end_row(&mut self) {
        let hash = Sha256::digest(&self.row);
        let half = hash.iter().take(16).fold(0, |number, byte| number << 8 | u128::from(*byte));
        self.sum.rows += 1;
        self.sum.checksum = self.sum.checksum.wrapping_add(half);
        self.row.clear();
    }

    pub(super) const fn sum(&self) -> Sum {
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(rows: &[&[Cell<'_>]]) -> Sum {
        let mut summing = Summing::default();
        for row in rows {
            row.iter().for_each(|cell| summing.cell(*cell));
            summing.end_row();
        }
        summing.sum()
    }

    #[test]
    fn the_order_of_rows_does_not_count_and_all_else_does() {
        let (a, b): (&[Cell<'_>], &[Cell<'_>]) =
            (&[Cell::Text("ab"), Cell::Text("c")], &[Cell::Integer(1), Cell::Null]);
        assert_eq!(sum(&[a, b]), sum(&[b, a]));
        let others: [&[Cell<'_>]; 5] = [
            &[Cell::Text("a"), Cell::Text("bc")],
            &[Cell::Blob(b"ab"), Cell::Text("c")],
            &[Cell::Text("ab"), Cell::Text("")],
            &[Cell::Text("ab"), Cell::Null],
            &[Cell::Text("c"), Cell::Text("ab")],
        ];
        for other in others {
            assert_ne!(sum(&[a]), sum(&[other]), "{other:?}");
        }
        assert_ne!(sum(&[a]), sum(&[a, a]));
        assert_ne!(sum(&[a, a]).checksum, sum(&[b, b]).checksum);
    }
}
