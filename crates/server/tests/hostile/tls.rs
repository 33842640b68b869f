//! Certificates, good and bad.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

/// What is wrong with a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certificate {
    Good,
    Expired,
    NotYet,
    OtherName,
    SelfSigned,
    UnknownAuthority,
    /// Good, and one of the client is demanded.
    Mutual,
}

/// An authority, and one that nobody trusts.
pub(crate) struct Authorities {
    trusted: CertifiedIssuer<'static, KeyPair>,
    unknown: CertifiedIssuer<'static, KeyPair>,
}

impl Authorities {
    pub(crate) fn new() -> Self {
        let authority = |name: &str| {
            let mut params = CertificateParams::new(vec![]).expect("no name");
            params.distinguished_name.push(DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority")
        };
        Self { trusted: authority("trusted"), unknown: authority("unknown") }
    }

    /// The certificate to trust.
    pub(crate) fn pem(&self) -> String {
        self.trusted.pem()
    }

    /// A server at 127.0.0.1 with such a certificate, that speaks what `alpn` names.
    pub(crate) fn acceptor(&self, certificate: Certificate, alpn: &str) -> TlsAcceptor {
        let key = KeyPair::generate().expect("a key");
        let leaf = self.leaf(certificate, &key);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.trusted.der().clone()).expect("an authority");
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let builder =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("TLS");
        let builder = match certificate {
            Certificate::Mutual => builder.with_client_cert_verifier(verifier.build().expect("a verifier")),
            _ => builder.with_no_client_auth(),
        };
        let mut config = builder
            .with_single_cert(vec![leaf], PrivateKeyDer::Pkcs8(key.serialize_der().into()))
            .expect("key and certificate belong together");
        config.alpn_protocols = vec![alpn.as_bytes().to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    fn leaf(&self, certificate: Certificate, key: &KeyPair) -> CertificateDer<'static> {
        let name = if certificate == Certificate::OtherName { "other.example" } else { "127.0.0.1" };
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        params.distinguished_name.push(DnType::CommonName, "a server");
        match certificate {
            Certificate::Expired => params.not_after = date_time_ymd(2001, 1, 1),
            Certificate::NotYet => params.not_before = date_time_ymd(3000, 1, 1),
            _ => {}
        }
        let signed = match certificate {
            Certificate::SelfSigned => params.self_signed(key),
            Certificate::UnknownAuthority => params.signed_by(key, &self.unknown),
            _ => params.signed_by(key, &self.trusted),
        };
        signed.expect("it can be signed").der().clone()
    }
}
