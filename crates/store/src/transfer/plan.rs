//! How a table is written to the target and read back: put together from the columns that are read of the source.

use std::collections::HashMap;

use super::{Key, TABLES, Table, TransferError};
use crate::sqlite::Origin;

/// The type of each column of each table of the target.
pub(crate) type Types = HashMap<(String, String), String>;

/// One table with its statements.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) table: &'static Table,
    /// What its columns hold: `i` integers, `t` texts, `b` blobs.
    pub(crate) kinds: String,
    /// Adds rows, which come as one array for each column.
    pub(crate) insert: String,
    /// Reads all rows.
    pub(crate) read: String,
    /// The places of the key's columns.
    key: Vec<usize>,
    /// The place of the column by which it is partitioned.
    pub(crate) partition: Option<usize>,
}

/// The plans for all tables.
pub(super) fn all(origin: &Origin, types: &Types) -> Result<Vec<Plan>, TransferError> {
    TABLES.iter().map(|table| Plan::new(table, &origin.columns(table)?, types)).collect()
}

impl Plan {
    fn new(table: &'static Table, columns: &[String], types: &Types) -> Result<Self, TransferError> {
        let name = table.name;
        let unknown = |column: &str| {
            TransferError::Target(format!("it has no column {column} in {name}, which the source fills"))
        };
        let place =
            |column: &str| columns.iter().position(|known| known == column).ok_or_else(|| unknown(column));
        let of =
            |column: &String| types.get(&(name.to_owned(), column.clone())).ok_or_else(|| unknown(column));
        let held = columns.iter().map(of).collect::<Result<Vec<&String>, _>>()?;
        let kinds: String = held.iter().map(|held| kind(held)).collect();
        let values = columns.iter().zip(&held).map(|(column, held)| match held.as_str() {
            "boolean" => format!("r.{column} <> 0"),
            _ => format!("r.{column}"),
        });
        let values = values.collect::<Vec<_>>().join(", ");
        let arrays = kinds.chars().zip(1..).map(|(kind, number)| match kind {
            't' => format!("${number}::text[]"),
            'b' => format!("${number}::bytea[]"),
            _ => format!("${number}::bigint[]"),
        });
        let arrays = arrays.collect::<Vec<_>>().join(", ");
        let listed = columns.join(", ");
        Ok(Self {
            table,
            insert: format!(
                "insert into tidegate.{name} ({listed}) overriding system value select {values} from unnest({arrays}) as r \
                 ({listed})"
            ),
            read: format!("select {listed} from tidegate.{name}"),
            key: table.key.iter().map(|column| place(column)).collect::<Result<_, _>>()?,
            partition: table.partition.map(place).transpose()?,
            kinds,
        })
    }

    /// The places of the key's columns.
    pub(crate) fn key(&self) -> &[usize] {
        &self.key
    }

    /// A key before all rows.
    pub(crate) fn before_all(&self) -> Vec<Key> {
        self.key.iter().map(|place| Key::first(self.kinds.chars().nth(*place).unwrap_or('i'))).collect()
    }
}

fn kind(held: &str) -> char {
    match held {
        "text" => 't',
        "bytea" => 'b',
        _ => 'i',
    }
}
