//! Forms: fields named by the API's own paths, so that its faults are shown beside what caused them.

use maud::{Markup, html};
use serde_json::{Map, Value};

use super::ask::Refused;
use super::visitor::Clock;

/// What a form holds, in its order; a name may come more than once.
#[derive(Clone, Debug, Default)]
pub(super) struct Values(Vec<(String, String)>);

impl Values {
    /// Reads a posted form. Line ends are made one kind.
    pub(super) fn parse(body: &[u8]) -> Self {
        let pair = |(name, value): (std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| {
            (name.into_owned(), value.replace("\r\n", "\n"))
        };
        Self(url::form_urlencoded::parse(body).map(pair).collect())
    }

    /// The first value of a name, or nothing.
    pub(super) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.trim())
    }
    /// The same, where empty is none.
    pub(super) fn some(&self, name: &str) -> Option<&str> {
        Some(self.get(name)).filter(|value| !value.is_empty())
    }
    /// All values of a name.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
    /// Whether a box is ticked.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.some(name).is_some()
    }
    /// Adds a value.
    #[expect(clippy::needless_pass_by_value, reason = "callers give numbers and text alike")]
    pub(super) fn put(&mut self, name: impl Into<String>, value: impl ToString) {
        self.0.push((name.into(), value.to_string()));
    }
    /// Adds a value, if there is one.
    pub(super) fn put_some(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }
    /// Takes all names out that begin so.
    pub(super) fn take(&mut self, beginning: &str) -> Vec<(String, String)> {
        let (taken, left) =
            std::mem::take(&mut self.0).into_iter().partition(|(name, _)| name.starts_with(beginning));
        self.0 = left;
        taken
    }

    /// A number as JSON. What is none goes on as it is: the API says what is wrong with it.
    pub(super) fn number(&self, name: &str) -> Value {
        number(self.get(name))
    }
    /// Words between blanks, commas and line ends.
    pub(super) fn words(&self, name: &str) -> Vec<&str> {
        words(self.get(name)).collect()
    }
}

/// A number as JSON, text where it is none, null where there is nothing.
pub(super) fn number(text: &str) -> Value {
    match (text, text.parse::<u64>(), text.parse::<f64>()) {
        ("", _, _) => Value::Null,
        (_, Ok(whole), _) => whole.into(),
        // What reads as `inf` or `nan` is no number of JSON.
        (_, _, Ok(real)) if real.is_finite() => real.into(),
        (text, ..) => text.into(),
    }
}

/// Words between blanks, commas and line ends.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| letter.is_whitespace() || letter == ',').filter(|word| !word.is_empty())
}

/// What a field for a moment holds, as an instant: it is by the viewer's clock. What is none, and what names its zone, goes on as
/// it is.
pub(super) fn instant(clock: &Clock, text: &str) -> String {
    let bare =
        |(_, time): &(&str, &str)| time.bytes().all(|byte| byte.is_ascii_digit() || b":.".contains(&byte));
    let local = text.split_once('T').filter(bare).and_then(|_| text.parse::<jiff::civil::DateTime>().ok());
    let zoned = local.and_then(|local| local.to_zoned(clock.zone.clone()).ok());
    zoned.map_or_else(|| text.to_owned(), |zoned| zoned.timestamp().to_string())
}

/// What `after` says otherwise than `before`, part by part: all that a PATCH need say.
pub(super) fn difference(before: &Value, after: &Value) -> Value {
    let empty = Map::new();
    let (before, after) = (before.as_object().unwrap_or(&empty), after.as_object().unwrap_or(&empty));
    let other = after.iter().filter(|(name, value)| before.get(*name).unwrap_or(&Value::Null) != *value);
    Value::Object(other.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// A form as it is drawn: what its fields hold, and what was wrong with them.
pub(super) struct Fields<'a> {
    /// What the fields hold.
    pub(super) values: &'a Values,
    /// What the API found wrong.
    pub(super) fault: Option<&'a Refused>,
}

impl Fields<'_> {
    /// What is wrong with this field: the API names it, or something inside it.
    fn fault_of(&self, name: &str) -> Option<String> {
        let fault = self.fault?;
        let rest = named(fault)?.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with(['.', '['])).then(|| plain(&fault.error))
    }

    /// A fault that stands beside no field, at the top.
    pub(super) fn notice(&self) -> Markup {
        html! {
            @if let Some(fault) = self.fault {
                p.notice.bad role="alert" { strong { "Not saved. " } (plain(&fault.error)) }
            }
        }
    }

    fn frame(&self, name: &str, label: &str, hint: &str, input: &Markup) -> Markup {
        let fault = self.fault_of(name);
        html! {
            div.field.faulty[fault.is_some()] {
                label for=(id(name)) { (label) }
                (input)
                @if !hint.is_empty() { small id=(id(name) + "-hint") { (hint) } }
                @if let Some(fault) = fault { small.fault id=(id(name) + "-fault") { "✕ " (fault) } }
            }
        }
    }

    fn described(&self, name: &str, hint: &str) -> Option<String> {
        let hint = (!hint.is_empty()).then(|| id(name) + "-hint");
        let fault = self.fault_of(name).map(|_| id(name) + "-fault");
        let all: Vec<String> = hint.into_iter().chain(fault).collect();
        (!all.is_empty()).then(|| all.join(" "))
    }

    /// A line of text.
    pub(super) fn text(&self, name: &str, label: &str, hint: &str) -> Markup {
        self.input(name, label, hint, "text")
    }
    /// A line of any kind: `url`, `number`, `password`.
    pub(super) fn input(&self, name: &str, label: &str, hint: &str, kind: &str) -> Markup {
        let number = kind == "number";
        let input = html! {
            input id=(id(name)) name=(name) value=(self.values.get(name)) type=(if number { "text" } else { kind })
                inputmode=[number.then_some("decimal")] autocomplete="off" spellcheck="false"
                aria-invalid=[self.fault_of(name).map(|_| "true")] aria-describedby=[self.described(name, hint)];
        };
        self.frame(name, label, hint, &input)
    }
    /// A line of text with suggestions from a list of the page.
    pub(super) fn suggested(&self, name: &str, label: &str, hint: &str, list: &str) -> Markup {
        let input = html! {
            input id=(id(name)) name=(name) value=(self.values.get(name)) type="text" list=(list) autocomplete="off"
                aria-invalid=[self.fault_of(name).map(|_| "true")] aria-describedby=[self.described(name, hint)];
        };
        self.frame(name, label, hint, &input)
    }
    /// Several lines.
    pub(super) fn area(&self, name: &str, label: &str, hint: &str, rows: u8) -> Markup {
        let input = html! {
            textarea id=(id(name)) name=(name) rows=(rows) spellcheck="false"
                aria-invalid=[self.fault_of(name).map(|_| "true")] aria-describedby=[self.described(name, hint)] {
                    (self.values.get(name))
                }
        };
        self.frame(name, label, hint, &input)
    }
    /// One of some words.
    pub(super) fn choice(&self, name: &str, label: &str, hint: &str, options: &[(&str, &str)]) -> Markup {
        let chosen = self.values.get(name);
        let input = html! {
            select id=(id(name)) name=(name) aria-describedby=[self.described(name, hint)] {
                @for (value, words) in options {
                    option value=(value) selected[*value == chosen] { (words) }
                }
            }
        };
        self.frame(name, label, hint, &input)
    }
    /// A box to tick.
    pub(super) fn tick(&self, name: &str, label: &str) -> Markup {
        // What is wrong within stands beside its own field.
        let fault = self.fault_of(name).filter(|_| self.fault.and_then(named) == Some(name));
        html! {
            div.field.tick {
                label {
                    input type="checkbox" name=(name) value="on" checked[self.values.is_on(name)]; " " (label)
                }
                @if let Some(fault) = fault { small.fault { "✕ " (fault) } }
            }
        }
    }
    /// Several boxes under one name.
    pub(super) fn ticks(&self, name: &str, legend: &str, options: &[(&str, &str)]) -> Markup {
        let ticked: Vec<&str> = self.values.all(name).collect();
        html! {
            fieldset.ticks {
                legend { (legend) }
                @for (value, words) in options {
                    label {
                        input type="checkbox" name=(name) value=(value) checked[ticked.contains(value)]; " "
                        (words)
                    }
                }
                @if let Some(fault) = self.fault_of(name) { small.fault { "✕ " (fault) } }
            }
        }
    }
}

/// The field that a fault is about, as forms name it: the rate has one field for its number, whatever its unit.
fn named(fault: &Refused) -> Option<&str> {
    match fault.field.as_deref()? {
        "rate_limit.max_per_minute" => Some("rate_limit.max"),
        field => Some(field),
    }
}

/// A fault in words for people: what the API says of types is for programs.
fn plain(error: &str) -> String {
    let of_type = error.split_once(": invalid type: ").or_else(|| error.split_once(": invalid value: "));
    let expected = error.rsplit_once("expected ").map(|(_, expected)| expected);
    match (of_type, expected) {
        (Some((field, _)), Some("u64" | "i64" | "u32" | "u16")) => {
            format!("{field} must be a whole number, 0 or more")
        }
        (Some((field, _)), Some("f64")) => format!("{field} must be a number"),
        _ => error.to_owned(),
    }
}

/// A name as an id.
fn id(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    format!("f-{}", name.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fault_stands_beside_the_field_that_it_names_or_that_holds_it() {
        let values = Values::default();
        let fault = Refused {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            error: "no".to_owned(),
            field: Some("retry_policy.delays_seconds[1]".to_owned()),
        };
        let fields = Fields { values: &values, fault: Some(&fault) };
        assert!(fields.fault_of("retry_policy.delays_seconds").is_some());
        assert!(fields.fault_of("retry_policy.delays").is_none());
        assert!(fields.fault_of("retry_policy.max_attempts").is_none());
        assert!(fields.fault_of("retry_policy").is_some());
        assert!(!fields.tick("retry_policy", "").into_string().contains("fault"), "it is told once");
        let fault = Refused {
            error: "`rate_limit.max`: invalid type: string, expected u64".to_owned(),
            field: Some("rate_limit.max_per_minute".to_owned()),
            ..fault.clone()
        };
        let fields = Fields { values: &values, fault: Some(&fault) };
        let said = fields.fault_of("rate_limit.max").unwrap();
        assert_eq!(said, "`rate_limit.max` must be a whole number, 0 or more");
    }

    #[test]
    fn only_what_changed_is_said() {
        let before = json!({"a": 1, "b": {"c": 2}, "d": null});
        let after = json!({"a": 1, "b": {"c": 3}, "d": null, "e": null, "f": "new"});
        assert_eq!(difference(&before, &after), json!({"b": {"c": 3}, "f": "new"}));
    }

    #[test]
    fn a_moment_is_read_by_the_clock_of_whoever_wrote_it() {
        let zone = jiff::tz::TimeZone::get("America/Chicago").unwrap();
        let clock = Clock { now: tidegate_core::time::Timestamp::from_millis(0), zone };
        for (written, meant) in [
            ("2026-07-01T12:00", "2026-07-01T17:00:00Z"),
            ("2026-12-01T12:00:30", "2026-12-01T18:00:30Z"),
            ("2026-12-01T12:00:00Z", "2026-12-01T12:00:00Z"),
            ("2026-12-01T12:00:00+02:00", "2026-12-01T12:00:00+02:00"),
            ("tomorrow", "tomorrow"),
            ("", ""),
        ] {
            assert_eq!(instant(&clock, written), meant);
        }
    }

    #[test]
    fn what_is_no_number_goes_on_as_text() {
        assert_eq!(
            (number("7"), number("0.5"), number("x"), number("")),
            (json!(7), json!(0.5), json!("x"), Value::Null)
        );
        assert_eq!((number("inf"), number("NaN")), (json!("inf"), json!("NaN")));
        let values = Values::parse(b"a=1%0D%0A2&a=3&b=+x+");
        assert_eq!(values.all("a").collect::<Vec<_>>(), ["1\n2", "3"]);
        assert_eq!((values.get("b"), values.words("a")), ("x", vec!["1", "2"]));
    }
}
