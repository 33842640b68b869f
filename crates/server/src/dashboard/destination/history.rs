//! What happened to a destination: breaker, throttle, timeout, switched off and on.

use maud::{Markup, html};

use crate::dashboard::ui;
use crate::dashboard::visitor::Clock;
use crate::dashboard::wire::Notice;

/// The newest first.
pub(super) fn table(clock: &Clock, notices: &[Notice]) -> Markup {
    html! {
        @if notices.is_empty() {
            p { "Nothing so far: the breaker never opened, no 429 came, the timeout stayed." }
        } @else {
            div.scroll.tall tabindex="0" role="region" aria-label="History" { table.rows {
                thead { tr { th scope="col" { "When" } th scope="col" { "What" } th scope="col" { "Why" } } }
                tbody {
                    @for notice in notices {
                        tr {
                            td { (ui::moment(clock, notice.at)) } td { (ui::state(&notice.kind)) }
                            td.text { (ui::said(clock, &notice.detail)) }
                        }
                    }
                }
            } }
        }
    }
}
