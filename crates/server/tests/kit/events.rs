//! Events that tests publish, each with a number by which a receiver tells it.

use serde_json::{Value, json};

/// The body for one event: payloads differ in length.
pub(crate) fn numbered_event(event_type: &str, key: Option<&str>, number: u64) -> Value {
    let pad = "x".repeat(usize::try_from(number % 50).unwrap_or(0));
    let mut event = json!({"event_type": event_type, "payload": {"number": number, "pad": pad}});
    if let Some(key) = key {
        event["ordering_key"] = json!(key);
    }
    event
}

/// The ids in the answer to a batch.
pub(crate) fn ids_of_batch(data: &Value) -> Vec<Value> {
    data["items"].as_array().into_iter().flatten().map(|item| item["id"].clone()).collect()
}
