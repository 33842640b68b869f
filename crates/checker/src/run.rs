//! A run in memory: compact records of what the histories say, and the questions that several promises ask of them.

pub mod changes;
pub mod faults;
mod load;
mod routing;

use std::collections::HashMap;

use crate::history::{Limits, Outcome, Policy, State};
use crate::names::{Name, Names};
use changes::Timeline;
use faults::Faults;
use routing::Routing;

/// A second in the unit of `t`.
pub const SECOND: u64 = 1_000_000_000;
/// A millisecond in the unit of `t`.
pub const MILLI: u64 = 1_000_000;
/// A moment that never comes.
pub const NEVER: u64 = u64::MAX;

/// Two clocks, each in whole milliseconds, and once more after a restart.
const ROUNDED: u64 = 4 * MILLI;

/// The first half of a SHA-256: enough to tell payloads apart.
pub type Digest = u128;

/// A run.
pub struct Run {
    /// Where chance began.
    pub seed: u64,
    /// How late receivers may be to see things. Zero: virtual time, everything is exact.
    pub jitter: u64,
    /// Whether it came to rest.
    pub at_rest: bool,
    /// True wall time in ms = `t` in ms + this.
    pub mono_to_wall_ms: Option<i64>,
    /// What a node may use.
    pub limits: Limits,
    /// All texts.
    pub names: Names,
    /// Where to.
    pub destinations: Vec<Destination>,
    /// What producers sent, in the order of sending.
    pub publications: Vec<Publication>,
    /// The events in them.
    pub sent: Vec<Sent>,
    /// Events that were answered with an id, each once.
    pub accepted: Vec<Accepted>,
    /// What receivers saw, in the order of `t`.
    pub receipts: Vec<Receipt>,
    /// Receipts of each destination, in the order of `t`.
    pub by_destination: Vec<Vec<u32>>,
    /// Receipts by delivery, those of one in the order of `t`.
    pub by_delivery: Vec<u32>,
    /// What went wrong.
    pub faults: Faults,
    /// Deliveries as the API tells them at rest.
    pub deliveries: Vec<Delivery>,
    /// Attempts as the API tells them, by delivery and number.
    pub attempts: Vec<Attempt>,
    /// What was seen of deliveries during the run, by delivery and time.
    pub glimpses: Vec<Glimpse>,
    /// What was seen of readiness.
    pub readiness: Vec<Readiness>,
    /// What was seen of queues.
    pub queues: Vec<QueueLength>,
    /// Memory and descriptors.
    pub samples: Vec<Sample>,
    accepted_by_name: HashMap<Name, u32>,
    deliveries_by_name: HashMap<Name, u32>,
    routing: Routing,
    begins: u64,
}

/// A destination.
pub struct Destination {
    /// Its id.
    pub id: Name,
    /// Its name.
    pub name: String,
    /// Its policies, over time.
    pub timeline: Timeline,
    /// What its requests may be signed with.
    pub secrets: Vec<Secret>,
}

/// A signing secret.
pub struct Secret {
    /// The key in it.
    pub key: Vec<u8>,
    /// Requests may be signed with it from then …
    pub from: u64,
    /// … must be with it or a newer one, from then …
    pub needed_from: u64,
    /// … and may not any more after this.
    pub until: u64,
    /// Its end was set then: clocks that are set later move it.
    pub replaced_at: u64,
}

/// One request of a producer.
pub struct Publication {
    /// When it was sent.
    pub t: u64,
    /// When it was answered, or given up.
    pub answered: u64,
    /// Its number.
    pub request: u64,
    /// The answer.
    pub status: Option<u16>,
    /// `Idempotency-Key`.
    pub key: Option<Name>,
    /// Where to.
    pub endpoint: Name,
    /// Of the whole body.
    pub body: Digest,
    /// Its events: from here …
    pub first: u32,
    /// … so many.
    pub count: u32,
    /// Ids in the answer.
    pub ids: u32,
}

impl Publication {
    /// Whether its events are accepted for certain.
    pub fn is_accepted(&self) -> bool {
        self.status == Some(202)
    }
    /// Whether nobody knows if its events are accepted.
    pub fn is_unknown(&self) -> bool {
        self.status.is_none_or(|status| status >= 500)
    }
}

/// An event as it was sent.
pub struct Sent {
    /// In which publication.
    pub publication: u32,
    /// The id it was answered with.
    pub id: Option<Name>,
    /// Its type.
    pub event_type: Name,
    /// Of the payload.
    pub sha: Digest,
    /// Its line.
    pub ordering_key: Option<Name>,
    /// Stale from then on.
    pub expires_at_ms: Option<i64>,
    /// Whether it is to be delivered later.
    pub is_scheduled: bool,
    /// Exactly these destinations.
    pub to: Option<Box<[u32]>>,
}

/// An event that was accepted.
pub struct Accepted {
    /// Its id.
    pub id: Name,
    /// The first publication of it.
    pub sent: u32,
    /// When that was sent.
    pub sent_at: u64,
    /// When its producer first knew.
    pub known_at: u64,
}

/// How a request ended at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It has not.
    Open,
    /// The sender went away.
    Closed,
    /// It was answered.
    Answered,
}

/// What is known of a request's signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signed {
    /// Nothing: the body or the secrets are not in the history.
    Unknown,
    /// With these secrets, by their place, as bits; zero: with none of them.
    With(u8),
}

/// A request that came in.
pub struct Receipt {
    /// Its first byte was seen.
    pub t: u64,
    /// It was over.
    pub end: u64,
    /// At which destination; none: nobody knows this receiver.
    pub destination: Option<u32>,
    /// `webhook-id`.
    pub event: Name,
    /// `tidegate-delivery`.
    pub delivery: Name,
    /// `tidegate-event-type`.
    pub event_type: Name,
    /// `tidegate-attempt`.
    pub attempt: u32,
    /// `webhook-timestamp`.
    pub timestamp: i64,
    /// The true time, in Unix milliseconds.
    pub wall_ms: Option<i64>,
    /// Of the payload; none: it is wrapped, and the body is not in the history.
    pub sha: Option<Digest>,
    /// Whether it verifies.
    pub signed: Signed,
    /// How it ended.
    pub ending: Ending,
    /// What was answered.
    pub status: u16,
    /// `Retry-After` of the answer.
    pub retry_after: Option<Name>,
    /// What its request line asks for.
    pub path: Option<Name>,
}

impl Receipt {
    /// Whether its receiver answered 2xx.
    pub fn succeeded(&self) -> bool {
        self.ending == Ending::Answered && (200..300).contains(&self.status)
    }
}

/// A delivery at rest.
pub struct Delivery {
    /// Its id.
    pub id: Name,
    /// Of which event.
    pub event: Name,
    /// To which destination, unless that was deleted.
    pub destination: Option<u32>,
    /// What became of it.
    pub state: State,
    /// Requests made.
    pub attempts_count: u32,
    /// Of these, the ones that count.
    pub attempts_used: u32,
    /// How many may.
    pub max_attempts: Option<u32>,
    /// When it was accepted, by the server's clock.
    pub created_at: Option<i64>,
    /// Stale from then on.
    pub expires_at: Option<i64>,
    /// Final since.
    pub finished_at: Option<i64>,
    /// Whether it says why.
    pub has_reason: bool,
    /// Whether it says that the server died of it.
    pub is_put_aside: bool,
    /// Whether somebody asked for it.
    pub is_replay: bool,
}

/// An attempt as the API tells it.
pub struct Attempt {
    /// Of which delivery.
    pub delivery: Name,
    /// From 1.
    pub number: u32,
    /// When it began, by the server's clock.
    pub started_at: Option<i64>,
    /// How long it might have taken, in milliseconds.
    pub timeout_ms: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// What was answered.
    pub status: Option<u16>,
    /// Whether it used up one of `max_attempts`.
    pub counted: bool,
}

/// A delivery as it was seen during the run.
pub struct Glimpse {
    /// Which.
    pub delivery: Name,
    /// When.
    pub t: u64,
    /// How it was.
    pub state: State,
    /// Requests made.
    pub attempts_count: Option<u32>,
}

/// Whether a node said that it is ready.
pub struct Readiness {
    /// When.
    pub t: u64,
    /// Which node, where that was told.
    pub node: Option<Name>,
    /// What it said.
    pub ready: bool,
}

/// How much waited at a destination.
pub struct QueueLength {
    /// When.
    pub t: u64,
    /// Where.
    pub destination: u32,
    /// How many deliveries.
    pub queued: u64,
    /// How many requests.
    pub in_flight: u64,
}

/// What a node used.
pub struct Sample {
    /// When.
    pub t: u64,
    /// Which node.
    pub node: Name,
    /// Memory.
    pub rss_bytes: u64,
    /// Descriptors.
    pub fds: u64,
}

/// Whether a destination gets events of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// It does.
    Yes,
    /// It did for a part of the run.
    Maybe,
}

impl Run {
    /// Whether time is virtual: then nothing is seen late.
    pub const fn is_virtual(&self) -> bool {
        self.jitter == 0
    }
    /// How late something may be seen on a busy machine, where a second more or less excuses nothing.
    pub const fn late(&self) -> u64 {
        if self.is_virtual() { 0 } else { SECOND + self.jitter }
    }
    /// How far the whole milliseconds in which a server counts may lie from what is seen outside. What an answer asks for
    /// is never seen late otherwise: it is noted before it is written.
    pub const fn rounded(&self) -> u64 {
        if self.is_virtual() { 0 } else { ROUNDED }
    }
    /// The text of a name.
    pub fn text(&self, name: Name) -> &str {
        self.names.text(name)
    }
    /// When the sender of a request could know at the earliest that it is over. An answer is noted before it is written; that
    /// the sender went away may be seen late.
    pub const fn known_end(&self, receipt: &Receipt) -> u64 {
        match receipt.ending {
            Ending::Answered => receipt.end,
            Ending::Closed | Ending::Open => {
                let end = receipt.end.saturating_sub(self.jitter);
                if end > receipt.t { end } else { receipt.t }
            }
        }
    }
    /// A moment, for people: seconds since the run began.
    pub fn at(&self, t: u64) -> String {
        if t == NEVER {
            return "never".to_owned();
        }
        let since = t.saturating_sub(self.begins);
        format!("{}.{:06} s", since / SECOND, since % SECOND / 1_000)
    }
    /// A receipt, for people.
    pub fn show(&self, receipt: &Receipt) -> String {
        let place = receipt.destination.map_or("nobody's receiver", |index| self.name_of(index));
        format!(
            "{} ({}, attempt {}) at {place}, {}",
            self.text(receipt.event),
            self.text(receipt.delivery),
            receipt.attempt,
            self.at(receipt.t)
        )
    }
    /// A destination's name.
    pub fn name_of(&self, destination: u32) -> &str {
        &self.destinations[destination as usize].name
    }

    /// What the sender's wall clock may have shown at `t`: true time and each way in which it may have been off.
    pub fn walls(&self, t: u64, true_ms: i64) -> Vec<i64> {
        let slack = if self.is_virtual() { 0 } else { self.late() };
        self.faults.offsets(t, slack).into_iter().map(|offset| true_ms + offset).collect()
    }
    /// The true wall time of a moment, where it is known.
    pub fn true_wall(&self, t: u64) -> Option<i64> {
        let ms = i64::try_from(t / MILLI).ok()?;
        self.mono_to_wall_ms.map(|offset| ms + offset)
    }

    /// When the true wall time was so, where that is known.
    pub fn moment_of(&self, true_ms: i64) -> Option<u64> {
        let seen = || {
            let known = |receipt: &Receipt| Some(receipt.wall_ms? - i64::try_from(receipt.t / MILLI).ok()?);
            self.receipts.iter().find_map(known)
        };
        let offset = self.mono_to_wall_ms.or_else(seen)?;
        Some(u64::try_from(true_ms - offset).unwrap_or(0).saturating_mul(MILLI))
    }

    /// The event of an id, if it was accepted.
    pub fn accepted(&self, event: Name) -> Option<&Accepted> {
        self.accepted_by_name.get(&event).map(|index| &self.accepted[*index as usize])
    }
    /// An accepted event as it was sent.
    pub fn sent(&self, accepted: &Accepted) -> &Sent {
        &self.sent[accepted.sent as usize]
    }
    /// A delivery at rest.
    pub fn delivery(&self, id: Name) -> Option<&Delivery> {
        self.deliveries_by_name.get(&id).map(|index| &self.deliveries[*index as usize])
    }
    /// The attempts of a delivery that the API knows, by number.
    pub fn attempts_of(&self, delivery: Name) -> &[Attempt] {
        let from = self.attempts.partition_point(|attempt| attempt.delivery < delivery);
        let to = self.attempts.partition_point(|attempt| attempt.delivery <= delivery);
        &self.attempts[from..to]
    }
    /// One of them.
    pub fn attempt(&self, delivery: Name, number: u32) -> Option<&Attempt> {
        self.attempts_of(delivery).iter().find(|attempt| attempt.number == number)
    }
    /// The receipts of a delivery, in the order of `t`.
    pub fn requests_of(&self, delivery: Name) -> impl Iterator<Item = &Receipt> {
        let name = |index: &u32| self.receipts[*index as usize].delivery;
        let from = self.by_delivery.partition_point(|index| name(index) < delivery);
        let to = self.by_delivery.partition_point(|index| name(index) <= delivery);
        self.by_delivery[from..to].iter().map(|index| &self.receipts[*index as usize])
    }
    /// The receipts of a destination, in the order of `t`.
    pub fn requests_at(&self, destination: u32) -> impl Iterator<Item = &Receipt> + Clone {
        self.by_destination[destination as usize].iter().map(|index| &self.receipts[*index as usize])
    }
    /// The policies that may have been in force when a request began, which is up to J before it is seen.
    pub fn policies(&self, destination: u32, receipt: &Receipt) -> impl Iterator<Item = &Policy> {
        let timeline = &self.destinations[destination as usize].timeline;
        timeline.possible(receipt.t.saturating_sub(self.jitter), receipt.t)
    }
    /// Destinations by their place.
    pub fn places(&self) -> impl Iterator<Item = (u32, &Destination)> {
        (0..).zip(&self.destinations)
    }
    /// Where an event is to go.
    pub fn recipients(&self, sent: &Sent) -> Vec<(u32, Expect)> {
        match &sent.to {
            Some(to) => to.iter().map(|destination| (*destination, Expect::Yes)).collect(),
            None => self.routing.of_type(sent.event_type).to_vec(),
        }
    }
    /// Whether an event may go to this destination.
    pub fn may_get(&self, destination: u32, sent: &Sent) -> bool {
        match &sent.to {
            Some(to) => to.contains(&destination),
            None => self.routing.of_type(sent.event_type).iter().any(|(other, _)| *other == destination),
        }
    }
    /// When a delivery is stale: what the API says, else what its producer asked for.
    pub fn expiry(&self, receipt: &Receipt) -> Option<i64> {
        let told = self.delivery(receipt.delivery).map(|delivery| delivery.expires_at);
        let asked = || self.accepted(receipt.event).and_then(|accepted| self.sent(accepted).expires_at_ms);
        told.unwrap_or_else(asked)
    }
}
