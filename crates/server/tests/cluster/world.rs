//! The destinations: many of each kind, each with a receiver of its own.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde_json::{Value, json};

use crate::kit::{Client, Received, Receiver, Reply, millis, now, secs, wall};

/// Destinations in all.
const COUNT: usize = 200;
/// `Limited` ones may get so many in a second …
pub(crate) const RATE: u64 = 4;
/// … and so many at once.
pub(crate) const BURST: u64 = 8;
/// `Narrow` and `Long` ones may get so many at a time.
pub(crate) const NARROW: usize = 2;
/// The window of `Closing` ones begins so long after the world …
const CLOSES_AFTER: Duration = secs(14);
/// … and lasts so long.
const CLOSED_FOR: Duration = secs(10);

/// What a destination is there to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Takes everything at once: shows how soon deliveries go on after a fault.
    Plain,
    Limited,
    /// A few at a time, and slow.
    Narrow,
    Fifo,
    Keyed,
    /// Fails a third of the first attempts.
    Flaky,
    /// In its quiet hours as long as the run lasts.
    Quiet,
    /// Its quiet hours begin and end within the run.
    Closing,
    /// Answers after seconds, so that faults find requests in flight.
    Long,
}

const KINDS: [Kind; 10] = [
    Kind::Plain,
    Kind::Limited,
    Kind::Fifo,
    Kind::Keyed,
    Kind::Narrow,
    Kind::Plain,
    Kind::Flaky,
    Kind::Quiet,
    Kind::Long,
    Kind::Closing,
];

/// A destination of the test.
pub(crate) struct Destination {
    pub(crate) kind: Kind,
    /// What its event types begin with.
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) receiver: Receiver,
}

impl Destination {
    /// Whether it gets events of this type. The first ten plain ones share a type.
    pub(crate) fn gets(&self, event_type: &str) -> bool {
        let prefix = event_type.split('.').next().unwrap_or_default();
        prefix == self.name || (prefix == "shared" && self.shares())
    }

    fn shares(&self) -> bool {
        self.kind == Kind::Plain && self.name.as_str() < "d050"
    }

    /// How many requests it may have open at a time.
    pub(crate) fn concurrency(&self) -> usize {
        match self.kind {
            Kind::Plain => 20,
            Kind::Narrow | Kind::Long => NARROW,
            Kind::Fifo => 1,
            _ => 5,
        }
    }

    fn policy(&self, born: Timestamp) -> Value {
        let retries = json!({"max_attempts": 50, "delays_seconds": [1], "jitter": "none"});
        let mut policy = json!({
            "retry_policy": retries, "circuit_breaker": {"enabled": false}, "timeout_seconds": 15,
            "max_concurrency": self.concurrency(),
        });
        match self.kind {
            Kind::Limited => {
                policy["rate_limit"] = json!({"max": RATE, "per": "second", "burst_capacity": BURST});
            }
            Kind::Fifo => policy["ordering"] = json!("fifo"),
            Kind::Keyed => policy["ordering"] = json!("key"),
            Kind::Quiet => {
                policy["delivery_schedule"] =
                    window(born, -SignedDuration::from_mins(20), SignedDuration::from_mins(40));
            }
            Kind::Closing => {
                let from = SignedDuration::try_from(CLOSES_AFTER).expect("it is short");
                let length = SignedDuration::try_from(CLOSED_FOR).expect("it is short");
                policy["delivery_schedule"] = window(born, from, from + length);
            }
            _ => {}
        }
        policy
    }
}

/// Quiet from and to so long after a moment.
fn window(born: Timestamp, from: SignedDuration, to: SignedDuration) -> Value {
    let local =
        |after: SignedDuration| (born + after).to_zoned(TimeZone::UTC).strftime("%H:%M:%S").to_string();
    json!({"timezone": "UTC", "quiet_start": local(from), "quiet_end": local(to)})
}

/// All destinations.
pub(crate) struct World {
    pub(crate) destinations: Vec<Destination>,
    /// When `Closing` ones are quiet.
    pub(crate) closed: (Instant, Instant),
}

impl World {
    pub(crate) async fn build(client: &Client) -> Self {
        let (born_at, born) = (now(), wall());
        // Windows are given in whole seconds.
        let past = Duration::from_nanos(u64::from(born.subsec_nanosecond().unsigned_abs()));
        let closes = born_at - past + CLOSES_AFTER;
        let mut destinations = Vec::new();
        for index in 0..COUNT {
            let kind = KINDS[index % KINDS.len()];
            let receiver = Receiver::start(move |request| behaviour(kind, request)).await;
            let mut made = Destination { kind, name: format!("d{index:03}"), id: String::new(), receiver };
            let mut body = made.policy(born);
            body["name"] = json!(made.name);
            body["url"] = json!(made.receiver.url);
            let mut types = vec![format!("{}.*", made.name)];
            types.extend(made.shares().then(|| "shared.*".to_owned()));
            body["event_types"] = json!(types);
            let answer = client.post("/v1/destinations", body).await.expect(201);
            made.id = answer["id"].as_str().expect("an id").to_owned();
            destinations.push(made);
        }
        Self { destinations, closed: (closes, closes + CLOSED_FOR) }
    }

    /// All of a kind.
    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &Destination> {
        self.destinations.iter().filter(move |destination| destination.kind == kind)
    }

    /// Lets what waited in quiet hours go.
    pub(crate) async fn end_quiet_hours(&self, client: &Client) {
        for destination in self.of(Kind::Quiet) {
            let path = format!("/v1/destinations/{}", destination.id);
            client.patch(&path, json!({"delivery_schedule": null})).await.expect(200);
        }
    }

    /// Waits until every delivery is over.
    pub(crate) async fn come_to_rest(&self, client: &Client, bound: Duration) {
        // What other nodes count is known about a second later.
        let (began, mut rounds) = (now(), 0);
        while rounds < 4 {
            rounds += 1;
            for status in ["queued", "delivering", "retry_scheduled"] {
                let path = format!("/v1/deliveries?status={status}&limit=1");
                let listed = client.get(&path).await.expect(200);
                let Some(open) = listed["items"].get(0) else { continue };
                if began.elapsed() > bound {
                    let explained = format!("/v1/deliveries/{}/explain", open["id"].as_str().unwrap_or(""));
                    let explained = client.get(&explained).await.json;
                    panic!("after {bound:?} something is still open: {open} {explained}");
                }
                rounds = 0;
            }
            tokio::time::sleep(millis(700)).await;
        }
    }
}

fn behaviour(kind: Kind, request: &Received) -> Reply {
    let length = request.body.len();
    match kind {
        Kind::Narrow => Reply::status(200).after(millis(30 + length as u64)),
        Kind::Fifo | Kind::Keyed if request.attempt() == 1 && length.is_multiple_of(17) => Reply::status(500),
        Kind::Fifo | Kind::Keyed => Reply::status(200).after(millis(5)),
        Kind::Flaky if request.attempt() == 1 && length.is_multiple_of(3) => Reply::status(500),
        Kind::Long => Reply::status(200).after(secs(4)),
        _ => Reply::status(200),
    }
}
