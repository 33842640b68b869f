//! The server under test: the release binary with a fresh data directory on a real disk.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::api::Api;
use crate::child::Process;
use crate::database::Database;
use crate::stopwatch::now;

/// The operator key of all runs.
pub(crate) const KEY: &str = "tg_bench-key-bench-key-bench-key-bench-key";
/// What all nodes on one database seal secrets with.
const SECRET_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
/// A start that takes longer has failed.
const LONGEST_START: Duration = Duration::from_secs(120);

/// Where the binary and the data are.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) binary: PathBuf,
    pub(crate) directory: PathBuf,
    pub(crate) extra: Vec<String>,
    /// Servers keep their data there, each in a database of its own; none: in SQLite.
    pub(crate) database: Option<Arc<Database>>,
}

/// A running server. Dropping it kills it and removes its data.
pub(crate) struct Service {
    pub(crate) address: String,
    pub(crate) process: Process,
    pub(crate) home: PathBuf,
    place: Place,
    database_url: Option<String>,
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.home);
    }
}

impl Service {
    /// Starts a server on an empty store and waits until it is ready.
    pub(crate) async fn start(place: &Place, name: &str) -> Result<Self> {
        let database_url = place.database.as_ref().map(|database| database.fresh()).transpose()?;
        Self::start_on(place, name, database_url).await
    }

    /// Starts another node on the same database.
    pub(crate) async fn start_beside(&self, name: &str) -> Result<Self> {
        Self::start_on(&self.place, name, self.database_url.clone()).await
    }

    async fn start_on(place: &Place, name: &str, database_url: Option<String>) -> Result<Self> {
        let home = place.directory.join(format!("{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&home);
        fs::create_dir_all(&home)?;
        let address = format!("127.0.0.1:{}", free_port()?);
        let process = spawn(place, &home, &address, database_url.as_deref())?;
        let mut service = Self { address, process, home, place: place.clone(), database_url };
        service.ready().await?;
        Ok(service)
    }

    /// Kills it and starts it again on the same data. Gives the seconds until it was ready.
    pub(crate) async fn restart(&mut self) -> Result<f64> {
        // The old process ends when it is replaced, before the new one is started: they may not share the data.
        self.process.end();
        let began = now();
        self.process = spawn(&self.place, &self.home, &self.address, self.database_url.as_deref())?;
        self.ready().await?;
        Ok(began.elapsed().as_secs_f64())
    }

    pub(crate) async fn api(&self) -> Result<Api> {
        Api::connect(&self.address, KEY).await
    }

    async fn ready(&mut self) -> Result<()> {
        let began = now();
        while began.elapsed() < LONGEST_START {
            if !self.process.runs() {
                bail!("the server ended at once: {}", log(&self.home));
            }
            if let Ok(mut api) = self.api().await
                && matches!(api.call("GET", "/readyz", "").await, Ok((200, _)))
            {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        bail!("the server did not become ready: {}", log(&self.home))
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn spawn(place: &Place, home: &Path, address: &str, database_url: Option<&str>) -> Result<Process> {
    let log = File::options().create(true).append(true).open(home.join("log"))?;
    let mut command = Command::new(&place.binary);
    command.args(["serve", "--listen", address, "--allow-destinations", "127.0.0.0/8", "--data-dir"]);
    command.arg(home.join("data")).args(&place.extra).env("TIDEGATE_BOOTSTRAP_KEY", KEY).current_dir(home);
    if let Some(url) = database_url {
        command.env("TIDEGATE_DATABASE_URL", url).env("TIDEGATE_SECRET_KEY", SECRET_KEY);
    }
    Process::spawn(command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log))
}

/// The end of what a server has logged.
fn log(home: &Path) -> String {
    let text = fs::read_to_string(home.join("log")).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(20).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}
