//! Publishing in SQL: an application's own transaction decides whether an event is there.

mod kit;

use kit::{Postgres, Receiver, Reply, SECRET_KEY, Server, secs, until};
use serde_json::json;

#[tokio::test]
async fn an_event_is_delivered_if_its_transaction_commits() {
    let Some(programs) = Postgres::programs() else {
        kit::skip(kit::NO_POSTGRES);
        return;
    };
    let postgres = Postgres::start(&programs);
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", postgres.port);
    let server = Server::start_in(&[("TIDEGATE_DATABASE_URL", &url)], &[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    server.post("/v1/destinations", json!({"name": "a", "url": receiver.url})).await.expect(201);
    let sql = |text: &str| postgres.sql("postgres", text).trim().to_owned();
    sql("create table orders (n int)");

    sql("begin; insert into orders values (1); select tidegate.publish('order.lost', '{}'); rollback");
    let id = sql(
        "begin; insert into orders values (2); select tidegate.publish('order.created', '{\"n\": 2}', '{\"ttl_seconds\": 60}'); commit",
    );
    until(secs(10), "the event arrives", async || receiver.count() == 1).await;
    let received = &receiver.received()[0];
    assert_eq!((received.event_id(), &received.body[..]), (id.as_str(), &b"{\"n\": 2}"[..]));
    let event = server.get(&format!("/v1/outbound-events/{id}")).await.expect(200);
    assert_eq!(event["event_type"], "order.created");

    let nobody = format!("acc_{}", "0".repeat(26));
    let refused =
        sql(&format!("select tidegate.publish('order.created', '{{}}', '{{\"account_id\": \"{nobody}\"}}')"));
    let listed = async || server.get("/v1/outbox/refused?total=true").await.expect(200);
    until(secs(10), "it is refused", async || listed().await["items"][0]["id"] == refused.as_str()).await;
    let all = listed().await;
    assert_eq!(all["items"].as_array().map(Vec::len), Some(1), "{all}");
    assert!(all["items"][0]["error"].as_str().is_some_and(|error| error.contains("account_id")), "{all}");
    assert!(server.get("/metrics").await.text().contains("tidegate_outbox_refused 1"));
    assert_eq!((receiver.count(), sql("select count(*) from orders")), (1, "1".to_owned()));
}

#[tokio::test]
async fn two_nodes_keep_the_order_of_what_was_published_in_sql() {
    let Some(programs) = Postgres::programs() else {
        kit::skip(kit::NO_POSTGRES);
        return;
    };
    const EVENTS: usize = 60;
    let postgres = Postgres::start(&programs);
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", postgres.port);
    let environment = [("TIDEGATE_DATABASE_URL", url.as_str()), ("TIDEGATE_SECRET_KEY", SECRET_KEY)];
    let first = Server::start_in(&environment, &["--node-name", "first"]).await;
    let second = Server::start_in(&environment, &["--node-name", "second"]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    first
        .post("/v1/destinations", json!({"name": "a", "url": receiver.url, "ordering": "fifo"}))
        .await
        .expect(201);
    until(secs(20), "both nodes know each other", async || {
        let nodes = second.get("/v1/nodes").await.expect(200);
        nodes["items"].as_array().map(Vec::len) == Some(2)
    })
    .await;
    let publish = |numbers: std::ops::Range<usize>| {
        let each = numbers.map(|number| format!("select tidegate.publish('a.b', '{number}');"));
        postgres.sql("postgres", &format!("begin; {} commit", each.collect::<String>()));
    };
    publish(0..EVENTS / 2);
    (EVENTS / 2..EVENTS).for_each(|number| publish(number..number + 1));
    until(secs(30), "all arrive", async || receiver.count() == EVENTS).await;
    let came: Vec<String> =
        receiver.received().iter().map(|one| String::from_utf8_lossy(&one.body).into_owned()).collect();
    assert_eq!(came, (0..EVENTS).map(|number| number.to_string()).collect::<Vec<_>>());

    postgres.kill9();
    until(secs(20), "it is told why nothing is accepted", async || {
        let refused = second.post("/v1/outbound-events", json!({"event_type": "a.b", "payload": 1})).await;
        let answer = second.get("/readyz").await;
        refused.status == 503 && answer.status == 503 && answer.text().contains("database")
    })
    .await;
}

/// Goal: what an application has published cannot be told to come again later: a quota refuses others, not that.
#[tokio::test]
async fn a_quota_does_not_refuse_what_is_committed_already() {
    let Some(programs) = Postgres::programs() else {
        kit::skip(kit::NO_POSTGRES);
        return;
    };
    let postgres = Postgres::start(&programs);
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", postgres.port);
    let server = Server::start_in(&[("TIDEGATE_DATABASE_URL", &url)], &[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let made = server.post("/v1/destinations", json!({"url": receiver.url})).await.expect(201);
    let path = format!("/v1/destinations/{}", made["id"].as_str().expect("an id"));
    server.post(&format!("{path}/pause"), json!({})).await.expect(200);
    server.patch("/v1/settings", json!({"max_queued_events": 2})).await.expect(200);
    postgres.sql("postgres", "select tidegate.publish('a.b', n::text) from generate_series(1, 5) n");
    until(secs(10), "all wait", async || {
        let listed = server.get("/v1/deliveries?status=queued&total=true").await.expect(200);
        listed["total"] == 5
    })
    .await;
    let refused = server.post("/v1/outbound-events", json!({"event_type": "a.b", "payload": 6})).await;
    refused.expect_error(429, "quota_exceeded");
    server.post(&format!("{path}/resume"), json!({})).await.expect(200);
    until(secs(10), "all arrive", async || receiver.count() == 5).await;
    assert_eq!(server.get("/v1/outbox/refused?total=true").await.expect(200)["total"], 0);
}

/// Goal: an event may name what was made on another node a moment ago.
/// Method: nothing tells the node that empties the outbox what the other one makes.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_may_name_what_this_node_has_not_heard_of() {
    let Some(programs) = Postgres::programs() else {
        kit::skip(kit::NO_POSTGRES);
        return;
    };
    let postgres = Postgres::start(&programs);
    let url = format!("postgres://postgres@127.0.0.1:{}/postgres", postgres.port);
    let environment = [("TIDEGATE_DATABASE_URL", url.as_str()), ("TIDEGATE_SECRET_KEY", SECRET_KEY)];
    let first = Server::start_in(&environment, &["--node-name", "first"]).await;
    let second = Server::start_in(&environment, &["--node-name", "second"]).await;
    postgres.sql(
        "postgres",
        "create function keep_quiet() returns trigger language plpgsql as \
         'begin new.catalogue := false; return new; end';
         create trigger keep_quiet before insert on tidegate.bulletins for each row execute function keep_quiet()",
    );
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let other = json!({"name": "new", "external_id": "new"});
    let account = second.post("/v1/accounts", other).await.expect(201);
    let publish = |destination: &str| {
        let options = json!({"account_id": account["id"], "destination_ids": [destination]});
        postgres.sql("postgres", &format!("select tidegate.publish('a.b', '1', '{options}')"))
    };
    let acting = second.with_header("tidegate-account", "new");
    let made = json!({"url": receiver.url, "external_id": "hook", "event_types": []});
    acting.post("/v1/destinations", made).await.expect(201);
    first.with_header("tidegate-account", "new").get("/v1/stats").await.expect_error(404, "not_found");
    publish("hook");
    until(secs(20), "it arrives", async || receiver.count() == 1).await;
    let id = publish("nobody");
    until(secs(20), "it is refused", async || {
        let refused = first.get("/v1/outbox/refused").await.expect(200);
        refused["items"][0]["id"] == id.trim()
    })
    .await;
    assert_eq!(first.get("/v1/outbox/refused?total=true").await.expect(200)["total"], 1);
}
