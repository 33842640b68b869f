//! Receivers in Python and JavaScript verify what the server sends with the published Standard Webhooks libraries.

#[path = "interop/foreign.rs"]
mod foreign;
mod kit;
#[path = "interop/tools.rs"]
mod tools;

use bytes::Bytes;
use foreign::{Arrival, Foreign};
use http::Method;
use kit::{Client, Server, now, secs};
use serde_json::{Value, json};
use tidegate_core::sign::{Secret, signature};

/// Payloads as they stand in a request, with whatever else stands beside them, the body that must arrive, and its type.
const PAYLOADS: [(&str, &str, &str, &str); 11] = [
    (r#"{"order":1,"total":"9.99"}"#, "", r#"{"order":1,"total":"9.99"}"#, JSON),
    // Text of all planes, as itself and escaped: neither spelling may become the other.
    (
        r#"{"a":"Grüße, 世界 🌊 e\u0301","b":"\ud83c\udf0a\u0000\/"}"#,
        "",
        r#"{"a":"Grüße, 世界 🌊 e\u0301","b":"\ud83c\udf0a\u0000\/"}"#,
        JSON,
    ),
    // Numbers that no float holds, and spellings that a parser would tidy up.
    (
        r#"[123456789012345678901234567890,1.0,1E5,-0.0,1e-400]"#,
        "",
        r#"[123456789012345678901234567890,1.0,1E5,-0.0,1e-400]"#,
        JSON,
    ),
    (r#"{"b":1, "a" :	[ 1 ,2 ], "b":2 }"#, "", r#"{"b":1, "a" :	[ 1 ,2 ], "b":2 }"#, JSON),
    (
        r#"[[[[[[[[[[[[[[[[{"deep":[{}]}]]]]]]]]]]]]]]]]"#,
        "",
        r#"[[[[[[[[[[[[[[[[{"deep":[{}]}]]]]]]]]]]]]]]]]"#,
        JSON,
    ),
    ("null", "", "null", JSON),
    ("false", "", "false", JSON),
    (r#""two\nlines, 🌊""#, "", "two\nlines, 🌊", TEXT),
    (r#""\u00e9\ud83c\udf0a""#, "", "é🌊", TEXT),
    (r#""<a>1</a>""#, r#","content_type":"application/xml""#, "<a>1</a>", "application/xml"),
    (r#""""#, "", "", TEXT),
];
const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

async fn publish(server: &Client, rest: &str) -> String {
    let body = Bytes::from(format!(r#"{{"event_type":"order.made",{rest}}}"#));
    let answer = server.try_send(Method::POST, "/v1/outbound-events", Some(JSON), body).await;
    let event = answer.expect("an answer").expect(202);
    event["id"].as_str().expect("an id").to_owned()
}

/// Creates a destination and gives the answer; the receiver trusts the secret that the server made for it.
async fn destination(server: &Client, receiver: &Foreign, name: &str, more: Value) -> Value {
    let mut wanted = json!({"name": name, "url": receiver.url(name)});
    wanted.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let made = server.post("/v1/destinations", wanted).await.expect(201);
    if let Some(secret) = made["signing_secret"].as_str() {
        receiver.trust(name, &[secret]).await;
    }
    made
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("{field} is text in {value}"))
}

/// Goal: whatever the payload, the receivers verify exactly the bytes that were published.
/// Method: awkward payloads to four destinations, by two languages and two envelopes; each receiver also tries copies
/// with the body, id, timestamp or signature changed.
#[tokio::test]
async fn both_languages_verify_every_body_and_no_tampered_copy() {
    let server = Server::start(&[]).await;
    let receivers = [Foreign::python(), Foreign::javascript()];
    for receiver in &receivers {
        destination(&server, receiver, "raw", json!({})).await;
        destination(&server, receiver, "standard", json!({"envelope": "standard"})).await;
    }
    let mut ids = vec![];
    for (payload, beside, ..) in PAYLOADS {
        ids.push(publish(&server, &format!(r#""payload":{payload}{beside}"#)).await);
    }
    for receiver in &receivers {
        for envelope in ["raw", "standard"] {
            let arrivals = receiver.arrivals(envelope, PAYLOADS.len()).await;
            assert_eq!(arrivals.len(), PAYLOADS.len(), "{}: {arrivals:?}", receiver.language);
            for (id, (payload, _, body, content_type)) in ids.iter().zip(PAYLOADS) {
                let place = format!("{}, {envelope}, {payload}", receiver.language);
                let arrival = arrivals.iter().find(|one| one.id == *id).expect(&place);
                assert_eq!(arrival.verified, [true], "{place}");
                assert!(arrival.fooled_by.is_empty(), "{place}: {:?}", arrival.fooled_by);
                match envelope {
                    "raw" => check_raw(arrival, body, content_type, &place),
                    _ => check_standard(arrival, payload, &place),
                }
            }
        }
    }
}

fn check_raw(arrival: &Arrival, body: &str, content_type: &str, place: &str) {
    assert_eq!(String::from_utf8_lossy(&arrival.body), body, "{place}");
    assert!(arrival.content_type.starts_with(content_type), "{place}: {}", arrival.content_type);
}

/// The payload stands in `data` as it was published, also where it is a string.
fn check_standard(arrival: &Arrival, payload: &str, place: &str) {
    let body = String::from_utf8_lossy(&arrival.body);
    let parsed: Value =
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{place}: {error}: {body}"));
    assert_eq!((&parsed["id"], &parsed["type"]), (&json!(arrival.id), &json!("order.made")), "{place}");
    let data: Value = serde_json::from_str(payload).expect("JSON");
    assert_eq!(parsed["data"], data, "{place}");
    if data.is_string() {
        return;
    }
    assert!(body.contains(payload), "{place}: byte for byte, but it is {body}");
}

/// Goal: a receiver that has the old secret and one that has the new both verify while a secret is being changed, and
/// when the time is over only the new one does.
#[tokio::test]
async fn during_a_rotation_the_old_and_the_new_secret_verify() {
    let server = Server::start(&[]).await;
    for receiver in [Foreign::python(), Foreign::javascript()] {
        let place = receiver.language;
        let made = destination(&server, &receiver, place, json!({})).await;
        let old = text(&made, "signing_secret").to_owned();
        let rotate = format!("/v1/destinations/{}/rotate-secret", text(&made, "id"));
        let rotated = server.post(&rotate, json!({"overlap_seconds": 3600})).await.expect(200);
        let new = text(&rotated, "signing_secret").to_owned();
        assert_ne!(old, new);
        receiver.trust(place, &[&old, &new, &stranger()]).await;
        let only = format!(r#""payload":{{}},"destination_ids":["{}"]"#, text(&made, "id"));
        publish(&server, &only).await;
        assert_eq!(receiver.arrivals(place, 1).await[0].verified, [true, true, false], "{place}");

        let rotated = server.post(&rotate, json!({"overlap_seconds": 1})).await.expect(200);
        receiver.trust(place, &[&new, text(&rotated, "signing_secret")]).await;
        let began = now();
        for sent in 2.. {
            publish(&server, &only).await;
            let arrivals = receiver.arrivals(place, sent).await;
            match arrivals.last().expect("it came").verified[..] {
                [false, true] => break,
                [true, true] => assert!(began.elapsed() < secs(10), "{place}: the old secret still signs"),
                ref verified => panic!("{place}: {verified:?}"),
            }
        }
    }
}

/// Goal: with Ed25519 a receiver needs the public key alone, and a receiver whose library knows only shared secrets
/// verifies while a destination goes from the one to the other.
#[tokio::test]
async fn an_ed25519_signature_verifies_with_the_public_key_also_beside_a_shared_secret() {
    let server = Server::start(&[]).await;
    let private = Secret::generate_ed25519([7; 32]);
    let public = private.public_key().expect("it has a public half");
    let other = Secret::generate_ed25519([8; 32]).public_key().expect("it has a public half");
    let receiver = Foreign::javascript();
    let made = destination(&server, &receiver, "ed", json!({"signing_secret": private.reveal()})).await;
    assert!(made["signing_secret"].is_null(), "a secret that the caller chose is not shown: {made}");
    receiver.trust("ed", &[&public, &other]).await;
    let id = publish(&server, r#""payload":{"n":1e30}"#).await;
    let arrived = &receiver.arrivals("ed", 1).await[0];
    assert_eq!((&arrived.id, &arrived.verified[..]), (&id, &[true, false][..]));
    assert!(arrived.fooled_by.is_empty(), "{:?}", arrived.fooled_by);

    let python = Foreign::python();
    let path = format!("/v1/destinations/{}", text(&made, "id"));
    server.patch(&path, json!({"url": python.url("ed")})).await.expect(200);
    let rotated = server.post(&format!("{path}/rotate-secret"), json!({})).await.expect(200);
    python.trust("ed", &[text(&rotated, "signing_secret")]).await;
    publish(&server, r#""payload":{"n":1e30}"#).await;
    assert_eq!(python.arrivals("ed", 1).await[0].verified, [true]);
}

/// Goal: the receivers are no easy judges. Method: what the rules sign goes to them directly, then unsigned and signed by
/// somebody else.
#[tokio::test]
async fn the_receivers_themselves_refuse_what_was_not_signed() {
    let secret = Secret::generate([1; 32]);
    for receiver in [Foreign::python(), Foreign::javascript()] {
        receiver.trust("hook", &[&secret.reveal()]).await;
        let body = "{\"a\":\"🌊\"}".as_bytes();
        let timestamp = unix_seconds();
        let good = signature([&secret], "evt_1", timestamp, body);
        let bad = signature([&Secret::generate([2; 32])], "evt_1", timestamp, body);
        let client = Client::new(&receiver.url(""), "none");
        for (signature, status) in
            [(good.as_str(), 204), (bad.as_str(), 401), ("v1,", 401), ("v1a,AAAA", 401)]
        {
            let signed = client
                .with_header("webhook-id", "evt_1")
                .with_header("webhook-timestamp", &timestamp.to_string())
                .with_header("webhook-signature", signature);
            let body = Bytes::copy_from_slice(body);
            let answer = signed.try_send(Method::POST, "/hook", Some(JSON), body).await.expect("an answer");
            assert_eq!(answer.status, status, "{}: {signature}", receiver.language);
        }
        let first = &receiver.arrivals("hook", 4).await[0];
        assert_eq!((&first.verified[..], first.fooled_by.len()), (&[true][..], 0), "{first:?}");
    }
}

/// A secret that no destination has.
fn stranger() -> String {
    Secret::generate([9; 32]).reveal()
}

#[expect(clippy::disallowed_methods, reason = "the libraries compare with the real clock")]
fn unix_seconds() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    i64::try_from(since.as_secs()).expect("before the end of time")
}
