//! A throw-away PostgreSQL: in a directory of its own, on a port of its own, stopped and removed with the process that
//! started it, however that ends. It can have a synchronous standby.
//!
//! A server does not run as root: then it runs as the user `postgres`. Calls block; they are short, but a start.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::server::free_port;
use super::{now, secs};

/// A start, also one that repairs what a crash left.
const LONGEST_START: Duration = secs(30);

/// A server that runs, or ran: see [`Postgres::kill9`].
pub(crate) struct Postgres {
    /// Where it listens, on the loopback address.
    pub(crate) port: u16,
    /// Its data, and beside them its log.
    home: PathBuf,
    programs: PathBuf,
    /// Waits for the end of its input, which is ours, and clears away.
    guard: Child,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

impl Postgres {
    /// Where its programs lie: the newest version's, or whatever is on the path.
    pub(crate) fn programs() -> Option<PathBuf> {
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut debian: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
        debian.sort();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut all = debian.into_iter().rev().chain(std::env::split_paths(&path).collect::<Vec<_>>());
        all.find(|folder| ["initdb", "psql", "pg_basebackup"].iter().all(|name| folder.join(name).exists()))
    }

    /// A database of its own for a server that a test starts, where `XTASK_STORE` asks for PostgreSQL. They all lie in one
    /// PostgreSQL, which ends with this process.
    pub(crate) fn fresh_database() -> Option<String> {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        static MADE: AtomicU32 = AtomicU32::new(0);
        if std::env::var_os("XTASK_STORE")? != "postgres" {
            return None;
        }
        let shared = SHARED.get_or_init(|| {
            Self::start(
                &Self::programs().expect("PostgreSQL is installed (Debian: apt-get install postgresql)"),
            )
        });
        let name = format!("tidegate_{}", MADE.fetch_add(1, Ordering::Relaxed));
        shared.sql("postgres", &format!("create database {name}"));
        Some(format!("postgres://postgres@127.0.0.1:{}/{name}", shared.port))
    }

    /// All rows of all tables of a database, as text; bytes in hexadecimal digits.
    pub(crate) fn dump(url: &str) -> String {
        let program = Self::programs().expect("a database lies in a PostgreSQL").join("pg_dump");
        let output = as_user(&program).args(["--data-only", url]).stdin(Stdio::null()).output();
        let output = output.expect("pg_dump runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A new, empty one.
    pub(crate) fn start(programs: &Path) -> Self {
        let server = Self::prepare(programs);
        server.run("initdb", &["-D", &server.data(), "-U", "postgres", "-A", "trust", "--no-sync"]);
        server.up();
        server
    }

    /// A copy of another that follows it. From now on the other commits nothing that the copy does not have.
    pub(crate) fn standby_of(primary: &Self) -> Self {
        let standby = Self::prepare(&primary.programs);
        let from = format!("host=127.0.0.1 port={} user=postgres application_name=standby", primary.port);
        let copy = ["-d", &from, "-D", &standby.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync"];
        standby.run("pg_basebackup", &copy);
        standby.up();
        primary.sql("postgres", "alter system set synchronous_standby_names = 'standby'");
        primary.sql("postgres", "select pg_reload_conf()");
        let began = now();
        while primary.sql("postgres", "select sync_state from pg_stat_replication").trim() != "sync" {
            assert!(began.elapsed() < LONGEST_START, "the standby does not follow");
        }
        standby
    }

    /// The standby becomes one that is written to; returns when it is.
    pub(crate) fn promote(&self) {
        self.run("pg_ctl", &["-D", &self.data(), "-w", "promote"]);
    }

    /// Starts it on its data.
    pub(crate) fn up(&self) {
        let (home, port) = (self.home.display(), self.port);
        let options = format!(
            "-k {home} -c listen_addresses=127.0.0.1 -p {port} -c max_connections=200 -c shared_buffers=64MB"
        );
        let log = self.home.join("log");
        let start = ["-D", &self.data(), "-w", "-o", &options, "-l", &log.to_string_lossy(), "start"];
        // What a killed one left behind may need a moment to end.
        let began = now();
        while let Err(said) = self.try_run("pg_ctl", &start) {
            assert!(began.elapsed() < LONGEST_START, "PostgreSQL does not start: {said}");
        }
    }

    /// Kills its first process; the others end when they see that.
    pub(crate) fn kill9(&self) {
        let file = fs::read_to_string(self.home.join("data/postmaster.pid")).expect("it runs");
        let pid = file.lines().next().and_then(|line| line.parse().ok()).and_then(Pid::from_raw);
        kill_process(pid.expect("the first line is its number"), Signal::KILL).expect("it runs");
    }

    /// Runs a statement in a database and gives back what it says.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let port = self.port.to_string();
        let to = ["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-d", database];
        let how = ["-qAtX", "-v", "ON_ERROR_STOP=1", "-c", sql];
        self.run("psql", &[&to[..], &how[..]].concat())
    }

    fn prepare(programs: &Path) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let home = std::env::temp_dir().join(format!("tidegate-pg-{}-{number}", std::process::id()));
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home).expect("the directory for temporary files is ours");
        if geteuid().is_root() {
            let given = Command::new("chown").arg("postgres").arg(&home).status();
            assert!(given.is_ok_and(|status| status.success()), "PostgreSQL needs a user `postgres`");
        }
        let script = format!(
            "trap '' HUP INT TERM; read _; {}/pg_ctl -D {1}/data -m immediate stop; \
             for _ in 1 2 3 4 5; do rm -rf {1} && break; sleep 1; done",
            programs.display(),
            home.display()
        );
        let mut guard = as_user(Path::new("/bin/sh"));
        guard.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let guard = guard.spawn().expect("there is a shell");
        Self { port: free_port(), home, programs: programs.to_owned(), guard }
    }

    fn data(&self) -> String {
        self.home.join("data").display().to_string()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> String {
        self.try_run(program, arguments).unwrap_or_else(|said| panic!("{program} {arguments:?}: {said}"))
    }

    fn try_run(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let output = as_user(&self.programs.join(program)).args(arguments).stdin(Stdio::null()).output();
        let output = output.map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }
}

/// A program, run by somebody who is not root.
fn as_user(program: &Path) -> Command {
    if !geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "postgres", "--regid", "postgres", "--init-groups", "--"]).arg(program);
    command.current_dir("/");
    command
}
