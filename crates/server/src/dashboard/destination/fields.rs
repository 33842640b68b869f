//! A destination as the fields of a form, and back: the names are the paths of the API, and so are its faults.

use maud::{Markup, html};
use serde_json::{Value, json};

use crate::dashboard::form::{Fields, Values};
use crate::dashboard::policies::{self, Whose, join};
use crate::dashboard::wire::Destination;

/// A destination as fields.
pub(super) fn of(destination: &Destination) -> Values {
    let mut values = Values::default();
    values.put("name", &destination.name);
    values.put("url", &destination.url);
    values.put_some("external_id", destination.external_id.as_ref());
    if destination.active {
        values.put("active", "on");
    }
    values.put("event_types", destination.event_types.join("\n"));
    values.put("envelope", &destination.envelope);
    values.put("max_concurrency", destination.max_concurrency);
    values.put("ordering", &destination.ordering);
    values.put("on_exhausted", &destination.on_exhausted);
    if let Some(rate) = &destination.rate_limit {
        policies::put_rate(&mut values, rate);
    }
    policies::put_windows(&mut values, &destination.delivery_schedules);
    let mode =
        if destination.timeout_seconds.is_some() { "manual" } else { destination.timeout.mode.as_str() };
    values.put("timeout.mode", mode);
    values.put_some("timeout_seconds", destination.timeout_seconds);
    if let Some(retry) = &destination.retry_policy {
        policies::put_retry(&mut values, retry);
    }
    policies::put_breaker(&mut values, &destination.circuit_breaker);
    values.put("permanent_statuses", join(&destination.permanent_statuses));
    let headers = destination.custom_headers.iter().map(|(name, value)| format!("{name}: {value}"));
    values.put("custom_headers", headers.collect::<Vec<_>>().join("\n"));
    values.put("auth_config.type", "keep");
    values
}

/// What a tidy form says, in the words of the API. What is wrong with it, the API says.
pub(super) fn document(values: &Values) -> Value {
    let mut document = json!({
        "name": values.get("name"),
        "url": values.get("url"),
        "external_id": values.some("external_id"),
        "active": values.is_on("active"),
        "event_types": values.words("event_types"),
        "envelope": values.some("envelope"),
        "max_concurrency": values.number("max_concurrency"),
        "ordering": values.some("ordering"),
        "on_exhausted": values.some("on_exhausted"),
        "rate_limit": policies::rate(values),
        "delivery_schedules": policies::windows(values),
        "retry_policy": policies::retry(values),
        "circuit_breaker": policies::breaker(values),
        "permanent_statuses": policies::statuses(values),
        "custom_headers": headers(values.get("custom_headers")),
    });
    let fields = document.as_object_mut().expect("it was made as one");
    if let Some((field, said)) = policies::timeout(values) {
        fields.insert(field.to_owned(), said);
    }
    if let Some(auth) = auth(values) {
        fields.insert("auth_config".to_owned(), auth);
    }
    document
}

/// `Name: value`, a line each.
fn headers(text: &str) -> Value {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let pair = |line: &str| {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        (name.trim().to_owned(), Value::from(value.trim()))
    };
    Value::Object(lines.map(pair).collect())
}

/// `None`: as it was.
fn auth(values: &Values) -> Option<Value> {
    match values.get("auth_config.type") {
        "none" => Some(Value::Null),
        "bearer" => Some(json!({"type": "bearer", "token": values.get("auth_config.token")})),
        "header" => Some(
            json!({"type": "header", "name": values.get("auth_config.name"), "value": values.get("auth_config.token")}),
        ),
        _ => None,
    }
}

/// The form's fields. `auth` says what is in force, where that is known.
pub(super) fn draw(fields: &Fields<'_>, auth: Option<&str>) -> Markup {
    html! {
        fieldset {
            legend { "Destination" }
            div.grid {
                (fields.text("name", "Name", ""))
                (fields.input("url", "URL", "Where events are posted to.", "url"))
                (fields.area("event_types", "Event types", "Patterns such as order.* – one a line. Empty: only what routes send.", 3))
                (fields.text("external_id", "Your own id", "Optional. It may stand wherever the id does."))
            }
            (fields.tick("active", "Switched on"))
        }
        (policies::draw(fields, Whose::Destination))
        fieldset {
            legend { "Requests" }
            div.grid {
                (fields.choice("envelope", "Body", "", &[("raw", "raw: the payload, byte for byte"), ("standard", "standard: id, type, times and data")]))
                (fields.area("custom_headers", "Headers of your own", "Name: value – one a line.", 2))
                @let kept = auth.map_or("keep: none is set".to_owned(), |auth| format!("keep: {auth}"));
                (fields.choice("auth_config.type", "Authentication", "", &[("keep", &kept), ("none", "none"), ("bearer", "bearer token"), ("header", "a header")]))
                (fields.text("auth_config.name", "Name of the header", "Only for a header."))
                (fields.input("auth_config.token", "Token or value", "Kept encrypted, and never shown again.", "password"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_empty_is_not_said() {
        let said = document(&policies::tidy(Values::default()));
        assert_eq!(said["rate_limit"], Value::Null);
        assert_eq!(said["retry_policy"], Value::Null);
        assert_eq!(said["circuit_breaker"], json!({"enabled": false}));
        assert_eq!(said["delivery_schedules"], json!([]));
        assert!(said.get("auth_config").is_none());
        assert_eq!(headers("A: b:c\n\nx"), json!({"A": "b:c", "x": ""}));
    }
}
