//! Whether the file is still the one that was opened: a commit into a file that somebody has removed would be durable nowhere.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Writer;
use crate::writer::now;

/// How often it is looked at.
const PERIOD: Duration = Duration::from_secs(1);
/// With so many bytes left on it a disk is not full.
const ROOM: u64 = 1 << 20;

/// The file, as it was opened.
pub(super) struct Watch {
    path: PathBuf,
    log: PathBuf,
    identity: Option<(u64, u64)>,
    last: Instant,
}

impl Watch {
    pub(super) fn new(path: &Path) -> Self {
        let mut log = path.to_owned().into_os_string();
        log.push("-wal");
        Self { path: path.to_owned(), log: log.into(), identity: identity(path), last: now() }
    }

    /// Whether the disk has room, as far as it tells: a quota is not seen here.
    pub(super) fn has_room(&self) -> bool {
        rustix::fs::statvfs(&self.path).is_ok_and(|disk| disk.f_bfree.saturating_mul(disk.f_frsize) >= ROOM)
    }

    /// The length of the write-ahead log's file.
    pub(super) fn log_bytes(&self) -> u64 {
        std::fs::metadata(&self.log).map_or(0, |log| log.len())
    }
}

impl Writer<'_> {
    /// Looks once a second, between two groups.
    pub(super) fn watch_file(&mut self) {
        if self.watch.last.elapsed() < PERIOD {
            return;
        }
        self.watch.last = now();
        self.shared.set_log_bytes(self.watch.log_bytes());
        if identity(&self.watch.path) != self.watch.identity {
            let path = self.watch.path.display();
            let text = format!(
                "{path} was removed or replaced while the server ran: put it back before the next start"
            );
            tracing::error!(%text, "nothing is acknowledged any more");
            self.shared.break_down(&text);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}
