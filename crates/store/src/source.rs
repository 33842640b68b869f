//! Where rows come from: a connection of either engine, asked in one way.
//!
//! Which rows are read, and in which order, is the same for both engines (`read`); only the text of a statement differs
//! ([`Sql`]). A row is read column by column as a [`Cell`], so that nothing above this module knows an engine's types.

use std::borrow::Cow;
use std::sync::Arc;

use crate::StoreError;
use crate::{postgres, sqlite};

/// One statement in both dialects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sql {
    pub(crate) sqlite: &'static str,
    pub(crate) postgres: &'static str,
}

/// A value that goes into a statement.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Integer(i64),
    Text(Cow<'a, str>),
    Blob(Cow<'a, [u8]>),
}

/// A value that came out of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
    Blob(&'a [u8]),
}

/// Why a look found no answer.
#[derive(Debug)]
pub(crate) enum Fault {
    Sqlite(rusqlite::Error),
    Postgres(postgres::Failure),
    /// A column holds something that this binary never writes.
    Strange(String),
}

/// What a look gives.
pub(crate) type Result<T> = std::result::Result<T, Fault>;

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Sqlite(error) => sqlite::of_read(error),
            Fault::Postgres(failure) => failure.into(),
            Fault::Strange(text) => Self::Broken(text),
        }
    }
}

/// A connection to read on.
pub(crate) enum Source {
    Sqlite(rusqlite::Connection),
    Postgres(Box<postgres::Link>),
}

/// A row of a statement.
pub(crate) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a tokio_postgres::Row),
}

impl Source {
    /// All rows of a statement, each turned into something.
    pub(crate) fn all<T>(
        &self,
        sql: Sql,
        values: &[Value<'_>],
        mut turn: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        match self {
            Self::Sqlite(connection) => all_of(connection, sql.sqlite, values, turn),
            Self::Postgres(link) => {
                let rows = link.look(sql.postgres, values).map_err(Fault::Postgres)?;
                rows.iter().map(|row| turn(&Row::Postgres(row))).collect()
            }
        }
    }

    /// The same statement with one set of values after the other; they are on their way together.
    pub(crate) fn each<T>(
        &self,
        sql: Sql,
        asked: &[Vec<Value<'_>>],
        mut turn: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<Vec<T>>> {
        match self {
            Self::Sqlite(_) => asked.iter().map(|values| self.all(sql, values, &mut turn)).collect(),
            Self::Postgres(link) => {
                let answers = link.look_each(sql.postgres, asked).map_err(Fault::Postgres)?;
                let turned = answers
                    .iter()
                    .map(|rows| rows.iter().map(|row| turn(&Row::Postgres(row))).collect::<Result<Vec<T>>>());
                turned.collect()
            }
        }
    }

    /// The first row of a statement, if there is one.
    pub(crate) fn one<T>(
        &self,
        sql: Sql,
        values: &[Value<'_>],
        turn: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        Ok(self.all(sql, values, turn)?.into_iter().next())
    }

    /// Several looks at one and the same commit.
    pub(crate) fn at_once<T>(&self, look: impl FnOnce() -> Result<T>) -> Result<T> {
        match self {
            Self::Sqlite(connection) => {
                let transaction = connection.unchecked_transaction().map_err(Fault::Sqlite)?;
                let found = look()?;
                transaction.finish().map_err(Fault::Sqlite)?;
                Ok(found)
            }
            Self::Postgres(link) => link.at_once(look),
        }
    }
}

/// All rows of a statement that only SQLite has.
pub(crate) fn all_of<T>(
    connection: &rusqlite::Connection,
    sql: &str,
    values: &[Value<'_>],
    mut turn: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut statement = connection.prepare_cached(sql).map_err(Fault::Sqlite)?;
    let mut rows = statement.query(rusqlite::params_from_iter(values)).map_err(Fault::Sqlite)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(Fault::Sqlite)? {
        found.push(turn(&Row::Sqlite(row))?);
    }
    Ok(found)
}

impl Row<'_> {
    /// A column, by its place.
    pub(crate) fn get<T: FromCell>(&self, place: usize) -> Result<T> {
        let cell = self.cell(place)?;
        T::from_cell(cell)
            .ok_or_else(|| Fault::Strange(format!("the store holds {cell:?} in column {place}")))
    }

    /// A column as it lies there.
    pub(crate) fn cell(&self, place: usize) -> Result<Cell<'_>> {
        match self {
            Self::Sqlite(row) => sqlite::cell(row, place).map_err(Fault::Sqlite),
            Self::Postgres(row) => row.try_get(place).map_err(|error| Fault::Postgres(error.into())),
        }
    }
}

/// What a column may be read as.
pub(crate) trait FromCell: Sized {
    /// `None` if it is not such a value.
    fn from_cell(cell: Cell<'_>) -> Option<Self>;
}

impl FromCell for i64 {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if let Cell::Integer(number) = cell { Some(number) } else { None }
    }
}
impl FromCell for u32 {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        i64::from_cell(cell).and_then(|number| Self::try_from(number).ok())
    }
}
impl FromCell for bool {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        i64::from_cell(cell).map(|number| number != 0)
    }
}
impl FromCell for String {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if let Cell::Text(text) = cell { Some(text.to_owned()) } else { None }
    }
}
impl FromCell for Arc<str> {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if let Cell::Text(text) = cell { Some(text.into()) } else { None }
    }
}
impl FromCell for Vec<u8> {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if let Cell::Blob(bytes) = cell { Some(bytes.to_vec()) } else { None }
    }
}
impl FromCell for bytes::Bytes {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if let Cell::Blob(bytes) = cell { Some(Self::copy_from_slice(bytes)) } else { None }
    }
}
impl<const N: usize> FromCell for [u8; N] {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if let Cell::Blob(bytes) = cell { bytes.try_into().ok() } else { None }
    }
}
impl<T: FromCell> FromCell for Option<T> {
    fn from_cell(cell: Cell<'_>) -> Option<Self> {
        if let Cell::Null = cell { Some(None) } else { T::from_cell(cell).map(Some) }
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}
impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}
impl From<bool> for Value<'_> {
    fn from(is: bool) -> Self {
        Self::Integer(is.into())
    }
}
impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}
impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}
impl<'a> From<&'a Arc<str>> for Value<'a> {
    fn from(text: &'a Arc<str>) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}
impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}
impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Blob(Cow::Borrowed(bytes))
    }
}
impl<'a> From<&'a Vec<u8>> for Value<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Blob(Cow::Borrowed(bytes))
    }
}
impl<const N: usize> From<[u8; N]> for Value<'_> {
    fn from(bytes: [u8; N]) -> Self {
        Self::Blob(Cow::Owned(bytes.to_vec()))
    }
}
impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(maybe: Option<T>) -> Self {
        maybe.map_or(Self::Null, Into::into)
    }
}

/// The values of a statement, in their order.
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::source::Value::from($value)),*] };
}
pub(crate) use params;
