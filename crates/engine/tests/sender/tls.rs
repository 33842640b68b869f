//! TLS, always verified, and HTTP/2 over it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tidegate_core::outcome::{NetworkFault, Outcome};
use tidegate_engine::sender::{Pool, Sender, SenderConfig, trusted_roots};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::kit::{PAYLOAD, attempt, config, request, settings};

struct TlsServer {
    address: SocketAddr,
    /// The authority's certificate.
    ca_pem: String,
    connections: Arc<AtomicUsize>,
    /// Version, host and body of each request.
    seen: Arc<Mutex<Vec<(http::Version, String, String)>>>,
}

impl TlsServer {
    /// Serves as `name`, speaking what `alpn` says.
    async fn start(name: &str, alpn: &[&str]) -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf =
            CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
            .unwrap();
        tls.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            ca_pem: authority.pem(),
            connections: Arc::default(),
            seen: Arc::default(),
        };
        let (connections, seen) = (Arc::clone(&server.connections), Arc::clone(&server.seen));
        tokio::spawn(accept(listener, TlsAcceptor::from(Arc::new(tls)), connections, seen));
        server
    }

    fn url(&self, host: &str) -> String {
        format!("https://{host}:{}/", self.address.port())
    }

    /// A sender that trusts the server's authority.
    fn trusting_sender(&self) -> Sender {
        Sender::new(SenderConfig { roots: trusted_roots(Some(self.ca_pem.as_bytes())).unwrap(), ..config() })
    }
}

async fn accept(
    listener: TcpListener,
    tls: TlsAcceptor,
    connections: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<(http::Version, String, String)>>>,
) {
    while let Ok((tcp, _)) = listener.accept().await {
        let (tls, connections, seen) = (tls.clone(), Arc::clone(&connections), Arc::clone(&seen));
        tokio::spawn(async move {
            let Ok(stream) = tls.accept(tcp).await else { return };
            connections.fetch_add(1, SeqCst);
            let answer = service_fn(move |request: http::Request<Incoming>| {
                let seen = Arc::clone(&seen);
                async move {
                    let (version, host) = (request.version(), host_of(&request));
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    seen.lock().unwrap().push((version, host, String::from_utf8(body.into()).unwrap()));
                    Ok::<_, Infallible>(http::Response::new(Full::new(Bytes::from_static(b"taken"))))
                }
            });
            let server = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
            let _ = server.serve_connection(TokioIo::new(stream), answer).await;
        });
    }
}

/// HTTP/2 names the host in the URI, and must not do so twice.
fn host_of(request: &http::Request<Incoming>) -> String {
    let header = request.headers().get("host").map(|value| value.to_str().unwrap().to_owned());
    let authority = request.uri().authority().map(ToString::to_string);
    match (header, authority) {
        (Some(host), None) | (None, Some(host)) => host,
        both => panic!("{both:?}"),
    }
}

#[tokio::test]
async fn a_certificate_of_an_unknown_authority_is_refused() {
    let server = TlsServer::start("localhost", &["http/1.1"]).await;
    let answer = attempt(&server.url("localhost")).await;
    assert_eq!(answer.report.outcome, Outcome::NetworkError(NetworkFault::Tls));
    let expected = "TLS failed: the certificate comes from an unknown authority";
    assert_eq!(answer.error.as_deref(), Some(expected));
    assert!(server.seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_certificate_for_another_name_is_refused() {
    let server = TlsServer::start("other.example", &["http/1.1"]).await;
    let sender = server.trusting_sender();
    let answer = sender.send(&Pool::default(), request(settings(&server.url("localhost")))).await;
    assert_eq!(answer.report.outcome, Outcome::NetworkError(NetworkFault::Tls));
    assert_eq!(answer.error.as_deref(), Some("TLS failed: the certificate is for another name"));
}

#[tokio::test]
async fn a_trusted_authority_is_accepted_and_the_connection_kept() {
    for (name, alpn, version) in [
        ("localhost", vec!["http/1.1"], http::Version::HTTP_11),
        ("localhost", vec![], http::Version::HTTP_11),
        ("localhost", vec!["h2", "http/1.1"], http::Version::HTTP_2),
        ("127.0.0.1", vec!["h2"], http::Version::HTTP_2),
    ] {
        let server = TlsServer::start(name, &alpn).await;
        let (sender, pool, request) =
            (server.trusting_sender(), Pool::default(), request(settings(&server.url(name))));
        for _ in 0..3 {
            let answer = sender.send(&pool, request.clone()).await;
            assert_eq!(
                answer.report.outcome,
                Outcome::Success { status: 200 },
                "{alpn:?} {:?}",
                answer.error
            );
        }
        let expected = (version, format!("{name}:{}", server.address.port()), PAYLOAD.to_owned());
        assert_eq!(*server.seen.lock().unwrap(), vec![expected; 3]);
        assert_eq!((server.connections.load(SeqCst), sender.idle_connections()), (1, 1), "{alpn:?}");
    }
}

#[tokio::test]
async fn attempts_at_the_same_time_share_one_http2_connection() {
    let server = TlsServer::start("localhost", &["h2"]).await;
    let (sender, pool, request) =
        (server.trusting_sender(), Pool::default(), request(settings(&server.url("localhost"))));
    sender.send(&pool, request.clone()).await;
    let answers = tokio::join!(
        sender.send(&pool, request.clone()),
        sender.send(&pool, request.clone()),
        sender.send(&pool, request.clone())
    );
    assert_eq!(
        (answers.0.status(), answers.1.status(), answers.2.status()),
        (Some(200), Some(200), Some(200))
    );
    assert_eq!((server.connections.load(SeqCst), sender.idle_connections()), (1, 1));
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls_is_a_tls_failure() {
    let plain = crate::server::Server::start(|_| vec![crate::server::Step::Close]).await;
    let garbage = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = garbage.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = garbage.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    });
    let answer = attempt(&format!("https://127.0.0.1:{port}/")).await;
    assert_eq!(answer.report.outcome, Outcome::NetworkError(NetworkFault::Tls));
    assert_eq!(plain.connections(), 0);
}

#[test]
fn a_file_without_certificates_is_refused() {
    assert!(trusted_roots(Some(b"")).is_err());
    assert!(trusted_roots(Some(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")).is_err());
    assert!(trusted_roots(None).is_ok());
}
