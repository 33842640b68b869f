//! An account's defaults as the fields of a form, and back.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::dashboard::ask::Refused;
use crate::dashboard::form::Values;
use crate::dashboard::policies;
use crate::policy::breaker::BreakerDocument;

/// Whose faults the API names so.
const WITHIN: &str = "defaults.";
/// Fields whose value is a word or a number, and is unsaid where it is empty.
const WORDS: [&str; 2] = ["ordering", "on_exhausted"];
const NUMBERS: [&str; 2] = ["max_concurrency", "max_age_seconds"];

/// Defaults as fields.
pub(super) fn put(values: &mut Values, defaults: &Map<String, Value>) {
    fn read<T: DeserializeOwned>(defaults: &Map<String, Value>, name: &str) -> Option<T> {
        serde_json::from_value(defaults.get(name)?.clone()).ok()
    }
    for name in WORDS {
        values.put_some(name, defaults.get(name).and_then(Value::as_str));
    }
    for name in NUMBERS {
        values.put_some(name, defaults.get(name));
    }
    if let Some(rate) = read(defaults, "rate_limit") {
        policies::put_rate(values, &rate);
    }
    if let Some(windows) = read::<Vec<_>>(defaults, "delivery_schedules") {
        policies::put_windows(values, &windows);
    }
    if let Some(retry) = read(defaults, "retry_policy") {
        policies::put_retry(values, &retry);
    }
    let breaker: Option<BreakerDocument> = read(defaults, "circuit_breaker");
    if breaker.is_some() {
        values.put("circuit_breaker", "on");
    }
    // The built-in one stands in the fields for whoever wants another.
    policies::put_breaker(values, &breaker.unwrap_or_default());
    match (defaults.get("timeout_seconds"), defaults.get("timeout")) {
        (Some(pinned), _) => {
            values.put("timeout.mode", "manual");
            values.put("timeout_seconds", pinned);
        }
        (None, Some(timeout)) => values.put_some("timeout.mode", timeout["mode"].as_str()),
        (None, None) => {}
    }
    if let Some(statuses) = read::<Vec<u16>>(defaults, "permanent_statuses") {
        values.put("permanent_statuses", policies::join(&statuses));
    }
}

/// Whether the form says anything.
pub(super) fn are_set(values: &Values) -> bool {
    !document(values).is_empty()
}

/// What the form says otherwise than `before`; what it says no more is null.
pub(super) fn changes(before: &Map<String, Value>, values: &Values) -> Map<String, Value> {
    let mut fields = Values::default();
    put(&mut fields, before);
    let (before, after) = (document(&fields), document(values));
    let gone =
        before.keys().filter(|name| !after.contains_key(*name)).map(|name| (name.clone(), Value::Null));
    let gone: Map<String, Value> = gone.collect();
    let other = after.into_iter().filter(|(name, value)| before.get(name) != Some(value));
    other.chain(gone).collect()
}

/// All that a tidy form says, in the words of the API. What is wrong with it, the API says.
fn document(values: &Values) -> Map<String, Value> {
    let words = WORDS.into_iter().filter_map(|name| Some((name, Value::from(values.some(name)?))));
    let numbers = NUMBERS.into_iter().map(|name| (name, values.number(name)));
    let breaker = values.is_on("circuit_breaker").then(|| policies::breaker(values));
    let more = [
        ("rate_limit", policies::rate(values)),
        ("delivery_schedules", policies::windows(values)),
        ("retry_policy", policies::retry(values)),
        ("circuit_breaker", breaker.unwrap_or_default()),
        ("permanent_statuses", policies::statuses(values).into()),
    ];
    let all = words.chain(numbers).chain(more).chain(policies::timeout(values));
    let says = |value: &Value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty());
    all.filter(|(_, value)| says(value)).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// A fault of a default, as the form names its fields.
pub(super) fn within(refused: Refused) -> Refused {
    let field = refused.field.map(|field| match field.strip_prefix(WITHIN) {
        Some(own) => own.to_owned(),
        None => field,
    });
    Refused { field, ..refused }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn defaults_come_back_from_the_form_as_they_went_in() {
        let before = map(&json!({
            "max_concurrency": 9, "ordering": "fifo", "on_exhausted": "halt", "timeout_seconds": 7, "max_age_seconds": 3600,
            "rate_limit": {"max": 10, "per": "second", "burst_capacity": 3, "mode": "adaptive"},
            "delivery_schedules": [{"timezone": "UTC", "quiet_start": "22:00", "quiet_end": "06:00", "days": ["mon"]}],
            "retry_policy": {"max_attempts": 3, "delays_seconds": [1, 2], "jitter": "full"},
            "circuit_breaker": {"enabled": false, "failure_ratio": 0.25}, "permanent_statuses": [400, 422],
        }));
        let mut values = Values::default();
        put(&mut values, &before);
        assert_eq!(changes(&before, &values), Map::new());
        let nothing = changes(&before, &Values::default());
        assert_eq!(nothing.len(), before.len(), "what is gone from the form is removed: {nothing:?}");
        assert!(nothing.values().all(Value::is_null));
    }

    #[test]
    fn an_empty_form_says_nothing() {
        let mut values = Values::default();
        put(&mut values, &Map::new());
        assert!(!are_set(&values));
        values.put("max_concurrency", "many");
        values.put("timeout.mode", "default");
        let said = changes(&Map::new(), &values);
        assert_eq!(Value::Object(said), json!({"max_concurrency": "many", "timeout": {"mode": "default"}}));
    }
}
