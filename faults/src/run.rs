//! One run: a server, its destinations, its producers, and the histories of what they did. It begins with an empty store and
//! ends at rest, judged.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use crate::clock::{nanos, secs};
use crate::dump;
use crate::history::{Book, History};
use crate::judge;
use crate::ledger::Ledger;
use crate::producer::{self, Desk, Load};
use crate::rig::Rig;
use crate::sampler::Sampler;
use crate::server::{Launch, Server};
use crate::world::{Cast, World};

/// Everything is at rest within this time after the last fault, or something is stuck.
const LONGEST_REST: Duration = secs(300);
/// A clean stop takes no longer: attempts in flight may take their time.
const LONGEST_STOP: Duration = secs(90);

/// How a run begins.
pub(crate) struct Setting {
    /// Its directory, below that of the scenario.
    pub(crate) name: String,
    pub(crate) cast: Cast,
    pub(crate) launch: Launch,
    /// Where the data are, if not beside the histories.
    pub(crate) data_dir: Option<PathBuf>,
    /// Another server than the one under test.
    pub(crate) binary: Option<PathBuf>,
}

impl Setting {
    /// The usual one.
    pub(crate) fn new(name: &str, cast: Cast) -> Self {
        Self { name: name.to_owned(), cast, launch: Launch::plain(), data_dir: None, binary: None }
    }
}

/// A run that goes on.
pub(crate) struct Run {
    pub(crate) server: Server,
    pub(crate) world: Arc<World>,
    pub(crate) history: Arc<History>,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) home: PathBuf,
    producers: Vec<tokio::task::JoinHandle<()>>,
    sampler: Sampler,
}

impl Run {
    /// Starts a server on an empty store, and makes the destinations.
    pub(crate) async fn begin(rig: &Rig, setting: Setting) -> Result<Self> {
        let home = rig.home.join(&setting.name);
        fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
        let history = Arc::new(History::begin(&home)?);
        let data_dir = setting.data_dir.unwrap_or_else(|| home.join("data"));
        let mut server =
            Server::new(setting.binary.as_deref().unwrap_or(&rig.binary), &home, &data_dir, &history)?;
        server.start(&setting.launch).await?;
        let world = Arc::new(World::build(&server.client, &history, setting.cast, rig.seed).await?);
        let sampler = Sampler::start(&history, server.process());
        Ok(Self { server, world, history, ledger: Arc::default(), home, producers: vec![], sampler })
    }

    /// Begins to publish.
    pub(crate) fn produce(&mut self, rig: &mut Rig, load: Load) {
        let desk = Arc::new(Desk {
            client: self.server.client.clone(),
            history: self.history.clone(),
            ledger: self.ledger.clone(),
            world: self.world.clone(),
            load,
        });
        self.producers.extend(producer::start(&desk, &mut rig.dice));
    }

    /// Kills the server, and waits until the receivers have seen the last of it.
    pub(crate) async fn kill(&mut self) -> Result<()> {
        self.server.kill9();
        self.world.drained().await
    }

    /// Asks the server to leave, and insists that it ends well.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        self.server.terminate()?;
        let status = self.server.end(LONGEST_STOP).await?;
        ensure!(status.success(), "it ended with {status} on SIGTERM: {}", self.server.log_tail());
        self.world.drained().await
    }

    /// Whether producers with a number of requests have made them all.
    pub(crate) fn has_published(&self) -> bool {
        self.producers.iter().all(tokio::task::JoinHandle::is_finished)
    }

    /// Waits for producers with a number of requests.
    pub(crate) async fn published(&mut self) -> Result<()> {
        for producer in self.producers.drain(..) {
            producer.await.context("a producer failed")?;
        }
        Ok(())
    }

    /// Whether nothing waits and nothing is in flight, as far as the server says so.
    pub(crate) async fn is_at_rest(&self) -> bool {
        self.world.come_to_rest(&self.server.client, Duration::ZERO).await.is_ok()
    }

    /// What is under way is published to its end, and nothing more.
    pub(crate) async fn stop_producing(&mut self) -> Result<()> {
        self.ledger.close();
        self.published().await?;
        let strange = self.ledger.strange_things();
        ensure!(strange.is_empty(), "{} strange answers, such as: {}", strange.len(), strange[0]);
        Ok(())
    }

    /// Brings a run with a healthy server to its end: everything is published, delivered or over, written down, and judged.
    pub(crate) async fn finish(mut self, rig: &mut Rig) -> Result<()> {
        self.stop_producing().await?;
        self.world.patch(&self.server.client, "quiet", &json!({"delivery_schedule": null})).await?;
        self.world.come_to_rest(&self.server.client, LONGEST_REST).await?;
        dump::write(&self.server.client, &self.world, &self.ledger, &self.history).await?;
        self.stop().await?;
        let log = self.server.log();
        if let Some(line) = log.lines().find(|line| line.contains("panicked at")) {
            bail!("it panicked: {line}");
        }
        if let Some(line) = log.lines().find(|line| line.contains("put aside: the process died")) {
            bail!("it was killed by us, and blames a delivery: {line}");
        }
        let (rss, fds) = self.sampler.most();
        rig.count("events accepted", self.ledger.accepted());
        rig.count("requests received", self.world.requests());
        rig.note(format!("at most {} MiB, {fds} descriptors", rss >> 20));
        self.history.flush()?;
        judge::judge(&self.home, rig)
    }

    /// Whether the server is ready.
    pub(crate) async fn is_ready(&self) -> bool {
        self.server.client.status("/readyz").await == Some(200)
    }

    /// Notes an answer of `/readyz`.
    pub(crate) async fn poll_ready(&self) -> Option<u16> {
        let status = self.server.client.status("/readyz").await;
        if let Some(status) = status {
            let poll =
                json!({"kind": "poll", "t": nanos(), "path": "/readyz", "status": status, "body": null});
            self.history.write(Book::Api, &poll);
        }
        status
    }
}

/// A whole directory, to be broken somewhere else.
pub(crate) fn copy_directory(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
