//! How requests to destinations are made, from the configuration.

use std::net::SocketAddr;

use anyhow::Context;
use rustix::process::{Resource, getrlimit};
use tidegate_core::dial::Guard;
use tidegate_engine::resolver::Resolver;
use tidegate_engine::sender::{RootCertStore, SenderConfig, trusted_roots};

use crate::config::Config;

/// Where name servers listen.
const DNS_PORT: u16 = 53;

/// The sender's settings; `own` is where we listen ourselves.
pub(super) fn configure(config: &Config, own: SocketAddr) -> anyhow::Result<SenderConfig> {
    let usual = SenderConfig::new(resolver(config)?);
    Ok(SenderConfig {
        roots: roots(config)?,
        keep_success_bodies: config.keep_success_bodies,
        own_addresses: vec![own],
        https_only: config.https_only,
        idle_limit: idle_limit(config),
        ..usual
    })
}

/// Who finds and vets addresses.
pub(crate) fn resolver(config: &Config) -> anyhow::Result<Resolver> {
    let guard = Guard::new(config.allow_destinations.clone());
    let servers: Vec<SocketAddr> =
        config.name_servers.iter().map(|server| (*server, DNS_PORT).into()).collect();
    match servers.as_slice() {
        [] => Resolver::system(guard).context("the system's name servers cannot be used (--name-servers)"),
        servers => Resolver::with_name_servers(servers, guard).context("the name servers cannot be used"),
    }
}

/// Whose certificates are trusted.
pub(crate) fn roots(config: &Config) -> anyhow::Result<RootCertStore> {
    let Some(path) = &config.extra_ca_file else { return Ok(trusted_roots(None)?) };
    let place = || format!("extra_ca_file {}", path.display());
    let pem = std::fs::read(path).with_context(place)?;
    trusted_roots(Some(&pem)).with_context(place)
}

/// As many idle connections as requests may be in flight, so that a wave that ends leaves its connections to the next
/// one; but not more than a quarter of the files that may be open.
fn idle_limit(config: &Config) -> usize {
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(u64::from(config.max_in_flight).min(files / 4)).unwrap_or(usize::MAX)
}
