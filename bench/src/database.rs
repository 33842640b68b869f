//! A throw-away PostgreSQL on the disk that is measured, with the settings it comes with, but for room in memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};

use crate::child::cpu_seconds_of;
use crate::service::free_port;

/// A server with its data. Dropping it stops it and removes them.
#[derive(Debug)]
pub(crate) struct Database {
    programs: PathBuf,
    home: PathBuf,
    port: u16,
    made: AtomicU32,
}

impl Drop for Database {
    fn drop(&mut self) {
        let _stopped = self.run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "stop"]);
        let _removed = fs::remove_dir_all(&self.home);
    }
}

impl Database {
    /// Starts an empty one below this directory. As root it runs as the user `postgres`, who must be able to get there.
    pub(crate) fn start(directory: &Path) -> Result<Self> {
        let home = directory.join(format!("postgres-{}", std::process::id()));
        fs::create_dir_all(&home)?;
        let home = home.canonicalize()?;
        if rustix::process::geteuid().is_root() {
            let given = Command::new("chown").arg("postgres").arg(&home).status()?;
            ensure!(given.success(), "PostgreSQL does not run as root and needs a user `postgres`");
        }
        let database = Self { programs: programs()?, home, port: free_port()?, made: AtomicU32::new(0) };
        database.run("initdb", &["-D", &database.data(), "-U", "postgres", "-A", "trust"])?;
        let options = format!(
            "-k {} -c listen_addresses=127.0.0.1 -p {} -c shared_buffers=1GB -c max_wal_size=8GB",
            database.home.display(),
            database.port
        );
        let log = database.home.join("log").display().to_string();
        let _output = database
            .command("pg_ctl", &["-D", &database.data(), "-w", "-o", &options, "-l", &log, "start"])
            .status()?;
        Ok(database)
    }

    /// A new database: where a server finds it.
    pub(crate) fn fresh(&self) -> Result<String> {
        let name = format!("bench_{}", self.made.fetch_add(1, Ordering::Relaxed));
        self.sql(&format!("create database {name}"))?;
        Ok(format!("postgres://postgres@127.0.0.1:{}/{name}", self.port))
    }

    /// Bytes of all databases.
    pub(crate) fn bytes(&self) -> Result<f64> {
        Ok(self.sql("select sum(pg_database_size(oid)) from pg_database")?.trim().parse()?)
    }

    /// Bytes that it has written to its log so far.
    pub(crate) fn log_bytes(&self) -> Result<f64> {
        Ok(self.sql("select pg_current_wal_lsn() - '0/0'::pg_lsn")?.trim().parse()?)
    }

    fn sql(&self, sql: &str) -> Result<String> {
        let port = self.port.to_string();
        self.run("psql", &["-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-qAtX", "-c", sql])
    }

    /// CPU time of all its processes so far, in seconds: those that are gone were counted by the first when they ended.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        let file = fs::read_to_string(self.home.join("data/postmaster.pid")).unwrap_or_default();
        let first: u32 = file.lines().next().and_then(|line| line.parse().ok()).unwrap_or(0);
        let children = fs::read_to_string(format!("/proc/{first}/task/{first}/children")).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        cpu_seconds_of(first, true) + children.map(|pid| cpu_seconds_of(pid, false)).sum::<f64>()
    }

    fn data(&self) -> String {
        self.home.join("data").display().to_string()
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let path = self.programs.join(program);
        let mut command = if rustix::process::geteuid().is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups", "--"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        command.args(arguments).current_dir(&self.home);
        command
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let Output { status, stdout, stderr } = self.command(program, arguments).output()?;
        ensure!(status.success(), "{program}: {}", String::from_utf8_lossy(&stderr));
        Ok(String::from_utf8_lossy(&stdout).into_owned())
    }
}

/// Where its programs lie: the newest version of Debian's, or what is on the path.
fn programs() -> Result<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut debian: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    debian.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = debian.into_iter().rev().chain(std::env::split_paths(&path).collect::<Vec<_>>());
    all.find(|folder| folder.join("initdb").exists())
        .context("PostgreSQL is not installed (Debian: apt-get install postgresql)")
}
