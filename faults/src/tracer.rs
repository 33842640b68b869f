//! A server inside `strace`, which does something to its n-th call of the system.
//!
//! Calls are counted for each thread by itself. The writer has a thread of its own, so its calls are counted exactly; those
//! of the threads that serve connections are counted as they happen to be spread.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::clock::nanos_to_wall;
use crate::server::Launch;

/// What happens to which calls.
pub(crate) struct Injection {
    /// Such as `fsync`, or several with commas.
    pub(crate) calls: &'static str,
    /// Such as `signal=SIGKILL:when=3`.
    pub(crate) what: String,
}

/// A call of the system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    /// When it began, on the clock of the histories.
    pub(crate) at: u64,
    /// Something was done to it.
    pub(crate) injected: bool,
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
        let mut words = vec!["strace", "-f", "-y", "-qq", "-ttt", "-o", &log, "-e", &trace, "-e", &inject];
        let files: Vec<String> = self.files.iter().map(|path| path.display().to_string()).collect();
        words.extend(files.iter().flat_map(|path| ["-P", path]));
        Launch::inside(&words)
    }

    /// The calls of the last server that have returned, in the order in which they did.
    pub(crate) fn calls(&self) -> Vec<Call> {
        returned(&fs::read_to_string(&self.log).unwrap_or_default(), nanos_to_wall())
    }
}

/// Reads lines such as `123 1700000000.000001 fsync(5</a/b>) = 0`. A call that others come between has two lines: it began with
/// the first and is known by the second.
fn returned(log: &str, to_wall: i128) -> Vec<Call> {
    let mut begun = HashMap::new();
    let mut calls = Vec::new();
    for line in log.lines() {
        let mut words = line.split_whitespace();
        let (Some(thread), Some(at)) = (words.next(), words.next().and_then(|word| moment(word, to_wall)))
        else {
            continue;
        };
        if line.ends_with("<unfinished ...>") {
            begun.insert(thread, at);
        } else if line.contains(") = ") {
            let at = if line.contains(" resumed>") { begun.remove(thread).unwrap_or(at) } else { at };
            let injected = line.contains("(INJECTED)") || line.contains("(DELAYED)");
            calls.push(Call { at, injected });
        }
    }
    calls
}

/// Seconds and millionths on the wall clock. What is cut off of them is added, so that nothing seems to be earlier than it was.
fn moment(word: &str, to_wall: i128) -> Option<u64> {
    let (seconds, micros) = word.split_once('.')?;
    let wall = seconds.parse::<i128>().ok()? * 1_000_000_000 + micros.parse::<i128>().ok()? * 1_000 + 999;
    u64::try_from(wall - to_wall).ok()
}

/// Why scenarios that need it are left out.
pub(crate) const MISSING: &str = "strace does not run here (Debian: apt-get install strace)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_began_with_its_first_line_and_ended_as_its_last_says() {
        let log = "7 10.000001 fsync(5</d/w>) = 0\n\
                   7 10.000002 fsync(5</d/w> <unfinished ...>\n\
                   8 10.000003 fsync(5</d/w>) = -1 EIO (Input/output error) (INJECTED)\n\
                   7 10.000004 <... fsync resumed>) = 0\n\
                   7 10.000005 +++ killed by SIGKILL +++\n";
        let calls: Vec<_> =
            returned(log, 1_000_000_000).iter().map(|call| (call.at, call.injected)).collect();
        assert_eq!(calls, [(9_000_001_999, false), (9_000_003_999, true), (9_000_002_999, false)]);
    }
}
