//! A PostgreSQL server for the tests: started by the first that needs it, in a directory of its own, reached by a socket
//! there, and stopped with the process, however that ends.
//!
//! `pg_ctl` and `initdb` are looked for on the path and where Debian puts them. A server does not run as root: then it runs
//! as the user `postgres`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// A running server.
pub struct Server {
    directory: PathBuf,
    programs: PathBuf,
}

static SERVER: OnceLock<Server> = OnceLock::new();

/// The one of this process.
pub fn server() -> &'static Server {
    SERVER.get_or_init(|| Server::start("all"))
}

/// Makes an empty database.
pub fn create(database: &str) {
    server().sql("postgres", &format!("create database {database}"));
}

/// Drops a database, whoever uses it still.
pub fn drop(database: &str) {
    server().sql("postgres", &format!("drop database if exists {database} with (force)"));
}

impl Server {
    /// Starts a server in a directory of this name.
    pub fn start(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("tidegate-pg-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&directory);
        std::fs::create_dir_all(&directory).unwrap();
        let server = Self { directory, programs: programs() };
        if is_root() {
            assert!(Command::new("chown").arg("postgres").arg(&server.directory).status().unwrap().success());
        }
        let data = server.data();
        server.run("initdb", &["-D", &data, "-U", "postgres", "-A", "trust", "--no-sync"]);
        server.up();
        server.stop_with_this_process();
        server
    }

    /// How to reach a database of it.
    pub fn url(&self, database: &str) -> String {
        let host = self.directory.to_string_lossy().replace('/', "%2F");
        format!("postgres://postgres@{host}/{database}?sslmode=disable")
    }

    /// Where its socket lies.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts the server on its directory.
    pub fn up(&self) {
        self.up_with("-c listen_addresses=");
    }

    /// The same, with more options.
    pub fn up_with(&self, more: &str) {
        let socket = self.directory.display();
        let options = format!(
            "-k {socket} -c fsync=off -c max_connections=200 -c shared_buffers=64MB -c max_wal_size=256MB {more}"
        );
        let log = self.directory.join("log");
        let log = log.to_string_lossy();
        self.run("pg_ctl", &["-D", &self.data(), "-w", "-o", &options, "-l", &log, "start"]);
    }

    /// Puts a file beside its data that nobody else may read; says where.
    pub fn put(&self, name: &str, text: &str) -> String {
        let path = self.directory.join(name);
        std::fs::write(&path, text).unwrap();
        let path = path.to_string_lossy().into_owned();
        if is_root() {
            assert!(Command::new("chown").args(["postgres", &path]).status().unwrap().success());
        }
        assert!(Command::new("chmod").args(["600", &path]).status().unwrap().success());
        path
    }

    /// Stops it as a crash would.
    pub fn down(&self) {
        self.run("pg_ctl", &["-D", &self.data(), "-w", "-m", "immediate", "stop"]);
    }

    /// Runs a statement in a database and gives back what it says, as text.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        self.try_sql(database, sql).unwrap()
    }

    /// The same, or why it was refused.
    pub fn try_sql(&self, database: &str, sql: &str) -> Result<String, String> {
        let host = self.directory.to_string_lossy();
        let arguments =
            ["-h", &host, "-U", "postgres", "-d", database, "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", sql];
        let output = self.output("psql", &arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(text(&output.stderr)),
        }
    }

    fn data(&self) -> String {
        self.directory.join("data").to_string_lossy().into_owned()
    }

    fn output(&self, program: &str, arguments: &[&str]) -> std::process::Output {
        let output = as_user(&self.programs.join(program)).args(arguments).stdin(Stdio::null()).output();
        output.unwrap_or_else(|error| panic!("{program} cannot be run: {error}"))
    }

    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.output(program, arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "{program} {arguments:?}: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        text
    }

    /// A shell that outlives us by a moment: it waits for the end of its input, which is ours.
    fn stop_with_this_process(&self) {
        let script = format!(
            "trap '' HUP INT TERM; read _; {}/pg_ctl -D {} -m immediate stop >/dev/null 2>&1; \
             for _ in 1 2 3 4 5; do rm -rf {} && break; sleep 1; done",
            self.programs.display(),
            self.data(),
            self.directory.display()
        );
        let mut shell = as_user(Path::new("/bin/sh"));
        shell.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = shell.spawn().unwrap();
        // Its input stays open as long as this process lives.
        std::mem::forget(child);
    }
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout.starts_with(b"0\n")
}

/// A program, run by somebody who is not root.
fn as_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program).current_dir("/");
    command
}

/// Where the newest server's programs lie.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut debian: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    debian.sort();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut all = debian.into_iter().rev().chain(std::env::split_paths(&path).collect::<Vec<_>>());
    all.find(|folder| folder.join("initdb").exists() && folder.join("psql").exists())
        .expect("the tests need PostgreSQL: install it (Debian: apt-get install postgresql)")
}
