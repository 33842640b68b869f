//! A directory for the store of one simulated node, gone when the node is.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where there is a disk in memory: an fsync costs nothing there, and a simulated crash takes no disk with it.
const RAM_DISK: &str = "/dev/shm";

/// A directory of its own. Each life of the node has a subdirectory.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    life: u32,
}

impl Folder {
    /// Makes one, on a RAM disk if there is one.
    pub(super) fn new() -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidegate-sim-{}-{number}", std::process::id());
        let on_disk = || std::env::temp_dir().join(&name);
        let path = [Path::new(RAM_DISK).join(&name), on_disk()];
        let path = path.into_iter().find(|path| std::fs::create_dir(path).is_ok());
        let folder = Self { path: path.unwrap_or_else(on_disk), life: 0 };
        std::fs::create_dir_all(folder.now())?;
        Ok(folder)
    }

    /// Where the store lies now.
    pub(super) fn now(&self) -> PathBuf {
        self.path.join(self.life.to_string())
    }

    /// The files as a process leaves them that is killed at this moment: the log is not folded into the file, and the
    /// lock is nobody's. The directory of the killed one is returned, to be taken away once its store has let go of it.
    pub(super) fn kill(&mut self) -> io::Result<PathBuf> {
        let killed = self.now();
        self.life += 1;
        let next = self.now();
        std::fs::create_dir_all(&next)?;
        for file in std::fs::read_dir(&killed)? {
            let file = file?;
            // The index of the log is shared memory: it is made anew by whoever opens the file first.
            if !file.file_name().to_string_lossy().ends_with("-shm") {
                std::fs::copy(file.path(), next.join(file.file_name()))?;
            }
        }
        Ok(killed)
    }
}

/// What cannot be taken away is left to the system, which empties such places by itself.
impl Drop for Folder {
    fn drop(&mut self) {
        let _left = std::fs::remove_dir_all(&self.path);
    }
}
