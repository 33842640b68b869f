//! Exactly what leaves the process. A header that nobody meant to send would show here.

use tidegate_core::headers::CustomHeaders;
use tidegate_core::sign::{Secret, signature};
use tidegate_core::time::{Millis, Timestamp};
use tidegate_engine::sender::{Auth, Endpoint, Envelope, Pool, Request, Settings, SigningKey};
use tidegate_store::event::Body;

use crate::kit::{EVENT, NOW, PAYLOAD, message, request, secret, sender, settings};
use crate::server::{Server, status};

async fn sent(make: impl FnOnce(Settings) -> Request) -> (String, Server) {
    let server = Server::start(|_| status(200, "")).await;
    let request = make(settings(&server.url("/hook?a=b")));
    sender().send(&Pool::default(), request).await;
    (server.seen().remove(0).replace("\r\n", "\n"), server)
}

/// The values of a header, wherever they stand.
fn values<'a>(request: &'a str, name: &str) -> Vec<&'a str> {
    let lines = request.lines().take_while(|line| !line.is_empty());
    lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).collect()
}

#[tokio::test]
async fn the_request_is_this_and_nothing_else() {
    let (request, server) = sent(request).await;
    let signed = signature([&secret()], &EVENT.to_string(), 1_614_265_330, PAYLOAD.as_bytes());
    let (line, rest) = request.split_once('\n').unwrap();
    let (head, body) = rest.split_once("\n\n").unwrap();
    let mut lines: Vec<&str> = head.lines().collect();
    lines.sort_unstable();
    assert_eq!(line, "POST /hook?a=b HTTP/1.1");
    assert_eq!(
        lines,
        [
            "accept-encoding: identity",
            "content-length: 20",
            "content-type: application/json",
            &format!("host: {}", server.address),
            "tidegate-attempt: 1",
            "tidegate-delivery: dlv_00000000000000000000000002",
            "tidegate-event-type: order.paid",
            concat!("user-agent: Tidegate/", env!("CARGO_PKG_VERSION")),
            &format!("webhook-id: {EVENT}"),
            &format!("webhook-signature: {signed}"),
            "webhook-timestamp: 1614265330",
        ]
    );
    assert_eq!(body, PAYLOAD);
}

#[tokio::test]
async fn expiry_number_and_secrets_in_force_are_the_attempts_own() {
    let (old, older) = (Secret::generate([1; 32]), Secret::generate([2; 32]));
    let key = |secret: &Secret, until| SigningKey { secret: secret.clone(), valid_until: until };
    let secrets = vec![key(&secret(), None), key(&old, Some(NOW + Millis::new(1))), key(&older, Some(NOW))];
    let (request, _server) = sent(|settings| Request {
        expires_at: Some(Timestamp::from_millis(1_614_265_400_000)),
        number: 7,
        ..request(Settings { secrets, ..settings })
    })
    .await;
    assert_eq!(values(&request, "tidegate-expires-at"), ["2021-02-25T15:03:20.000Z"]);
    assert_eq!(values(&request, "tidegate-attempt"), ["7"]);
    let expected = signature([&secret(), &old], &EVENT.to_string(), 1_614_265_330, PAYLOAD.as_bytes());
    assert_eq!(values(&request, "webhook-signature"), [expected]);
}

#[tokio::test]
async fn custom_headers_and_auth_are_added_and_auth_wins() {
    let headers = CustomHeaders::parse([("X-Team", "a b"), ("Authorization", "Basic eA==")]).unwrap();
    let auth = Some(Auth::Bearer("t0ken".to_owned()));
    let (request, _server) = sent(|settings| request(Settings { headers, auth, ..settings })).await;
    assert_eq!(values(&request, "x-team"), ["a b"]);
    assert_eq!(values(&request, "authorization"), ["Bearer t0ken"]);
}

#[test]
fn an_auth_header_cannot_stand_in_for_one_of_ours() {
    for (name, value, field) in [
        ("webhook-id", "x", "auth_config.name"),
        ("Host", "x", "auth_config.name"),
        ("x-key", "a\r\nb", "auth_config.value"),
    ] {
        let auth = Some(Auth::Header { name: name.to_owned(), value: value.to_owned() });
        let fault = Endpoint::new(Settings { auth, ..settings("http://example.com/") }).unwrap_err();
        assert_eq!(fault.field, field);
    }
    let auth = Some(Auth::Bearer("a\r\nx: y".to_owned()));
    let fault = Endpoint::new(Settings { auth, ..settings("http://example.com/") }).unwrap_err();
    assert_eq!(fault.field, "auth_config.token");
}

#[tokio::test]
async fn the_standard_envelope_is_json_and_signed_as_it_is_sent() {
    let (request, _server) = sent(|settings| Request {
        message: message("a \"text\"", Body::Text(Some("text/csv".into()))),
        ..request(Settings { envelope: Envelope::Standard, ..settings })
    })
    .await;
    let (_, body) = request.split_once("\n\n").unwrap();
    let expected = format!(
        r#"{{"id":"{EVENT}","type":"order.paid","created_at":"2021-02-25T14:56:40.000Z","expires_at":null,"data":"a \"text\""}}"#
    );
    assert_eq!(body, expected);
    assert_eq!(values(&request, "content-type"), ["application/json"]);
    let signed = signature([&secret()], &EVENT.to_string(), 1_614_265_330, body.as_bytes());
    assert_eq!(values(&request, "webhook-signature"), [signed]);
}

#[tokio::test]
async fn a_text_goes_out_as_text() {
    let (request, _server) =
        sent(|settings| Request { message: message("plain words", Body::Text(None)), ..request(settings) })
            .await;
    assert!(request.ends_with("\n\nplain words"));
    assert_eq!(values(&request, "content-type"), ["text/plain"]);
}

#[test]
fn no_debug_text_of_an_endpoint_tells_a_secret() {
    let headers = CustomHeaders::parse([("x-key", "s3cret-header")]).unwrap();
    let auth = Some(Auth::Bearer("s3cret-token".to_owned()));
    let settings = Settings { headers, auth, ..settings("http://example.com/s3cret-path") };
    let shown = format!("{settings:?} {:?}", Endpoint::new(settings.clone()).unwrap());
    assert!(!shown.contains("s3cret-header") && !shown.contains("s3cret-token"), "{shown}");
}
