//! File systems of a scenario: mounted below its directory, and gone when they are dropped.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A directory that something is mounted on.
pub(crate) struct Mount {
    path: PathBuf,
    /// The device below, if it is ours to give back.
    device: Option<String>,
}

impl Drop for Mount {
    fn drop(&mut self) {
        // Whoever had files open there has been killed, but may need a moment to be gone.
        let path = self.path.display().to_string();
        if command("umount", &[&path]).is_err() {
            let _ = command("umount", &["--lazy", &path]);
        }
        if let Some(device) = &self.device {
            let _ = command("losetup", &["--detach", device]);
        }
    }
}

impl Mount {
    /// A file system in memory, of so many MiB.
    pub(crate) fn memory(path: &Path, mebibytes: u64) -> Result<Self> {
        clear(path)?;
        let size = format!("size={mebibytes}m");
        command("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", &text(path)])?;
        Ok(Self { path: path.to_owned(), device: None })
    }

    /// What is in an image. Writes go past our cache, so that a copy of the image is what a disk would hold at that moment.
    pub(crate) fn image(image: &Path, path: &Path) -> Result<Self> {
        clear(path)?;
        let device = command("losetup", &["--find", "--show", "--direct-io=on", &text(image)])?;
        let mount = Self { path: path.to_owned(), device: Some(device.trim().to_owned()) };
        command("mount", &[device.trim(), &text(path)])?;
        Ok(mount)
    }
}

/// A new image of so many MiB with a file system in it.
pub(crate) fn make_image(path: &Path, mebibytes: u64, make: &[&str]) -> Result<()> {
    File::create(path)?.set_len(mebibytes << 20)?;
    let image = text(path);
    command(make[0], &[&make[1..], &[&*image]].concat())?;
    Ok(())
}

/// Makes the directory. What a run that was killed has left mounted there is taken away.
fn clear(path: &Path) -> Result<()> {
    while command("umount", &[&text(path)]).is_ok() {}
    fs::create_dir_all(path)?;
    Ok(())
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Runs a program to its end, and gives what it says.
pub(crate) fn command(program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    let output = command.output().with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        bail!("{program} {}: {}", arguments.join(" "), said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
