//! Quiet hours as fields: a list of windows that grows and shrinks.

use maud::{Markup, html};
use serde_json::{Value, json};

use crate::dashboard::form::{Fields, Values};
use crate::policy::schedule::ScheduleDocument;

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

/// Windows as fields.
pub(in crate::dashboard) fn put(values: &mut Values, windows: &[ScheduleDocument]) {
    for (place, window) in windows.iter().enumerate() {
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

/// Numbers the windows anew without those that were left empty or are to go, so that faults name what is shown.
#[must_use]
pub(in crate::dashboard) fn tidy(mut values: Values) -> Values {
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

/// What a tidy form says of windows.
pub(in crate::dashboard) fn documents(values: &Values) -> Value {
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

/// The fields of all windows, and of one more.
pub(super) fn draw(fields: &Fields<'_>) -> Markup {
    html! { @for place in 0..shown_windows(fields.values) { (window(fields, place)) } }
}

/// The names of time zones, as suggestions.
pub(in crate::dashboard) fn zones() -> Markup {
    html! { datalist #zones { @for zone in jiff::tz::db().available() { option value=(zone) {} } } }
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
        assert_eq!(documents(&tidied).as_array().map(Vec::len), Some(2));
    }
}
