//! The server, from start to stop.
//!
//! ```text
//!   listen ──► open the store ──► key for secrets ──► catalogue, lanes ──► first account and key ──► go, accept calls
//!   SIGTERM ──► nobody new gets in ──► last calls end ──► attempts end (bounded), commit, close ──► leave
//! ```

mod bootstrap;
mod door;
mod full;
mod http;
mod refresh;
pub(crate) mod sending;
mod signals;
mod unread;

use std::fs::DirBuilder;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rustix::process::{Resource, getrlimit};
use tidegate_core::time::Millis;
use tidegate_engine::sender::SenderConfig;
use tidegate_engine::{Engine, EngineConfig, Place, Started};
use tidegate_store::StoreError;
use tidegate_store::catalogue::Destination;
use tidegate_store::cluster::Identity;
use tokio::sync::watch;

use self::signals::Signals;
use crate::api::survey::Surveys;
use crate::api::told::Teller;
use crate::api::{self, App, Parts};
use crate::auth::Auth;
use crate::catalogue::Catalogue;
use crate::config::{Config, SECRET_KEY, Secret};
use crate::dashboard;
use crate::jobs::{self, Jobs};
use crate::policy::Compiler;
use crate::secrets::Secrets;

/// Threads that read the store for people (lists, looks), and as many that read it for deliveries (backlog for lanes, messages
/// that are no longer in memory): neither stands in the other's way.
const READERS: usize = 2;
/// How long calls that are under way when the server stops have to end.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// How often a start that waits for room is tried again.
const LOOK_FOR_ROOM: Duration = Duration::from_secs(1);

/// Runs until it is told to stop.
pub(crate) async fn run(config: Config) -> anyhow::Result<()> {
    let config = Arc::new(config);
    let mut signals = Signals::listen()?;
    // First the port: whoever starts a second server by mistake learns it before anything is opened.
    let listener = TcpListener::bind(config.listen).with_context(|| {
        format!("cannot listen on {}: is another server running there? (--listen)", config.listen)
    })?;
    let address = listener.local_addr()?;
    // What can be found wrong without a store leaves none behind.
    let sender = sending::configure(&config, address)?;
    make_directory(&config.data_dir)?;
    let (engine, mut started) = tokio::select! {
        started = start(&config, &listener, sender) => started.map_err(with_file_limit)?,
        // Nothing was begun.
        () = signals.stop() => return Ok(()),
    };
    let (leave, leaving) = watch::channel(false);
    let jobs = std::mem::take(&mut started.jobs);
    let left_over = started.catalogue.deleted.iter().filter(|deleted| deleted.has_open).copied().collect();
    let app = assemble(&config, engine.clone(), started, leaving).await?;
    let greeting = bootstrap::first_key(&app, config.bootstrap_key.as_ref().map(Secret::reveal)).await?;
    if config.paused {
        let paused = api::settings::pause_all(&app).await;
        paused.map_err(|error| anyhow::anyhow!("cannot pause: {error}"))?;
    }
    engine.go();
    jobs::resume(&app, jobs, left_over);
    tokio::spawn(refresh::follow(app.clone()));
    tokio::spawn(api::publish::outbox::follow(app.clone()));
    tokio::spawn(jobs::adopt(app.clone()));
    tracing::info!(%address, node = config.node_name, data_dir = %config.data_dir.display(), database = config.database_url.is_some(), version = env!("CARGO_PKG_VERSION"), "ready");
    if let Some(key) = greeting {
        bootstrap::greet(&key, address)?;
    }
    let server = http::Server::new(listener, dashboard::beside(api::router(app.clone()), app), &config)?;
    let left = tokio::select! {
        left = server.run(signals.stop()) => left,
        why = engine.broken() => {
            engine.blames_nobody();
            return Err(with_file_limit(anyhow::anyhow!(why)));
        }
    };
    let _watching = leave.send(true);
    tracing::info!("stopping: no new calls; attempts in flight may finish");
    tokio::select! {
        () = stop(left, &engine, config.drain_limit) => tracing::info!("stopped"),
        () = signals.stop() => {
            engine.blames_nobody();
            anyhow::bail!("left at once, on a second signal; what was in flight may be sent again")
        }
    }
    Ok(())
}

/// Opens the store, and starts what works on it. On a full disk it waits for room, as it does when that fills up later.
async fn start(
    config: &Config,
    listener: &TcpListener,
    sender: SenderConfig,
) -> anyhow::Result<(Engine, Started)> {
    let address = listener.local_addr()?;
    let start = |sender| {
        tidegate_engine::start(EngineConfig {
            place: place(config, address),
            data_dir: config.data_dir.clone(),
            slots: config.max_in_flight,
            readers: READERS,
            retention: config.retention,
            sender,
        })
    };
    match start(sender).await {
        Err(StoreError::Full) => {}
        started => return Ok(started?),
    }
    tracing::error!(
        "the disk is full: the store cannot be opened. The server waits for room, and until then refuses all calls"
    );
    let there_is_room = async {
        loop {
            tokio::time::sleep(LOOK_FOR_ROOM).await;
            match start(sending::configure(config, address)?).await {
                Err(StoreError::Full) => {}
                started => return Ok(started?),
            }
        }
    };
    tokio::select! {
        started = there_is_room => started,
        never = full::answer(listener) => match never? {},
    }
}

/// What a store says that has met the limit of a file's length cannot be told from what it says of a broken disk.
fn with_file_limit(error: anyhow::Error) -> anyhow::Error {
    match getrlimit(Resource::Fsize).current {
        None => error,
        Some(limit) => anyhow::anyhow!(
            "{error:#}. Files may not be longer than {limit} bytes here: if it met that limit, nothing is broken. Raise it \
             (ulimit -f unlimited, or LimitFSIZE=infinity in the unit) and start again"
        ),
    }
}

/// Where everything is kept.
fn place(config: &Config, address: SocketAddr) -> Place {
    let Some(url) = &config.database_url else { return Place::Directory(config.data_dir.clone()) };
    let machine = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = config.node_name.clone().unwrap_or_else(|| format!("{}:{}", machine(), address.port()));
    Place::Database {
        url: url.reveal().to_owned(),
        listen_url: config.database_listen_url.as_ref().map(|url| url.reveal().to_owned()),
        max_event_bytes: config.max_event_bytes as u64,
        identity: Identity {
            name,
            address: address.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        },
    }
}

/// Payloads and secrets lie there: nobody else may look in. A directory that is there already is left as it is.
fn make_directory(path: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("cannot make the data directory {} (--data-dir)", path.display()))
}

async fn stop(calls: http::Left, engine: &Engine, drain_limit: Millis) {
    calls.end(LAST_CALLS).await;
    engine.shutdown(Duration::from_millis(drain_limit.get().max(0).unsigned_abs())).await;
}

async fn assemble(
    config: &Arc<Config>,
    engine: Engine,
    started: Started,
    leaving: watch::Receiver<bool>,
) -> anyhow::Result<App> {
    let secrets = Arc::new(open_secrets(config, &started.catalogue.destinations)?);
    if !engine.store().fingerprint(secrets.fingerprint().as_bytes()).await? {
        anyhow::bail!(
            "the other servers on this database encrypt secrets with another key: give this one the same \
             (TIDEGATE_SECRET_KEY, or secret_key_file)"
        );
    }
    let compiler =
        Compiler { secrets, timeout_params: config.timeout.clone(), https_only: config.https_only };
    let catalogue =
        Catalogue::load(engine.clone(), compiler, Some(config.max_age), started.catalogue, started.lanes)?;
    let auth = Auth::new(config.api_rate_limit);
    Ok(App::new(Parts {
        engine,
        catalogue,
        config: Arc::clone(config),
        auth,
        jobs: Jobs::default(),
        told: Teller::default(),
        surveys: Surveys::default(),
        leaving,
    }))
}

/// The key for secrets. It is made only while there is nothing that another one may have sealed.
fn open_secrets(config: &Config, destinations: &[Destination]) -> anyhow::Result<Secrets> {
    let secrets = match &config.secret_key {
        Some(key) => Secrets::from_text(key.reveal(), SECRET_KEY)?,
        None => Secrets::from_file(&config.key_file(), destinations.is_empty())?,
    };
    for destination in destinations {
        secrets.check(&destination.secrets)?;
    }
    Ok(secrets)
}
