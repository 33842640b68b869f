//! A destination as the fields of a form, and back: the names are the paths of the API, and so are its faults.

use maud::{Markup, html};
use serde_json::{Map, Value, json};

use crate::dashboard::form::{Fields, Values, number};
use crate::dashboard::wire::Destination;
use crate::policy::rate::{Mode, Period};
use crate::policy::retry::JitterWord;

/// Windows that a destination may have.
const MAX_WINDOWS: usize = 20;
const WINDOW: &str = "delivery_schedules[";
const DAYS: [(&str, &str); 7] = [
    ("mon", "Mon"),
    ("tue", "Tue"),
    ("wed", "Wed"),
    ("thu", "Thu"),
    ("fri", "Fri"),
    ("sat", "Sat"),
    ("sun", "Sun"),
];

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
    put_rate(&mut values, destination);
    put_windows(&mut values, destination);
    let mode =
        if destination.timeout_seconds.is_some() { "manual" } else { destination.timeout.mode.as_str() };
    values.put("timeout.mode", mode);
    values.put_some("timeout_seconds", destination.timeout_seconds);
    if let Some(retry) = &destination.retry_policy {
        values.put("retry_policy", "on");
        values.put("retry_policy.max_attempts", retry.max_attempts);
        values.put("retry_policy.delays_seconds", join(&retry.delays_seconds));
        values.put(
            "retry_policy.jitter",
            match retry.jitter {
                JitterWord::None => "none",
                JitterWord::Proportional => "proportional",
                JitterWord::Full => "full",
            },
        );
    }
    let breaker = &destination.circuit_breaker;
    if breaker.enabled {
        values.put("circuit_breaker.enabled", "on");
    }
    values.put("circuit_breaker.failure_ratio", breaker.failure_ratio);
    for (name, figure) in [
        ("min_attempts", breaker.min_attempts),
        ("window_seconds", breaker.window_seconds),
        ("consecutive_failures", breaker.consecutive_failures),
        ("open_seconds", breaker.open_seconds),
        ("max_open_seconds", breaker.max_open_seconds),
        ("successes_to_close", breaker.successes_to_close),
    ] {
        values.put(format!("circuit_breaker.{name}"), figure);
    }
    values.put("permanent_statuses", join(&destination.permanent_statuses));
    let headers = destination.custom_headers.iter().map(|(name, value)| format!("{name}: {value}"));
    values.put("custom_headers", headers.collect::<Vec<_>>().join("\n"));
    values.put("auth_config.type", "keep");
    values
}

fn put_rate(values: &mut Values, destination: &Destination) {
    let Some(rate) = &destination.rate_limit else { return };
    values.put("rate_limit", "on");
    values.put_some("rate_limit.max", rate.max.or(rate.max_per_minute));
    values.put(
        "rate_limit.per",
        match rate.per {
            Some(Period::Second) => "second",
            None | Some(Period::Minute) => "minute",
            Some(Period::Hour) => "hour",
            Some(Period::Day) => "day",
        },
    );
    values.put_some("rate_limit.burst_capacity", rate.burst_capacity);
    values.put(
        "rate_limit.mode",
        match rate.mode {
            Some(Mode::Adaptive) => "adaptive",
            None | Some(Mode::Fixed) => "fixed",
        },
    );
}

fn put_windows(values: &mut Values, destination: &Destination) {
    for (place, window) in destination.delivery_schedules.iter().enumerate() {
        let named = |part: &str| format!("{WINDOW}{place}].{part}");
        values.put(named("timezone"), &window.timezone);
        values.put(named("quiet_start"), &window.quiet_start);
        values.put(named("quiet_end"), &window.quiet_end);
        for day in &window.days {
            values.put(named("days"), day);
        }
        values.put(named("applies_to"), window.applies_to.join(" "));
        values.put(named("bypass_event_types"), window.bypass_event_types.join(" "));
    }
}

fn join<T: ToString>(list: &[T]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// Numbers the windows anew without those that were left empty or are to go, so that faults name what is shown.
#[must_use]
pub(super) fn tidy(mut values: Values) -> Values {
    let mut windows: Vec<Vec<(String, String)>> = Vec::new();
    let mut last = None;
    let mut taken = values.take(WINDOW);
    taken.sort_by_key(|(name, _)| place_of(name));
    for (name, value) in taken {
        let (Some(place), Some((_, part))) = (place_of(&name), name.split_once("].")) else { continue };
        if last != Some(place) {
            windows.push(Vec::new());
            last = Some(place);
        }
        windows.last_mut().expect("one was pushed").push((part.to_owned(), value));
    }
    let keep = |window: &&Vec<(String, String)>| {
        let says = |part: &str| window.iter().any(|(name, value)| name == part && !value.trim().is_empty());
        !says("remove") && (says("timezone") || says("quiet_start") || says("quiet_end"))
    };
    for (place, window) in windows.iter().filter(keep).enumerate() {
        for (part, value) in window {
            values.put(format!("{WINDOW}{place}].{part}"), value);
        }
    }
    values
}

fn place_of(name: &str) -> Option<usize> {
    name.strip_prefix(WINDOW)?.split_once(']')?.0.parse().ok()
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
        "rate_limit": rate(values),
        "delivery_schedules": windows(values),
        "retry_policy": retry(values),
        "circuit_breaker": breaker(values),
        "permanent_statuses": values.words("permanent_statuses").into_iter().map(number).collect::<Vec<_>>(),
        "custom_headers": headers(values.get("custom_headers")),
    });
    let fields = document.as_object_mut().expect("it was made as one");
    match values.get("timeout.mode") {
        "manual" => fields.insert("timeout_seconds".to_owned(), values.number("timeout_seconds")),
        mode => fields.insert("timeout".to_owned(), json!({"mode": mode})),
    };
    if let Some(auth) = auth(values) {
        fields.insert("auth_config".to_owned(), auth);
    }
    document
}

fn rate(values: &Values) -> Value {
    if !values.is_on("rate_limit") {
        return Value::Null;
    }
    json!({
        "max": values.number("rate_limit.max"),
        "per": values.some("rate_limit.per"),
        "burst_capacity": values.number("rate_limit.burst_capacity"),
        "mode": values.some("rate_limit.mode"),
    })
}

fn windows(values: &Values) -> Value {
    let window = |place: usize| {
        let named = |part: &str| format!("{WINDOW}{place}].{part}");
        values
            .some(&named("timezone"))
            .or(values.some(&named("quiet_start")))
            .or(values.some(&named("quiet_end")))?;
        Some(json!({
            "timezone": values.get(&named("timezone")),
            "quiet_start": values.get(&named("quiet_start")),
            "quiet_end": values.get(&named("quiet_end")),
            "days": values.all(&named("days")).collect::<Vec<_>>(),
            "applies_to": values.words(&named("applies_to")),
            "bypass_event_types": values.words(&named("bypass_event_types")),
        }))
    };
    (0..=MAX_WINDOWS).map_while(window).collect()
}

fn retry(values: &Values) -> Value {
    if !values.is_on("retry_policy") {
        return Value::Null;
    }
    let delays: Vec<Value> = values.words("retry_policy.delays_seconds").into_iter().map(number).collect();
    json!({
        "max_attempts": values.number("retry_policy.max_attempts"),
        "delays_seconds": delays,
        "jitter": values.some("retry_policy.jitter"),
    })
}

fn breaker(values: &Values) -> Value {
    let mut breaker = Map::new();
    breaker.insert("enabled".to_owned(), values.is_on("circuit_breaker.enabled").into());
    for name in [
        "failure_ratio",
        "min_attempts",
        "window_seconds",
        "consecutive_failures",
        "open_seconds",
        "max_open_seconds",
        "successes_to_close",
    ] {
        let said = values.number(&format!("circuit_breaker.{name}"));
        // What is left empty is the default.
        if !said.is_null() {
            let real = said.as_f64().filter(|_| name == "failure_ratio").map(Value::from);
            breaker.insert(name.to_owned(), real.unwrap_or(said));
        }
    }
    Value::Object(breaker)
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
        fieldset {
            legend { "Quiet hours: when not" }
            p.note {
                "An event that comes in meanwhile waits until the window ends, by the destination's own clock. Leave a window empty to have none."
            }
            @for place in 0..shown_windows(fields.values) { (window(fields, place)) }
        }
        fieldset {
            legend { "Rate: how fast" }
            (fields.tick("rate_limit", "Limit the rate"))
            div.grid {
                (fields.input("rate_limit.max", "At most", "", "number"))
                (fields.choice("rate_limit.per", "Per", "", &[("minute", "minute"), ("second", "second"), ("hour", "hour"), ("day", "day")]))
                (fields.input("rate_limit.burst_capacity", "Burst", "Attempts that may start at once after a rest. 1: never more than the rate.", "number"))
                (fields.choice("rate_limit.mode", "Mode", "Adaptive learns the real limit from its 429s.", &[("fixed", "fixed"), ("adaptive", "adaptive")]))
            }
        }
        fieldset {
            legend { "Concurrency and order: how many at a time" }
            div.grid {
                (fields.input("max_concurrency", "Requests in flight at most", "", "number"))
                (fields.choice("ordering", "Order", "", &[("none", "none: several at a time"), ("fifo", "fifo: one at a time"), ("key", "key: in order for each ordering key")]))
                (fields.choice("on_exhausted", "When one cannot be delivered", "Only where an order is kept.", &[("skip", "skip: go on with the next"), ("halt", "halt until a person resumes it")]))
            }
        }
        fieldset {
            legend { "Timeout: for how long" }
            div.grid {
                (fields.choice("timeout.mode", "Mode", "", &[("adaptive", "adaptive: learned from its answers"), ("default", "default: always 10 s"), ("manual", "manual: pinned")]))
                (fields.input("timeout_seconds", "Pinned seconds", "Only where pinned.", "number"))
            }
        }
        fieldset {
            legend { "Retries" }
            (fields.tick("retry_policy", "A policy of its own, instead of the account's"))
            div.grid {
                (fields.input("retry_policy.max_attempts", "Attempts at most", "", "number"))
                (fields.text("retry_policy.delays_seconds", "Seconds between them", "Such as 30 120 600 3600; the last repeats."))
                (fields.choice("retry_policy.jitter", "Jitter", "", &[("proportional", "proportional: ±20%"), ("full", "full"), ("none", "none")]))
                (fields.text("permanent_statuses", "Give up at once on", "Statuses such as 400 422."))
            }
        }
        fieldset {
            legend { "Circuit breaker: when to stop trying" }
            (fields.tick("circuit_breaker.enabled", "Switched on"))
            div.grid {
                (fields.input("circuit_breaker.failure_ratio", "Share of failures that opens it", "", "number"))
                (fields.input("circuit_breaker.min_attempts", "Of at least so many attempts", "", "number"))
                (fields.input("circuit_breaker.window_seconds", "Within seconds", "", "number"))
                (fields.input("circuit_breaker.consecutive_failures", "Or so many failures in a row", "", "number"))
                (fields.input("circuit_breaker.open_seconds", "Open for seconds", "Doubles with each failed probe.", "number"))
                (fields.input("circuit_breaker.max_open_seconds", "At most seconds", "", "number"))
                (fields.input("circuit_breaker.successes_to_close", "Successes that close it", "", "number"))
            }
        }
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

fn shown_windows(values: &Values) -> usize {
    let used = (0..MAX_WINDOWS)
        .take_while(|place| {
            values
                .some(&format!("{WINDOW}{place}].timezone"))
                .or(values.some(&format!("{WINDOW}{place}].quiet_start")))
                .is_some()
        })
        .count();
    (used + 1).min(MAX_WINDOWS)
}

fn window(fields: &Fields<'_>, place: usize) -> Markup {
    let named = |part: &str| format!("{WINDOW}{place}].{part}");
    let used = fields.values.some(&named("timezone")).is_some();
    html! {
        div.window {
            div.grid {
                (fields.suggested(&named("timezone"), "Time zone", "", "zones"))
                (fields.text(&named("quiet_start"), "Quiet from", "HH:MM, by that clock"))
                (fields.text(&named("quiet_end"), "Quiet until", "Before the start: the next day"))
                (fields.text(&named("applies_to"), "Only for", "Event types; empty: all"))
                (fields.text(&named("bypass_event_types"), "Never for", "Event types that may pass"))
            }
            (fields.ticks(&named("days"), "Only on (none ticked: every day)", &DAYS))
            @if used {
                label { input type="checkbox" name=(named("remove")) value="on"; " Remove this window" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_and_removed_windows_are_left_out_and_the_others_numbered_anew() {
        let mut values = Values::default();
        values.put("name", "x");
        for (place, zone, remove) in
            [(0, "UTC", true), (1, "", false), (10, "Asia/Tokyo", false), (2, "Europe/Rome", false)]
        {
            values.put(format!("{WINDOW}{place}].timezone"), zone);
            values.put(format!("{WINDOW}{place}].quiet_end"), "");
            if remove {
                values.put(format!("{WINDOW}{place}].remove"), "on");
            }
        }
        let tidied = tidy(values);
        assert_eq!(tidied.get("delivery_schedules[0].timezone"), "Europe/Rome");
        assert_eq!(tidied.get("delivery_schedules[1].timezone"), "Asia/Tokyo");
        assert_eq!(windows(&tidied).as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn what_is_left_empty_is_not_said() {
        let said = document(&tidy(Values::default()));
        assert_eq!(said["rate_limit"], Value::Null);
        assert_eq!(said["retry_policy"], Value::Null);
        assert_eq!(said["circuit_breaker"], json!({"enabled": false}));
        assert_eq!(said["delivery_schedules"], json!([]));
        assert!(said.get("auth_config").is_none());
        assert_eq!(headers("A: b:c\n\nx"), json!({"A": "b:c", "x": ""}));
    }
}
