//! Where the database is, and how a connection to it is made and protected.

use std::future::{Future as _, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::config::SslMode;
use tokio_postgres::{AsyncMessage, Client, Config, Connection};
use tokio_postgres_rustls::MakeRustlsConnect;
use url::Url;

use super::failure::Failure;
use super::listen::BEGUN;
use super::weather::Weather;
use crate::StoreError;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long what was sent may stay without a sign of its arrival: the other side is gone without a word.
const SILENCE: Duration = Duration::from_secs(5);
/// How often an idle connection is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// What a session is begun with that is to keep statements. Each is planned once, as the tests plan it: by its index, whatever the
/// size of the tables is at that moment. And the server itself must have read this: a pooler refuses or ignores it.
const STRAIGHT: &str = "-c tidegate.straight=yes -c plan_cache_mode=force_generic_plan -c jit=off -c enable_seqscan=off \
                        -c enable_bitmapscan=off -c enable_sort=off -c enable_hashjoin=off -c enable_mergejoin=off";
const IS_STRAIGHT: &str = "select coalesce(current_setting('tidegate.straight', true), '') = 'yes'";

/// A database, as a URL names it.
#[derive(Clone)]
pub(super) struct Address {
    config: Config,
    tls: MakeRustlsConnect,
    /// Statements may be prepared where the way is straight.
    prepares: bool,
    /// What those who use this address know of the way to it.
    pub(super) weather: Weather,
}

impl Address {
    /// Reads `postgres://user:password@host:port/database?sslmode=…`. Beside what libpq's URLs may say of hosts, `sslmode` is
    /// `disable`, `prefer`, `require` (encrypted, to whoever answers) or `verify-full` (only to the host that is named, by a
    /// certificate of a known authority, or of the one in the file `sslrootcert`). With `prepare=no` no statement is prepared, even
    /// if nobody seems to be between this node and the server.
    pub(super) fn parse(text: &str) -> Result<Self, StoreError> {
        let wrong = |why: String| StoreError::Database(format!("the database URL is not one: {why}"));
        let mut url = Url::parse(text).map_err(|error| wrong(error.to_string()))?;
        let (mut verify, mut roots, mut prepares) = (false, None, true);
        let asked: Vec<(String, String)> = url.query_pairs().into_owned().collect();
        let mut left = Vec::new();
        for (name, value) in asked {
            match (&*name, &*value) {
                ("sslmode", "verify-full") => {
                    verify = true;
                    left.push((name, "require".to_owned()));
                }
                ("sslmode", "verify-ca") => {
                    return Err(wrong("sslmode=verify-ca; verify-full is meant".to_owned()));
                }
                ("sslrootcert", _) => roots = Some(value),
                ("prepare", "yes" | "no") => prepares = value == "yes",
                ("prepare", _) => return Err(wrong("prepare is yes or no".to_owned())),
                _ => left.push((name, value)),
            }
        }
        url.set_query(None);
        if !left.is_empty() {
            url.query_pairs_mut().extend_pairs(left);
        }
        let mut config: Config = url.as_str().parse().map_err(|error: tokio_postgres::Error| {
            wrong(std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        config.application_name("tidegate").connect_timeout(CONNECT_TIMEOUT).tcp_user_timeout(SILENCE);
        config.keepalives(true).keepalives_idle(KEEPALIVE);
        let tls = if verify { verifying(roots.as_deref())? } else { trusting() };
        Ok(Self { config, tls: MakeRustlsConnect::new(tls), prepares, weather: Weather::default() })
    }

    /// Listens on a channel, until the connection ends.
    pub(super) async fn listen(&self, channel: &str, hint: impl FnMut(&str)) -> Result<(), Failure> {
        if self.config.get_ssl_mode() == SslMode::Disable {
            let (client, connection) = self.config.connect(tokio_postgres::NoTls).await?;
            return hear(client, connection, channel, hint).await;
        }
        let (client, connection) = self.config.connect(self.tls.clone()).await?;
        hear(client, connection, channel, hint).await
    }

    /// A new connection. Its task runs on the runtime of whoever asks.
    pub(super) async fn connect(&self) -> Result<Client, Failure> {
        self.connect_as(&self.config).await.map_err(|error| match Failure::from(error) {
            Failure::Lost(text) | Failure::Refused(text) => Failure::Unavailable(text),
            other => other,
        })
    }

    /// The same for a session that keeps statements, if it leads straight to the server; `None` if somebody is between.
    pub(super) async fn connect_straight(&self) -> Result<Option<Client>, Failure> {
        if !self.prepares {
            return Ok(None);
        }
        let mut config = self.config.clone();
        let own = self.config.get_options().unwrap_or_default();
        config.options(format!("{own} {STRAIGHT}").trim());
        let client = match self.connect_as(&config).await {
            Ok(client) => client,
            Err(error) if error.as_db_error().is_some() => return Ok(None),
            Err(error) => return Err(Failure::Unavailable(Failure::text(&error))),
        };
        let row = client.query_one(IS_STRAIGHT, &[]).await?;
        Ok(row.get::<_, bool>(0).then_some(client))
    }

    async fn connect_as(&self, config: &Config) -> Result<Client, tokio_postgres::Error> {
        // A URL without `sslmode` to a socket on this machine needs no TLS.
        if config.get_ssl_mode() == SslMode::Disable {
            let (client, connection) = config.connect(tokio_postgres::NoTls).await?;
            tokio::spawn(async move { drop(connection.await) });
            return Ok(client);
        }
        let (client, connection) = config.connect(self.tls.clone()).await?;
        tokio::spawn(async move { drop(connection.await) });
        Ok(client)
    }
}

/// Waits on a channel. Whoever has just begun to listen may have missed something, and hears a hint of its own.
async fn hear<S, T>(
    client: Client,
    mut connection: Connection<S, T>,
    channel: &str,
    mut hint: impl FnMut(&str),
) -> Result<(), Failure>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let listen = format!("listen {channel}");
    let mut listening = std::pin::pin!(client.batch_execute(&listen));
    let mut asked = false;
    loop {
        let message = poll_fn(|context| {
            if !asked && let Poll::Ready(answer) = listening.as_mut().poll(context) {
                asked = true;
                return Poll::Ready(Some(answer.map(|()| None)));
            }
            connection.poll_message(context).map(|message| message.map(|message| message.map(Some)))
        });
        match message.await {
            Some(Ok(None)) => hint(BEGUN),
            Some(Ok(Some(AsyncMessage::Notification(told)))) => hint(told.payload()),
            Some(Ok(Some(_))) => {}
            Some(Err(error)) => return Err(error.into()),
            None => return Ok(()),
        }
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn verifying(roots: Option<&str>) -> Result<ClientConfig, StoreError> {
    let mut known = RootCertStore::empty();
    match roots {
        None => known.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        Some(file) => {
            let wrong =
                |why: String| StoreError::Database(format!("sslrootcert {file} cannot be used: {why}"));
            let found = CertificateDer::pem_file_iter(file).map_err(|error| wrong(error.to_string()))?;
            for certificate in found {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                known.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
        }
    }
    Ok(versions().with_root_certificates(known).with_no_client_auth())
}

fn trusting() -> ClientConfig {
    let anybody = Arc::new(Anybody(provider()));
    versions().dangerous().with_custom_certificate_verifier(anybody).with_no_client_auth()
}

fn versions() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("ring has what TLS 1.2 and 1.3 need")
}

/// `sslmode=require`, as libpq understands it: nobody can listen, but who answers is not asked for a name.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
