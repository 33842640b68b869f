//! Policies as the fields of a form, and back: of a destination, or of an account for all that say nothing.
//!
//! The names are the paths of the API, and so are its faults.

mod windows;

use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::form::{Fields, Values, number};
use crate::policy::breaker::BreakerDocument;
use crate::policy::rate::{Mode, Period, RateLimitDocument};
use crate::policy::retry::{JitterWord, RetryDocument};

pub(super) use windows::{documents as windows, put as put_windows, tidy, zones};

/// The figures of a breaker.
const BREAKER: [&str; 7] = [
    "failure_ratio",
    "min_attempts",
    "window_seconds",
    "consecutive_failures",
    "open_seconds",
    "max_open_seconds",
    "successes_to_close",
];

/// Whose policies they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// One destination's: what is in force there.
    Destination,
    /// An account's, for destinations that say nothing: what is left empty is as built in.
    Account,
}

/// A rate limit as fields.
pub(super) fn put_rate(values: &mut Values, rate: &RateLimitDocument) {
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

/// Retries as fields.
pub(super) fn put_retry(values: &mut Values, retry: &RetryDocument) {
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

/// A breaker as fields.
pub(super) fn put_breaker(values: &mut Values, breaker: &BreakerDocument) {
    if breaker.enabled {
        values.put("circuit_breaker.enabled", "on");
    }
    if let Ok(Value::Object(figures)) = serde_json::to_value(breaker) {
        for (name, figure) in figures.iter().filter(|(_, figure)| figure.is_number()) {
            values.put(format!("circuit_breaker.{name}"), figure);
        }
    }
}

/// Words with blanks between.
pub(super) fn join<T: ToString>(list: &[T]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

/// What the form says of the rate; null: nothing.
pub(super) fn rate(values: &Values) -> Value {
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

/// What it says of retries; null: nothing.
pub(super) fn retry(values: &Values) -> Value {
    if !values.is_on("retry_policy") {
        return Value::Null;
    }
    let delays: Vec<Value> = values.words("retry_policy.delays_seconds").into_iter().map(number).collect();
    let said = [
        ("max_attempts", values.number("retry_policy.max_attempts")),
        ("delays_seconds", if delays.is_empty() { Value::Null } else { delays.into() }),
        ("jitter", values.some("retry_policy.jitter").into()),
    ];
    // What is left empty is the default.
    said.into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}

/// What it says of the breaker.
pub(super) fn breaker(values: &Values) -> Value {
    let mut breaker = Map::new();
    breaker.insert("enabled".to_owned(), values.is_on("circuit_breaker.enabled").into());
    for name in BREAKER {
        let said = values.number(&format!("circuit_breaker.{name}"));
        // What is left empty is the default.
        if !said.is_null() {
            let real = said.as_f64().filter(|_| name == "failure_ratio").map(Value::from);
            breaker.insert(name.to_owned(), real.unwrap_or(said));
        }
    }
    Value::Object(breaker)
}

/// What it says of statuses that are final at once.
pub(super) fn statuses(values: &Values) -> Vec<Value> {
    values.words("permanent_statuses").into_iter().map(number).collect()
}

/// What it says of the timeout: the field and its value.
pub(super) fn timeout(values: &Values) -> Option<(&'static str, Value)> {
    match values.get("timeout.mode") {
        "" => None,
        "manual" => Some(("timeout_seconds", values.number("timeout_seconds"))),
        mode => Some(("timeout", json!({"mode": mode}))),
    }
}

/// The fields of all policies.
pub(super) fn draw(fields: &Fields<'_>, whose: Whose) -> Markup {
    html! {
        fieldset {
            legend { "Quiet hours: when not" }
            p.note {
                "An event that comes in meanwhile waits until the window ends, by the clock of its time zone. Leave a window empty to have none."
            }
            (windows::draw(fields))
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
                (fields.input("max_concurrency", "Requests in flight at most", if whose == Whose::Account { "Empty: 5." } else { "" }, "number"))
                (choice(fields, whose, "ordering", "Order", "", &[("none", "none: several at a time"), ("fifo", "fifo: one at a time"), ("key", "key: in order for each ordering key")]))
                (choice(fields, whose, "on_exhausted", "When one cannot be delivered", "Only where an order is kept.", &[("skip", "skip: go on with the next"), ("halt", "halt until a person resumes it")]))
            }
        }
        fieldset {
            legend { "Timeout: for how long" }
            div.grid {
                (choice(fields, whose, "timeout.mode", "Mode", "", &[("adaptive", "adaptive: learned from its answers"), ("default", "default: always 10 s"), ("manual", "manual: pinned")]))
                (fields.input("timeout_seconds", "Pinned seconds", "Only where pinned.", "number"))
            }
        }
        (draw_retry(fields, match whose {
            Whose::Destination => "A policy of its own, instead of the account's",
            Whose::Account => "A policy of the account's own, instead of the built-in one",
        }, &fields.text("permanent_statuses", "Give up at once on", "Statuses such as 400 422.")))
        fieldset {
            legend { "Circuit breaker: when to stop trying" }
            @if whose == Whose::Account {
                (fields.tick("circuit_breaker", "A breaker of the account's own, instead of the built-in one"))
            }
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
    }
}

/// The fields of retries, under a box that says whose they are, and what else belongs there.
pub(super) fn draw_retry(fields: &Fields<'_>, own: &str, more: &Markup) -> Markup {
    html! {
        fieldset {
            legend { "Retries" }
            (fields.tick("retry_policy", own))
            div.grid {
                (fields.input("retry_policy.max_attempts", "Attempts at most", "", "number"))
                (fields.text("retry_policy.delays_seconds", "Seconds between them", "Such as 30 120 600 3600; the last repeats."))
                (fields.choice("retry_policy.jitter", "Jitter", "", &[("proportional", "proportional: ±20%"), ("full", "full"), ("none", "none")]))
                (more)
            }
        }
    }
}

/// A choice that an account need not make.
fn choice(
    fields: &Fields<'_>,
    whose: Whose,
    name: &str,
    label: &str,
    hint: &str,
    options: &[(&str, &str)],
) -> Markup {
    let unsaid = (whose == Whose::Account).then_some(("", "as built in"));
    let options: Vec<_> = unsaid.into_iter().chain(options.iter().copied()).collect();
    fields.choice(name, label, hint, &options)
}
