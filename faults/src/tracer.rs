//! A server inside `strace`, which does something to its n-th call of the system.
//!
//! Calls are counted for each thread by itself. The writer has a thread of its own, so its calls are counted exactly; those
//! of the threads that serve connections are counted as they happen to be spread.

use std::fs;
use std::path::{Path, PathBuf};

use crate::server::Launch;

/// What happens to which calls.
pub(crate) struct Injection {
    /// Such as `fsync`, or several with commas.
    pub(crate) calls: &'static str,
    /// Such as `signal=SIGKILL:when=3`.
    pub(crate) what: String,
}

/// Where the traced calls are written down.
pub(crate) struct Tracer {
    log: PathBuf,
    /// Only calls for these files count; all, where there is none.
    files: Vec<PathBuf>,
}

impl Tracer {
    /// Whether this machine can do it.
    pub(crate) fn works() -> bool {
        let mut probe = std::process::Command::new("strace");
        probe.args(["-o", "/dev/null", "-f", "-e", "trace=fsync", "true"]);
        probe.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    }

    /// The calls are noted in a file of this directory.
    pub(crate) fn new(home: &Path) -> Self {
        Self { log: home.join("calls"), files: Vec::new() }
    }

    /// Only calls for this file count, and for others of which the same was said.
    pub(crate) fn only_file(mut self, path: &Path) -> Self {
        self.files.push(path.to_owned());
        self
    }

    /// How to start a server inside it.
    pub(crate) fn launch(&self, injection: &Injection) -> Launch {
        let Injection { calls, what } = injection;
        let log = self.log.display().to_string();
        let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:{what}"));
        let mut words = vec!["strace", "-f", "-y", "-qq", "-o", &log, "-e", &trace, "-e", &inject];
        let files: Vec<String> = self.files.iter().map(|path| path.display().to_string()).collect();
        words.extend(files.iter().flat_map(|path| ["-P", path]));
        Launch::inside(&words)
    }

    /// The calls that something was done to.
    pub(crate) fn injected(&self) -> Vec<String> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        log.lines()
            .filter(|line| line.contains("(INJECTED)") || line.contains("(DELAYED)"))
            .map(ToOwned::to_owned)
            .collect()
    }
}

/// Why scenarios that need it are left out.
pub(crate) const MISSING: &str = "strace does not run here (Debian: apt-get install strace)";
