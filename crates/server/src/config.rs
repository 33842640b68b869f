//! What the operator asked for: one file, then the environment, then flags; later ones win.
//!
//! [`layers`] finds out what was written where, [`read`] makes values of it. All that is wrong is told at once.

mod layers;
mod read;
mod units;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;
use tidegate_core::time::Millis;
use tidegate_core::timeout::TimeoutParams;
use zeroize::Zeroizing;

pub(crate) use self::layers::{DEFAULT_FILE, Layers, SECRET_KEY, Written};

/// The settings of the installation, checked.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// Where the API listens.
    pub(crate) listen: SocketAddr,
    /// Where everything is kept.
    pub(crate) data_dir: PathBuf,
    /// The database, if everything is kept in PostgreSQL.
    pub(crate) database_url: Option<Secret>,
    /// A direct connection to it for notices.
    pub(crate) database_listen_url: Option<Secret>,
    /// What this server is called among several.
    pub(crate) node_name: Option<String>,
    /// Ranges that may be sent to although they are not public.
    pub(crate) allow_destinations: Vec<IpNet>,
    /// Refuse http URLs.
    pub(crate) https_only: bool,
    /// How long finished deliveries are kept.
    pub(crate) retention: Millis,
    /// How long a delivery is tried at most.
    pub(crate) max_age: Millis,
    /// Threads that serve calls and send; `None`: as many as suit the machine.
    pub(crate) threads: Option<u32>,
    /// Requests in flight at most, to all destinations together.
    pub(crate) max_in_flight: u32,
    /// The longest body of a published event.
    pub(crate) max_event_bytes: usize,
    /// The longest body of a batch.
    pub(crate) max_batch_bytes: usize,
    /// Connections to the API at most.
    pub(crate) max_connections: u32,
    /// Connections from one address at most.
    pub(crate) max_connections_per_address: u32,
    /// Calls per second of each key; `None`: not limited.
    pub(crate) api_rate_limit: Option<u32>,
    /// How long attempts may take to finish when the server stops.
    pub(crate) drain_limit: Millis,
    /// Name servers to ask; none: the system's.
    pub(crate) name_servers: Vec<IpAddr>,
    /// Certificates to trust besides the built-in ones.
    pub(crate) extra_ca_file: Option<PathBuf>,
    /// Keep headers and bodies of successful answers, too.
    pub(crate) keep_success_bodies: bool,
    /// The numbers of the adaptive timeout.
    pub(crate) timeout: TimeoutParams,
    /// Accept, but send nothing until resumed.
    pub(crate) paused: bool,
    /// Where the key for secrets lies; `None`: `secret.key` in the data directory.
    pub(crate) secret_key_file: Option<PathBuf>,
    /// That key itself, if it is not in a file: it can be read.
    pub(crate) secret_key: Option<Secret>,
    /// The operator key that a first start makes: it has the form of one.
    pub(crate) bootstrap_key: Option<Secret>,
    /// `text` or `json`.
    pub(crate) log_format: LogFormat,
    /// Which log lines: `info`, `tidegate=debug`.
    pub(crate) log_level: String,
}

/// Something that no log may show.
#[derive(Clone)]
pub(crate) struct Secret(Zeroizing<String>);

impl Secret {
    /// It.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(not shown)")
    }
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// All that is wrong with what was written.
#[derive(Debug, thiserror::Error)]
#[error("{} in the configuration:\n  {}", count(.0.len()), .0.join("\n  "))]
pub(crate) struct Problems(Vec<String>);

fn count(problems: usize) -> String {
    if problems == 1 { "1 problem".to_owned() } else { format!("{problems} problems") }
}

impl Config {
    /// Makes values of what was written.
    pub(crate) fn new(layers: &Layers) -> Result<Self, Problems> {
        read::read(layers)
    }

    /// The file with the key for secrets.
    pub(crate) fn key_file(&self) -> PathBuf {
        self.secret_key_file.clone().unwrap_or_else(|| self.data_dir.join("secret.key"))
    }
}

#[cfg(test)]
mod tests;
