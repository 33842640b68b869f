//! All that the API tells of an account, to be compared.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::kit::{Client, secs, until};

/// Lists, and what each of their items has beneath it.
const LISTS: &[(&str, &[&str])] = &[
    ("/v1/accounts", &[""]),
    ("/v1/api-keys", &[]),
    ("/v1/destinations", &["", "/attempts", "/holds", "/latency"]),
    ("/v1/event-types", &[]),
    ("/v1/routes", &[]),
    ("/v1/outbound-events", &[""]),
    ("/v1/deliveries", &["", "/explain"]),
    ("/v1/replays", &[]),
    ("/v1/cancellations", &[]),
    ("/v1/audit-log", &[]),
];

/// Fields that tell of the moment of the answer, or of the server that gave it.
const MOMENTARY: &[&str] = &["as_of", "node", "at", "now", "estimated_at", "inflight"];

/// By path.
pub(crate) type Answers = BTreeMap<String, Value>;

/// Waits until results that were received are stored, too.
pub(crate) async fn until_settled(client: &Client) {
    until(secs(20), "nothing is in flight", async || {
        let listed = client.get("/v1/deliveries?limit=200").await.expect(200);
        let items = listed["items"].as_array().expect("a list");
        items.iter().all(|delivery| delivery["status"] != "delivering")
    })
    .await;
}

/// Everything.
pub(crate) async fn all(client: &Client) -> Answers {
    let mut answers = Answers::new();
    for path in ["/v1/settings", "/v1/stats"] {
        answers.insert(path.to_owned(), plain(client.get(path).await.expect(200)));
    }
    for (list, beneath) in LISTS {
        let path = format!("{list}?limit=200&total=true");
        let listed = client.get(&path).await.expect(200);
        for item in listed["items"].as_array().expect("a list") {
            for more in *beneath {
                let path = format!("{list}/{}{more}", item["id"].as_str().expect("an id"));
                answers.insert(path.clone(), plain(client.get(&path).await.expect(200)));
            }
        }
        answers.insert(path, plain(listed));
    }
    answers
}

/// Whether a server works all destinations.
pub(crate) async fn has_all_slots(client: &Client) -> bool {
    let metrics = client.get("/metrics").await.text();
    metrics.lines().any(|line| line.starts_with("tidegate_slots") && line.ends_with(" 256"))
}

/// An answer without what tells of its moment.
fn plain(mut answer: Value) -> Value {
    match &mut answer {
        Value::Object(fields) => {
            fields.retain(|name, _| !MOMENTARY.contains(&name.as_str()));
            fields.values_mut().for_each(|value| *value = plain(value.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = plain(item.take())),
        _ => {}
    }
    answer
}

/// Fails with the first path that was answered differently.
pub(crate) fn assert_same(before: &Answers, after: &Answers) {
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    for (path, answer) in before {
        assert_eq!(answer, &after[path], "{path}");
    }
}
