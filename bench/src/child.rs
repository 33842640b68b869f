//! Child processes: started, measured through `/proc`, and killed when they are dropped.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::stack::Stack;

/// A process that ends with its owner.
pub(crate) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

impl Process {
    pub(crate) fn spawn(command: &mut Command) -> Result<Self> {
        Ok(Self(command.spawn().with_context(|| format!("cannot start {command:?}"))?))
    }

    /// Kills it.
    pub(crate) fn end(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(&mut self) {
        if let Some(process) = rustix::process::Pid::from_raw(i32::try_from(self.0.id()).unwrap_or(0)) {
            let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        }
        let _ = self.0.wait();
    }

    /// Whether it still runs.
    pub(crate) fn runs(&mut self) -> bool {
        self.0.try_wait().is_ok_and(|ended| ended.is_none())
    }

    /// CPU time that it has used so far, in seconds.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        cpu_seconds_of(self.0.id(), false)
    }

    /// A line of `/proc/PID/status` in MiB, such as `VmRSS` or `VmHWM`.
    pub(crate) fn mebibytes(&self, line: &str) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
        let value = status.lines().find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
        let kib = value.and_then(|rest| rest.split_whitespace().next()?.parse::<f64>().ok());
        kib.unwrap_or(f64::NAN) / 1_024.0
    }
}

/// CPU time that a process has used so far, in seconds; also of its children that have ended, if they are wanted.
pub(crate) fn cpu_seconds_of(pid: u32, with_children: bool) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name in parentheses may hold spaces; user and system time are the 12th and 13th field after it, those of children
    // the next two.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let fields = if with_children { 4 } else { 2 };
    let ticks =
        after_name.split_whitespace().skip(11).take(fields).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / rustix::param::clock_ticks_per_second() as f64
}

/// Starts this program again with a hidden command, and reads the address that it prints.
pub(crate) fn helper(stack: Stack, arguments: &[&str]) -> Result<(Process, String)> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut process = Process::spawn(
        command.args(["--stack", stack.word()]).args(arguments).stdout(Stdio::piped()).stdin(Stdio::null()),
    )?;
    let output = process.0.stdout.take().context("its output is ours")?;
    let mut address = String::new();
    BufReader::new(output).read_line(&mut address)?;
    ensure!(!address.trim().is_empty(), "{arguments:?} did not start");
    Ok((process, address.trim().to_owned()))
}

/// As many open files as the machine grants, for this process and those that it starts.
pub(crate) fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// For a hidden command: ends when the benchmark ends, however it ends.
pub(crate) fn end_with_parent() {
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}
