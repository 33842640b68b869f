//! One run: a server, its destinations, its producers, and the histories of what they did. It begins with an empty store and
//! ends at rest, judged.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::changer::{Changer, Changing};
use crate::clock::{millis, nanos, now, pass, secs, until};
use crate::dump;
use crate::history::History;
use crate::judge;
use crate::ledger::{Answered, Ledger};
use crate::poller::{Poller, Polling};
use crate::producer::{self, Desk, Load};
use crate::rig::Rig;
use crate::sampler::Sampler;
use crate::server::{Launch, Server};
use crate::world::{Cast, World};

/// Everything is at rest within this time after the last fault, or something is stuck.
const LONGEST_REST: Duration = secs(300);
/// A clean stop takes no longer: attempts in flight may take their time.
const LONGEST_STOP: Duration = secs(90);

/// A long run goes on for so long after the last fault: longer than the checker takes anything to be disturbed by it.
const CALM: Duration = secs(8);

/// What was learned so long after a start is not excused by what was before it.
const STORED: Duration = millis(1_500);

/// Events that are published when everything is at rest …
const CANARIES: u64 = 3;
/// … and come within this time each, beside how late a receiver may be to see it.
const CANARY: Duration = secs(2);

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
    /// Promises that need not be judged by anything, beside those that its cast says nothing about.
    pub(crate) silent_about: &'static [&'static str],
}

impl Setting {
    /// The usual one.
    pub(crate) fn new(name: &str, cast: Cast) -> Self {
        Self {
            name: name.to_owned(),
            cast,
            launch: Launch::plain(),
            data_dir: None,
            binary: None,
            silent_about: &[],
        }
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
    polling: Polling,
    changing: Changing,
    silent_about: Vec<&'static str>,
}

impl Run {
    /// Starts a server on an empty store, and makes the destinations.
    pub(crate) async fn begin(rig: &mut Rig, setting: Setting) -> Result<Self> {
        let home = rig.home.join(&setting.name);
        fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
        let history = Arc::new(History::begin(&home)?);
        let data_dir = setting.data_dir.unwrap_or_else(|| home.join("data"));
        let mut server =
            Server::new(setting.binary.as_deref().unwrap_or(&rig.binary), &home, &data_dir, &history)?;
        server.start(&setting.launch).await?;
        let world = Arc::new(World::build(&server.client, &history, setting.cast, rig.seed).await?);
        let sampler = Sampler::start(&history, server.process());
        let ledger = Arc::default();
        let poller = Poller {
            client: server.client.clone(),
            history: history.clone(),
            world: world.clone(),
            ledger: Arc::clone(&ledger),
            dice: rig.dice.split(),
        };
        let changer = Changer::new(&server.client, &world, rig.dice.split());
        let silent_about = [setting.cast.silent_about(), setting.silent_about].concat();
        Ok(Self {
            server,
            world,
            history,
            ledger,
            home,
            producers: vec![],
            sampler,
            polling: poller.start(),
            changing: changer.start(),
            silent_about,
        })
    }

    /// Begins to publish.
    pub(crate) fn produce(&mut self, rig: &mut Rig, load: Load) {
        self.producers.extend(producer::start(&self.desk(load), &mut rig.dice));
    }

    /// Events that quiet hours may hold and that have not come yet.
    pub(crate) fn held(&self) -> u64 {
        self.desk(Load::little(1)).held()
    }

    /// So many publishers come at once, with an event each. What was answered since then, to whomever, is given back.
    pub(crate) async fn crowd(&self, rig: &mut Rig, publishers: u64) -> Vec<Answered> {
        let began = nanos();
        producer::publish_at_once(&self.desk(Load::little(1)), &mut rig.dice, publishers).await;
        self.ledger.answers_since(began)
    }

    /// Publishes so many events for a destination, whatever waits for it.
    pub(crate) async fn backlog(&self, rig: &mut Rig, name: &'static str, events: u64) -> Result<()> {
        let desk = self.desk(Load::little(1));
        for _ in 0..events {
            let accepted = producer::publish_one(&desk, rig.dice.split(), name).await;
            ensure!(accepted, "an event for {name} was not accepted: {}", self.server.log_tail());
        }
        Ok(())
    }

    /// The most descriptors that the server had so far.
    pub(crate) fn most_descriptors(&self) -> u64 {
        self.sampler.most().1
    }

    /// The most memory that the server had so far, in bytes.
    pub(crate) fn most_memory(&self) -> u64 {
        self.sampler.most().0
    }

    fn desk(&self, load: Load) -> Arc<Desk> {
        Arc::new(Desk {
            client: self.server.client.clone(),
            history: self.history.clone(),
            ledger: self.ledger.clone(),
            world: self.world.clone(),
            load,
        })
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
        // Soon after faults, and beside a crowd, what the checker says about calm times is judged where it can be, and need not be:
        // that things go on is seen by canaries.
        self.silent_about.extend(["I10", "I15"]);
        if rig.is_short() {
            self.refused_once_more().await?;
        } else {
            pass(CALM).await;
        }
        self.finish_now(rig).await
    }

    /// Waits until a destination has asked to be left alone after the last fault, so that nothing excuses what follows.
    async fn refused_once_more(&mut self) -> Result<()> {
        let world = self.world.clone();
        let Some(busy) = world.find("busy").filter(|_| !self.silent_about.contains(&"I9")) else {
            return Ok(());
        };
        pass(STORED).await;
        let before = busy.receiver.refused();
        let once_more = async || busy.receiver.refused() > before || self.has_published();
        ensure!(until(LONGEST_REST, once_more).await, "nothing comes to {}", busy.name);
        Ok(())
    }

    /// The same, for a run that has been calm.
    pub(crate) async fn finish_now(mut self, rig: &mut Rig) -> Result<()> {
        self.world.heal();
        rig.count("changes", self.changing.end().await?);
        self.stop_producing().await?;
        self.world.patch(&self.server.client, "quiet", &json!({"delivery_schedule": null})).await?;
        self.world.patch(&self.server.client, "gone", &json!({"active": true})).await?;
        self.world.come_to_rest(&self.server.client, LONGEST_REST).await?;
        self.canaries(rig).await?;
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
        let (jitter, longest) = (self.world.jitter, self.polling.longest_transit());
        rig.note(format!("J {jitter:.0?}, seen after {longest:.1?} at the latest"));
        self.history.flush()?;
        judge::judge(&self.home, rig, &self.silent_about)
    }

    /// Whatever was done to it, what is published now arrives at once. Nothing else comes to the plain destination any more.
    async fn canaries(&self, rig: &mut Rig) -> Result<()> {
        let plain = self.world.find("plain").context("every run has a plain destination")?;
        let desk = self.desk(Load::little(1));
        let bound = CANARY + self.world.jitter;
        let mut longest = Duration::ZERO;
        for _ in 0..CANARIES {
            let (before, began) = (plain.receiver.requests(), now());
            ensure!(
                producer::publish_one(&desk, rig.dice.split(), "plain").await,
                "a canary was not accepted"
            );
            let arrived = until(bound, async || plain.receiver.requests() > before).await;
            longest = longest.max(began.elapsed());
            ensure!(
                arrived && longest <= bound,
                "at rest, and an event did not arrive within {bound:?}: {}",
                self.server.log_tail()
            );
            self.look_at_newest().await?;
        }
        rig.count("canaries", CANARIES);
        rig.note(format!("canaries within {longest:.0?}"));
        Ok(())
    }

    /// How the newest deliveries stand: the shortest run has some that were looked at more than once.
    async fn look_at_newest(&self) -> Result<()> {
        let page = self.server.client.get("/v1/deliveries?limit=5").await?;
        for delivery in page["items"].as_array().into_iter().flatten() {
            let id = delivery["id"].as_str().context("a delivery has an id")?;
            self.history.poll(&format!("/v1/deliveries/{id}"), 200, delivery);
        }
        Ok(())
    }

    /// Whether the server is ready.
    pub(crate) async fn is_ready(&self) -> bool {
        self.server.client.status("/readyz").await == Some(200)
    }

    /// Notes an answer of `/readyz`.
    pub(crate) async fn poll_ready(&self) -> Option<u16> {
        let status = self.server.client.status("/readyz").await;
        if let Some(status) = status {
            self.history.poll("/readyz", status, &Value::Null);
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
