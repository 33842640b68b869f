//! What an error of SQLite means for the store.

use rusqlite::ErrorCode;

use crate::StoreError;

/// Why a group could not be committed.
#[derive(Debug)]
pub(super) enum Failure {
    /// No room: goes on by itself when there is.
    Full,
    /// One of the things asked for cannot be stored as it is: a fault of ours, and no reason for the others to fail.
    Refused(String),
    /// Disk or file are broken, or nothing is known about the fault.
    Broken(String),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        if matches!(error, rusqlite::Error::QueryReturnedNoRows) {
            return Self::Refused("what it belongs to is not there".to_owned());
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::TypeMismatch) => {
                Self::Refused(error.to_string())
            }
            _ => Self::Broken(error.to_string()),
        }
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Full => Self::Full,
            Failure::Refused(text) => Self::Refused(text),
            Failure::Broken(text) => Self::Broken(text),
        }
    }
}

/// A read that failed.
pub(super) fn of_read(error: rusqlite::Error) -> StoreError {
    Failure::from(error).into()
}
