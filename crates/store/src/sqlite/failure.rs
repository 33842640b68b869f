//! What an error of SQLite means for the store.

use rusqlite::ErrorCode;

use crate::StoreError;
pub(super) use crate::writer::Failure;

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

/// A read that failed.
pub(crate) fn of_read(error: rusqlite::Error) -> StoreError {
    Failure::from(error).into()
}
