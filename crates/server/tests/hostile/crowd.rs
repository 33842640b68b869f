//! Healthy destinations, and how long events take to reach them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::json;

use super::kit::{Client, Received, Receiver, Reply, millis, now, secs, until};

/// Healthy destinations with a receiver of their own.
pub(crate) struct Healthy {
    receiver: Receiver,
    ids: Vec<String>,
    /// When each event was published.
    published: Arc<Mutex<HashMap<String, Instant>>>,
}

impl Healthy {
    pub(crate) async fn settle(client: &Client, count: usize) -> Self {
        let receiver = Receiver::start(|_| Reply::status(200)).await;
        let mut ids = Vec::new();
        for number in 0..count {
            let id = format!("healthy-{number}");
            let url = format!("{}/{id}", receiver.url);
            let destination = json!({"name": id, "external_id": id, "url": url, "event_types": []});
            client.post("/v1/destinations", destination).await.expect(201);
            ids.push(id);
        }
        Self { receiver, ids, published: Arc::default() }
    }

    /// Publishes to one after the other, so many events in all, at this pace; returns when all have arrived. Says how long
    /// they took, the slowest last.
    pub(crate) async fn serve(&self, client: &Client, events: usize, every: Duration) -> Vec<Duration> {
        let before = self.receiver.count();
        let mut pace = tokio::time::interval(every);
        let mut calls = tokio::task::JoinSet::new();
        for number in 0..events {
            pace.tick().await;
            let (client, published) = (client.clone(), Arc::clone(&self.published));
            let to = self.ids[number % self.ids.len()].clone();
            calls.spawn(async move {
                let event = json!({"event_type": "a.b", "payload": number, "destination_ids": [to]});
                let began = now();
                let id = client.post("/v1/outbound-events", event).await.expect(202)["id"].take();
                published.lock().expect("no panic").insert(id.as_str().expect("an id").to_owned(), began);
            });
        }
        calls.join_all().await;
        until(secs(60), "the healthy ones get everything", async || self.receiver.count() >= before + events)
            .await;
        tokio::time::sleep(millis(50)).await;
        self.times(before)
    }

    fn times(&self, before: usize) -> Vec<Duration> {
        let published = self.published.lock().expect("no panic");
        let all = self.receiver.received();
        let took =
            |received: &Received| received.began_at.saturating_duration_since(published[received.event_id()]);
        let mut times: Vec<_> = all[before..].iter().map(took).collect();
        times.sort();
        times
    }

    /// What was received more than once.
    pub(crate) fn repeats(&self) -> usize {
        let all = self.receiver.received();
        let different: std::collections::HashSet<_> = all.iter().map(Received::event_id).collect();
        all.len() - different.len()
    }
}

/// The time that so many of a hundred stay below.
pub(crate) fn percentile(times: &[Duration], percent: usize) -> Duration {
    times[(times.len() * percent / 100).min(times.len() - 1)]
}
