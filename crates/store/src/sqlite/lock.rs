//! One process per data directory: a lock on a file beside the store, held until the process ends.

use std::fs::{File, OpenOptions};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::StoreError;

/// The file that is locked.
const NAME: &str = "tidegate.lock";

/// Takes the directory for this process; the lock lives as long as the file.
pub(super) fn take(directory: &Path) -> Result<File, StoreError> {
    let unusable = |reason: String| StoreError::Unusable { path: directory.to_owned(), reason };
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(directory.join(NAME))
        .map_err(|error| unusable(error.to_string()))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(Errno::WOULDBLOCK) => Err(StoreError::InUse(directory.to_owned())),
        Err(errno) => Err(unusable(format!("no lock on {NAME}: {errno}"))),
    }
}
