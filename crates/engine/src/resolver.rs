//! From a destination's host to addresses that may be dialled, within a budget of time.
//!
//! Names are asked of the system's name servers (and its hosts file) by our own resolver, since the system's call can
//! neither be given a deadline nor taken back. Answers are kept as long as they say, a minute at most. The guard judges
//! every address of an answer; one that it refuses spoils the whole answer, because a name that points inside and
//! outside at once is trying something. Whoever connects uses exactly the addresses that come out of here.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use tidegate_core::dial::{Guard, Host};
use tokio::time::{Instant, timeout_at};

/// Addresses of one name that are used: a name with more spreads load, and four misses are enough of a verdict.
const MAX_ADDRESSES: usize = 4;
/// Answers kept: one per destination's name on a large node, a few hundred bytes each.
const CACHE_SIZE: u64 = 8_192;
/// The longest that an answer is kept, whatever it says: a receiver that moves is found again within a minute.
const MAX_TTL: Duration = Duration::from_secs(60);
/// The longest that "no such name" is kept: a name that was just made is found soon.
const MAX_NEGATIVE_TTL: Duration = Duration::from_secs(5);
/// How long one name server may take before the next is asked.
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);
/// Questions that may be open at one name server: every lane of a node may start at once.
const MAX_OPEN_QUESTIONS: usize = 1_024;

/// Why there is no address to dial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveFault {
    /// The name has no address.
    #[error("name not found")]
    NameNotFound,
    /// No verdict could be had from the name servers, or none by the deadline.
    #[error("no answer from the name server")]
    ResolverDown,
    /// At least one of the addresses may not be dialled.
    #[error("address not allowed")]
    Blocked,
}

/// The name servers could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the name server configuration (resolv.conf): {0}")]
pub struct SetupFault(#[from] NetError);

/// Finds and vets addresses.
#[derive(Clone, Debug)]
pub struct Resolver {
    names: TokioResolver,
    guard: Guard,
}

impl Resolver {
    /// Asks the system's name servers.
    pub fn system(guard: Guard) -> Result<Self, SetupFault> {
        let mut builder = TokioResolver::builder_tokio()?;
        bound(builder.options_mut());
        Ok(Self { names: builder.build()?, guard })
    }

    /// Asks these name servers instead, by UDP and TCP.
    pub fn with_name_servers(servers: &[SocketAddr], guard: Guard) -> Result<Self, SetupFault> {
        let servers = servers.iter().map(|server| {
            let at_port = |mut connection: ConnectionConfig| {
                connection.port = server.port();
                connection
            };
            let connections = vec![at_port(ConnectionConfig::udp()), at_port(ConnectionConfig::tcp())];
            NameServerConfig::new(server.ip(), true, connections)
        });
        let config = ResolverConfig::from_name_servers(servers.collect());
        let mut builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        bound(builder.options_mut());
        Ok(Self { names: builder.build()?, guard })
    }

    /// The addresses of `host` that may be dialled, IPv4 first: at least one, at most four.
    pub async fn resolve(&self, host: &Host, deadline: Instant) -> Result<Vec<IpAddr>, ResolveFault> {
        let mut found = match host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => match timeout_at(deadline, self.names.lookup_ip(name.as_str())).await {
                Ok(Ok(answer)) => answer.iter().collect(),
                Ok(Err(error)) => return Err(fault_of(&error)),
                // Whoever is to be dialled has not been asked anything yet: however short its time is, this silence is not
                // its own.
                Err(_) => return Err(ResolveFault::ResolverDown),
            },
        };
        if found.is_empty() {
            return Err(ResolveFault::NameNotFound);
        }
        if host.is_localhost() {
            // This name is answered here, with both loopback addresses, and not by a stranger: an operator who allows one of
            // them means that one.
            found.retain(|address| self.guard.admits(*address));
            if found.is_empty() {
                return Err(ResolveFault::Blocked);
            }
        }
        if !found.iter().all(|address| self.guard.admits(*address)) {
            return Err(ResolveFault::Blocked);
        }
        // Receivers are reachable by IPv4 nearly always; a broken IPv6 route would cost a share of the deadline.
        found.sort_by_key(IpAddr::is_ipv6);
        found.truncate(MAX_ADDRESSES);
        Ok(found)
    }
}

fn bound(options: &mut ResolverOpts) {
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.cache_size = CACHE_SIZE;
    options.positive_max_ttl = Some(MAX_TTL);
    options.negative_max_ttl = Some(MAX_NEGATIVE_TTL);
    options.timeout = SERVER_TIMEOUT;
    options.max_active_requests = MAX_OPEN_QUESTIONS;
}

/// "There is no such name" is a verdict on the destination. Silence, refusal and failure of the name servers are not.
fn fault_of(error: &NetError) -> ResolveFault {
    match error {
        NetError::Dns(DnsError::NoRecordsFound(none))
            if matches!(none.response_code, ResponseCode::NXDomain | ResponseCode::NoError) =>
        {
            ResolveFault::NameNotFound
        }
        NetError::Proto(_) => ResolveFault::NameNotFound, // not a name that could be asked for
        _ => ResolveFault::ResolverDown,
    }
}
