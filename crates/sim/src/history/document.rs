//! `world.json`: the destinations of a simulated world as the API would show them.

use std::io;
use std::path::Path;

use serde_json::{Value, json};
use tidegate_core::order::{OnExhausted, Ordering};
use tidegate_core::policy::Policy;
use tidegate_core::quiet::Window;
use tidegate_core::rate::Quota;
use tidegate_core::retry::RetryPolicy;
use tidegate_core::time::Millis;

use crate::run::Setup;

/// The id of the `index`-th destination.
pub(super) fn id(index: usize) -> String {
    format!("dst_{index:026}")
}

/// The name of its receiver: names of a world need not differ.
pub(super) fn name(index: usize) -> String {
    format!("receiver-{index}")
}

pub(super) fn world(setup: &Setup, directory: &Path) -> io::Result<()> {
    let destinations = setup.destinations.iter().enumerate().map(|(index, destination)| {
        json!({"id": id(index), "name": name(index), "policy": policy(&destination.policy), "secrets": []})
    });
    let world = json!({
        "seed": setup.seed,
        "jitter_ms": 0,
        "mono_to_wall_ms": setup.start.as_millis(),
        "destinations": destinations.collect::<Vec<_>>(),
    });
    std::fs::write(directory.join("world.json"), format!("{world}\n"))
}

fn policy(policy: &Policy) -> Value {
    let breaker = &policy.breaker;
    json!({
        "max_concurrency": policy.max_concurrency.get(),
        "ordering": match policy.ordering {
            Ordering::None => "none",
            Ordering::Fifo => "fifo",
            Ordering::Key => "key",
        },
        "on_exhausted": match policy.on_exhausted {
            OnExhausted::Skip => "skip",
            OnExhausted::Halt => "halt",
        },
        "rate_limit": policy.rate_limit.as_ref().map(|limit| rate(&limit.quota)),
        "delivery_schedules": policy.quiet.windows().iter().map(window).collect::<Vec<_>>(),
        "retry_policy": policy.retry.as_deref().map(retry),
        "circuit_breaker": {
            "enabled": breaker.enabled,
            "consecutive_failures": breaker.consecutive_failures,
            "open_seconds": breaker.open.as_secs_f64(),
            "max_open_seconds": breaker.max_open.as_secs_f64(),
            "successes_to_close": breaker.successes_to_close,
        },
    })
}

/// Every period divides a day, so that the tokens of a day are a whole number.
fn rate(quota: &Quota) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "at most 864,000,000 a day")]
    let max = (quota.per_minute() * 1_440.0).round() as i64;
    json!({"max": max, "per": "day", "burst_capacity": quota.burst()})
}

fn window(window: &Window) -> Value {
    let spec = window.spec();
    json!({
        "timezone": spec.timezone,
        "quiet_start": spec.quiet_start,
        "quiet_end": spec.quiet_end,
        "days": spec.days,
        "applies_to": spec.applies_to,
        "bypass_event_types": spec.bypass_event_types,
    })
}

fn retry(policy: &RetryPolicy) -> Value {
    let delays: Vec<f64> = policy.delays().iter().copied().map(Millis::as_secs_f64).collect();
    json!({
        "max_attempts": policy.max_attempts(),
        "delays_seconds": delays,
        "jitter": policy.jitter().word(),
    })
}
