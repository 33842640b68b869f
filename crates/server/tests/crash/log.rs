//! What the server itself wrote down: the attempts that it has in its store.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::Value;

use crate::kit::Server;
use crate::world::Destination;

/// One attempt, as the API tells it.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) number: u32,
    pub(crate) started_at: Timestamp,
    pub(crate) outcome: String,
    pub(crate) status: Option<u64>,
}

/// All attempts at one destination that are in the store, by delivery, each in the order of their numbers.
pub(crate) type Log = HashMap<String, Vec<Attempt>>;

/// Reads it, page by page.
pub(crate) async fn read(server: &Server, destination: &Destination) -> Log {
    let mut log = Log::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/v1/destinations/{}/attempts?limit=200{cursor}", destination.id);
        let page = server.get(&path).await.expect(200);
        for item in page["items"].as_array().expect("a list") {
            let delivery = item["delivery_id"].as_str().expect("an id").to_owned();
            log.entry(delivery).or_default().push(attempt(item));
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    log.values_mut().for_each(|attempts| attempts.sort_by_key(|attempt| attempt.number));
    log
}

fn attempt(item: &Value) -> Attempt {
    let text = |name: &str| item[name].as_str().unwrap_or_else(|| panic!("no {name}: {item}"));
    Attempt {
        number: item["number"].as_u64().and_then(|number| u32::try_from(number).ok()).expect("a number"),
        started_at: text("started_at").parse().expect("a time"),
        outcome: text("outcome").to_owned(),
        status: item["status_code"].as_u64(),
    }
}
