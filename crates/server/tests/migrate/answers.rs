//! All that the API tells of an account, to be compared.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::kit::{Client, secs, until};

/// Lists, and what each of their items has beneath it.
const LISTS: &[(&str, &[&str])] = &[
    ("/v1/accounts", &[""]),
    ("/v1/api-keys", &[]),
    ("/v1/destinations", &["", "/attempts", "/latency"]),
    ("/v1/event-types", &[]),
    ("/v1/routes", &[]),
    ("/v1/outbound-events", &[""]),
    ("/v1/deliveries", &["", "/explain"]),
    ("/v1/replays", &[]),
    ("/v1/cancellations", &[]),
    ("/v1/audit-log", &[]),
];

/// Fields that tell of the moment of the answer, or of the server that gave it.
const MOMENTARY: &[&str] = &["as_of", "node", "estimated_at"];

/// How the timeline tells of a hold, up to the moment of the answer; a stop of the server ends it, too.
const HELD: &str = "its destination was held by";

/// Fields that tell when the next token comes.
const OF_A_TOKEN: &[&str] = &["retry_at", "until", "detail", "summary"];

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
        let answer = client.get(path).await.expect(200);
        answers.insert(path.to_owned(), plain(stored(answer)));
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

/// Statistics without what a server has only in memory, since its start: minutes, events, and response times.
fn stored(mut stats: Value) -> Value {
    if let Some(stats) = stats.as_object_mut() {
        stats.remove("minutes");
        stats.remove("minutes_since");
    }
    for hour in stats["hours"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        hour.retain(|name, _| !["events", "p50_ms", "p99_ms"].contains(&name.as_str()));
    }
    stats
}

/// Whether a server works all destinations.
pub(crate) async fn has_all_slots(client: &Client) -> bool {
    let metrics = client.get("/metrics").await.text();
    metrics.lines().any(|line| line.starts_with("tidegate_slots") && line.ends_with(" 256"))
}

/// Whether a server has read what waits, so that it can say of each why: in this world something holds each.
pub(crate) async fn knows_what_waits(client: &Client) -> bool {
    let stats = client.get("/v1/stats").await.expect(200);
    let held = stats["held"].as_array().expect("a list").iter();
    held.filter_map(|held| held["deliveries"].as_u64()).sum::<u64>() == stats["queued_events"]
}

/// An answer without what tells of its moment.
fn plain(mut answer: Value) -> Value {
    match &mut answer {
        Value::Object(fields) => {
            let is = |name: &str, word: &str| fields.get(name).is_some_and(|value| value == word);
            // What holds now is told as of now.
            let held = ["paused", "rate_limited", "retry_backoff", "scheduled"]
                .iter()
                .any(|word| is("status", word));
            // A token's time is known as well as the clock, and two servers know that to some milliseconds.
            let limited = ["status", "hold_reason", "reason"].iter().any(|name| is(name, "rate_limited"));
            let limited = limited || is("gate", "rate");
            if held {
                fields.remove("at");
            }
            if limited {
                fields.retain(|name, _| !OF_A_TOKEN.contains(&name.as_str()));
            }
            fields.retain(|name, _| !MOMENTARY.contains(&name.as_str()));
            fields.values_mut().for_each(|value| *value = plain(value.take()));
        }
        Value::Array(items) => {
            items.retain(|item| !item["detail"].as_str().is_some_and(|detail| detail.starts_with(HELD)));
            items.iter_mut().for_each(|item| *item = plain(item.take()));
        }
        _ => {}
    }
    answer
}

/// Fails with all that was answered differently.
pub(crate) fn assert_same(before: &Answers, after: &Answers) {
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    let differ = before.iter().filter(|(path, answer)| after[*path] != **answer);
    let differ: Vec<_> =
        differ.map(|(path, answer)| format!("{path}:\n  {answer}\n  {}", after[path])).collect();
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
