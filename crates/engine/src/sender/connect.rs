//! A new connection: addresses, TCP, TLS, and the protocol that both sides speak.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tidegate_core::dial::{Host, Target};
use tidegate_core::outcome::NetworkFault;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::connection::Connection;
use super::fault::Fault;
use super::stream::Stream;
use crate::resolver::{ResolveFault, Resolver};

/// The least time that one of several addresses gets, so that a late start still reaches somebody.
const MIN_SHARE: Duration = Duration::from_millis(100);

/// The certificates to trust could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RootsFault {
    /// The PEM text is broken.
    #[error("the file of further certificate authorities is no valid PEM: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// A certificate in it is.
    #[error("a certificate in the file of further authorities cannot be used: {0}")]
    Certificate(#[from] rustls::Error),
    /// There is none.
    #[error("the file of further certificate authorities holds no certificate")]
    Empty,
}

/// The authorities of the public web, and those in `extra_pem`: a file of certificates as PEM.
pub fn trusted_roots(extra_pem: Option<&[u8]>) -> Result<RootCertStore, RootsFault> {
    let mut roots = public_roots();
    let Some(pem) = extra_pem else { return Ok(roots) };
    let before = roots.len();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate?)?;
    }
    if roots.len() == before { Err(RootsFault::Empty) } else { Ok(roots) }
}

pub(super) fn public_roots() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

/// Opens connections.
pub(super) struct Connector {
    resolver: Resolver,
    tls: TlsConnector,
    own: Vec<SocketAddr>,
}

impl Connector {
    pub(super) fn new(resolver: Resolver, roots: RootCertStore, own: Vec<SocketAddr>) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider knows TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Self { resolver, tls: TlsConnector::from(Arc::new(config)), own }
    }

    /// Connects to one of the target's addresses, each of them vetted, in turn.
    pub(super) async fn connect(&self, target: &Target, deadline: Instant) -> Result<Connection, Fault> {
        let addresses =
            self.resolver.resolve(target.host(), deadline).await.map_err(|fault| match fault {
                ResolveFault::Blocked => Fault::Blocked,
                ResolveFault::NameNotFound => Fault::Network(NetworkFault::NameNotFound),
                ResolveFault::ResolverDown => Fault::Network(NetworkFault::ResolverDown),
            })?;
        let addresses: Vec<_> = addresses.into_iter().map(|ip| SocketAddr::new(ip, target.port())).collect();
        if addresses.iter().any(|address| self.is_own(*address)) {
            return Err(Fault::Blocked);
        }
        let tcp = self.dial(&addresses, deadline).await?;
        // Without it the kernel holds back a small request until the one before is acknowledged.
        let _ = tcp.set_nodelay(true);
        let open = if target.is_https() {
            self.secure(tcp, target).await?
        } else {
            Connection::http1(Stream::plain(tcp)).await
        };
        open.map_err(|error| Fault::of_fresh(error.is_parse()))
    }

    async fn dial(&self, addresses: &[SocketAddr], deadline: Instant) -> Result<TcpStream, Fault> {
        for (tried, address) in addresses.iter().enumerate() {
            let left = u32::try_from(addresses.len() - tried).unwrap_or(1);
            let now = Instant::now();
            let share = (deadline.saturating_duration_since(now) / left).max(MIN_SHARE);
            match timeout_at(deadline.min(now + share), TcpStream::connect(address)).await {
                Ok(Ok(tcp)) if self.leads_back(&tcp) => return Err(Fault::Blocked),
                Ok(Ok(tcp)) => return Ok(tcp),
                Ok(Err(_)) => {}
                Err(_) if left == 1 => return Err(Fault::Timeout),
                Err(_) => {}
            }
        }
        Err(Fault::Network(NetworkFault::Connect))
    }

    async fn secure(&self, tcp: TcpStream, target: &Target) -> Result<hyper::Result<Connection>, Fault> {
        let name = match target.host() {
            Host::Address(address) => ServerName::from(*address),
            Host::Name(name) => ServerName::try_from(name.trim_end_matches('.').to_owned())
                .map_err(|_| Fault::Network(NetworkFault::NameNotFound))?,
        };
        let tls = self.tls.connect(name, tcp).await.map_err(|error| Fault::of_tls(&error))?;
        let speaks_http2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
        let stream = Stream::tls(tls);
        Ok(if speaks_http2 { Connection::http2(stream).await } else { Connection::http1(stream).await })
    }

    fn is_own(&self, address: SocketAddr) -> bool {
        self.own.iter().any(|own| {
            own.port() == address.port()
                && (own.ip() == address.ip() || (own.ip().is_unspecified() && address.ip().is_loopback()))
        })
    }

    /// Where we listen on every address of the machine: a connection to oneself has the same address at both ends.
    fn leads_back(&self, tcp: &TcpStream) -> bool {
        let (Ok(local), Ok(peer)) = (tcp.local_addr(), tcp.peer_addr()) else { return false };
        local.ip() == peer.ip()
            && self.own.iter().any(|own| own.ip().is_unspecified() && own.port() == peer.port())
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("resolver", &self.resolver)
            .field("own", &self.own)
            .finish_non_exhaustive()
    }
}
