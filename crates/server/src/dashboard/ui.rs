//! What pages are made of: states, times, lists, buttons.

use maud::{Markup, html};
use tidegate_core::delivery::HoldReason;
use tidegate_core::time::Timestamp;

use super::visitor::{Clock, Visitor};
use super::wire::At;
use super::words;

/// The hidden field without which no form is accepted.
pub(super) fn csrf(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name="csrf" value=(visitor.session.csrf()); }
}

/// A state: a shape and a word.
pub(super) fn state(word: &str) -> Markup {
    let (shape, tone, text) = words::state(word);
    html! { span class={ "state " (tone.class()) } { span.shape aria-hidden="true" { (shape) } " " (text) } }
}

/// A moment in the viewer's zone: day, month, time.
pub(super) fn moment(clock: &Clock, at: At) -> Markup {
    html! { time datetime=(at.0) title=(at.0) { (shown(clock, at.0, "%-d %b %H:%M:%S")) } }
}

/// How long ago, or how long from now; the script keeps it going.
pub(super) fn countdown(clock: &Clock, at: At) -> Markup {
    html! { time.countdown datetime=(at.0) title=(at.0) data-counts { (words::from_now(clock.now, at.0)) } }
}

/// Until when: how long from now, and the moment.
pub(super) fn until(clock: &Clock, at: At) -> Markup {
    html! { (countdown(clock, at)) " (" (shown(clock, at.0, "%-d %b %H:%M:%S")) ")" }
}

/// A moment as text, in the viewer's zone.
pub(super) fn shown(clock: &Clock, at: Timestamp, format: &str) -> String {
    at.to_jiff().to_zoned(clock.zone.clone()).strftime(format).to_string()
}

/// A sentence of the API, with its times in the viewer's zone.
pub(super) fn said(clock: &Clock, sentence: &str) -> Markup {
    html! {
        @for (place, word) in sentence.split(' ').enumerate() {
            @if place > 0 { " " }
            @let bare = word.trim_end_matches([';', ',', '.', ':']);
            // Whatever looks like a time of ours is one.
            @match Timestamp::parse(bare).filter(|_| bare.ends_with('Z')) {
                Some(at) => { (moment(clock, At(at))) (word[bare.len()..]) }
                None => { (if is_reason(bare) { word.replace('_', " ") } else { word.to_owned() }) }
            }
        }
    }
}

fn is_reason(word: &str) -> bool {
    HoldReason::ALL.iter().any(|reason| reason.word() == word)
}

/// An id: the end of it tells two of one moment apart.
pub(super) fn id(text: &str) -> Markup {
    html! { code.id { (text) } }
}

/// A figure with what it counts.
pub(super) fn figure(label: &str, value: &Markup, note: &Markup) -> Markup {
    html! { div.figure { dt { (label) } dd { (value) } dd.note { (note) } } }
}

/// A button that does one thing.
pub(super) fn action(visitor: &Visitor, path: &str, label: &str, fields: &[(&str, &str)]) -> Markup {
    html! {
        form.action method="post" action=(path) {
            (csrf(visitor))
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
            button type="submit" { (label) }
        }
    }
}

/// The way to the next page of a list.
pub(super) fn more(next: Option<&str>, first: Option<&str>) -> Markup {
    html! {
        @if next.is_some() || first.is_some() {
            nav.pager aria-label="Pages" {
                @if let Some(first) = first { a href=(first) { "↑ Back to the first page" } }
                @if let Some(next) = next { a rel="next" href=(next) { "Next page →" } }
            }
        }
    }
}

/// What a page says after something was done: a word in its address, a sentence on the page.
pub(super) fn done(word: Option<&str>) -> Markup {
    let sentence = match word {
        Some("created") => "The destination is there.",
        Some("saved") => "Saved. It is in force for every attempt from now on.",
        Some("paused") => "Paused. Deliveries wait until it is resumed.",
        Some("enabled") => "Switched on. What waits goes on.",
        Some("resumed") => "Resumed. What waits goes on.",
        Some("probing") => "Breaker, throttle and waits are cleared. A probe goes at once.",
        Some("deleted") => "Deleted.",
        Some("replayed") => "Accepted again. The new deliveries are below.",
        Some("cancelled") => "Cancelled. What had not been sent is not sent any more.",
        Some("hastened") => "It no longer waits for its own time.",
        Some("stopped") => "Stopped. What it has made stays on its way.",
        Some("started") => "The replay has begun.",
        Some("revoked") => "Revoked. It is refused from now on, and its sessions have ended.",
        Some("unchanged") => "Nothing was changed.",
        _ => return html! {},
    };
    html! { p.notice.good role="status" { "✓ " (sentence) } }
}

/// Something that a page shows once, to be copied.
pub(super) fn secret(label: &str, text: &str) -> Markup {
    html! {
        div.secret {
            strong { (label) }
            pre data-copies { (text) }
            p { "It is shown this once. Copy it now." }
        }
    }
}
