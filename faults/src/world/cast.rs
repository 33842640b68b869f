//! Which destinations a run has, and which promises they put to the test.

use jiff::SignedDuration;
use jiff::tz::TimeZone;
use serde_json::{Value, json};

use crate::clock::wall;

/// Which destinations there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    /// One for each bound.
    Whole,
    /// The same, and two that are alike.
    Twins,
    /// Few of them, for scenarios that start often.
    Small,
    /// A plain one, and one that takes long to answer.
    Slow,
    /// Without those that fail.
    Steady,
}

impl Cast {
    pub(super) fn has(self, name: &str) -> bool {
        match self {
            Self::Whole => !matches!(name, "slow" | "left" | "right"),
            Self::Twins => name != "slow",
            Self::Small => matches!(name, "plain" | "limited" | "fifo" | "flaky"),
            Self::Slow => matches!(name, "plain" | "slow"),
            Self::Steady => !matches!(
                name,
                "slow"
                    | "left"
                    | "right"
                    | "flaky"
                    | "brief"
                    | "away"
                    | "failing"
                    | "gone"
                    | "patient"
                    | "jittered"
            ),
        }
    }

    /// The promises that its destinations say nothing about, whatever is done.
    pub(crate) fn silent_about(self) -> &'static [&'static str] {
        match self {
            Self::Whole | Self::Twins => &[],
            // So few events that the one with a rate may get none.
            Self::Small => &["I5", "I6", "I7", "I9", "I14"],
            Self::Slow => &["I5", "I6", "I7", "I8", "I9", "I14"],
            Self::Steady => &["I7"],
        }
    }
}

/// What makes up a destination here.
pub(super) struct Spec {
    pub(super) name: &'static str,
    pub(super) policy: Value,
}

pub(super) fn specs() -> Vec<Spec> {
    let retries = |most: u32, seconds: u64, jitter: &str| json!({"max_attempts": most, "delays_seconds": [seconds], "jitter": jitter});
    let calm = json!({"enabled": false});
    let breaker = json!({"open_seconds": 3, "max_open_seconds": 3});
    // What fails for want of something at the sender's side is tried again soon, too.
    let spec = |name, mut policy: Value| {
        for (field, soon) in
            [("retry_policy", retries(8, 2, "proportional")), ("circuit_breaker", breaker.clone())]
        {
            if policy[field].is_null() {
                policy[field] = soon;
            }
        }
        Spec { name, policy }
    };
    vec![
        spec("plain", json!({"max_concurrency": 20})),
        spec("second", json!({"max_concurrency": 64})),
        spec(
            "limited",
            json!({"rate_limit": {"max": 20, "per": "second", "burst_capacity": 10}, "max_concurrency": 5}),
        ),
        spec("narrow", json!({"max_concurrency": 3})),
        spec("fifo", json!({"ordering": "fifo"})),
        spec("keyed", json!({"ordering": "key"})),
        spec("flaky", json!({"retry_policy": retries(6, 1, "none"), "circuit_breaker": calm})),
        spec("quiet", json!({"delivery_schedule": quiet_now()})),
        // They get a backlog each, to be served evenly.
        spec("left", json!({})),
        spec("right", json!({})),
        // Longer than a server may take to leave, and shorter than a test may take.
        spec("slow", json!({"timeout_seconds": 30})),
        // What is sent there fails, and its time to live is over before its attempts are.
        spec("brief", json!({"circuit_breaker": calm, "retry_policy": retries(20, 1, "none")})),
        // Delays that are longer than what the checker allows for being seen late.
        spec("patient", json!({"retry_policy": retries(6, 2, "none"), "circuit_breaker": calm})),
        spec("jittered", json!({"retry_policy": retries(6, 3, "proportional"), "circuit_breaker": calm})),
        // 429 with `Retry-After`.
        spec("busy", json!({"max_concurrency": 4, "circuit_breaker": calm})),
        // 503 with `Retry-After`.
        spec(
            "away",
            json!({"max_concurrency": 4, "circuit_breaker": calm, "retry_policy": retries(20, 1, "none")}),
        ),
        // One request at a time, so that what it answers in a row is what its sender sees in a row.
        spec(
            "failing",
            json!({"max_concurrency": 1, "circuit_breaker": breaker, "retry_policy": retries(20, 1, "none")}),
        ),
        // 410 now and then.
        spec("gone", json!({"max_concurrency": 1})),
        // These three are changed while the run goes on.
        spec("renamed", json!({})),
        spec("halted", json!({})),
        spec(
            "tuned",
            json!({"rate_limit": {"max": 20, "per": "second", "burst_capacity": 5}, "max_concurrency": 4}),
        ),
    ]
}

/// A window that began two hours ago and goes on for twenty.
fn quiet_now() -> Value {
    let local = |hours| {
        (wall() + SignedDuration::from_hours(hours)).to_zoned(TimeZone::UTC).strftime("%H:%M").to_string()
    };
    json!({
        "timezone": "UTC", "quiet_start": local(-2), "quiet_end": local(20), "bypass_event_types": ["quiet.urgent"],
    })
}
