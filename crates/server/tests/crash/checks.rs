//! What has to hold of what the receivers saw.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde_json::Value;

use crate::kit::{Received, Server};
use crate::lives::Lives;
use crate::log;
use crate::producer::{Event, Published};
use crate::world::{Destination, LIMITED, NARROW, World};
use crate::{rate, repeats};

/// Results are stored before so many later publications are acknowledged, by the same writer: with a slow disk both take
/// seconds. Without that, everything could be in flight at every kill.
const STORED_WITHIN: usize = 20;

/// One request at one destination.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) request: Received,
    pub(crate) event: &'a Event,
    /// Which life of the server sent it.
    pub(crate) life: usize,
}

/// Checks everything; returns a line for each destination about what died with the server.
pub(crate) async fn all(server: &Server, world: &World, published: &Published, lives: &Lives) -> Vec<String> {
    let mut lines = Vec::new();
    let mut ids = HashMap::new();
    let mut arrived = HashSet::new();
    for destination in &world.destinations {
        let seen = seen(destination, published, lives);
        let log = log::read(server, destination).await;
        for one in &seen {
            let id = ids.entry(one.event.number).or_insert_with(|| one.request.event_id().to_owned());
            assert_eq!(id, one.request.event_id(), "{:?} has two ids", one.event);
            arrived.insert((one.event.number, destination.name));
        }
        let lost = repeats::find_lost(destination.name, &seen, &log, lives);
        lines.push(results_are_stored_soon(destination.name, &lost, published, lives));
        match destination.name {
            "limited" => {
                starts_wait_for_commits(&lost);
                rate::holds(&seen, &lost, &log, lives);
            }
            "narrow" => concurrency_holds(&seen),
            "fifo" | "keyed" => order_holds(&seen),
            _ => (),
        }
    }
    nothing_is_lost(world, published, &arrived);
    lines
}

/// Every request with the event that it is for: all of them were published, and to destinations that get them.
fn seen<'a>(destination: &Destination, published: &'a Published, lives: &Lives) -> Vec<Seen<'a>> {
    let find = |request: Received| {
        let body: Value = serde_json::from_slice(&request.body).expect("the body is the payload");
        let number = body["number"].as_u64().expect("our payloads have a number");
        let event = published.by_number.get(&number).map(|index| &published.events[*index]);
        let event = event.unwrap_or_else(|| panic!("{number} was never published"));
        assert!(destination.gets(&event.event_type), "{event:?} went to {}", destination.name);
        let expected = event.id.as_deref().unwrap_or(request.event_id());
        assert_eq!(request.event_id(), expected, "{event:?} came with another id");
        let life = lives.of(request.began_at);
        Seen { request, event, life }
    };
    destination.receiver.received().into_iter().map(find).collect()
}

/// Of all that was answered, only the last results before a kill may be missing in the store.
fn results_are_stored_soon(name: &str, lost: &[&Seen<'_>], published: &Published, lives: &Lives) -> String {
    let (mut most, mut longest) = (0, Duration::ZERO);
    for seen in lost {
        let killed_at = lives.get(seen.life).killed_at.expect("it was followed by another life");
        let answered_at = seen.request.ended_at.expect("all are at rest");
        let acknowledged = published.acknowledged_between(answered_at, killed_at);
        assert!(
            acknowledged <= STORED_WITHIN,
            "{name}: {acknowledged} publications were sent and acknowledged after an answer that is not stored: {seen:#?}"
        );
        most = most.max(acknowledged);
        longest = longest.max(killed_at.saturating_duration_since(answered_at));
    }
    let count = lost.len();
    format!("{name}: {count} results died with it, at most {longest:?} old and {most} acknowledgements late")
}

/// Under a rate limit no more starts wait for their commit than may be in flight: a crash forgets no more than that.
fn starts_wait_for_commits(lost: &[&Seen<'_>]) {
    let mut in_life: HashMap<usize, usize> = HashMap::new();
    for seen in lost {
        let count = in_life.entry(seen.life).or_default();
        *count += 1;
        assert!(*count <= LIMITED, "{count} starts of life {} are not stored", seen.life);
    }
}

/// Never more open at a time than allowed. A kill ends what was open, and that was seen before the next life began.
fn concurrency_holds(seen: &[Seen<'_>]) {
    let end = |one: &Seen<'_>| one.request.ended_at.expect("all are at rest");
    for one in seen {
        let at = one.request.began_at;
        let open = seen.iter().filter(|other| other.request.began_at <= at && end(other) > at).count();
        assert!(open <= NARROW, "{open} open at a time");
    }
}

/// Within an ordering key (in `fifo` there is one): first receipts are in the order of publishing, and so is each life.
fn order_holds(seen: &[Seen<'_>]) {
    let mut highest: HashMap<Option<&str>, u64> = HashMap::new();
    let mut in_life: HashMap<(Option<&str>, usize), u64> = HashMap::new();
    let mut known = HashSet::new();
    for one in seen {
        let (key, number) = (one.event.key.as_deref(), one.event.number);
        let before = in_life.insert((key, one.life), number);
        assert!(before.is_none_or(|before| before < number), "{:?} after number {before:?}", one.event);
        if known.insert(number) {
            let before = highest.insert(key, number);
            assert!(before.is_none_or(|before| before < number), "{:?} after number {before:?}", one.event);
        }
    }
}

/// What was answered with 202 came to each destination that gets it; a request of unknown end came whole or not at all.
fn nothing_is_lost(world: &World, published: &Published, arrived: &HashSet<(u64, &str)>) {
    let mut unknown: HashMap<(u64, &str), (usize, usize)> = HashMap::new();
    for event in &published.events {
        for destination in world.destinations.iter().filter(|one| one.gets(&event.event_type)) {
            let came = arrived.contains(&(event.number, destination.name));
            if event.id.is_some() {
                assert!(came, "{event:?} was accepted and never came to {}", destination.name);
            } else {
                let count = unknown.entry((event.request, destination.name)).or_default();
                *count = (count.0 + 1, count.1 + usize::from(came));
            }
        }
    }
    for ((request, name), (sent, came)) in unknown {
        assert!(came == 0 || came == sent, "{came} of {sent} events of request {request} came to {name}");
    }
}

/// The API knows every event that it answered for, as delivered, and nothing in any other state.
pub(crate) async fn api_agrees(server: &Server, published: &Published) {
    for event in &published.events {
        let Some(id) = &event.id else { continue };
        let shown = server.get(&format!("/v1/outbound-events/{id}")).await.expect(200);
        assert_eq!(shown["status"], "delivered", "{event:?}: {shown}");
    }
    for status in ["queued", "delivering", "retry_scheduled", "dead_letter", "expired", "cancelled"] {
        let listed = server.get(&format!("/v1/deliveries?status={status}&limit=1")).await.expect(200);
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(0), "{listed}");
    }
}
