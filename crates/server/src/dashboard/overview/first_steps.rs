//! What to do on an empty installation: lines to copy, with the real key and address.

use maud::{Markup, html};

use crate::dashboard::visitor::Visitor;
use crate::dashboard::wire::Destination;

/// Where a key belongs that may do what a line does.
const PLACE: &str = "tg_EDITOR_KEY";

/// The steps that are left.
pub(super) fn draw(visitor: &Visitor, destinations: usize, newest: Option<&Destination>) -> Markup {
    let event_type = newest.and_then(|newest| newest.event_types.first()).map_or("order.paid", |pattern| {
        // A pattern is no type; what is before its star, and one more word, is.
        if pattern.contains('*') { "order.paid" } else { pattern.as_str() }
    });
    html! {
        section.steps aria-labelledby="steps" {
            h2 #steps { "What to do next" }
            ol {
                li.done[destinations > 0] {
                    h3 { @if destinations > 0 { "✓ " } "Create a destination" }
                    p {
                        "A destination is a URL that events go to, with its own rules for when, how fast and how many at a time."
                    }
                    @if destinations == 0 {
                        @if visitor.may_edit() {
                            p {
                                a.button.main href="/destinations/new" { "Create one here" }
                                " or with the API:"
                            }
                        }
                        pre data-copies {
                            (line(visitor, "/v1/destinations", r#"{"name": "My first destination", "url": "https://example.com/hooks"}"#))
                        }
                    }
                }
                li {
                    h3 { "Publish an event" }
                    p {
                        "It is accepted once it is on disk, and goes to every destination that takes its type."
                    }
                    pre data-copies { (line(visitor, "/v1/outbound-events", &format!(r#"{{"event_type": "{event_type}", "payload": {{"id": 1}}}}"#))) }
                }
                li {
                    h3 { "See what became of it" }
                    p {
                        "Here, and in the " a href="/log" { "log" }
                        ": where it is, why it waits, when it will arrive."
                    }
                }
            }
            p.note {
                @if visitor.may_edit() {
                    "The lines hold the key that you signed in with. Whoever sees them can use it."
                } @else { "Your key may only look. Put one with the role editor in the place of " code { (PLACE) } "." }
            }
        }
    }
}

/// A line for a shell. Keys, addresses and ids of ours need no quoting beyond this.
fn line(visitor: &Visitor, path: &str, body: &str) -> String {
    let account =
        visitor.session.account.as_ref().map(|account| format!(" \\\n  -H 'Tidegate-Account: {account}'"));
    format!(
        "curl -X POST {}{path} \\\n  -H 'Authorization: Bearer {}'{} \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'",
        visitor.origin,
        if visitor.may_edit() { visitor.session.key.as_str() } else { PLACE },
        account.unwrap_or_default()
    )
}
