//! The server, from start to stop.
//!
//! ```text
//!   listen ──► open the store ──► key for secrets ──► catalogue, lanes ──► first account and key ──► go, accept calls
//!   SIGTERM ──► accept nothing more ──► calls end ──► attempts end (bounded), commit, close ──► leave
//! ```

mod bootstrap;
mod http;
mod sending;
mod signals;
mod unread;

use std::fs::DirBuilder;
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tidegate_core::time::Millis;
use tidegate_engine::{Engine, EngineConfig, Started};
use tidegate_store::catalogue::Destination;
use tokio::sync::watch;

use self::signals::Signals;
use crate::api::told::Teller;
use crate::api::{self, App, Parts};
use crate::auth::Auth;
use crate::catalogue::Catalogue;
use crate::config::Config;
use crate::jobs::{self, Jobs};
use crate::policy::Compiler;
use crate::secrets::Secrets;

/// Threads that read the store: lists and looks of people, never the path of an event.
const READERS: usize = 4;
/// Calls that are under way when the server stops get so long to end.
const LAST_CALLS: Duration = Duration::from_secs(5);

/// Runs until it is told to stop.
pub(crate) async fn run(config: Config) -> anyhow::Result<()> {
    let config = Arc::new(config);
    let mut signals = Signals::listen()?;
    // First the port: whoever starts a second server by mistake learns it before anything is opened.
    let listener = TcpListener::bind(config.listen).with_context(|| {
        format!("cannot listen on {}: is another server running there? (--listen)", config.listen)
    })?;
    make_directory(&config.data_dir)?;
    let (engine, mut started) = tidegate_engine::start(EngineConfig {
        data_dir: config.data_dir.clone(),
        slots: config.max_in_flight,
        readers: READERS,
        retention: config.retention,
        sender: sending::configure(&config, listener.local_addr()?)?,
    })?;
    let (leave, leaving) = watch::channel(false);
    let jobs = std::mem::take(&mut started.jobs);
    let left_over = started.catalogue.deleted.iter().filter(|deleted| deleted.has_open).copied().collect();
    let app = assemble(&config, engine.clone(), started, leaving)?;
    let greeting = bootstrap::first_key(&app).await?;
    if config.paused {
        let paused = api::settings::pause_all(&app).await;
        paused.map_err(|error| anyhow::anyhow!("cannot pause: {error}"))?;
    }
    engine.go();
    jobs::resume(&app, jobs, left_over);
    let address = listener.local_addr()?;
    tracing::info!(%address, data_dir = %config.data_dir.display(), version = env!("CARGO_PKG_VERSION"), "ready");
    if let Some(key) = greeting {
        bootstrap::greet(&key, address)?;
    }
    let server = http::Server::new(listener, api::router(app), &config)?;
    let left = tokio::select! {
        left = server.run(signals.stop()) => left,
        // What is acknowledged is safe; only a fresh start finds out what else is.
        why = engine.store().broken() => anyhow::bail!("the store is broken: {why}. Start again: nothing acknowledged is lost"),
    };
    let _watching = leave.send(true);
    tracing::info!("stopping: no new calls; attempts in flight may finish");
    tokio::select! {
        () = stop(left, &engine, config.drain_limit) => tracing::info!("stopped"),
        () = signals.stop() => anyhow::bail!("left at once, on a second signal; what was in flight may be sent again"),
    }
    Ok(())
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

fn assemble(
    config: &Arc<Config>,
    engine: Engine,
    started: Started,
    leaving: watch::Receiver<bool>,
) -> anyhow::Result<App> {
    let secrets = Arc::new(open_secrets(config, &started.catalogue.destinations)?);
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
        leaving,
    }))
}

/// The key for secrets. It is made only while there is nothing that another one may have sealed.
fn open_secrets(config: &Config, destinations: &[Destination]) -> anyhow::Result<Secrets> {
    let secrets = match std::env::var("TIDEGATE_SECRET_KEY") {
        Ok(text) => Secrets::from_text(&zeroize::Zeroizing::new(text), "TIDEGATE_SECRET_KEY")?,
        Err(_) => Secrets::from_file(&config.key_file(), destinations.is_empty())?,
    };
    for destination in destinations {
        secrets.check(&destination.secrets)?;
    }
    Ok(secrets)
}
