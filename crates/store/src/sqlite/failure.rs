//! What an error of SQLite means for the store.

use rusqlite::{ErrorCode, ffi};

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

/// Whether a read failed because of what is in the file, or because the disk does not give it out; and not for want of memory, or
/// by what all connections share beside it.
pub(crate) fn is_of_the_file(error: &rusqlite::Error) -> bool {
    const OTHERS: [i32; 5] = [
        ffi::SQLITE_IOERR_NOMEM,
        ffi::SQLITE_IOERR_SHMOPEN,
        ffi::SQLITE_IOERR_SHMSIZE,
        ffi::SQLITE_IOERR_SHMLOCK,
        ffi::SQLITE_IOERR_SHMMAP,
    ];
    let Some(found) = error.sqlite_error() else { return false };
    match found.code {
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => true,
        ErrorCode::SystemIoFailure => !OTHERS.contains(&found.extended_code),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fault_of_the_file_is_one() {
        for (code, of_the_file) in [
            (ffi::SQLITE_CORRUPT, true),
            (ffi::SQLITE_CORRUPT_INDEX, true),
            (ffi::SQLITE_NOTADB, true),
            (ffi::SQLITE_IOERR, true),
            (ffi::SQLITE_IOERR_READ, true),
            (ffi::SQLITE_IOERR_SHORT_READ, true),
            (ffi::SQLITE_IOERR_NOMEM, false),
            (ffi::SQLITE_IOERR_SHMSIZE, false),
            (ffi::SQLITE_BUSY, false),
            (ffi::SQLITE_FULL, false),
            (ffi::SQLITE_NOMEM, false),
        ] {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            assert_eq!(is_of_the_file(&error), of_the_file, "{error}");
        }
        assert!(!is_of_the_file(&rusqlite::Error::QueryReturnedNoRows));
    }
}
