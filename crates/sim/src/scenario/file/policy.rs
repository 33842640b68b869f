//! The policy fields of a destination: the same names and shapes as in the API.
//!
//! What is allowed is decided by the rules' own constructors. They name one fault at a time, so each field is shown to
//! them alone first; what only several fields together make wrong is found at the end.

use std::sync::Arc;

use tidegate_core::breaker::BreakerPolicy;
use tidegate_core::invalid::Invalid;
use tidegate_core::order::{OnExhausted, Ordering};
use tidegate_core::policy::{Concurrency, PermanentStatuses, Policy};
use tidegate_core::quiet::{QuietHours, Window, WindowSpec};
use tidegate_core::rate::{Per, Quota, RateLimit, RateMode};
use tidegate_core::retry::{Jitter, RetryPolicy};
use tidegate_core::time::Millis;
use tidegate_core::timeout::TimeoutMode;

use super::fields::Fields;

/// What a `retry_policy` has that does not say.
const USUAL_ATTEMPTS: u64 = 5;
/// Likewise, in seconds.
const USUAL_DELAYS: [u64; 4] = [30, 120, 600, 3_600];

/// The policy that the fields of a destination describe.
pub(super) fn policy(fields: &mut Fields<'_>) -> Policy {
    let mut policy = Policy::default();
    if let Some(max) = fields.count("max_concurrency", &allowed_by(Concurrency::new(0))) {
        policy.max_concurrency = fields.accept(Concurrency::new(max)).unwrap_or_default();
    }
    policy.rate_limit = fields.table("rate_limit", rate_limit);
    policy.quiet = quiet_hours(fields);
    if let Some(word) = fields.text("ordering") {
        policy.ordering = fields.accept(Ordering::parse(word)).unwrap_or_default();
    }
    if let Some(word) = fields.text("on_exhausted") {
        policy.on_exhausted = fields.accept(OnExhausted::parse(word)).unwrap_or_default();
    }
    policy.timeout = timeout(fields);
    policy.retry = fields.table("retry_policy", retry_policy).map(Arc::new);
    if let Some(breaker) = fields.table("circuit_breaker", circuit_breaker) {
        policy.breaker = breaker;
    }
    if let Some(statuses) = fields.counts("permanent_statuses", &allowed_by(PermanentStatuses::new(vec![0])))
    {
        policy.permanent_statuses = permanent_statuses(fields, statuses);
    }
    policy
}

fn rate_limit(fields: &mut Fields<'_>) -> Option<RateLimit> {
    let form = fields.form(&["max_per_minute", "max"]);
    let per = match form {
        Some("max") => {
            fields.require("per", "second, minute, hour or day");
            let word = fields.text("per");
            word.and_then(|word| fields.accept(Per::parse(word)))
        }
        _ => Some(Per::Minute),
    };
    let known_per = per.unwrap_or(Per::Minute);
    let max = form.and_then(|form| fields.count(form, &allowed_by(Quota::new(0, known_per, Some(1)))));
    let burst = fields.count("burst_capacity", &allowed_by(Quota::new(1, Per::Minute, Some(0))));
    let mode = fields.choice("mode", &[("fixed", RateMode::Fixed), ("adaptive", RateMode::Adaptive)]);
    // The two numbers apart, so that both are named if both are wrong.
    let rate = max.zip(per).and_then(|(max, per)| {
        fields.accept(Quota::new(max, per, Some(1)).map_err(|fault| as_written(fault, form)))
    });
    let burst = burst.filter(|burst| fields.accept(Quota::new(1, Per::Minute, Some(*burst))).is_some());
    rate?;
    let quota = Quota::new(max?, per?, burst).ok()?;
    Some(RateLimit { quota, mode: mode.unwrap_or_default() })
}

/// A rate per minute may also be written with `max` and `per`: then the fault is with `max`.
fn as_written(fault: Invalid, form: Option<&str>) -> Invalid {
    let field = if fault.field.starts_with("max") { form.unwrap_or("max").to_owned() } else { fault.field };
    Invalid { field, ..fault }
}

fn quiet_hours(fields: &mut Fields<'_>) -> QuietHours {
    let one = fields.table("delivery_schedule", window);
    let several = fields.tables("delivery_schedules", window);
    if fields.has("delivery_schedule") && fields.has("delivery_schedules") {
        let value = "there beside `delivery_schedule`";
        fields.refuse(Invalid::new("delivery_schedules", value, "one of the two"));
        return QuietHours::none();
    }
    let name = if one.is_some() { "delivery_schedule" } else { "delivery_schedules" };
    let windows = one.into_iter().chain(several).collect();
    fields.accept(QuietHours::new(windows).map_err(|fault| fault.under(name))).unwrap_or_default()
}

fn window(fields: &mut Fields<'_>) -> Option<Window> {
    let mut spec = WindowSpec {
        timezone: fields.text("timezone").unwrap_or_default().to_owned(),
        quiet_start: fields.text("quiet_start").unwrap_or_default().to_owned(),
        quiet_end: fields.text("quiet_end").unwrap_or_default().to_owned(),
        days: fields.texts("days").unwrap_or_default(),
        applies_to: fields.texts("applies_to").unwrap_or_default(),
        bypass_event_types: fields.texts("bypass_event_types").unwrap_or_default(),
    };
    let mut faulty = false;
    loop {
        match Window::parse(spec.clone()) {
            Ok(window) => return (!faulty).then_some(window),
            // Mended, the rest is looked at as well.
            Err(fault) => {
                faulty = true;
                mend(&mut spec, &fault.field);
                fields.refuse(fault);
            }
        }
    }
}

/// Puts something in order for the field that was refused. Each is refused once at most.
fn mend(spec: &mut WindowSpec, field: &str) {
    match field.split('[').next() {
        Some("timezone") => spec.timezone = "UTC".to_owned(),
        Some("quiet_start") => spec.quiet_start = "00:00".to_owned(),
        Some("quiet_end") => {
            let other = if spec.quiet_start.starts_with("01:00") { "02:00" } else { "01:00" };
            spec.quiet_end = other.to_owned();
        }
        Some("days") => spec.days.clear(),
        Some("applies_to") => spec.applies_to.clear(),
        Some("bypass_event_types") => spec.bypass_event_types.clear(),
        _ => {
            let order = |text: &str| text.to_owned();
            *spec = WindowSpec {
                timezone: order("UTC"),
                quiet_start: order("00:00"),
                quiet_end: order("01:00"),
                ..WindowSpec::default()
            };
        }
    }
}

fn timeout(fields: &mut Fields<'_>) -> TimeoutMode {
    let pinned = fields.count("timeout_seconds", &allowed_by(TimeoutMode::pinned(0)));
    let mode = fields.table("timeout", |fields| {
        fields.require("mode", "adaptive or default");
        fields.choice("mode", &[("adaptive", TimeoutMode::Adaptive), ("default", TimeoutMode::Default)])
    });
    if fields.has("timeout_seconds") && fields.has("timeout") {
        fields.refuse(Invalid::new("timeout", "there beside `timeout_seconds`", "one of the two"));
    }
    let pinned = pinned.map(|seconds| TimeoutMode::pinned(i64::try_from(seconds).unwrap_or(i64::MAX)));
    pinned.and_then(|pinned| fields.accept(pinned)).or(mode).unwrap_or_default()
}

/// A `retry_policy`, of a destination or an event type. What it does not say is as usual.
pub(super) fn retry_policy(fields: &mut Fields<'_>) -> Option<RetryPolicy> {
    let allowed = allowed_by(RetryPolicy::new(0, vec![seconds(1)], Jitter::None));
    let max_attempts = fields.count("max_attempts", &allowed).unwrap_or(USUAL_ATTEMPTS);
    let allowed = allowed_by(RetryPolicy::new(1, vec![Millis::ZERO], Jitter::None));
    let delays = fields.counts("delays_seconds", &allowed).unwrap_or(USUAL_DELAYS.to_vec());
    let jitter = fields.text("jitter").and_then(|word| fields.accept(Jitter::parse(word)));
    let delays: Vec<Millis> = delays.into_iter().map(seconds).collect();
    let attempts_fit =
        fields.accept(RetryPolicy::new(max_attempts, vec![seconds(1)], Jitter::None)).is_some();
    let misfits = delays.iter().enumerate().filter(|(index, delay)| {
        let alone = RetryPolicy::new(1, vec![**delay], Jitter::None)
            .map_err(|fault| Invalid { field: format!("delays_seconds[{index}]"), ..fault });
        fields.accept(alone).is_none()
    });
    let all_fit = attempts_fit & (misfits.count() == 0);
    let policy = all_fit.then(|| RetryPolicy::new(max_attempts, delays, jitter.unwrap_or_default()))?;
    fields.accept(policy)
}

fn circuit_breaker(fields: &mut Fields<'_>) -> Option<BreakerPolicy> {
    let mut policy = BreakerPolicy::default();
    if let Some(enabled) = fields.flag("enabled") {
        policy.enabled = enabled;
    }
    type Set = fn(&mut BreakerPolicy, u64);
    let numbers: [(&'static str, Set); 6] = [
        ("min_attempts", |policy, count| policy.min_attempts = narrow(count)),
        ("window_seconds", |policy, count| policy.window = seconds(count)),
        ("consecutive_failures", |policy, count| policy.consecutive_failures = narrow(count)),
        ("open_seconds", |policy, count| policy.open = seconds(count)),
        ("max_open_seconds", |policy, count| policy.max_open = seconds(count)),
        ("successes_to_close", |policy, count| policy.successes_to_close = narrow(count)),
    ];
    let allowed = allowed_by(BreakerPolicy { failure_ratio: 0.0, ..policy }.validated());
    let ratio = fields.any_number("failure_ratio", &allowed).map(|failure_ratio| {
        fields
            .accept(BreakerPolicy { failure_ratio, ..BreakerPolicy::default() }.validated())
            .map(|_| failure_ratio)
    });
    policy.failure_ratio = ratio.flatten().unwrap_or(policy.failure_ratio);
    let mut all_fit = ratio.is_none_or(|ratio| ratio.is_some());
    for (name, set) in numbers {
        // No number here may be 0; the longest opening must also not be shorter than the first.
        let mut least = BreakerPolicy { open: policy.open, ..BreakerPolicy::default() };
        least.max_open = least.max_open.max(policy.open);
        set(&mut least, 0);
        let Some(count) = fields.count(name, &allowed_by(least.validated())) else {
            all_fit &= !fields.has(name);
            continue;
        };
        let mut alone = BreakerPolicy::default();
        set(&mut alone, count);
        match alone.validated() {
            Err(fault) if fault.field == name && name != "max_open_seconds" => {
                all_fit = false;
                fields.refuse(fault);
            }
            _ => set(&mut policy, count),
        }
    }
    if all_fit { fields.accept(policy.validated()) } else { None }
}

fn permanent_statuses(fields: &Fields<'_>, statuses: Vec<u64>) -> PermanentStatuses {
    let statuses: Vec<u16> =
        statuses.into_iter().map(|status| u16::try_from(status).unwrap_or(u16::MAX)).collect();
    for (index, status) in statuses.iter().enumerate() {
        let alone = PermanentStatuses::new(vec![*status])
            .map_err(|fault| Invalid { field: format!("permanent_statuses[{index}]"), ..fault });
        fields.accept(alone);
    }
    PermanentStatuses::new(statuses).unwrap_or_default()
}

/// What a rule allows, in its own words: it says so when it is shown what it refuses.
pub(super) fn allowed_by<T>(refused: Result<T, Invalid>) -> String {
    refused.err().map(|fault| fault.allowed).unwrap_or_default()
}

fn seconds(count: u64) -> Millis {
    Millis::seconds(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Larger numbers than these are out of every range.
fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usual_here_is_what_is_usual_in_the_rules() {
        let usual = USUAL_DELAYS.map(seconds).to_vec();
        let here = RetryPolicy::new(USUAL_ATTEMPTS, usual, Jitter::default()).unwrap();
        assert_eq!(here, RetryPolicy::default());
    }
}
