//! Who watches `/v1/stream` sees what happens in one account, and no secret of it.

use serde_json::{Value, json};

use super::accounts::{Owned, account};
use super::kit::{Client, Receiver, Reply, Server, Watch, secs, until};
use super::secrets::{HEADER, IN_URL, SIGNING, SIGNING_BYTES, TOKEN};

/// What only the owner knows, but is no secret: names, types, what receivers say.
const NAME: &str = "canary-name-19fe";
const EVENT_TYPE: &str = "canary.type-6c0d";
const ANSWERED: &str = "canary-answer-e21b";

/// Goal: a stream tells nothing of another account, whatever happens there, and no secret of its own.
/// Method: an owner does everything that is told; then each watcher does something itself, which comes after all that.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_tells_of_its_own_account_and_no_secret() {
    let server = Server::start(&[]).await;
    let receiver = Receiver::start(|_| Reply::status(200)).await;
    let owned = Owned::make(&server).await;
    let stranger = account(&server, "stranger").await;
    let own = Watch::start(&owned.client).await;
    let theirs = Watch::start(&stranger).await;
    let operators = Watch::start(&server).await;

    let mut told = act(&owned.client, &receiver, &own).await;
    told.extend(owned.ids());
    told.extend([NAME, EVENT_TYPE, ANSWERED, IN_URL].map(str::to_owned));
    let secrets = [SIGNING, SIGNING_BYTES, TOKEN, HEADER, &owned.client.key];
    told.extend(secrets.map(str::to_owned));
    for (client, watch, who) in
        [(&stranger, &theirs, "another account's owner"), (&server.client(), &operators, "the operator")]
    {
        let destination = mark(client, &receiver, watch).await;
        let text = watch.text();
        let found: Vec<_> = told.iter().filter(|canary| text.contains(canary.as_str())).collect();
        assert!(found.is_empty(), "{who} sees {found:?} in {text}");
        for seen in watch.seen() {
            assert_eq!(seen["destination_id"], destination, "{who} sees {seen}");
        }
    }
    let text = own.text();
    let found: Vec<_> = secrets.iter().filter(|secret| text.contains(**secret)).collect();
    assert!(found.is_empty(), "the owner's stream tells {found:?} in {text}");
    let account = &owned.ids()[7];
    let elsewhere = stranger.with_header("tidegate-account", account).get("/v1/stream").await;
    elsewhere.expect_error(403, "forbidden");
}

/// All that is told of an account happens in it, and its owner sees it. The ids of what came and went.
async fn act(owner: &Client, receiver: &Receiver, watch: &Watch) -> Vec<String> {
    let url = format!("{}/{IN_URL}", receiver.url);
    let breaker = json!({"consecutive_failures": 1, "min_attempts": 1, "open_seconds": 1});
    let body = json!({
        "url": url, "external_id": "told", "name": NAME, "event_types": [EVENT_TYPE], "signing_secret": SIGNING,
        "auth_config": {"type": "bearer", "token": TOKEN}, "custom_headers": {"x-own": HEADER},
        "circuit_breaker": breaker, "retry_policy": {"max_attempts": 1},
    });
    let mut ids = vec![id(&owner.post("/v1/destinations", body).await.expect(201))];
    let path = "/v1/destinations/told";
    let event = json!({"event_type": EVENT_TYPE, "payload": {"canary": NAME}});
    let publish = async || id(&owner.post("/v1/outbound-events", event.clone()).await.expect(202));

    ids.push(publish().await);
    sees(watch, "delivered").await;
    owner.patch(path, json!({"name": format!("{NAME} again"), "active": false})).await.expect(200);
    owner.patch(path, json!({"active": true})).await.expect(200);
    for action in ["pause", "resume", "test", "rotate-secret"] {
        owner.post(&format!("{path}/{action}"), json!({})).await.expect(200);
    }
    owner.patch("/v1/settings", json!({"paused": true})).await.expect(200);
    owner.patch("/v1/settings", json!({"paused": false})).await.expect(200);
    receiver.behave(|_| Reply::status(500).body(ANSWERED));
    ids.push(publish().await);
    sees(watch, "circuit_opened").await;
    receiver.behave(|_| Reply::status(429).header("retry-after", "1").body(ANSWERED));
    ids.push(publish().await);
    sees(watch, "throttled").await;
    owner.delete(path).await.expect(204);
    sees(watch, "cancelled").await;
    receiver.behave(|_| Reply::status(200));
    for kind in ["disabled", "enabled", "paused", "resumed", "account_paused", "account_resumed"] {
        sees(watch, kind).await;
    }
    let deliveries =
        watch.seen().into_iter().filter_map(|seen| seen["delivery_id"].as_str().map(str::to_owned));
    ids.extend(deliveries);
    assert!(ids.len() >= 7, "{ids:?}");
    ids
}

/// Something of this kind, or a delivery with this status, has been told.
async fn sees(watch: &Watch, word: &str) {
    until(secs(20), format!("{word} is told"), async || {
        watch.seen().iter().any(|seen| seen["kind"] == word || seen["status"] == word)
    })
    .await;
}

/// Something happens in the watcher's own account, once by the engine and once by a person: when it has seen both, it has seen
/// whatever was told before. The id of the destination that it happened to.
async fn mark(client: &Client, receiver: &Receiver, watch: &Watch) -> Value {
    let body = json!({"url": receiver.url, "external_id": "mark"});
    let mut destination = client.post("/v1/destinations", body).await.expect(201);
    client.post("/v1/outbound-events", json!({"event_type": "a.b", "payload": 1})).await.expect(202);
    sees(watch, "delivered").await;
    client.post("/v1/destinations/mark/pause", json!({})).await.expect(200);
    sees(watch, "paused").await;
    destination["id"].take()
}

fn id(made: &Value) -> String {
    made["id"].as_str().expect("an id").to_owned()
}
