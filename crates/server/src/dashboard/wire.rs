//! Answers of the API, as far as pages show them. Fields have the API's names and meanings.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use tidegate_core::time::Timestamp;

use crate::policy::breaker::BreakerDocument;
use crate::policy::rate::RateLimitDocument;
use crate::policy::retry::RetryDocument;
use crate::policy::schedule::ScheduleDocument;

/// A time of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At(pub(super) Timestamp);

impl<'de> Deserialize<'de> for At {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Timestamp::parse(&text).map(Self).ok_or_else(|| serde::de::Error::custom("no time"))
    }
}

/// A page of a list.
#[derive(Debug, Deserialize)]
pub(super) struct List<T> {
    pub(super) items: Vec<T>,
    pub(super) next_cursor: Option<String>,
    /// `None` where nobody asked, and where there are too many to count.
    #[serde(default)]
    pub(super) total: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Destination {
    pub(super) id: String,
    pub(super) external_id: Option<String>,
    pub(super) name: String,
    pub(super) url: String,
    pub(super) active: bool,
    pub(super) event_types: Vec<String>,
    pub(super) max_concurrency: u32,
    pub(super) ordering: String,
    pub(super) on_exhausted: String,
    pub(super) timeout_seconds: Option<u64>,
    pub(super) rate_limit: Option<RateLimitDocument>,
    pub(super) delivery_schedules: Vec<ScheduleDocument>,
    pub(super) retry_policy: Option<RetryDocument>,
    pub(super) circuit_breaker: BreakerDocument,
    pub(super) permanent_statuses: Vec<u16>,
    pub(super) envelope: String,
    pub(super) auth_config: Option<AuthConfig>,
    pub(super) custom_headers: BTreeMap<String, String>,
    pub(super) signing_public_key: Option<String>,
    pub(super) previous_valid_until: Option<At>,
    #[serde(default)]
    pub(super) signing_secret: Option<String>,
    pub(super) status: String,
    pub(super) holds: Vec<Hold>,
    pub(super) consecutive_throttles: u32,
    pub(super) queued_events: u64,
    pub(super) inflight: u32,
    pub(super) node: Option<String>,
    pub(super) as_of: Option<At>,
    pub(super) oldest_queued_at: Option<At>,
    pub(super) rate_now: Option<RateNow>,
    pub(super) timeout: Timeout,
    pub(super) success_rate_24h: Option<f64>,
    pub(super) timeout_rate_24h: Option<f64>,
    pub(super) created_at: At,
    pub(super) version: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct AuthConfig {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) name: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Hold {
    pub(super) reason: String,
    pub(super) since: Option<At>,
    pub(super) until: Option<At>,
    pub(super) detail: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct RateNow {
    pub(super) tokens: u64,
    pub(super) burst: u64,
    pub(super) per_minute: f64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Timeout {
    pub(super) mode: String,
    pub(super) ms: i64,
    pub(super) p99_ms: Option<i64>,
    pub(super) sample_count: u64,
    pub(super) computed_at: Option<At>,
    pub(super) target_ms: Option<i64>,
    pub(super) next_step: Option<NextStep>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct NextStep {
    pub(super) at: At,
    pub(super) ms: i64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Forecast {
    pub(super) queued_events: u64,
    pub(super) opens_at: Option<At>,
    pub(super) drained_at: Option<At>,
    pub(super) waits_for: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Attempt {
    pub(super) delivery_id: String,
    pub(super) number: u32,
    pub(super) started_at: At,
    pub(super) response_time_ms: i64,
    pub(super) timeout_ms: i64,
    pub(super) outcome: String,
    pub(super) status_code: Option<u16>,
    pub(super) error: Option<String>,
    pub(super) response_headers: BTreeMap<String, String>,
    pub(super) response_body: Option<String>,
    pub(super) probe: Option<String>,
    pub(super) counted: bool,
    pub(super) node: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Requests {
    pub(super) url: Option<String>,
    pub(super) envelope: Option<String>,
    pub(super) attempts: Vec<Request>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Request {
    pub(super) number: u32,
    pub(super) changed_at: Option<At>,
    pub(super) headers: Vec<RequestHeader>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RequestHeader {
    pub(super) name: String,
    pub(super) value: Option<String>,
    pub(super) hidden: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PastHold {
    pub(super) reason: String,
    pub(super) since: At,
    pub(super) until: Option<At>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Notice {
    pub(super) at: At,
    pub(super) kind: String,
    pub(super) detail: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Latency {
    pub(super) all: Distribution,
    pub(super) buckets: Vec<Bucket>,
    pub(super) days: Vec<Day>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Distribution {
    pub(super) samples: u64,
    pub(super) timeouts: u64,
    pub(super) p50_ms: Option<i64>,
    pub(super) p95_ms: Option<i64>,
    pub(super) p99_ms: Option<i64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Bucket {
    pub(super) from_ms: i64,
    pub(super) to_ms: i64,
    pub(super) answered: u32,
    pub(super) timeouts: u32,
}

#[derive(Debug, Deserialize)]
pub(super) struct Day {
    pub(super) date: String,
    #[serde(flatten)]
    pub(super) distribution: Distribution,
}

#[derive(Debug, Deserialize)]
pub(super) struct Quiet {
    pub(super) windows: Vec<Interval>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Interval {
    pub(super) start: At,
    pub(super) end: At,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delivery {
    pub(super) id: String,
    pub(super) event_id: String,
    pub(super) event_type: String,
    pub(super) destination_id: Option<String>,
    pub(super) status: String,
    pub(super) hold_reason: Option<String>,
    pub(super) retry_at: Option<At>,
    pub(super) attempts_count: u32,
    pub(super) attempts_used: u32,
    pub(super) max_attempts: Option<u32>,
    pub(super) priority: u8,
    pub(super) ordering_key: Option<String>,
    pub(super) created_at: At,
    pub(super) expires_at: Option<At>,
    pub(super) finished_at: Option<At>,
    pub(super) final_reason: Option<String>,
    pub(super) will_expire: bool,
    pub(super) replay_of: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct DeliveryStory {
    #[serde(flatten)]
    pub(super) delivery: Delivery,
    pub(super) attempts: Vec<Attempt>,
    pub(super) timeline: Vec<Moment>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Moment {
    pub(super) at: At,
    pub(super) status: String,
    #[serde(default)]
    pub(super) retry_at: Option<At>,
    #[serde(default)]
    pub(super) lasts: bool,
    pub(super) detail: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Explanation {
    pub(super) summary: String,
    pub(super) gates: Vec<Gate>,
    pub(super) queue: Option<Place>,
    pub(super) estimated_at: Option<At>,
    pub(super) will_expire: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Gate {
    pub(super) gate: String,
    pub(super) open: bool,
    pub(super) until: Option<At>,
    pub(super) detail: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Place {
    pub(super) ahead: u64,
    pub(super) exact: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Event {
    pub(super) id: String,
    pub(super) event_type: String,
    pub(super) external_event_id: Option<String>,
    pub(super) status: String,
    pub(super) routed: u32,
    pub(super) occurred_at: At,
    pub(super) created_at: At,
    pub(super) expires_at: Option<At>,
    pub(super) deliver_at: Option<At>,
    pub(super) ordering_key: Option<String>,
    pub(super) priority: u8,
    pub(super) content_type: String,
    pub(super) payload_size: u64,
}

/// The deliveries of an event, and how many have each status.
#[derive(Debug, Deserialize)]
pub(super) struct Deliveries {
    pub(super) deliveries: Vec<Delivery>,
    #[serde(rename = "delivery_counts")]
    pub(super) counts: BTreeMap<String, u64>,
}

/// The payload of an event as the bytes that came in.
#[derive(Debug, Deserialize)]
pub(super) struct Payload {
    pub(super) payload: Box<serde_json::value::RawValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Stats {
    pub(super) destinations: usize,
    pub(super) queued_events: u64,
    pub(super) queued_bytes: u64,
    pub(super) inflight: usize,
    pub(super) last_24h: Counts,
    pub(super) hours: Vec<Hour>,
    pub(super) minutes: Vec<Hour>,
    pub(super) minutes_since: At,
    pub(super) held: Vec<Held>,
    pub(super) oldest_queued_at: Option<At>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Counts {
    pub(super) accepted: u64,
    pub(super) delivered: u64,
    pub(super) dead_letter: u64,
    pub(super) expired: u64,
    pub(super) attempts: u64,
    pub(super) successes: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Hour {
    pub(super) start: At,
    pub(super) events: Option<u64>,
    #[serde(flatten)]
    pub(super) counts: Counts,
    #[serde(default)]
    pub(super) p50_ms: Option<i64>,
    #[serde(default)]
    pub(super) p99_ms: Option<i64>,
}

/// How many ended so, of what is kept.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct Ended {
    pub(super) dead_letter: u64,
    pub(super) expired: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Held {
    pub(super) reason: String,
    pub(super) deliveries: u64,
    pub(super) destinations: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Node {
    pub(super) id: String,
    pub(super) status: String,
    pub(super) version: String,
    pub(super) address: Option<String>,
    pub(super) slot_count: usize,
    pub(super) destinations: usize,
    pub(super) inflight: Option<u32>,
    pub(super) max_in_flight: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Job {
    pub(super) id: String,
    pub(super) status: String,
    pub(super) request: serde_json::Value,
    pub(super) total: Option<u64>,
    pub(super) done: u64,
    pub(super) skipped: u64,
    pub(super) created_at: At,
    pub(super) finished_at: Option<At>,
}

#[derive(Debug, Deserialize)]
pub(super) struct DryRun {
    pub(super) count: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct EventType {
    pub(super) event_type: String,
    pub(super) description: Option<String>,
    pub(super) delivery_ttl_seconds: Option<i64>,
    pub(super) max_attempts: Option<u64>,
    pub(super) retry_policy: Option<RetryDocument>,
    pub(super) priority: Option<u64>,
    pub(super) consumer_guidance: Option<String>,
    pub(super) version: u64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Settings {
    pub(super) defaults: serde_json::Map<String, serde_json::Value>,
    pub(super) max_queued_events: Option<u64>,
    pub(super) max_queued_bytes: Option<u64>,
    pub(super) paused: bool,
    pub(super) public_event_types: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Key {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) role: String,
    pub(super) prefix: String,
    pub(super) created_at: At,
    pub(super) expires_at: Option<At>,
    #[serde(default)]
    pub(super) api_key: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TestResult {
    pub(super) event_id: String,
    pub(super) outcome: String,
    pub(super) status_code: Option<u16>,
    pub(super) error: Option<String>,
    pub(super) response_time_ms: i64,
    pub(super) timeout_ms: i64,
    pub(super) response_body: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Rotated {
    pub(super) signing_secret: Option<String>,
    pub(super) previous_valid_until: Option<At>,
}
