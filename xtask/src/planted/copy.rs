//! A copy of the tree to plant bugs in. Files that did not change keep their times, so that little is compiled again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::table::Bug;
use crate::root;

/// The copy.
pub(super) struct Copy {
    folder: PathBuf,
}

/// A bug that is planted; it is gone again with this.
pub(super) struct Planted {
    path: PathBuf,
    original: String,
}

impl Copy {
    /// Makes the copy in `folder` the same as the tree as it is now: what git knows, and what it would.
    pub(super) fn make(folder: &Path) -> Result<Self> {
        let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
        let listed =
            Command::new("git").args(list).current_dir(root()).output().context("cannot start git")?;
        if !listed.status.success() {
            bail!("git cannot list the files: {}", String::from_utf8_lossy(&listed.stderr));
        }
        let names = String::from_utf8(listed.stdout).context("a file whose name is no text")?;
        let names: Vec<&str> = names.split('\0').filter(|name| !name.is_empty()).collect();
        for name in &names {
            let (from, to) = (root().join(name), folder.join(name));
            // A file that was deleted is still listed until that is committed.
            let Ok(wanted) = fs::read(&from) else { continue };
            if fs::read(&to).is_ok_and(|there| there == wanted) {
                continue;
            }
            fs::create_dir_all(to.parent().expect("a file lies in a folder"))?;
            fs::write(&to, wanted).with_context(|| format!("cannot write {}", to.display()))?;
        }
        Ok(Self { folder: folder.to_owned() })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn plant(&self, bug: &Bug) -> Result<Planted> {
        let path = self.folder.join(&bug.file);
        let original =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        fs::write(&path, bug.plant(&self.folder)?)?;
        Ok(Planted { path, original })
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        // Where this fails, the next run makes the copy the same again.
        let _ = fs::write(&self.path, &self.original);
    }
}
