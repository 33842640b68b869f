//! An account with one of everything, and the ids of what it has.

use serde_json::{Value, json};

use super::kit::{Client, Server};

/// `(method, path)` of each operation of the document.
pub(crate) fn operations(document: &Value) -> Vec<(String, String)> {
    let paths = document["paths"].as_object().expect("paths");
    let operations = paths.iter().flat_map(|(path, methods)| {
        methods.as_object().expect("methods").keys().map(move |method| (method.clone(), path.clone()))
    });
    operations.collect()
}

/// The path with its parameter filled in.
pub(crate) fn with_id(path: &str, id: &str) -> String {
    let parts = path.split('/').map(|part| if part.starts_with('{') { id } else { part });
    parts.collect::<Vec<_>>().join("/")
}

/// A body that the operation would take.
pub(crate) fn body_for(path: &str) -> Value {
    match path {
        "/v1/destinations/{id}" | "/v1/destinations/{id}/preview" => json!({"max_concurrency": 7}),
        "/v1/accounts/{id}" => json!({"name": "taken over"}),
        _ => json!({}),
    }
}

/// An account of its own, and its owner's key.
pub(crate) async fn account(server: &Server, name: &str) -> Client {
    let made = server.post("/v1/accounts", json!({"name": name, "external_id": name})).await.expect(201);
    server.with_key(made["api_key"].as_str().expect("a key"))
}

/// What one account has.
pub(crate) struct Owned {
    pub(crate) client: Client,
    pub(crate) destination: String,
    pub(crate) event: String,
    delivery: String,
    route: String,
    key: String,
    replay: String,
    cancellation: String,
    account: String,
}

impl Owned {
    pub(crate) async fn make(server: &Server) -> Self {
        let client = account(server, "owner").await;
        let text = |value: &Value| value.as_str().expect("an id").to_owned();
        let body = json!({"url": "http://127.0.0.1:9/", "external_id": "mine", "name": "ours alone"});
        let destination = text(&client.post("/v1/destinations", body).await.expect(201)["id"]);
        client.post("/v1/destinations/mine/pause", json!({})).await.expect(200);
        let route = json!({"destination_id": destination, "event_type_pattern": "z.*"});
        let route = text(&client.post("/v1/routes", route).await.expect(201)["id"]);
        client.put("/v1/event-types/a.b", json!({"description": "ours"})).await;
        let mut event = String::new();
        for number in 0..3 {
            let body = json!({"event_type": "a.b", "payload": number});
            event = text(&client.post("/v1/outbound-events", body).await.expect(202)["id"]);
        }
        let deliveries = client.get(&format!("/v1/deliveries?event_id={event}")).await.expect(200);
        let delivery = text(&deliveries["items"][0]["id"]);
        let filter = json!({"filter": {"event_type": "none.such"}});
        let replay = text(&client.post("/v1/replays", filter.clone()).await.expect(202)["id"]);
        let cancellation = text(&client.post("/v1/cancellations", filter).await.expect(202)["id"]);
        let keys = client.get("/v1/api-keys").await.expect(200);
        let key = text(&keys["items"][0]["id"]);
        let account = text(&server.get("/v1/accounts/owner").await.expect(200)["id"]);
        Self { client, destination, event, delivery, route, key, replay, cancellation, account }
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        let Self { destination, event, delivery, route, key, replay, cancellation, account, client: _ } =
            self;
        [destination, event, delivery, route, key, replay, cancellation, account].map(Clone::clone).to_vec()
    }

    /// What belongs into a path, each with something of the same form that nobody has.
    pub(crate) fn ids_for(&self, path: &str) -> Vec<(String, String)> {
        let collection = path.split('/').nth(2).unwrap_or_default();
        let ids: &[&str] = match collection {
            "accounts" => &[&self.account, "owner"],
            "api-keys" => &[&self.key],
            "destinations" => &[&self.destination, "mine"],
            "outbound-events" => &[&self.event],
            "deliveries" => &[&self.delivery],
            "routes" => &[&self.route],
            "replays" => &[&self.replay],
            "cancellations" => &[&self.cancellation],
            other => panic!("{path}: say here whose ids {other} takes"),
        };
        let unknown = |id: &str| match id.split_once('_') {
            Some((prefix, _)) => format!("{prefix}_00000000000000000000000000"),
            None => "nobodys".to_owned(),
        };
        ids.iter().map(|id| ((*id).to_owned(), unknown(id))).collect()
    }

    /// All of it, as its owner sees it.
    pub(crate) async fn seen_by_its_owner(&self) -> Vec<String> {
        let mut seen = Vec::new();
        for path in [
            format!("/v1/destinations/{}", self.destination),
            format!("/v1/outbound-events/{}", self.event),
            format!("/v1/deliveries/{}", self.delivery),
            format!("/v1/replays/{}", self.replay),
            "/v1/destinations".to_owned(),
            "/v1/outbound-events".to_owned(),
            "/v1/deliveries".to_owned(),
            "/v1/routes".to_owned(),
            "/v1/event-types".to_owned(),
            "/v1/settings".to_owned(),
            "/v1/replays".to_owned(),
            "/v1/cancellations".to_owned(),
            "/v1/audit-log".to_owned(),
        ] {
            let mut shown = self.client.get(&path).await.expect(200);
            // It tells how long it has been held up to now.
            if let Some(timeline) = shown.get_mut("timeline") {
                timeline.take();
            }
            seen.push(format!("{path}: {shown}"));
        }
        seen
    }
}
