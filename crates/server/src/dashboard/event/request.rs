//! The request of one attempt, as it was made: not kept, but composed anew from what is.

use maud::{Markup, html};

use crate::dashboard::ui;
use crate::dashboard::visitor::Clock;
use crate::dashboard::wire::{RequestHeader, Requests};

/// The request as a pair of a list: where to, its headers, and what stands around the payload.
pub(super) fn draw(clock: &Clock, requests: &Requests, number: u32) -> Markup {
    let request = requests.attempts.iter().find(|request| request.number == number);
    html! {
        dt { "Request" }
        @match (&requests.url, request) {
            (Some(url), Some(request)) => {
                dd {
                    @if let Some(at) = request.changed_at {
                        p.notice.warn {
                            "▲ The destination was changed after this attempt, " (ui::moment(clock, at))
                            ": address, headers and envelope are shown as they are now, and may have been others."
                        }
                    }
                    pre {
                        "POST " (url) "\n"
                        @for header in &request.headers { (header.name) ": " (value(header)) "\n" }
                        @if let Some(envelope) = &requests.envelope { "\n" (envelope) }
                    }
                    small {
                        @if requests.envelope.is_some() { "The body is the payload (…) in the standard envelope." }
                        @else { "The body is the payload, byte for byte." }
                    }
                }
            }
            _ => dd { "The destination was deleted: how the request looked is not known any more." }
        }
    }
}

fn value(header: &RequestHeader) -> Markup {
    html! {
        @match (&header.value, header.hidden.as_deref()) {
            (Some(value), _) => (value),
            (None, Some("signature")) => em { "made from webhook-id, webhook-timestamp and body, with the signing secret" },
            (None, _) => em { "a credential, not shown" },
        }
    }
}
