//! Emptying the write-ahead log: between two groups, and only by the writer.

use super::Writer;
use crate::sqlite::failure::Failure;

/// Pages after which the log is emptied: 64 MiB. A page that many commits have changed is copied once.
const LONG: u64 = 16_384;
/// Pages after which readers are waited for, so that it can start over: something pins it.
const TOO_LONG: u64 = 8 * LONG;

impl Writer<'_> {
    /// After a group: copies the log into the file where it has grown long.
    pub(super) fn empty_long_log(&mut self) {
        if self.log_pages >= LONG {
            self.checkpoint("passive");
            self.log_pages = 0;
            if self.shared.log_bytes() / 4_096 > TOO_LONG {
                tracing::warn!(
                    bytes = self.shared.log_bytes(),
                    "the write-ahead log has grown far: a long read holds it, or the disk is slow"
                );
                self.checkpoint("restart");
            }
        }
    }

    /// With nothing else to do, so that the next start has little to recover. Says how long the log is.
    pub(super) fn empty_idle_log(&mut self) {
        if self.log_pages > 0 {
            self.checkpoint("passive");
            self.log_pages = 0;
        }
    }

    /// A log that cannot be emptied for want of room is emptied later: every commit in it is durable as it is. Any other
    /// fault means that the file is not what we take it for.
    pub(super) fn checkpoint(&mut self, mode: &str) {
        let done = self.connection.query_row(&format!("pragma wal_checkpoint({mode})"), (), |_| Ok(()));
        match done.map_err(Failure::from) {
            Ok(()) => {}
            Err(Failure::Broken(text)) => {
                tracing::error!(%text, "the write-ahead log cannot be emptied: nothing is acknowledged any more");
                self.shared.break_down(&text);
            }
            Err(_) => {
                tracing::warn!(mode, "no room to empty the write-ahead log: it is tried again");
            }
        }
        self.shared.set_log_bytes(self.watch.log_bytes());
    }
}
