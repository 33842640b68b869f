//! The server as a child process with a data directory of its own.

use std::fs::{self, File};
use std::net::TcpListener;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

use super::{Client, Postgres, millis, now, secs};

/// A start takes no longer than this, and a stop neither.
const LONGEST_START: Duration = secs(30);
/// The operator key of a fresh store.
const KEY: &str = "tg_test-key-test-key-test-key-test-key-test";

/// A running server. It derefs to a [`Client`] with the operator key; dropping it kills it and removes its data.
pub(crate) struct Server {
    /// `http://127.0.0.1:port`; stays the same over restarts.
    pub(crate) base_url: String,
    /// The operator key.
    pub(crate) key: String,
    /// Where it keeps its data.
    pub(crate) data_dir: PathBuf,
    client: Client,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    child: Child,
    home: PathBuf,
}

impl Deref for Server {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Drop for Server {
    #[expect(clippy::print_stderr, reason = "whoever reads the failure wants to know where to look")]
    fn drop(&mut self) {
        self.kill9();
        if std::thread::panicking() {
            eprintln!("the server's log: {}", self.home.join("log").display());
        } else {
            let _ = fs::remove_dir_all(&self.home);
        }
    }
}

impl Server {
    /// Starts a server on an empty store and waits until it is ready. Deliveries to the loopback addresses are allowed.
    pub(crate) async fn start(extra_arguments: &[&str]) -> Self {
        Self::start_in(&[], extra_arguments).await
    }

    /// The same, with more in its environment.
    pub(crate) async fn start_in(environment: &[(&str, &str)], extra_arguments: &[&str]) -> Self {
        Self::launch(&["--allow-destinations", "127.0.0.0/8"], environment, extra_arguments).await
    }

    /// As an installation without any leave: public destinations only.
    pub(crate) async fn start_guarded(extra_arguments: &[&str]) -> Self {
        Self::launch(&[], &[], extra_arguments).await
    }

    async fn launch(leave: &[&str], environment: &[(&str, &str)], extra_arguments: &[&str]) -> Self {
        let home = fresh_directory();
        let data_dir = home.join("data");
        let address = format!("127.0.0.1:{}", free_port());
        let base_url = format!("http://{address}");
        let mut arguments: Vec<String> = ["serve", "--listen", &address]
            .iter()
            .chain(leave)
            .map(|argument| (*argument).to_owned())
            .collect();
        arguments.extend(["--data-dir".to_owned(), data_dir.display().to_string()]);
        arguments.extend(extra_arguments.iter().map(|argument| (*argument).to_owned()));
        let client = Client::new(&base_url, KEY);
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut environment: Vec<_> = environment.iter().map(own).collect();
        // A test that says which database is about that one.
        let has_one = environment.iter().any(|(name, _)| name == "TIDEGATE_DATABASE_URL");
        if let Some(url) = Postgres::fresh_database().filter(|_| !has_one) {
            environment.push(("TIDEGATE_DATABASE_URL".to_owned(), url));
        }
        let child = spawn(&arguments, &environment, &home);
        let key = KEY.to_owned();
        let mut server = Self { base_url, key, data_dir, client, arguments, environment, child, home };
        server.ready().await;
        server
    }

    /// A client with the operator key that can be moved into a task.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The database that it uses, where that is in PostgreSQL.
    pub(crate) fn database_url(&self) -> Option<&str> {
        let url = self.environment.iter().find(|(name, _)| name == "TIDEGATE_DATABASE_URL");
        url.map(|(_, url)| url.as_str())
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has logged so far, in all its lives.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.home.join("log")).unwrap_or_default()
    }

    /// Kills it as a power cut would, as far as a process can tell.
    pub(crate) fn kill9(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Freezes it (SIGSTOP): its sockets stay open, and it does nothing.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on after [`Server::pause`].
    pub(crate) fn wake(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.process(), signal).expect("it runs");
    }

    fn process(&self) -> Pid {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a child has an id")
    }

    /// From now on it may write no file that is longer.
    pub(crate) fn limit_files(&self, bytes: u64) {
        let limit = Rlimit { current: Some(bytes), maximum: Some(bytes) };
        prlimit(Some(self.process()), Resource::Fsize, limit).expect("it runs");
    }

    /// Asks it to end (SIGTERM), waits, and says whether it ended well.
    pub(crate) async fn stop(&mut self) -> bool {
        self.ask_to_end();
        self.ends().await
    }

    /// Asks it to end, without waiting. A second time would end it at once.
    pub(crate) fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Waits until it has ended, and says whether it ended well.
    pub(crate) async fn ends(&mut self) -> bool {
        let began = now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                return status.success();
            }
            assert!(began.elapsed() < LONGEST_START, "it did not end: {}", self.log());
            tokio::time::sleep(millis(5)).await;
        }
    }

    /// Starts it again on the same data and port, after [`Server::kill9`] or [`Server::stop`].
    pub(crate) async fn restart(&mut self) {
        self.respawn();
        self.ready().await;
    }

    /// The same without waiting until it is ready.
    pub(crate) fn respawn(&mut self) {
        self.child = spawn(&self.arguments, &self.environment, &self.home);
    }

    /// Starts it again with other extra arguments.
    pub(crate) async fn restart_with(&mut self, extra_arguments: &[&str]) {
        self.arguments.truncate(7);
        self.arguments.extend(extra_arguments.iter().map(|argument| (*argument).to_owned()));
        self.restart().await;
    }

    /// Waits until it is ready.
    pub(crate) async fn ready(&mut self) {
        let began = now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                panic!("it ended with {status} before it was ready: {}", self.log());
            }
            let asked = self.client.try_send(http::Method::GET, "/readyz", None, bytes::Bytes::new()).await;
            if asked.is_ok_and(|answer| answer.status == 200) {
                return;
            }
            assert!(began.elapsed() < LONGEST_START, "it did not become ready: {}", self.log());
            tokio::time::sleep(millis(5)).await;
        }
    }
}

/// It dies with the thread that starts it, so that nothing is left of a test that is killed.
fn spawn(arguments: &[String], environment: &[(String, String)], home: &Path) -> Child {
    let log = File::options().create(true).append(true).open(home.join("log")).expect("the log opens");
    // The benchmarks run these tests with the release binary.
    let binary = std::env::var_os("XTASK_BINARY").unwrap_or_else(|| env!("CARGO_BIN_EXE_tidegate").into());
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(binary);
    // What tells the tests where their tools are is no setting of the server, which would refuse it.
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TIDEGATE_")) {
        command.env_remove(name);
    }
    command
        .args(arguments)
        .current_dir(home)
        .env("TIDEGATE_BOOTSTRAP_KEY", KEY)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a second handle"))
        .stderr(log)
        .spawn()
        .expect("the binary starts")
}

/// A new directory on the disk of the build.
fn fresh_directory() -> PathBuf {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let name = format!("tidegate-{}-{number}", std::process::id());
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("the build's directory is ours");
    path
}

/// A port that was free a moment ago. A later restart must get the same one, so it cannot be left to the server.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").port()
}
