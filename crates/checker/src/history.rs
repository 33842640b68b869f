//! The histories of a run: what producers sent and were told, what receivers saw, what went wrong and when, and what the
//! API said. This is the contract between whoever records a run and this checker.
//!
//! A run is a directory. `t` is nanoseconds on one clock that all recorders share: `CLOCK_MONOTONIC` in real runs, virtual
//! time in simulated ones. Wall times end in `_ms` and are Unix milliseconds. Each `*.jsonl` has one JSON object per line,
//! in the order in which they were written, which need not be that of `t`. Unknown fields are ignored. A last line
//! without its end is ignored: its recorder was cut off.
//!
//! | file | line | what it says |
//! |---|---|---|
//! | `world.json` | [`World`] | seed, jitter, destinations; needed |
//! | `producer.jsonl` | [`Producer`] | publications with their answers, and changes of destinations; needed |
//! | `receiver.jsonl` | [`Receiver`] | requests that came in, and how each ended; needed |
//! | `faults.jsonl` | [`FaultLine`] | starts, kills, pauses, cuts, clock steps |
//! | `api.jsonl` | [`Api`] | what the API says when all is at rest, and polls before that |
//! | `resources.jsonl` | [`Sample`] | memory and descriptors |
//!
//! ```json
//! {"kind":"send","t":5000,"request":1,"endpoint":"/v1/outbound-events","key":null,"body_sha256":"ab…",
//!  "events":[{"event_type":"order.created","sha256":"cd…","destination_ids":null}]}
//! {"kind":"answer","t":9000,"request":1,"status":202,"ids":["evt_01"]}
//! ```
//!
//! Four things are not in the fields' names:
//! - the end of a request that is answered is noted just *before* the answer is written, so that nobody can know of it
//!   earlier; only a request whose sender went away may be noted as late as `jitter_ms`;
//! - an answer without a status, or with one from 500 on, is indeterminate: the events may have been accepted;
//! - `clock` tells how far the node's wall clock is off from then on (`detail.offset_ms`, from the true time, not from the
//!   last step); receivers' `wall_ms` and `mono_to_wall_ms` are the true time;
//! - a secret that a change of `action` `rotate` names in its `patch` (`signing_secret`) is valid from then on, and those
//!   before it for `overlap_seconds` (a day by default) more.

mod lines;
pub mod policy;

use std::path::PathBuf;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

pub use lines::{read_lines, read_world};
pub use policy::Policy;

/// Why histories cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// A file that every run has is not there, or cannot be read.
    #[error("{}: {why}", .file.display())]
    Unreadable {
        /// Which.
        file: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// A line is not as the contract has it.
    #[error("{} line {line}: {what}", .file.display())]
    Line {
        /// Of which file.
        file: PathBuf,
        /// From 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
}

/// `world.json`: the world of the run.
#[derive(Debug, Deserialize)]
pub struct World {
    /// Where chance began.
    #[serde(default)]
    pub seed: u64,
    /// J: how late receivers may be to see a request, as measured in a calm run. Zero: virtual time.
    #[serde(default = "usual_jitter_ms")]
    pub jitter_ms: u64,
    /// Whether the run says that it came to rest, so that `api.jsonl` tells how everything ended.
    #[serde(default = "yes")]
    pub at_rest: bool,
    /// True wall time = `t` / 10⁶ + this.
    #[serde(default)]
    pub mono_to_wall_ms: Option<i64>,
    /// Where to.
    pub destinations: Vec<Destination>,
    /// What the server may use.
    #[serde(default)]
    pub limits: Limits,
}

/// J of a machine with two cores and much to do besides, where nobody measured it.
const fn usual_jitter_ms() -> u64 {
    250
}

const fn yes() -> bool {
    true
}

/// What a node may use, and what it was told.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Memory.
    pub rss_bytes: u64,
    /// Open descriptors.
    pub fds: u64,
    /// A delivery that is older is given up.
    pub max_age_seconds: u64,
}

impl Default for Limits {
    /// What is promised of 2,000 destinations at once.
    fn default() -> Self {
        Self { rss_bytes: 300 << 20, fds: 8_192, max_age_seconds: 7 * 86_400 }
    }
}

/// A destination as it was created.
#[derive(Debug, Deserialize)]
pub struct Destination {
    /// Its id.
    pub id: String,
    /// Its name, which is also its receiver's.
    pub name: String,
    /// The API's document of it.
    pub policy: Map<String, Value>,
    /// What its requests are signed with, as far as the recorder knows.
    #[serde(default)]
    pub secrets: Vec<Option<String>>,
}

/// A line of `producer.jsonl`.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Producer {
    /// A publication goes out.
    Send {
        /// When.
        t: u64,
        /// Its number, which its answer repeats.
        request: u64,
        /// Where to; it is part of what an idempotency key stands for.
        #[serde(default)]
        endpoint: String,
        /// `Idempotency-Key`.
        #[serde(default)]
        key: Option<String>,
        /// Of the whole body.
        #[serde(default)]
        body_sha256: String,
        /// One, or those of a batch.
        events: Vec<SentEvent>,
    },
    /// Its answer, or the end of waiting for one.
    Answer {
        /// When.
        t: u64,
        /// Of which publication.
        request: u64,
        /// Null: there was none.
        #[serde(default)]
        status: Option<u16>,
        /// One for each event, if the status is 202.
        #[serde(default)]
        ids: Vec<String>,
    },
    /// A destination is changed.
    Change {
        /// When that was asked for.
        t: u64,
        /// When it was answered.
        #[serde(default)]
        answered: Option<u64>,
        /// Which destination.
        destination: String,
        /// The fields that change.
        #[serde(default)]
        patch: Map<String, Value>,
        /// `pause`, `resume`, `rotate`, `retry-now`, `delete`, `cancel` …; none: a PATCH. `cancel` stands for any call that
        /// withdraws deliveries to this destination.
        #[serde(default)]
        action: Option<String>,
        /// Null: there was no answer.
        #[serde(default)]
        status: Option<u16>,
    },
}

/// An event as its producer sent it.
#[derive(Debug, Deserialize)]
pub struct SentEvent {
    /// Its type.
    pub event_type: String,
    /// Of the payload's bytes, as a receiver should get them.
    pub sha256: String,
    /// Its line.
    #[serde(default)]
    pub ordering_key: Option<String>,
    /// Stale from then on.
    #[serde(default)]
    pub expires_at_ms: Option<i64>,
    /// Not before then.
    #[serde(default)]
    pub deliver_at_ms: Option<i64>,
    /// How urgent.
    #[serde(default)]
    pub priority: Option<u8>,
    /// Exactly these; none: every destination whose types match.
    #[serde(default)]
    pub destination_ids: Option<Vec<String>>,
}

/// A line of `receiver.jsonl`.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Receiver {
    /// A request came in.
    Request {
        /// Its first byte was seen.
        t: u64,
        /// Its number, which its end repeats.
        n: u64,
        /// The destination's name.
        receiver: String,
        /// Which connection.
        #[serde(default)]
        connection: u64,
        /// `webhook-id`.
        event_id: String,
        /// `tidegate-delivery`.
        delivery_id: String,
        /// `tidegate-attempt`.
        attempt: u32,
        /// `tidegate-event-type`.
        event_type: String,
        /// `webhook-timestamp`, Unix seconds.
        timestamp: i64,
        /// `webhook-signature`.
        #[serde(default)]
        signature: String,
        /// Of the body.
        sha256: String,
        /// The body, where it is short and text.
        #[serde(default)]
        body: Option<String>,
        /// The receiver's clock.
        #[serde(default)]
        wall_ms: Option<i64>,
        /// What the request line asks for, such as `/hooks?a=1`.
        #[serde(default)]
        path: Option<String>,
    },
    /// It is over.
    End {
        /// Just before the answer was written, or when the sender was seen to be gone.
        t: u64,
        /// Which.
        n: u64,
        /// Who ended it.
        how: How,
        /// What was, or was to be, answered.
        #[serde(default)]
        status: Option<u16>,
        /// `Retry-After` of the answer.
        #[serde(default)]
        retry_after: Option<String>,
    },
}

/// How a request ended at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The answer was written.
    Answered,
    /// The sender went away before.
    Closed,
}

/// A line of `faults.jsonl`.
#[derive(Debug, Deserialize)]
pub struct FaultLine {
    /// When.
    pub t: u64,
    /// What.
    pub kind: FaultKind,
    /// Whom.
    #[serde(default)]
    pub node: String,
    /// What else there is to say.
    #[serde(default)]
    pub detail: FaultDetail,
}

/// What else there is to say of a fault.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct FaultDetail {
    /// How far the wall clock is off, from now on.
    #[serde(default)]
    pub offset_ms: Option<i64>,
    /// Who killed it, if not the recorder: that is noted when it was seen, a moment later.
    #[serde(default)]
    pub by: Option<String>,
}

/// What is done to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// About to be started.
    Start,
    /// It answers.
    Ready,
    /// About to be killed.
    Kill,
    /// Asked to stop.
    Stop,
    /// Frozen.
    Pause,
    /// Goes on.
    Resume,
    /// Cut off from the database, or from receivers.
    Cut,
    /// Reached again.
    Heal,
    /// Its wall clock is set.
    Clock,
    /// The power fails.
    PowerCut,
    /// Its disk is full.
    DiskFull,
    /// There is room again.
    DiskFree,
    /// Something else runs short: its descriptors, or the speed of its disk.
    Strain,
    /// No more.
    Relief,
}

/// A line of `api.jsonl`.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Api {
    /// An event at rest, with its deliveries.
    Event {
        /// `data` of `GET /v1/outbound-events/{id}`.
        body: EventBody,
    },
    /// A delivery at rest.
    Delivery {
        /// As in `GET /v1/deliveries`.
        body: DeliveryBody,
    },
    /// An attempt.
    Attempt {
        /// Of which delivery.
        delivery_id: String,
        /// As in `GET /v1/destinations/{id}/attempts`.
        body: AttemptBody,
    },
    /// The answer to a request while the run goes on.
    Poll {
        /// When it came.
        t: u64,
        /// What was asked.
        path: String,
        /// Null: there was no answer.
        #[serde(default)]
        status: Option<u16>,
        /// Who was asked, where there are several.
        #[serde(default)]
        node: Option<String>,
        /// `data` of the answer, or the whole of it.
        #[serde(default)]
        body: Option<PollBody>,
    },
}

/// What is read of an event.
#[derive(Debug, Deserialize)]
pub struct EventBody {
    /// Its id.
    pub id: String,
    /// What became of it.
    pub status: String,
    /// Its deliveries.
    #[serde(default)]
    pub deliveries: Vec<DeliveryBody>,
}

/// What is read of a delivery.
#[derive(Debug, Deserialize)]
pub struct DeliveryBody {
    /// Its id.
    pub id: String,
    /// Of which event.
    pub event_id: String,
    /// To which destination; null: it was deleted.
    pub destination_id: Option<String>,
    /// Its state.
    pub status: State,
    /// Requests made.
    pub attempts_count: u32,
    /// Of these, the ones that count.
    #[serde(default)]
    pub attempts_used: u32,
    /// How many may.
    #[serde(default)]
    pub max_attempts: Option<u32>,
    /// When it was accepted.
    #[serde(default, deserialize_with = "time")]
    pub created_at: Option<i64>,
    /// Stale from then on.
    #[serde(default, deserialize_with = "time")]
    pub expires_at: Option<i64>,
    /// Final since.
    #[serde(default, deserialize_with = "time")]
    pub finished_at: Option<i64>,
    /// Why.
    #[serde(default)]
    pub final_reason: Option<String>,
    /// Which one it repeats.
    #[serde(default)]
    pub replay_of: Option<String>,
}

/// The state of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// May go.
    Queued,
    /// Waits for its own time.
    RetryScheduled,
    /// On its way.
    Delivering,
    /// Answered with success.
    Delivered,
    /// Given up.
    DeadLetter,
    /// Stale.
    Expired,
    /// Withdrawn.
    Cancelled,
}

impl State {
    /// Whether nothing follows.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Delivered | Self::DeadLetter | Self::Expired | Self::Cancelled)
    }
}

/// What is read of an attempt.
#[derive(Debug, Deserialize)]
pub struct AttemptBody {
    /// From 1.
    pub number: u32,
    /// When it began, by the server's clock.
    #[serde(default, deserialize_with = "time")]
    pub started_at: Option<i64>,
    /// How long it took.
    #[serde(default)]
    pub response_time_ms: Option<i64>,
    /// How long it might have taken.
    #[serde(default)]
    pub timeout_ms: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// What the destination answered.
    #[serde(default)]
    pub status_code: Option<u16>,
    /// Whether it counts against `max_attempts`.
    #[serde(default)]
    pub counted: Option<bool>,
}

/// How an attempt ended, in the API's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// 2xx.
    Success,
    /// 429.
    RateLimited,
    /// 503 with `Retry-After`.
    Unavailable,
    /// 410.
    Gone,
    /// Any other status that is no success.
    HttpError,
    /// 3xx.
    Redirect,
    /// No answer in time.
    Timeout,
    /// No answer at all.
    NetworkError,
    /// Refused to dial.
    Blocked,
    /// Called off by us.
    Cancelled,
}

/// What is read of a poll's answer, whatever was asked.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct PollBody {
    /// The same, one level down.
    pub data: Option<Box<PollBody>>,
    /// Of a delivery, or of anything else that has one.
    pub status: Option<Value>,
    /// Of a delivery.
    pub attempts_count: Option<u32>,
    /// Of a destination.
    pub queued_events: Option<u64>,
    /// Of a destination.
    pub inflight: Option<u64>,
}

/// A line of `resources.jsonl`.
#[derive(Debug, Deserialize)]
pub struct Sample {
    /// When.
    pub t: u64,
    /// Of whom.
    #[serde(default)]
    pub node: String,
    /// Memory.
    pub rss_bytes: u64,
    /// Descriptors.
    pub fds: u64,
}

/// RFC 3339 as Unix milliseconds.
fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    let Some(text) = Option::<std::borrow::Cow<'de, str>>::deserialize(from)? else { return Ok(None) };
    let read = chrono::DateTime::parse_from_rfc3339(&text);
    read.map(|at| Some(at.timestamp_millis()))
        .map_err(|error| serde::de::Error::custom(format_args!("{text:?} is no time: {error}")))
}
