//! A small file beside the store that says that one was made here, so that a store that is gone is missed and not made anew.

use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Its name.
pub(super) const NAME: &str = "tidegate.made";
/// What it tells those who look into it.
const TEXT: &str =
    "A store was made here: tidegate.db. Without it no server starts, as long as this file is here.\n";

/// Whether a store was ever made here.
pub(super) fn is_there(directory: &Path) -> bool {
    directory.join(NAME).exists()
}

/// A store is there and whole: from now on, one that is gone is missed.
pub(super) fn put(directory: &Path) -> std::io::Result<()> {
    if is_there(directory) {
        return Ok(());
    }
    let mut file = File::create(directory.join(NAME))?;
    file.write_all(TEXT.as_bytes())?;
    file.sync_all()?;
    File::open(directory)?.sync_all()
}
