//! One process per data directory: a lock on a file beside the store, held until the process ends. Those who only look take it
//! together, and for a moment.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::StoreError;

/// The file that is locked.
const NAME: &str = "tidegate.lock";
/// How often, and how long apart, a start tries again while somebody looks: longer than any look takes.
const TRIES: u32 = 200;
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// Takes the directory for this process; the lock lives as long as the file.
#[expect(clippy::disallowed_methods, reason = "a start waits here, before there is anything else to do")]
pub(super) fn take(directory: &Path) -> Result<File, StoreError> {
    take_after(directory, || std::thread::sleep(BETWEEN_TRIES))
}

/// The same, with what to do between tries.
pub(super) fn take_after(directory: &Path, mut pause: impl FnMut()) -> Result<File, StoreError> {
    let unusable = |reason: String| StoreError::Unusable { path: directory.to_owned(), reason };
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(directory.join(NAME))
        .map_err(|error| unusable(error.to_string()))?;
    for _ in 0..TRIES {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            // Where it can be shared, whoever has it only looks, and is done soon.
            Err(Errno::WOULDBLOCK) if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() => {
                flock(&file, FlockOperation::Unlock)
                    .map_err(|errno| unusable(format!("no lock on {NAME}: {errno}")))?;
                pause();
            }
            Err(Errno::WOULDBLOCK) => break,
            Err(errno) => return Err(unusable(format!("no lock on {NAME}: {errno}"))),
        }
    }
    Err(StoreError::InUse(directory.to_owned()))
}

/// What is known of a directory by one who looks at it.
pub(super) enum Look {
    /// A process has it.
    InUse,
    /// Nobody has it, and nobody takes it as long as this file is kept; there is none where no process ever was.
    Free(#[expect(dead_code, reason = "the lock lives as long as the file")] Option<File>),
}

/// Looks whether a process has the directory.
pub(super) fn look(directory: &Path) -> Look {
    let Ok(file) = File::open(directory.join(NAME)) else { return Look::Free(None) };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Look::InUse,
        _ => Look::Free(Some(file)),
    }
}
