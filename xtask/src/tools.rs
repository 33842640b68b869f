//! What the tests need beside the Rust toolchain: a C compiler, PostgreSQL, Python, Node.js and a browser from Debian, and
//! below `target/` the packages that `crates/server/tests/interop` names, at the versions it names.
//!
//! The package managers fetch from wherever this machine has them fetch from. A second run finds everything in place and
//! starts nothing but a few `--version`s.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{root, run, target};

/// What must answer on this machine, and the Debian packages that bring it. The C compiler builds SQLite and links.
const SYSTEM: &[(&[&str], &[&str])] = &[
    (&["cc", "--version"], &["gcc", "libc6-dev"]),
    (&["python3", "-c", "import ensurepip, venv"], &["python3", "python3-venv"]),
    (&["sh", "-c", "ls /usr/lib/postgresql/*/bin/initdb || command -v initdb"], &["postgresql"]),
    (&["/usr/sbin/pgbouncer", "--version"], &["pgbouncer"]),
    // Nodes whose clocks differ.
    (&["sh", "-c", "ls /usr/lib/*/faketime/libfaketime.so.1"], &["libfaketime"]),
    // Faults: calls of the system that fail, and disks whose power is cut.
    (&["strace", "--version"], &["strace"]),
    (&["/usr/sbin/mkfs.xfs", "-V"], &["xfsprogs"]),
    (&["/usr/sbin/mkfs.ext4", "-V"], &["e2fsprogs"]),
    (&["node", "--version"], &["nodejs"]),
    (&["npm", "--version"], &["npm"]),
    (&["chromium", "--version"], &["chromium"]),
    (&["chromedriver", "--version"], &["chromium-driver"]),
];

/// Where the tests find what was installed for them.
pub(crate) struct Tools {
    /// A Python that has the packages of `requirements.txt`.
    pub(crate) python: PathBuf,
    /// The packages of `package.json`, for Node.js.
    pub(crate) node_modules: PathBuf,
}

impl Tools {
    /// Installs what is missing.
    pub(crate) fn install() -> Result<Self> {
        install_system()?;
        let home = target().join("test-tools");
        Ok(Self {
            python: install_python(&home.join("python"))?,
            node_modules: install_node(&home.join("node"))?,
        })
    }
}

pub(crate) fn install_system() -> Result<()> {
    let missing = SYSTEM.iter().filter(|(probe, _)| !answers(probe[0], &probe[1..]));
    let packages: Vec<&str> = missing.flat_map(|(_, packages)| *packages).copied().collect();
    if packages.is_empty() {
        return Ok(());
    }
    let wanted = packages.join(" ");
    if !answers("apt-get", &["--version"]) {
        bail!("the tests need what Debian calls {wanted}: install it and run this again");
    }
    let apt = || {
        let mut apt = Command::new("apt-get");
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        apt
    };
    run(apt().args(["update", "--quiet"]))
        .and_then(|()| run(apt().args(["install", "--yes", "--no-install-recommends"]).args(&packages)))
        .with_context(|| format!("the tests need {wanted}: as root, run apt-get install {wanted}"))
}

/// A virtual environment with the packages of `requirements.txt`.
fn install_python(home: &Path) -> Result<PathBuf> {
    let list = interop("requirements.txt");
    let python = home.join("bin/python");
    install(home, &list, || {
        run(Command::new("python3").args(["-m", "venv"]).arg(home))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
        run(Command::new(&python).args(pip).arg(&list))
    })?;
    if !answers(&python, &["--version"]) {
        bail!("{} does not start: remove {} and run this again", python.display(), home.display());
    }
    Ok(python)
}

/// A folder with the packages of `package.json`.
fn install_node(home: &Path) -> Result<PathBuf> {
    let list = interop("package.json");
    install(home, &list, || {
        fs::create_dir_all(home)?;
        fs::copy(&list, home.join("package.json"))?;
        let npm = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--prefix"];
        run(Command::new("npm").args(npm).arg(home))
    })?;
    Ok(home.join("node_modules"))
}

/// Fills a folder from a list of packages, unless it was filled from the same list before. A copy of the list is left
/// there at the end, so that a run that was broken off starts afresh.
fn install(home: &Path, list: &Path, fill: impl FnOnce() -> Result<()>) -> Result<()> {
    let wanted = fs::read(list).with_context(|| format!("cannot read {}", list.display()))?;
    let mark = home.join("installed-from");
    if fs::read(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    if home.exists() {
        fs::remove_dir_all(home).with_context(|| format!("cannot empty {}", home.display()))?;
    }
    fill().with_context(|| format!("cannot install what {} names", list.display()))?;
    fs::write(&mark, wanted).with_context(|| format!("cannot write {}", mark.display()))
}

fn interop(file: &str) -> PathBuf {
    root().join("crates/server/tests/interop").join(file)
}

/// Whether a program is there and ends well.
fn answers(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> bool {
    let mut probe = Command::new(program);
    probe.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}
