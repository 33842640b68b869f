//! Who may do what: keys, roles, accounts.

mod kit;

use kit::{Client, Postgres, Receiver, Reply, Server, Watch, secs, until};
use serde_json::{Value, json};
use tidegate_core::time::Timestamp;

/// A key of this role, in the client's account.
async fn key(client: &Client, role: &str) -> Client {
    let made = client.post("/v1/api-keys", json!({"name": role, "role": role})).await.expect(201);
    client.with_key(made["api_key"].as_str().expect("the key"))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_needs_its_role() {
    let server = Server::start(&[]).await;
    let operator = server.client();
    let clients = [
        ("viewer", key(&operator, "viewer").await),
        ("publisher", key(&operator, "publisher").await),
        ("editor", key(&operator, "editor").await),
        ("owner", key(&operator, "owner").await),
        ("operator", operator.clone()),
    ];
    let event = json!({"event_type": "a.b", "payload": 1});
    let read = ["viewer", "editor", "owner", "operator"];
    let publish = ["publisher", "editor", "owner", "operator"];
    let own = ["owner", "operator"];
    let table: [(&str, &str, Value, &[&str]); 11] = [
        ("POST", "/v1/outbound-events", event.clone(), &publish),
        ("POST", "/v1/outbound-events/batch", json!({"events": [event]}), &publish),
        ("GET", "/v1/settings", json!(null), &read),
        ("PATCH", "/v1/settings", json!({"paused": false}), &own),
        ("GET", "/v1/stats", json!(null), &read),
        ("GET", "/v1/audit-log", json!(null), &read),
        ("GET", "/v1/api-keys", json!(null), &own),
        ("POST", "/v1/api-keys", json!({"name": "x", "role": "viewer"}), &own),
        ("GET", "/v1/accounts", json!(null), &["operator"]),
        ("POST", "/v1/accounts", json!({"name": "x"}), &["operator"]),
        ("GET", "/v1/nodes", json!(null), &["operator"]),
    ];
    for (method, path, body, may) in table {
        for (role, client) in &clients {
            let answer = match method {
                "POST" => client.post(path, body.clone()).await,
                "PATCH" => client.patch(path, body.clone()).await,
                _ => client.get(path).await,
            };
            let allowed = may.contains(role);
            assert_eq!(answer.status < 300, allowed, "{role} {method} {path}: {}", answer.text());
            if !allowed {
                answer.expect_error(403, "forbidden");
            }
        }
    }
    let owner = &clients[3].1;
    let refused = owner.post("/v1/api-keys", json!({"name": "x", "role": "operator"})).await;
    refused.expect_error(403, "forbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_valid_key_is_401_and_many_of_them_429() {
    let server = Server::start(&[]).await;
    for key in ["", "tg_wrong", "Bearer"] {
        let refused = server.with_key(key).get("/v1/stats").await;
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
        refused.expect_error(401, "unauthorized");
    }
    let guesser = server.with_key("tg_guess");
    let mut limited = None;
    for _ in 0..60 {
        let answer = guesser.get("/v1/stats").await;
        if answer.status == 429 {
            limited = Some(answer);
            break;
        }
    }
    let limited = limited.expect("failed sign-ins are limited");
    assert!(limited.header("retry-after").is_some_and(|seconds| seconds.parse::<u32>().unwrap() >= 1));
    server.get("/v1/stats").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_is_refused_at_once_and_the_last_operator_stays() {
    let mut server = Server::start(&[]).await;
    let made = server.post("/v1/api-keys", json!({"name": "short", "role": "viewer"})).await.expect(201);
    let viewer = server.with_key(made["api_key"].as_str().unwrap());
    viewer.get("/v1/stats").await.expect(200);
    server.delete(&format!("/v1/api-keys/{}", made["id"].as_str().unwrap())).await.expect(204);
    viewer.get("/v1/stats").await.expect_error(401, "unauthorized");
    let keys = server.get("/v1/api-keys").await.expect(200);
    assert_eq!(keys["items"].as_array().unwrap().len(), 1);
    assert!(keys["items"][0].get("api_key").is_none(), "a key is shown once");
    let last = keys["items"][0]["id"].as_str().unwrap();
    server.delete(&format!("/v1/api-keys/{last}")).await.expect_error(409, "last_operator_key");
    assert!(server.stop().await);
    server.restart().await;
    viewer.get("/v1/stats").await.expect_error(401, "unauthorized");
    let log = server.get("/v1/audit-log").await.expect(200);
    let actions: Vec<&str> =
        log["items"].as_array().unwrap().iter().map(|line| line["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["key.revoke", "key.create", "key.create"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_do_not_see_each_other() {
    let server = Server::start(&[]).await;
    let account = json!({"name": "Other", "external_id": "other-1"});
    let made = server.post("/v1/accounts", account.clone()).await.expect(201);
    let other = server.with_key(made["api_key"].as_str().unwrap());
    server.post("/v1/accounts", account).await.expect_error(409, "external_id_taken");
    let theirs = other.get("/v1/api-keys").await.expect(200)["items"][0]["id"].as_str().unwrap().to_owned();
    let ours = server.get("/v1/api-keys").await.expect(200)["items"][0]["id"].as_str().unwrap().to_owned();
    let foreign = other.delete(&format!("/v1/api-keys/{ours}")).await;
    let unknown = other.delete("/v1/api-keys/key_00000000000000000000000000").await;
    assert_eq!((foreign.status, foreign.bytes), (404, unknown.bytes), "the same bytes as for an unknown id");
    let acting = server.with_header("tidegate-account", "other-1");
    assert_eq!(acting.get("/v1/api-keys").await.expect(200)["items"][0]["id"], theirs);
    server.with_header("tidegate-account", "nobody").get("/v1/stats").await.expect_error(404, "not_found");
    other.with_header("tidegate-account", "nobody").get("/v1/stats").await.expect_error(403, "forbidden");
    other.with_header("tidegate-account", "other-1").get("/v1/stats").await.expect(200);
    server.delete("/v1/accounts/other-1").await.expect(204);
    other.get("/v1/stats").await.expect_error(401, "unauthorized");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_to_an_old_version_is_refused() {
    let server = Server::start(&[]).await;
    let shown = server.get("/v1/settings").await;
    let tag = shown.header("etag").expect("a version").to_owned();
    let matching = server.with_header("if-match", &tag);
    matching.patch("/v1/settings", json!({"max_queued_events": 10})).await.expect(200);
    matching
        .patch("/v1/settings", json!({"max_queued_events": 11}))
        .await
        .expect_error(412, "version_conflict");
    assert_eq!(server.get("/v1/settings").await.expect(200)["max_queued_events"], 10);
    server.patch("/v1/settings", json!({"max_queued_events": 0})).await.expect_error(422, "invalid_field");
    server.patch("/v1/settings", json!({"no_such": 0})).await.expect_error(422, "invalid_field");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_key() {
    let server = Server::start(&[]).await;
    let made = server.post("/v1/api-keys", json!({"name": "a", "role": "viewer"})).await.expect(201);
    let revoked = Watch::start(&server.with_key(made["api_key"].as_str().unwrap())).await;
    let soon = Timestamp::from_millis(server_time(&server).await + 1_500).to_string();
    let body = json!({"name": "b", "role": "viewer", "expires_at": soon});
    let short = server.post("/v1/api-keys", body).await.expect(201);
    let expired = Watch::start(&server.with_key(short["api_key"].as_str().unwrap())).await;
    let account = server.post("/v1/accounts", json!({"name": "x", "external_id": "x"})).await.expect(201);
    let deleted = Watch::start(&server.with_key(account["api_key"].as_str().unwrap())).await;
    let acting = Watch::start(&server.with_header("tidegate-account", "x")).await;
    let stays = Watch::start(&server).await;
    server.delete(&format!("/v1/api-keys/{}", made["id"].as_str().unwrap())).await.expect(204);
    until(secs(1), "a revoked key sees nothing more", async || revoked.ended()).await;
    server.delete("/v1/accounts/x").await.expect(204);
    until(secs(1), "a deleted account has no stream", async || deleted.ended() && acting.ended()).await;
    until(secs(3), "an expired key sees nothing more", async || expired.ended()).await;
    assert!(!stays.ended());
}

/// The time of the server, in milliseconds since 1970: when a key was made just now.
async fn server_time(server: &Client) -> i64 {
    let made = server.post("/v1/api-keys", json!({"name": "now", "role": "viewer"})).await.expect(201);
    let at = made["created_at"].as_str().and_then(Timestamp::parse);
    at.expect("a time").as_millis()
}

/// Whoever may not do something is told so, and not what else is wrong.
#[tokio::test(flavor = "multi_thread")]
async fn the_role_is_judged_before_body_and_parameters() {
    let server = Server::start(&[]).await;
    let publisher = key(&server, "publisher").await;
    let viewer = key(&server, "viewer").await;
    for path in
        ["accounts", "api-keys", "destinations", "routes", "replays", "cancellations", "outbound-events"]
    {
        viewer.post(&format!("/v1/{path}"), json!({"no_such": 1})).await.expect_error(403, "forbidden");
        publisher.get(&format!("/v1/{path}?no_such=1")).await.expect_error(403, "forbidden");
    }
    for path in ["destinations/dst_x/pause", "destinations/dst_x/rotate-secret", "deliveries/dlv_x/replay"] {
        viewer.post(&format!("/v1/{path}"), json!({"no_such": 1})).await.expect_error(403, "forbidden");
    }
    viewer.patch("/v1/settings", json!({"no_such": 1})).await.expect_error(403, "forbidden");
    viewer.patch("/v1/accounts/x", json!({"no_such": 1})).await.expect_error(403, "forbidden");
    viewer.put("/v1/event-types/a.b", json!({"no_such": 1})).await.expect_error(403, "forbidden");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_at_the_same_time_all_go_in() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    server.post("/v1/accounts", json!({"name": "x", "external_id": "x"})).await.expect(201);
    server.post("/v1/destinations", json!({"url": receiver.url, "external_id": "d"})).await.expect(201);
    let mut calls = tokio::task::JoinSet::new();
    for number in 1..=30 {
        for (path, body) in [
            ("/v1/settings", json!({"max_queued_events": number})),
            ("/v1/accounts/x", json!({"name": format!("x{number}")})),
            ("/v1/destinations/d", json!({"max_concurrency": number})),
        ] {
            let client = server.client();
            calls.spawn(async move { (path, client.patch(path, body).await) });
        }
    }
    while let Some(done) = calls.join_next().await {
        let (path, answer) = done.unwrap();
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    }
    assert_eq!(server.get("/v1/settings").await.header("etag"), Some("\"31\""));
}

/// Goal: an account that is deleted leaves nothing that waits: what was to be sent for it is withdrawn at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_account_leaves_nothing_that_waits() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    server.post("/v1/accounts", json!({"name": "x", "external_id": "x"})).await.expect(201);
    let acting = server.with_header("tidegate-account", "x");
    for client in [&acting, &server.client()] {
        for _ in 0..2 {
            let made = client.post("/v1/destinations", json!({"url": receiver.url})).await.expect(201);
            let pause = format!("/v1/destinations/{}/pause", made["id"].as_str().expect("an id"));
            client.post(&pause, json!({})).await.expect(200);
        }
        let events = vec![json!({"event_type": "a.b", "payload": 1}); 250];
        client.post("/v1/outbound-events/batch", json!({"events": events})).await.expect(202);
    }
    server.delete("/v1/accounts/x").await.expect(204);
    let cancelled = "tidegate_deliveries_final_total{status=\"cancelled\"} 500\n";
    until(secs(20), "all of it is withdrawn", async || {
        server.get("/metrics").await.text().contains(cancelled)
    })
    .await;
    let others = server.get("/v1/deliveries?status=queued&total=true").await.expect(200);
    assert_eq!(others["total"], 500, "the other account's wait on");
}

/// Goal: an account is made with its first key, or not at all: without one nobody could use it, and its external id would be
/// taken.
#[tokio::test(flavor = "multi_thread")]
async fn an_account_is_made_with_its_key_or_not_at_all() {
    let Some(programs) = Postgres::programs() else {
        kit::skip(kit::NO_POSTGRES);
        return;
    };
    let postgres = Postgres::start(&programs);
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", postgres.port);
    let server = Server::start_in(&[("TIDEGATE_DATABASE_URL", &url)], &[]).await;
    let account = json!({"name": "x", "external_id": "x"});
    postgres.sql("postgres", "alter table tidegate.api_keys add constraint refused check (false) not valid");
    server.post("/v1/accounts", account.clone()).await.expect_error(503, "store_unavailable");
    assert_eq!(server.get("/v1/accounts").await.expect(200)["items"].as_array().map(Vec::len), Some(1));
    postgres.sql("postgres", "alter table tidegate.api_keys drop constraint refused");
    let made = server.post("/v1/accounts", account).await.expect(201);
    let owner = server.with_key(made["api_key"].as_str().expect("its key"));
    assert_eq!(owner.get("/v1/api-keys").await.expect(200)["items"].as_array().map(Vec::len), Some(1));
    let lines = server.get("/v1/audit-log").await.expect(200);
    assert_eq!(lines["items"][0]["action"], "account.create", "{lines}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_version_of_an_account_is_not_deleted() {
    let server = Server::start(&[]).await;
    let made = server.post("/v1/accounts", json!({"name": "x", "external_id": "x"})).await;
    let tag = made.header("etag").unwrap().to_owned();
    server.patch("/v1/accounts/x", json!({"name": "y"})).await.expect(200);
    let stale = server.with_header("if-match", &tag).delete("/v1/accounts/x").await;
    stale.expect_error(412, "version_conflict");
    server.with_header("if-match", "\"2\"").delete("/v1/accounts/x").await.expect(204);
}

#[tokio::test(flavor = "multi_thread")]
async fn external_ids_of_accounts_and_destinations_follow_one_rule() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    for id in ["é", "a b", "", ".", "a/b", &"x".repeat(129), "acc_00000000000000000000000000"] {
        let account = json!({"name": "x", "external_id": id});
        let destination = json!({"url": receiver.url, "external_id": id});
        for (path, body) in [("/v1/accounts", account), ("/v1/destinations", destination)] {
            let refused = server.post(path, body).await.expect_error(422, "invalid_field");
            assert_eq!(refused["field"], "external_id", "{path} {id}");
        }
    }
    let id = "A.b:c@d-1";
    server.post("/v1/accounts", json!({"name": "x", "external_id": id})).await.expect(201);
    server.with_header("tidegate-account", id).get("/v1/stats").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_counts_once_is_refused_twice() {
    let server = Server::start(&[]).await;
    server.post("/v1/accounts", json!({"name": "x", "external_id": "x"})).await.expect(201);
    let twice = |name| server.with_header(name, "x").with_header(name, "y");
    let refused = twice("tidegate-account").get("/v1/stats").await.expect_error(422, "invalid_field");
    assert_eq!(refused["field"], "Tidegate-Account");
    let event = json!({"event_type": "a.b", "payload": 1});
    let refused = twice("idempotency-key").post("/v1/outbound-events", event).await;
    assert_eq!(refused.expect_error(422, "invalid_field")["field"], "Idempotency-Key");
}

/// Goal: a key that was good once is worth no more than one that never was, and nothing tells them apart.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_has_ended_is_answered_like_one_that_nobody_has() {
    let server = Server::start(&[]).await;
    let made = server.post("/v1/api-keys", json!({"name": "a", "role": "owner"})).await.expect(201);
    let revoked = server.with_key(made["api_key"].as_str().unwrap());
    let soon = Timestamp::from_millis(server_time(&server).await + 1_000).to_string();
    let body = json!({"name": "b", "role": "owner", "expires_at": soon});
    let made_to_end = server.post("/v1/api-keys", body).await.expect(201);
    let expired = server.with_key(made_to_end["api_key"].as_str().unwrap());
    let unknown = server.with_key("tg_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG");
    revoked.get("/v1/settings").await.expect(200);
    expired.get("/v1/settings").await.expect(200);
    server.delete(&format!("/v1/api-keys/{}", made["id"].as_str().unwrap())).await.expect(204);
    until(secs(5), "it expires", async || expired.get("/v1/settings").await.status == 401).await;

    let event = json!({"event_type": "a.b", "payload": 1});
    let answers = async |client: &Client| {
        [
            client.get("/v1/destinations").await,
            client.get("/v1/settings").await,
            client.post("/v1/outbound-events", event.clone()).await,
            client.post("/v1/destinations", json!({"url": "https://example.com/"})).await,
            client.patch("/v1/settings", json!({"paused": true})).await,
            client.delete("/v1/routes/rte_00000000000000000000000000").await,
            client.get("/v1/stream").await,
        ]
        .map(|answer| {
            let header = answer.header("www-authenticate").map(str::to_owned);
            (answer.status, header, answer.text())
        })
    };
    let told = answers(&unknown).await;
    assert!(told.iter().all(|(status, ..)| *status == 401), "{told:?}");
    assert_eq!(answers(&revoked).await, told, "a revoked one");
    assert_eq!(answers(&expired).await, told, "an expired one");
    assert_eq!(server.get("/v1/outbound-events?total=true").await.expect(200)["total"], 0);
    assert_eq!(server.get("/v1/settings").await.expect(200)["paused"], false);
}

/// Goal: a key is good in its header alone: what stands in a URL stands in the logs of every proxy.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_the_query_is_no_key() {
    let server = Server::start(&[]).await;
    let event = json!({"event_type": "a.b", "payload": 1});
    // Who brings no key in the header guesses none, so that these are not limited.
    let bare = server.with_key("");
    for name in
        ["key", "api_key", "apikey", "token", "access_token", "authorization", "Authorization", "bearer"]
    {
        for value in [server.key.clone(), format!("Bearer%20{}", server.key)] {
            let query = format!("?{name}={value}");
            let refused = bare.get(&format!("/v1/settings{query}")).await;
            refused.expect_error(401, "unauthorized");
        }
        let publish = format!("/v1/outbound-events?{name}={}", server.key);
        let refused = bare.post(&publish, event.clone()).await;
        refused.expect_error(401, "unauthorized");
    }
    assert_eq!(server.get("/v1/outbound-events?total=true").await.expect(200)["total"], 0);
}
