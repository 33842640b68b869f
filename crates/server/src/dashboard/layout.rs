//! The frame of every page.

use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::ask::Refused;
use super::assets::{ICON, SCRIPT, STYLE};
use super::ui;
use super::visitor::Visitor;
use super::wire::At;
use crate::catalogue::AccountEntry;

/// The parts of the dashboard, as the navigation names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Overview,
    Destinations,
    Log,
    DeadLetters,
    EventTypes,
    Settings,
}

const PARTS: [(Part, &str, &str); 6] = [
    (Part::Overview, "Overview", "/"),
    (Part::Destinations, "Destinations", "/destinations"),
    (Part::Log, "Log", "/log"),
    (Part::DeadLetters, "Dead letters", "/dead-letters"),
    (Part::EventTypes, "Event types", "/event-types"),
    (Part::Settings, "Settings", "/settings"),
];

/// Accounts that an operator may choose from in the header; with more, they name one by its id.
const MAX_CHOICES: usize = 50;

/// A page of this part.
pub(super) fn page(visitor: &Visitor, part: Part, title: &str, content: &Markup) -> Response {
    page_with(StatusCode::OK, visitor, Some(part), title, content)
}

/// What the API refused, as a page.
pub(super) fn refusal(visitor: &Visitor, refused: &Refused) -> Response {
    let title = match refused.status {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::FORBIDDEN => "Not allowed",
        StatusCode::SERVICE_UNAVAILABLE => "Not available just now",
        _ => "Not done",
    };
    let content = html! {
        h1 { (title) }
        p.notice.bad role="alert" { (refused.error) }
        p { a href="/" { "Back to the overview" } }
    };
    page_with(refused.status, visitor, None, title, &content)
}

fn page_with(
    status: StatusCode,
    visitor: &Visitor,
    part: Option<Part>,
    title: &str,
    content: &Markup,
) -> Response {
    let zone = visitor.clock.zone.iana_name().unwrap_or("UTC");
    let markup = html! {
        (head(title))
        body data-live-from="/live" data-stands-at=[&visitor.stands_at] {
            a.skip href="#main" { "Skip to the content" }
            header.top {
                a.brand href="/" { (wave()) "Tidegate" }
                nav aria-label="Main" {
                    ul {
                        @for (own, name, path) in PARTS {
                            li {
                                a href=(path) aria-current=[(part == Some(own)).then_some("page")] { (name) }
                            }
                        }
                    }
                }
                (who(visitor))
            }
            main #main tabindex="-1" { div data-live="paused" { (paused(visitor)) } (content) }
            footer.foot {
                span { "Tidegate " (env!("CARGO_PKG_VERSION")) }
                span { "Times in " (zone) }
                span #live role="status" { "Reload to see changes" }
            }
        }
    };
    (status, Html(markup.into_string())).into_response()
}

/// What concerns every page.
fn paused(visitor: &Visitor) -> Markup {
    let account = visitor.dashboard.app.catalogue.account(visitor.caller.account);
    let since = account.and_then(|account| account.settings.document.paused());
    html! {
        @if let Some(since) = since {
            p.notice.warn role="status" {
                "‖ The whole account is paused since " (ui::moment(&visitor.clock, At(since))) ": events are accepted, nothing is sent. "
                a href="/settings" { "Settings" }
            }
        }
    }
}

fn who(visitor: &Visitor) -> Markup {
    let catalogue = &visitor.dashboard.app.catalogue;
    let own = catalogue.account(visitor.caller.account);
    let name = own.as_deref().map(account_name).unwrap_or_default();
    let accounts = if visitor.is_operator() { catalogue.accounts() } else { Vec::new() };
    let many = accounts.len() > MAX_CHOICES;
    let listed = accounts.into_iter().filter(|_| !many);
    let mut accounts: Vec<_> = listed.map(|account| (account_name(&account), account)).collect();
    accounts.sort_by(|one, other| one.0.cmp(&other.0));
    html! {
        div.who {
            @if many {
                span.account title=(name) { (name) }
                form method="post" action="/account" {
                    (ui::csrf(visitor))
                    label.hidden for="account" { "Look into another account, by its id" }
                    input id="account" name="account" required placeholder="acc_… or external id" spellcheck="false" autocomplete="off";
                    button.quiet type="submit" { "Go" }
                }
            } @else if accounts.len() > 1 {
                form method="post" action="/account" {
                    (ui::csrf(visitor))
                    label.hidden for="account" { "Account" }
                    select id="account" name="account" data-submits {
                        @for (name, account) in &accounts {
                            option value=(account.row.id) selected[account.row.no == visitor.caller.account] {
                                (name)
                            }
                        }
                    }
                    button.quiet type="submit" { "Go" }
                }
            } @else {
                span.account title=(name) { (name) }
            }
            span.role { (visitor.caller.role.word()) }
            form method="post" action="/sign-out" {
                (ui::csrf(visitor)) button.quiet type="submit" { "Sign out" }
            }
        }
    }
}

/// What an account is called.
pub(super) fn account_name(account: &AccountEntry) -> String {
    #[derive(serde::Deserialize)]
    struct Named {
        name: String,
    }
    let named: Option<Named> = serde_json::from_str(&account.row.document).ok();
    named.map_or_else(|| account.row.id.to_string(), |named| named.name)
}

/// The head of a page that stands alone.
pub(super) fn head(title: &str) -> Markup {
    html! {
        (DOCTYPE)
        // The end of `html` may be left out.
        (PreEscaped("<html lang=\"en\"><head>"))
        meta charset="utf-8";
        meta name="viewport" content="width=device-width, initial-scale=1";
        meta name="color-scheme" content="light dark";
        title { (title) " · Tidegate" }
        link rel="stylesheet" href=(STYLE.path);
        link rel="icon" href=(ICON.path);
        script src=(SCRIPT.path) defer {}
        (PreEscaped("</head>"))
    }
}

/// A page for somebody who is not signed in.
pub(super) fn alone(status: StatusCode, title: &str, content: &Markup) -> Response {
    let markup = html! {
        (head(title))
        body.alone { main #main { a.brand href="/" { (wave()) "Tidegate" } (content) } }
    };
    (status, Html(markup.into_string())).into_response()
}

/// A sentence, and the way back.
pub(super) fn plain(status: StatusCode, title: &str, text: &str) -> Response {
    let content = html! { h1 { (title) } p { (text) } p { a href="/" { "Back to the overview" } } };
    alone(status, title, &content)
}

pub(super) fn wave() -> Markup {
    html! {
        svg.wave viewBox="0 0 32 24" aria-hidden="true" {
            path d="M3 8q6.500-6 13 0t13 0M3 18q6.500-6 13 0t13 0" {}
        }
    }
}
