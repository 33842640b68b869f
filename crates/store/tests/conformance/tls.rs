//! Encrypted connections: to whoever answers, or only to the host that is named.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tidegate_store::cluster::Identity;
use tidegate_store::{Store, StoreError, postgres};

use crate::server::Server;

fn connect(url: String) -> Result<(), StoreError> {
    let partition = postgres::Options::PARTITION;
    let identity = Identity::default();
    let options = postgres::Options {
        url,
        listen_url: None,
        max_event_bytes: 1 << 20,
        identity,
        readers: 1,
        partition,
        on_commit: Box::new(|_| {}),
    };
    Store::connect(options).map(drop)
}

#[test]
fn only_the_host_that_is_named_is_trusted_where_that_is_asked_for() {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &authority).unwrap();
    let server = Server::start("tls");
    server.sql("postgres", "create database tidegate");
    server.down();
    let (certificate, key) = (server.put("crt", &leaf.pem()), server.put("key", &key.serialize_pem()));
    let roots = server.put("roots", &authority.pem());
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    server.up_with(&format!(
        "-c listen_addresses=127.0.0.1 -c port={port} -c ssl=on -c ssl_cert_file={certificate} -c ssl_key_file={key}"
    ));
    let url = |host: &str, query: &str| format!("postgres://postgres@{host}:{port}/tidegate?{query}");
    for (host, query, trusted) in [
        ("127.0.0.1", "sslmode=require".to_owned(), true),
        ("localhost", format!("sslmode=verify-full&sslrootcert={roots}"), true),
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={roots}"), false),
        ("localhost", "sslmode=verify-full".to_owned(), false),
    ] {
        let connected = connect(url(host, &query));
        assert_eq!(connected.is_ok(), trusted, "{host} {query}: {connected:?}");
    }
    let strange = connect(url("localhost", "sslmode=maybe"));
    assert!(matches!(strange, Err(StoreError::Database(_))), "{strange:?}");
}
