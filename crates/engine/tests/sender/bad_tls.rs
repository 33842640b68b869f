//! TLS as it should not be: each fault is told in words, and nothing is ever sent without verification.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::crypto::cipher::{OutboundChunks, OutboundPlainMessage};
use rustls::crypto::ring::{cipher_suite, default_provider};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ConnectionTrafficSecrets, ContentType, ProtocolVersion, RootCertStore, ServerConfig,
    SupportedCipherSuite, SupportedProtocolVersion, version,
};
use tidegate_core::outcome::{NetworkFault, Outcome};
use tidegate_core::time::Millis;
use tidegate_engine::sender::{Answer, Pool, Sender, SenderConfig, trusted_roots};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::kit::{config, request, settings};

const OK: &[u8] = b"HTTP/1.1 200 Said\r\ncontent-length: 0\r\n\r\n";
const DONE: Outcome = Outcome::Success { status: 200 };

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn issuer(name: &str, by: Option<&Issuer>) -> Issuer {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    match by {
        None => CertifiedIssuer::self_signed(params, key).unwrap(),
        Some(by) => CertifiedIssuer::signed_by(params, key, by).unwrap(),
    }
}

/// A certificate for 127.0.0.1 and its key.
fn leaf(by: &Issuer) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, by).unwrap();
    (leaf.der().clone(), PrivateKeyDer::Pkcs8(key.serialize_der().into()))
}

/// A server's side with this chain, that speaks what these versions and suites allow.
fn server(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    versions: &[&'static SupportedProtocolVersion],
) -> ServerConfig {
    let mut provider = default_provider();
    // The one suite of TLS 1.2 whose keys can be taken out whole.
    provider.cipher_suites.retain(|suite| {
        suite.tls13().is_some() || *suite == cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
    });
    let builder = ServerConfig::builder_with_provider(Arc::new(provider));
    let mut config = builder
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    config.enable_secret_extraction = true;
    config
}

/// A port on which each connection is served so. Counts them.
async fn listen<F>(serve: impl Fn(TcpStream) -> F + Send + 'static) -> (u16, Arc<AtomicUsize>)
where
    F: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            count.fetch_add(1, SeqCst);
            // That it breaks is what most of these are about.
            tokio::spawn(serve(tcp));
        }
    });
    (port, connections)
}

/// One attempt by somebody who trusts the authorities in `pem`.
async fn attempt(port: u16, pem: &str) -> Answer {
    let roots = trusted_roots(Some(pem.as_bytes())).unwrap();
    let mut request = request(settings(&format!("https://127.0.0.1:{port}/")));
    request.timeout = Millis::seconds(5);
    Sender::new(SenderConfig { roots, ..config() }).send(&Pool::default(), request).await
}

#[track_caller]
fn assert_refused(answer: &Answer, said: &str, what: &str) {
    let expected = (Outcome::NetworkError(NetworkFault::Tls), Some(format!("TLS failed: {said}")));
    assert_eq!((answer.report.outcome, answer.error.clone()), expected, "{what}");
}

/// Until the other side is gone: a close with unread bytes would be a reset, and take with it what was said last.
async fn drain(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<()> {
    tokio::io::copy(stream, &mut tokio::io::sink()).await.map(|_| ())
}

async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> std::io::Result<()> {
    let mut request = [0; 4_096];
    stream.read(&mut request).await.map(|_| ())
}

/// A ServerHello by hand.
fn hello(version: u8, random: [u8; 32], suite: [u8; 2], extensions: &[u8]) -> Vec<u8> {
    let mut body = vec![3, version];
    body.extend(random);
    body.push(0);
    body.extend(suite);
    body.push(0);
    if !extensions.is_empty() {
        body.extend(u16::try_from(extensions.len()).unwrap().to_be_bytes());
        body.extend(extensions);
    }
    let length = u8::try_from(body.len()).unwrap();
    [&[22, 3, version.min(3), 0, length + 4, 2, 0, 0, length], &body[..]].concat()
}

/// Goal: who can do no better than what is not safe is not spoken to, and it says so.
/// Method: their first words by hand: the old versions, old ciphers, a curve and a version that we did not offer, and the
/// alerts of those who have none of ours.
#[tokio::test]
async fn who_speaks_only_what_is_too_weak_is_told_so() {
    // SHA-256 of "HelloRetryRequest": by this a hello asks for another.
    const AGAIN: [u8; 32] = [
        0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2,
        0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
    ];
    let (none, not_as_it_should) =
        ("no common version or cipher", "the server does not speak TLS as it should");
    let secp192r1 = [0, 43, 0, 2, 3, 4, 0, 51, 0, 2, 0, 19];
    for (what, bytes, said) in [
        ("SSL 3.0", hello(0, [7; 32], [0, 0x2f], &[]), none),
        ("TLS 1.0", hello(1, [7; 32], [0xc0, 0x13], &[]), none),
        ("TLS 1.1", hello(2, [7; 32], [0xc0, 0x13], &[]), none),
        ("TLS 1.2 with 3DES", hello(3, [7; 32], [0, 0x0a], &[]), not_as_it_should),
        ("TLS 1.2 without encryption", hello(3, [7; 32], [0, 0x02], &[]), not_as_it_should),
        ("TLS 1.3 with a weak curve", hello(3, AGAIN, [0x13, 0x01], &secp192r1), not_as_it_should),
        ("protocol_version", vec![21, 3, 1, 0, 2, 2, 70], none),
        ("insufficient_security", vec![21, 3, 3, 0, 2, 2, 71], none),
        ("handshake_failure", vec![21, 3, 3, 0, 2, 2, 40], "the server refused the handshake"),
    ] {
        let (port, connections) = listen(move |mut tcp| {
            let bytes = bytes.clone();
            async move {
                read_request(&mut tcp).await?;
                tcp.write_all(&bytes).await?;
                drain(&mut tcp).await
            }
        })
        .await;
        assert_refused(&attempt(port, &issuer("trusted", None).pem()).await, said, what);
        assert_eq!(connections.load(SeqCst), 1, "{what}: nothing weaker is tried");
    }
}

/// Goal: who demands a certificate of ours gets none, and the customer learns of it, whichever protocol is spoken.
#[tokio::test]
async fn a_server_that_demands_our_certificate_is_told_apart() {
    for versions in [[&version::TLS13], [&version::TLS12]] {
        for alpn in ["http/1.1", "h2"] {
            let authority = issuer("trusted", None);
            let (certificate, key) = leaf(&authority);
            let mut roots = RootCertStore::empty();
            roots.add(authority.der().clone()).unwrap();
            let provider = Arc::new(default_provider());
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider));
            let mut config = ServerConfig::builder_with_provider(provider)
                .with_protocol_versions(&versions)
                .unwrap()
                .with_client_cert_verifier(verifier.build().unwrap())
                .with_single_cert(vec![certificate], key)
                .unwrap();
            config.alpn_protocols = vec![alpn.into()];
            let acceptor = TlsAcceptor::from(Arc::new(config));
            let (port, _) = listen(move |tcp| {
                let accepting = acceptor.accept(tcp).into_fallible();
                async move {
                    match accepting.await {
                        Ok(_) => panic!("it accepted us without a certificate"),
                        Err((_, mut tcp)) => drain(&mut tcp).await,
                    }
                }
            })
            .await;
            let said = "the server demands a certificate of the client";
            assert_refused(&attempt(port, &authority.pem()).await, said, &format!("{versions:?}, {alpn}"));
        }
    }
}

/// Goal: a chain as long as somebody likes ends in a refusal, at once; certificates that are not needed do no harm.
#[tokio::test]
async fn a_chain_of_a_hundred_certificates_is_refused_and_costs_little() {
    let authority = issuer("trusted", None);
    let mut issuers = vec![issuer("1", Some(&authority))];
    for number in 2..100 {
        issuers.push(issuer(&number.to_string(), issuers.last()));
    }
    let between: Vec<_> = issuers.iter().rev().map(|issuer| issuer.der().clone()).collect();
    let serves = async |by: &Issuer| {
        let (certificate, key) = leaf(by);
        let chain = [vec![certificate], between.clone()].concat();
        assert_eq!(chain.len(), 100);
        let acceptor = TlsAcceptor::from(Arc::new(server(chain, key, &[&version::TLS13])));
        let (port, _) = listen(move |tcp| {
            let accepting = acceptor.accept(tcp);
            async move {
                let mut tls = accepting.await?;
                read_request(&mut tls).await?;
                tls.write_all(OK).await?;
                drain(&mut tls).await
            }
        })
        .await;
        attempt(port, &authority.pem()).await
    };
    let answer = serves(issuers.last().unwrap()).await;
    assert_refused(&answer, "the certificate does not hold", "a hundred, each needed");
    assert!(answer.report.elapsed < Millis::seconds(2), "{}", answer.report.elapsed);
    assert_eq!(serves(&authority).await.report.outcome, DONE, "ninety-nine that lead nowhere");
}

/// Goal: a signature by a key that is too short is none, even of an authority that the operator named.
/// Method: an authority with RSA of 1,024 bits, made once with openssl, and what it signed.
#[tokio::test]
async fn an_authority_with_a_weak_key_vouches_for_nobody() {
    let pem = include_str!("weak_authority.pem");
    let certificates: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes()).map(Result::unwrap).collect();
    let [authority, leaf] = certificates.try_into().unwrap();
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(server(vec![leaf, authority], key, &[&version::TLS13])));
    let (port, _) = listen(move |tcp| {
        let accepting = acceptor.accept(tcp);
        async move { drain(&mut accepting.await?).await }
    })
    .await;
    assert_refused(&attempt(port, pem).await, "the certificate does not hold", "RSA of 1,024 bits");
}

/// Goal: records of one byte, in the handshake and after it, are slow and no fault.
#[tokio::test]
async fn records_of_one_byte_are_put_together() {
    let authority = issuer("trusted", None);
    let (certificate, key) = leaf(&authority);
    let acceptor = TlsAcceptor::from(Arc::new(server(vec![certificate], key, &[&version::TLS12])));
    let (port, _) = listen(move |tcp| {
        let (inner, outer) = tokio::io::duplex(64 * 1024);
        tokio::spawn(split_records(outer, tcp));
        let accepting = acceptor.accept(inner);
        async move {
            let mut tls = accepting.await?;
            read_request(&mut tls).await?;
            for byte in OK {
                tls.write_all(&[*byte]).await?;
                tls.flush().await?;
            }
            drain(&mut tls).await
        }
    })
    .await;
    let answer = attempt(port, &authority.pem()).await;
    assert_eq!(answer.report.outcome, DONE, "{:?}", answer.error);
}

/// Stands between a server and its client. What of the handshake is not encrypted goes on in records of one byte.
async fn split_records(server: DuplexStream, client: TcpStream) -> std::io::Result<()> {
    let (mut from_server, mut to_server) = tokio::io::split(server);
    let (mut from_client, mut to_client) = client.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_client, &mut to_server).await });
    let mut plain = true;
    loop {
        let mut head = [0; 5];
        from_server.read_exact(&mut head).await?;
        let mut body = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
        from_server.read_exact(&mut body).await?;
        plain &= head[0] == 22;
        let size = if plain { 1 } else { body.len() };
        for piece in body.chunks(size) {
            let length = u16::try_from(piece.len()).unwrap().to_be_bytes();
            to_client.write_all(&[&head[..3], &length, piece].concat()).await?;
        }
    }
}

/// Goal: nobody starts a handshake anew within a connection: one request for it is turned down and the exchange goes on,
/// and who insists is cut off.
/// Method: a server of TLS 1.2 whose keys are taken out after the handshake, to write a record that no library writes.
#[tokio::test]
async fn a_handshake_is_not_repeated() {
    for (requests, said) in [(0, None), (1, None), (2, Some("the server does not speak TLS as it should"))] {
        let authority = issuer("trusted", None);
        let (certificate, key) = leaf(&authority);
        let acceptor = TlsAcceptor::from(Arc::new(server(vec![certificate], key, &[&version::TLS12])));
        let (port, _) = listen(move |tcp| {
            let accepting = acceptor.accept(tcp);
            async move {
                let mut tls = accepting.await?;
                read_request(&mut tls).await?;
                ask_anew(tls, requests).await
            }
        })
        .await;
        let answer = attempt(port, &authority.pem()).await;
        match said {
            None => assert_eq!(answer.report.outcome, DONE, "{requests}: {:?}", answer.error),
            Some(said) => assert_refused(&answer, said, "who insists"),
        }
    }
}

/// Asks so many times for another handshake, then answers.
async fn ask_anew<S>(tls: tokio_rustls::server::TlsStream<S>, requests: usize) -> std::io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut tcp, connection) = tls.into_inner();
    let (mut sequence, secrets) = connection.dangerous_extract_secrets().unwrap().tx;
    let ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } = secrets else { panic!("another suite") };
    let SupportedCipherSuite::Tls12(suite) = cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
    else {
        panic!("another version")
    };
    let mut encrypter = suite.aead_alg.encrypter(key, iv.as_ref(), &[]);
    let hello_request: &[u8] = &[0; 4];
    let asked = std::iter::repeat_n((ContentType::Handshake, hello_request), requests);
    for (typ, bytes) in asked.chain([(ContentType::ApplicationData, OK)]) {
        let payload = OutboundChunks::Single(bytes);
        let plain = OutboundPlainMessage { typ, version: ProtocolVersion::TLSv1_2, payload };
        tcp.write_all(&encrypter.encrypt(plain, sequence).unwrap().encode()).await?;
        sequence += 1;
    }
    drain(&mut tcp).await
}
