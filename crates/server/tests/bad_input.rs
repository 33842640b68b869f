//! What is wrong with a request is said: the status, and the field.

mod kit;

use bytes::Bytes;
use http::Method;
use kit::{Receiver, Reply, Server, secs, until};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread")]
async fn each_fault_of_an_event_is_answered_with_its_field() {
    let server = Server::start(&[]).await;
    let deep = format!(
        r#"{{"event_type":"a.b","payload":{}{}}}"#,
        "[".repeat(2_000_000 / 8),
        "]".repeat(2_000_000 / 8)
    );
    let nested = format!(r#"{{"event_type":"a.b","payload":{}1{}}}"#, "[".repeat(200), "]".repeat(200));
    let long_key = format!(r#"{{"event_type":"a.b","payload":1,"ordering_key":"{}"}}"#, "k".repeat(257));
    let long_type = format!(r#"{{"event_type":"{}","payload":1}}"#, "t".repeat(129));
    let table = [
        ("", 400, None),
        ("{", 400, None),
        ("{\"foo\":1", 400, None),
        ("null", 422, None),
        ("[]", 422, None),
        ("{\"event_type\":\"a.b\",\"payload\":1} x", 400, None),
        ("{\"event_type\":\"a.b\",\"payload\":NaN}", 400, None),
        ("{\"event_type\":\"a.b\",\"payload\":tru}", 400, None),
        ("\u{feff}{}", 400, None),
        (r#"{"payload":1}"#, 422, Some("event_type")),
        (r#"{"event_type":"a.b"}"#, 422, Some("payload")),
        (r#"{"event_type":"a.b","payload":1,"paylod":1}"#, 422, Some("paylod")),
        (r#"{"event_type":"a.b","payload":1,"payload":2}"#, 422, Some("payload")),
        (r#"{"event_type":5,"payload":1}"#, 422, Some("event_type")),
        (r#"{"event_type":"","payload":1}"#, 422, Some("event_type")),
        (r#"{"event_type":"a..b","payload":1}"#, 422, Some("event_type")),
        (r#"{"event_type":"a.*","payload":1}"#, 422, Some("event_type")),
        (&long_type, 422, Some("event_type")),
        (r#"{"event_type":"a.b","payload":"\ud800"}"#, 422, Some("payload")),
        (&nested, 422, Some("payload")),
        (&deep, 422, Some("payload")),
        (r#"{"event_type":"a.b","payload":1,"priority":0}"#, 422, Some("priority")),
        (r#"{"event_type":"a.b","payload":1,"priority":-1}"#, 422, Some("priority")),
        (r#"{"event_type":"a.b","payload":1,"priority":"1"}"#, 422, Some("priority")),
        (r#"{"event_type":"a.b","payload":1,"ttl_seconds":0}"#, 422, Some("ttl_seconds")),
        (r#"{"event_type":"a.b","payload":1,"ttl_seconds":2592001}"#, 422, Some("ttl_seconds")),
        (r#"{"event_type":"a.b","payload":1,"occurred_at":"yesterday"}"#, 422, Some("occurred_at")),
        (r#"{"event_type":"a.b","payload":1,"expires_at":17}"#, 422, Some("expires_at")),
        (r#"{"event_type":"a.b","payload":1,"deliver_at":"9999-01-01T00:00:00Z"}"#, 422, Some("deliver_at")),
        (
            r#"{"event_type":"a.b","payload":1,"deliver_at":"2021-01-01T00:00:00Z","expires_at":"2020-01-01T00:00:00Z"}"#,
            422,
            Some("deliver_at"),
        ),
        (r#"{"event_type":"a.b","payload":1,"ordering_key":""}"#, 422, Some("ordering_key")),
        (&long_key, 422, Some("ordering_key")),
        (r#"{"event_type":"a.b","payload":1,"destination_ids":[]}"#, 422, Some("destination_ids")),
        (
            r#"{"event_type":"a.b","payload":1,"destination_ids":["dst_none"]}"#,
            422,
            Some("destination_ids[0]"),
        ),
        (r#"{"event_type":"a.b","payload":1,"destination_ids":[7]}"#, 422, Some("destination_ids[0]")),
        (r#"{"event_type":"a.b","payload":1,"content_type":"no\nsuch/type"}"#, 422, Some("content_type")),
    ];
    for (body, status, field) in table {
        let sent = Bytes::copy_from_slice(body.as_bytes());
        let answer = server
            .try_send(Method::POST, "/v1/outbound-events", Some("application/json"), sent)
            .await
            .unwrap();
        let shown: String = body.chars().take(100).collect();
        assert_eq!(answer.status, status, "{shown}: {}", answer.text());
        if let Some(field) = field {
            assert_eq!(answer.json["field"], field, "{shown}: {}", answer.text());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_are_too_large_compressed_or_of_another_kind_are_refused() {
    let server = Server::start(&["--max-event-size", "2KiB"]).await;
    let body =
        |size: usize| Bytes::from(json!({"event_type": "a.b", "payload": "x".repeat(size)}).to_string());
    let path = "/v1/outbound-events";
    let json = Some("application/json");
    server.try_send(Method::POST, path, json, body(1_900)).await.unwrap().expect(202);
    server.try_send(Method::POST, path, json, body(2_100)).await.unwrap().expect_error(413, "too_large");
    let gzip = server.with_header("content-encoding", "gzip");
    gzip.try_send(Method::POST, path, json, body(10))
        .await
        .unwrap()
        .expect_error(415, "unsupported_media_type");
    let image = server.try_send(Method::POST, path, Some("image/png"), body(10)).await.unwrap();
    image.expect_error(415, "unsupported_media_type");
    let invalid_utf8 = Bytes::from_static(b"{\"event_type\":\"a.b\",\"payload\":\"\xff\xfe\"}");
    server.try_send(Method::POST, path, json, invalid_utf8).await.unwrap().expect_error(400, "invalid_json");
    for key in ["", &"k".repeat(256)] {
        let keyed = server.with_header("idempotency-key", key);
        let refused = keyed.try_send(Method::POST, path, json, body(10)).await.unwrap();
        assert_eq!(refused.expect_error(422, "invalid_field")["field"], "Idempotency-Key");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_take_their_own_cursors_and_known_parameters_only() {
    let server = Server::start(&[]).await;
    for n in 0..4 {
        server.post("/v1/api-keys", json!({"name": format!("k{n}"), "role": "viewer"})).await.expect(201);
    }
    let page = server.get("/v1/api-keys?limit=2&total=true").await.expect(200);
    assert_eq!((page["items"].as_array().unwrap().len(), page["total"].as_u64()), (2, Some(5)));
    let cursor = page["next_cursor"].as_str().unwrap();
    let second = server.get(&format!("/v1/api-keys?limit=200&cursor={cursor}")).await.expect(200);
    assert_eq!((second["items"].as_array().unwrap().len(), &second["next_cursor"]), (3, &json!(null)));
    for (query, field) in [
        ("limit=0", "limit"),
        ("limit=201", "limit"),
        ("limit=-1", "limit"),
        ("limit=ten", "limit"),
        ("total=maybe", "total"),
        ("cursor=forged", "cursor"),
        ("nonsense=1", "nonsense"),
    ] {
        let refused = server.get(&format!("/v1/api-keys?{query}")).await.expect_error(422, "invalid_field");
        assert_eq!(refused["field"], field, "{query}");
    }
    let foreign =
        server.get(&format!("/v1/audit-log?cursor={cursor}")).await.expect_error(422, "invalid_field");
    assert_eq!(foreign["field"], "cursor");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_404_and_other_methods_are_405() {
    let server = Server::start(&[]).await;
    server.get("/v1/nothing").await.expect_error(404, "not_found");
    server.put("/v1/api-keys", json!({})).await.expect_error(405, "method_not_allowed");
    for id in ["x", "key_00000000000000000000000000", "%ff", "key_"] {
        server.delete(&format!("/v1/api-keys/{id}")).await.expect_error(404, "not_found");
    }
}

/// Goal: a body that is too long gets its 413, however it is sent; a client that is still sending when the connection
/// closes would see no answer at all.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_too_long_in_many_chunks_gets_its_answer() {
    let server = Server::start(&[]).await;
    for (key, path, status) in [
        (server.key.as_str(), "/v1/outbound-events", "413"),
        (server.key.as_str(), "/v1/destinations", "413"),
        ("tg_none", "/v1/outbound-events", "401"),
    ] {
        for chunks in [17, 20, 32, 64, 100, 160].repeat(3) {
            let answer = send_chunks(&server.authority, key, path, chunks).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{chunks} chunks to {path}: {answer:?}"
            );
        }
    }
}

/// Sends so many chunks of 64 KiB as fast as they go, and only then looks at what came back.
async fn send_chunks(authority: &str, key: &str, path: &str, chunks: usize) -> String {
    let mut stream = TcpStream::connect(authority).await.expect("the server listens");
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
    );
    let mut chunk = b"10000\r\n".to_vec();
    chunk.extend(std::iter::repeat_n(b' ', 0x10000));
    chunk.extend(b"\r\n");
    // Where the server has answered and left, the rest need not go.
    let mut sent = stream.write_all(head.as_bytes()).await;
    for _ in 0..chunks {
        if sent.is_ok() {
            sent = stream.write_all(&chunk).await;
        }
    }
    if sent.is_ok() {
        let _ = stream.write_all(b"0\r\n\r\n").await;
    }
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(secs(10), stream.read_to_end(&mut answer)).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_word_of_the_wrong_type_is_answered_with_its_field_and_in_the_words_of_json() {
    let server = Server::start(&[]).await;
    let url = "http://127.0.0.1:9/";
    for (path, body, field) in [
        ("/v1/destinations", json!({"url": url, "ordering": 1}), "ordering"),
        ("/v1/destinations", json!({"url": url, "ordering": {"fifo": null}}), "ordering"),
        ("/v1/destinations", json!({"url": url, "ordering": ["fifo"]}), "ordering"),
        ("/v1/destinations", json!({"url": url, "ordering": "lifo"}), "ordering"),
        ("/v1/destinations", json!({"url": url, "timeout": {"mode": true}}), "timeout.mode"),
        ("/v1/destinations", json!({"url": url, "rate_limit": {"max": 1, "per": 7}}), "rate_limit.per"),
        ("/v1/destinations", json!({"url": url, "rate_limit": 5}), "rate_limit"),
        ("/v1/api-keys", json!({"name": "x", "role": 3}), "role"),
        ("/v1/replays", json!({"filter": {"status": 1}}), "filter.status"),
        ("/v1/replays", json!({"filter": 1}), "filter"),
    ] {
        let refused = server.post(path, body.clone()).await.expect_error(422, "invalid_field");
        assert_eq!(refused["field"], field, "{body}: {refused}");
        told_as_json(&refused);
    }
    for path in ["/v1/destinations", "/v1/api-keys", "/v1/replays", "/v1/accounts", "/v1/outbound-events"] {
        for body in [json!(null), json!([1]), json!("x")] {
            let refused = server.post(path, body).await.expect_error(422, "invalid_field");
            assert_eq!(refused.get("field"), None, "it is no field that is wrong: {refused}");
            told_as_json(&refused);
        }
    }
}

#[track_caller]
fn told_as_json(refused: &serde_json::Value) {
    let sentence = refused["error"].as_str().expect("a sentence");
    assert!(!sentence.contains("struct ") && !sentence.contains("enum "), "{sentence}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_that_a_call_does_not_know_is_refused() {
    let server = Server::start(&[]).await;
    server
        .post("/v1/destinations", json!({"url": "http://127.0.0.1:9/", "external_id": "d"}))
        .await
        .expect(201);
    for path in [
        "stats",
        "nodes",
        "settings",
        "stream",
        "destinations/d",
        "destinations/d/latency",
        "event-types/a.b",
    ] {
        let refused = server.get(&format!("/v1/{path}?foo=1")).await.expect_error(422, "invalid_field");
        assert_eq!(refused["field"], "foo", "{path}");
    }
    let event = json!({"event_type": "a.b", "payload": 1});
    for (path, body) in
        [("outbound-events", event), ("destinations/d/pause", json!({})), ("accounts", json!({"name": "x"}))]
    {
        server.post(&format!("/v1/{path}?foo=1"), body).await.expect_error(422, "invalid_field");
    }
    server.patch("/v1/settings?foo=1", json!({})).await.expect_error(422, "invalid_field");
    server.delete("/v1/destinations/d?foo=1").await.expect_error(422, "invalid_field");
    server.get("/v1/destinations/d").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_list_tells_its_total() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    server.post("/v1/destinations", json!({"url": receiver.url, "external_id": "d"})).await.expect(201);
    for _ in 0..3 {
        server.post("/v1/outbound-events", json!({"event_type": "a.b", "payload": 1})).await.expect(202);
        server.post("/v1/replays", json!({"filter": {}})).await.expect(202);
    }
    server.post("/v1/cancellations", json!({"filter": {}})).await.expect(202);
    until(secs(10), "three attempts are there", async || {
        server.get("/v1/destinations/d/attempts?total=true&limit=1").await.expect(200)["total"] == 3
    })
    .await;
    // A key, a destination, three replays and a cancellation were made.
    for (path, total) in [
        ("destinations/d/holds", 0),
        ("replays", 3),
        ("cancellations", 1),
        ("audit-log", 6),
        ("nodes", 1),
        ("accounts", 1),
        ("destinations", 1),
    ] {
        let counted = server.get(&format!("/v1/{path}?total=true&limit=1")).await.expect(200);
        assert_eq!(counted["total"], total, "{path}");
        let plain = server.get(&format!("/v1/{path}")).await.expect(200);
        assert_eq!(plain.get("total"), None, "{path}");
    }
}
