//! How values lie in statements and rows: numbers as `bigint` on the way in, whatever their column's width, and many rows as
//! one array for each column.

use std::borrow::Cow;

use bytes::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use super::link::Param;
use crate::source::{Cell, Value};

type Wrong = Box<dyn std::error::Error + Sync + Send>;

impl ToSql for Value<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Wrong> {
        match self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(number) => number.to_sql(kind, out),
            Self::Text(text) => text.to_sql(kind, out),
            Self::Blob(bytes) => bytes.to_sql(kind, out),
        }
    }
    fn accepts(_: &Type) -> bool {
        true
    }
    to_sql_checked!();
}

impl<'a> FromSql<'a> for Cell<'a> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Wrong> {
        match *kind {
            Type::INT8 => i64::from_sql(kind, raw).map(Self::Integer),
            Type::INT4 => i32::from_sql(kind, raw).map(|number| Self::Integer(number.into())),
            Type::INT2 => i16::from_sql(kind, raw).map(|number| Self::Integer(number.into())),
            Type::BOOL => bool::from_sql(kind, raw).map(|is| Self::Integer(is.into())),
            Type::BYTEA => Ok(Self::Blob(raw)),
            _ => <&str>::from_sql(kind, raw).map(Self::Text),
        }
    }
    fn from_sql_null(_: &Type) -> Result<Self, Wrong> {
        Ok(Self::Null)
    }
    fn accepts(kind: &Type) -> bool {
        [Type::INT8, Type::INT4, Type::INT2, Type::BOOL, Type::BYTEA, Type::TEXT].contains(kind)
    }
}

/// Values with their types.
pub(super) fn typed<'a>(values: &[Value<'a>]) -> Vec<Param<'a>> {
    values.iter().map(|value| (Box::new(value.clone()) as _, kind(value))).collect()
}

const fn kind(value: &Value<'_>) -> Type {
    match value {
        Value::Null => Type::UNKNOWN,
        Value::Integer(_) => Type::INT8,
        Value::Text(_) => Type::TEXT,
        Value::Blob(_) => Type::BYTEA,
    }
}

/// Many rows of one statement: an array for each column, for `unnest`.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    columns: Vec<Column<'a>>,
    count: usize,
}

#[derive(Debug)]
enum Column<'a> {
    Integers(Vec<Option<i64>>),
    Texts(Vec<Option<Cow<'a, str>>>),
    Blobs(Vec<Option<Cow<'a, [u8]>>>),
}

impl<'a> Rows<'a> {
    /// No rows yet. The columns are named by what they hold: `i` integers, `t` texts, `b` blobs.
    pub(crate) fn of(columns: &str) -> Self {
        let columns = columns.chars().map(|kind| match kind {
            't' => Column::Texts(Vec::new()),
            'b' => Column::Blobs(Vec::new()),
            _ => Column::Integers(Vec::new()),
        });
        Self { columns: columns.collect(), count: 0 }
    }

    /// One more row.
    pub(super) fn push<const N: usize>(&mut self, row: [Value<'a>; N]) {
        debug_assert_eq!(self.columns.len(), N, "a value for each column");
        self.push_all(row.into_iter());
    }

    /// One more row, value by value.
    pub(crate) fn push_all(&mut self, row: impl Iterator<Item = Value<'a>>) {
        self.count += 1;
        for (column, value) in self.columns.iter_mut().zip(row) {
            match (column, value) {
                (Column::Integers(column), Value::Integer(number)) => column.push(Some(number)),
                (Column::Texts(column), Value::Text(text)) => column.push(Some(text)),
                (Column::Blobs(column), Value::Blob(bytes)) => column.push(Some(bytes)),
                (Column::Integers(column), _) => column.push(None),
                (Column::Texts(column), _) => column.push(None),
                (Column::Blobs(column), _) => column.push(None),
            }
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The arrays as the values of a statement.
    pub(super) fn values(self) -> Vec<Param<'a>> {
        let columns = self.columns.into_iter();
        columns
            .map(|column| match column {
                Column::Integers(numbers) => (Box::new(numbers) as _, Type::INT8_ARRAY),
                Column::Texts(texts) => (Box::new(texts) as _, Type::TEXT_ARRAY),
                Column::Blobs(blobs) => (Box::new(blobs) as _, Type::BYTEA_ARRAY),
            })
            .collect()
    }
}

/// The values of rows, in their order.
macro_rules! row {
    ($($value:expr),* $(,)?) => { [$($crate::source::Value::from($value)),*] };
}
pub(super) use row;
