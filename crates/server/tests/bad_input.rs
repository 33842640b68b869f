//! What is wrong with a request is said: the status, and the field.

mod kit;

use bytes::Bytes;
use http::Method;
use kit::Server;
use serde_json::json;

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
        ("null", 422, Some("")),
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
