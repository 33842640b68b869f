//! The server under test: the real binary as a child process with a data directory of its own, perhaps inside a program
//! that does something to it (`strace`, `prlimit`).

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::client::{Client, KEY};
use crate::clock::{millis, now, pass, secs};
use crate::history::History;

/// A start that takes longer has failed; with a slow disk below it may take a while.
const LONGEST_START: Duration = secs(90);

/// How a server is started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Launch {
    /// A program and its arguments that runs the server.
    pub(crate) inside: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    /// More arguments for the server.
    pub(crate) arguments: Vec<String>,
}

impl Launch {
    /// As it is.
    pub(crate) fn plain() -> Self {
        Self::default()
    }

    /// Inside another program.
    pub(crate) fn inside(words: &[&str]) -> Self {
        Self { inside: words.iter().map(|word| (*word).to_owned()).collect(), ..Self::default() }
    }

    /// With more arguments.
    pub(crate) fn with(mut self, words: &[&str]) -> Self {
        self.arguments.extend(words.iter().map(|word| (*word).to_owned()));
        self
    }
}

/// A server that runs, or ran. Dropping it kills it.
pub(crate) struct Server {
    pub(crate) client: Client,
    pub(crate) data_dir: PathBuf,
    address: String,
    binary: PathBuf,
    log: PathBuf,
    history: Arc<History>,
    child: Option<Child>,
    /// The id of the process that was started; 0 while there is none.
    process: Arc<AtomicU32>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end_now();
    }
}

impl Server {
    /// One that is not started yet.
    pub(crate) fn new(binary: &Path, home: &Path, data_dir: &Path, history: &Arc<History>) -> Result<Self> {
        let address = format!("127.0.0.1:{}", free_port()?);
        Ok(Self {
            client: Client::new(&address),
            data_dir: data_dir.to_owned(),
            address,
            binary: binary.to_owned(),
            log: home.join("log"),
            history: history.clone(),
            child: None,
            process: Arc::default(),
        })
    }

    /// The id of the process that runs, for whoever watches it.
    pub(crate) fn process(&self) -> Arc<AtomicU32> {
        self.process.clone()
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Starts it, and does not wait.
    pub(crate) fn spawn(&mut self, launch: &Launch) -> Result<()> {
        self.history.fault("start", &json!({}));
        let child = self.command(launch)?.spawn().context("the server does not start")?;
        self.process.store(child.id(), Ordering::Relaxed);
        self.child = Some(child);
        Ok(())
    }

    /// Starts it, and waits until it is ready.
    pub(crate) async fn start(&mut self, launch: &Launch) -> Result<()> {
        self.spawn(launch)?;
        self.ready().await
    }

    /// It dies with whoever starts it, so that nothing is left of a run that is killed.
    fn command(&self, launch: &Launch) -> Result<Command> {
        let log = File::options().create(true).append(true).open(&self.log)?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]);
        if !launch.inside.is_empty() {
            command.args(&launch.inside).args(["setpriv", "--pdeathsig", "KILL", "--"]);
        }
        command.arg(&self.binary);
        command.args([
            "serve",
            "--listen",
            &self.address,
            "--allow-destinations",
            "127.0.0.0/8",
            "--data-dir",
        ]);
        command.arg(&self.data_dir).args(&launch.arguments);
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TIDEGATE_"))
        {
            command.env_remove(name);
        }
        command.env("TIDEGATE_BOOTSTRAP_KEY", KEY).envs(launch.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        Ok(command)
    }

    /// Waits until it is ready.
    pub(crate) async fn ready(&mut self) -> Result<()> {
        let began = now();
        while self.client.status("/readyz").await != Some(200) {
            if let Some(status) = self.ended()? {
                bail!("it ended with {status} before it was ready: {}", self.log_tail());
            }
            ensure!(began.elapsed() < LONGEST_START, "it did not become ready: {}", self.log_tail());
            pass(millis(5)).await;
        }
        self.history.fault("ready", &json!({"after_ms": began.elapsed().as_millis()}));
        Ok(())
    }

    /// How it ended; none while it runs.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        let Some(child) = &mut self.child else { bail!("it was not started") };
        Ok(child.try_wait()?)
    }

    /// Whether it does not run any more.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.ended(), Ok(None))
    }

    /// Waits until it has ended by itself.
    pub(crate) async fn end(&mut self, bound: Duration) -> Result<ExitStatus> {
        let began = now();
        loop {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            ensure!(began.elapsed() < bound, "it did not end within {bound:?}: {}", self.log_tail());
            pass(millis(5)).await;
        }
    }

    /// Kills it, as a crash would.
    pub(crate) fn kill9(&mut self) {
        self.history.fault("kill", &json!({}));
        self.end_now();
    }

    /// Notes a kill that somebody else did, or an end of its own that was none of a clean stop.
    pub(crate) fn note_kill(&mut self) {
        self.history.fault("kill", &json!({"by": "the fault"}));
        self.end_now();
    }

    fn end_now(&mut self) {
        self.process.store(0, Ordering::Relaxed);
        let killed = self.pid().is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok());
        let Some(mut child) = self.child.take() else { return };
        // A tracer ends when what it traces has ended. If it were killed, the server might still have its port and its files for a
        // moment, and the next one would be refused.
        if !killed {
            let _ = child.kill();
        }
        let _ = child.wait();
    }

    /// Asks it to leave.
    pub(crate) fn terminate(&mut self) -> Result<()> {
        self.history.fault("stop", &json!({}));
        self.signal(Signal::TERM)
    }

    /// Sends a signal to the server itself.
    pub(crate) fn signal(&mut self, signal: Signal) -> Result<()> {
        let pid = self.pid().context("it does not run")?;
        kill_process(pid, signal).context("it does not run")
    }

    /// Its process id, behind whatever it runs inside of. The number of one that has ended may be somebody else's.
    fn pid(&mut self) -> Option<Pid> {
        let child = self.child.as_mut()?;
        let runs = matches!(child.try_wait(), Ok(None));
        if runs { server_pid(child.id()) } else { None }
    }

    /// What it has logged so far, in all its lives.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The end of it.
    pub(crate) fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().rev().take(12).collect();
        lines.into_iter().rev().collect::<Vec<_>>().join("\n")
    }
}

/// The last of a chain of processes that each have one child: a tracer and the server, or the server alone.
pub(crate) fn server_pid(first: u32) -> Option<Pid> {
    let mut pid = first;
    loop {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        match children.split_whitespace().next().and_then(|child| child.parse().ok()) {
            Some(child) => pid = child,
            None => return i32::try_from(pid).ok().and_then(Pid::from_raw),
        }
    }
}

/// A port that was free a moment ago. A restart must get the same one, so it cannot be left to the server.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
