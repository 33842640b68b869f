//! `tidegate serve`: the server, and the flags that it shares with `config show` and `doctor`.

use std::path::PathBuf;

use anyhow::Context;

use super::Ended;
use crate::config::{Config, Layers, Written};
use crate::{serve, telemetry};

/// The settings as flags. Each is also a key in tidegate.toml and a TIDEGATE_… variable.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Settings {
    /// The configuration file [default: tidegate.toml, if it is there]
    #[arg(long, value_name = "FILE", env = "TIDEGATE_CONFIG")]
    config: Option<PathBuf>,
    /// Where the API listens [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// Where everything is kept [default: ./tidegate-data]
    #[arg(long, value_name = "DIRECTORY")]
    data_dir: Option<String>,
    /// A PostgreSQL database instead: postgres://user:password@host/database
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// A direct connection to the database for notices [default: the same]
    #[arg(long, value_name = "URL")]
    database_listen_url: Option<String>,
    /// What this server is called among several [default: the machine's name and the port]
    #[arg(long, value_name = "NAME")]
    node_name: Option<String>,
    /// Ranges that may be sent to although they are not public
    #[arg(long, value_name = "CIDR", num_args = 1..)]
    allow_destinations: Option<Vec<String>>,
    /// Refuse destinations with http URLs
    #[arg(long)]
    https_only: bool,
    /// Accept events, but send nothing until resumed (for a restored backup)
    #[arg(long)]
    paused: bool,
    /// The file with the key for secrets [default: secret.key in the data directory]
    #[arg(long, value_name = "FILE")]
    secret_key_file: Option<String>,
    /// Threads that serve calls and send [default: one for each core, and four at least]
    #[arg(long, value_name = "N")]
    threads: Option<String>,
    /// Requests in flight at most [default: 2000]
    #[arg(long, value_name = "N")]
    max_in_flight: Option<String>,
    /// How long a delivery is tried at most [default: 7d]
    #[arg(long, value_name = "DURATION")]
    max_age: Option<String>,
    /// How long deliveries that are over are kept [default: 30d]
    #[arg(long, value_name = "DURATION")]
    retention: Option<String>,
    /// Name servers to ask, instead of the system's
    #[arg(long, value_name = "IP", num_args = 1..)]
    name_servers: Option<Vec<String>>,
    /// Certificates (PEM) to trust besides the built-in ones
    #[arg(long, value_name = "FILE")]
    extra_ca_file: Option<String>,
    /// Keep headers and bodies of successful answers, too
    #[arg(long)]
    keep_success_bodies: bool,
    /// The longest body of one published event [default: 1MiB]
    #[arg(long, value_name = "SIZE")]
    max_event_size: Option<String>,
    /// The longest body of a batch [default: 5MiB]
    #[arg(long, value_name = "SIZE")]
    max_batch_size: Option<String>,
    /// Connections at most [default: 10000]
    #[arg(long, value_name = "N")]
    max_connections: Option<String>,
    /// Connections from one address at most [default: 1000]
    #[arg(long, value_name = "N")]
    max_connections_per_address: Option<String>,
    /// Calls per second of each key [default: off]
    #[arg(long, value_name = "N")]
    api_rate_limit: Option<String>,
    /// How long attempts may take to finish when the server stops [default: 35s]
    #[arg(long, value_name = "DURATION")]
    drain_limit: Option<String>,
    /// text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// error, warn, info, debug, trace [default: info]
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
}

impl Settings {
    /// File, environment and flags, one over the other.
    pub(super) fn layers(&self) -> Layers {
        let mut layers = Layers::defaults();
        layers.add_file(self.config.as_deref());
        // A name or value that is no text is none of ours.
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        layers.add_environment(std::env::vars_os().filter_map(text));
        for (key, value) in self.flags() {
            layers.add_flag(key, value);
        }
        layers
    }

    fn flags(&self) -> impl Iterator<Item = (&'static str, Written)> {
        let one = |key, value: &Option<String>| value.clone().map(|value| (key, Written::One(value)));
        let many = |key, value: &Option<Vec<String>>| value.clone().map(|value| (key, Written::Many(value)));
        let switch = |key, on: bool| on.then(|| (key, Written::One("true".to_owned())));
        [
            one("listen", &self.listen),
            one("data_dir", &self.data_dir),
            one("database_url", &self.database_url),
            one("database_listen_url", &self.database_listen_url),
            one("node_name", &self.node_name),
            many("allow_destinations", &self.allow_destinations),
            switch("https_only", self.https_only),
            switch("paused", self.paused),
            one("secret_key_file", &self.secret_key_file),
            one("threads", &self.threads),
            one("max_in_flight", &self.max_in_flight),
            one("max_age", &self.max_age),
            one("retention", &self.retention),
            many("name_servers", &self.name_servers),
            one("extra_ca_file", &self.extra_ca_file),
            switch("keep_success_bodies", self.keep_success_bodies),
            one("max_event_size", &self.max_event_size),
            one("max_batch_size", &self.max_batch_size),
            one("max_connections", &self.max_connections),
            one("max_connections_per_address", &self.max_connections_per_address),
            one("api_rate_limit", &self.api_rate_limit),
            one("drain_limit", &self.drain_limit),
            one("log_format", &self.log_format),
            one("log_level", &self.log_level),
        ]
        .into_iter()
        .flatten()
    }
}

/// On a small machine there are more threads than cores: with one for each, an answer that is ready waits for whatever its core does
/// just now.
const FEWEST_THREADS: usize = 4;
/// The writer's thread is none of the runtime's: whoever waits for a commit is woken from outside, and would stand behind all that
/// the runtime has woken itself, attempts above all. So after this many tasks one from outside has its turn.
const COMMITTED_EVERY: u32 = 7;

pub(super) fn run(settings: &Settings) -> anyhow::Result<Ended> {
    let config = Config::new(&settings.layers())?;
    telemetry::start(config.log_format, &config.log_level);
    super::doctor::raise_handle_limit();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = config.threads.map_or(cores.max(FEWEST_THREADS), |threads| threads as usize);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .global_queue_interval(COMMITTED_EVERY)
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let ended = runtime.block_on(serve::run(config));
    // Whatever still reads or waits has nothing more to say.
    runtime.shutdown_background();
    ended.map(|()| Ended::Well)
}
