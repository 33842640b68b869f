//! How far a transfer is, as it stands in the target.

use serde::{Deserialize, Serialize};

use super::Plan;
use crate::source::{Cell, Value};

/// How far it is, and from which source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// What the source is known by.
    pub(crate) source: String,
    pub(crate) stage: Stage,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    /// The rows of this table after this key; so many were moved before.
    Table { name: String, after: Vec<Key>, rows: u64 },
    /// Numbers, if they are not set, and the comparison.
    Copied,
}

/// A value of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Key {
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Key {
    pub(crate) fn of(cell: Cell<'_>) -> Self {
        match cell {
            // No key has a null: it would come before everything.
            Cell::Null => Self::Integer(i64::MIN),
            Cell::Integer(number) => Self::Integer(number),
            Cell::Text(text) => Self::Text(text.to_owned()),
            Cell::Blob(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }

    /// Before all values of a kind.
    pub(crate) const fn first(kind: char) -> Self {
        match kind {
            't' => Self::Text(String::new()),
            'b' => Self::Bytes(Vec::new()),
            _ => Self::Integer(i64::MIN),
        }
    }
}

impl<'a> From<&'a Key> for Value<'a> {
    fn from(key: &'a Key) -> Self {
        match key {
            Key::Integer(number) => Self::from(*number),
            Key::Text(text) => Self::from(text),
            Key::Bytes(bytes) => Self::from(bytes),
        }
    }
}

impl Place {
    /// Where a transfer begins.
    pub(crate) fn first(plans: &[Plan], source: &str) -> Self {
        Self { source: source.to_owned(), stage: Stage::at(plans, 0) }
    }

    /// The number of the table that comes next, among all, the key after which it goes on, and the rows before that.
    pub(crate) fn position(&self, plans: &[Plan]) -> (usize, Option<&[Key]>, u64) {
        match &self.stage {
            Stage::Copied => (plans.len(), None, 0),
            Stage::Table { name, after, rows } => {
                let at = plans.iter().position(|plan| plan.table.name == name);
                (at.unwrap_or(0), Some(after), *rows)
            }
        }
    }

    /// Rows that were moved before.
    pub(crate) fn rows_before(&self, plans: &[Plan], totals: &[u64]) -> u64 {
        let (at, _, rows) = self.position(plans);
        totals[..at].iter().sum::<u64>() + rows
    }
}

impl Stage {
    /// The beginning of a table, or what comes after all of them.
    pub(crate) fn at(plans: &[Plan], number: usize) -> Self {
        plans.get(number).map_or(Self::Copied, |plan| Self::Table {
            name: plan.table.name.to_owned(),
            after: plan.before_all(),
            rows: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        for after in [
            vec![Key::Integer(-3), Key::Text("a\"b".to_owned())],
            vec![Key::Bytes(vec![0, 255])],
            vec![Key::Bytes(Vec::new())],
        ] {
            let stage = Stage::Table { name: "events".to_owned(), after, rows: 7 };
            for stage in [stage, Stage::Copied] {
                let place = Place { source: "ab".to_owned(), stage };
                let text = serde_json::to_string(&place).unwrap();
                assert_eq!(serde_json::from_str::<Place>(&text).unwrap(), place, "{text}");
            }
        }
    }
}
