//! What an error of PostgreSQL, or of the way to it, means for the store.

use tokio_postgres::error::SqlState;

use crate::{StoreError, writer};

/// Why a statement failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection broke after something was sent: nobody knows what the server did with it.
    Lost(String),
    /// There is no way to the database, or it takes nothing in: nothing was done.
    Unavailable(String),
    /// Somebody else was in the way; the same again may well succeed.
    Again(String),
    /// No room on the server's disk.
    Full,
    /// It cannot be stored as it is: a fault of ours.
    Refused(String),
    /// A unique key belongs to another row.
    Taken(String),
    /// Somebody else sits where this node sat: it must begin anew.
    Gone,
}

impl Failure {
    /// The error with what led to it.
    pub(super) fn text(error: &tokio_postgres::Error) -> String {
        match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        }
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(said) = error.as_db_error() else {
            return match error.is_closed() || source_is_io(&error) {
                true => Self::Lost(Self::text(&error)),
                false => Self::Refused(Self::text(&error)),
            };
        };
        let code = said.code();
        let sentence = format!("{} ({})", said.message(), code.code());
        match code {
            &SqlState::UNIQUE_VIOLATION => Self::Taken(sentence),
            &SqlState::DISK_FULL => Self::Full,
            &SqlState::T_R_SERIALIZATION_FAILURE
            | &SqlState::T_R_DEADLOCK_DETECTED
            | &SqlState::LOCK_NOT_AVAILABLE
            | &SqlState::QUERY_CANCELED
            // A statement that the server keeps was made for another schema.
            | &SqlState::FEATURE_NOT_SUPPORTED => Self::Again(sentence),
            &SqlState::READ_ONLY_SQL_TRANSACTION | &SqlState::INSUFFICIENT_PRIVILEGE => {
                Self::Unavailable(sentence)
            }
            // We were away for so long in the middle of a transaction that it was ended.
            &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT => Self::Lost(sentence),
            // The server leaves, is not there yet, or has no place for us; connections end.
            code if ["57P", "53", "08"].iter().any(|class| code.code().starts_with(class)) => {
                Self::Lost(sentence)
            }
            _ => Self::Refused(sentence),
        }
    }
}

impl From<Failure> for writer::Failure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Lost(text) | Failure::Unavailable(text) | Failure::Again(text) => {
                Self::Unavailable(text)
            }
            Failure::Full => Self::Full,
            Failure::Refused(text) | Failure::Taken(text) => Self::Refused(text),
            Failure::Gone => Self::Broken(super::slots::GONE.to_owned()),
        }
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        writer::Failure::from(failure).into()
    }
}

fn source_is_io(error: &tokio_postgres::Error) -> bool {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if error.is::<std::io::Error>() {
            return true;
        }
        source = error.source();
    }
    false
}
