//! What has to hold of what the receivers saw.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Life;
use crate::kit::{Received, Server};
use crate::producer::{Event, Published};
use crate::world::{BURST, Destination, NARROW, RATE, World};

/// Results are committed within this time: what was received before may not come again after a kill.
const COMMITTED_WITHIN: Duration = Duration::from_secs(2);
/// A request may be seen so much later than it was sent, on a busy machine.
const LATE: Duration = Duration::from_millis(200);

/// One request at one destination.
struct Seen<'a> {
    request: Received,
    event: &'a Event,
    /// Which life of the server sent it.
    life: usize,
}

pub(crate) fn all(world: &World, published: &Published, lives: &[Life]) {
    let mut ids = HashMap::new();
    let mut arrived = HashSet::new();
    for destination in &world.destinations {
        let seen = seen(destination, published, lives);
        for one in &seen {
            let id = ids.entry(one.event.number).or_insert_with(|| one.request.event_id().to_owned());
            assert_eq!(id, one.request.event_id(), "{:?} has two ids", one.event);
            arrived.insert((one.event.number, destination.name));
        }
        repeats_were_in_flight(destination, &seen, lives);
        match destination.name {
            "limited" => rate_holds(&seen),
            "narrow" => concurrency_holds(&seen, lives),
            "fifo" | "keyed" => order_holds(&seen),
            _ => (),
        }
    }
    nothing_is_lost(world, published, &arrived);
}

/// Every request with the event that it is for: all of them were published, and to destinations that get them.
fn seen<'a>(destination: &Destination, published: &'a Published, lives: &[Life]) -> Vec<Seen<'a>> {
    let find = |request: Received| {
        let body: Value = serde_json::from_slice(&request.body).expect("the body is the payload");
        let number = body["number"].as_u64().expect("our payloads have a number");
        let event = published.by_number.get(&number).map(|index| &published.events[*index]);
        let event = event.unwrap_or_else(|| panic!("{number} was never published"));
        assert!(destination.gets(&event.event_type), "{event:?} went to {}", destination.name);
        let expected = event.id.as_deref().unwrap_or(request.event_id());
        assert_eq!(request.event_id(), expected, "{event:?} came with another id");
        let life = lives.iter().rposition(|life| life.from <= request.began_at).unwrap_or(0);
        Seen { request, event, life }
    };
    destination.receiver.received().into_iter().map(find).collect()
}

/// What was answered with success comes again only if its sender was killed before it could note that.
fn repeats_were_in_flight(destination: &Destination, seen: &[Seen<'_>], lives: &[Life]) {
    let mut succeeded: HashMap<u64, &Seen<'_>> = HashMap::new();
    for one in seen {
        if let Some(before) = succeeded.get(&one.event.number) {
            let killed_at = lives[before.life].killed_at;
            let in_flight = killed_at.is_some_and(|at| {
                before.life < one.life
                    && at.saturating_duration_since(before.request.began_at) <= COMMITTED_WITHIN
            });
            assert!(
                in_flight,
                "{} got {:?} twice and it was not in flight at a kill: in lives {} and {}, {:?} apart, {:?} before the kill",
                destination.name,
                one.event,
                before.life,
                one.life,
                one.request.began_at.saturating_duration_since(before.request.began_at),
                killed_at.map(|at| at.saturating_duration_since(before.request.began_at)),
            );
        }
        if (200..300).contains(&one.request.answered) {
            succeeded.insert(one.event.number, one);
        }
    }
}

/// In any interval of T seconds at most `burst + rate · T`, over all lives.
fn rate_holds(seen: &[Seen<'_>]) {
    let times: Vec<Instant> = seen.iter().map(|one| one.request.began_at).collect();
    for (first, from) in times.iter().enumerate() {
        for (last, to) in times.iter().enumerate().skip(first) {
            let time = to.saturating_duration_since(*from) + LATE;
            let most = BURST as f64 + RATE as f64 * time.as_secs_f64();
            let count = last - first + 1;
            assert!(count as f64 <= most, "{count} requests in {time:?}, at most {most:.1}");
        }
    }
}

/// Never more open at a time than allowed. A kill ends what was open.
fn concurrency_holds(seen: &[Seen<'_>], lives: &[Life]) {
    let end = |one: &Seen<'_>| {
        let ended = one.request.ended_at.expect("all are at rest");
        lives[one.life].killed_at.map_or(ended, |killed| ended.min(killed.max(one.request.began_at)))
    };
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
