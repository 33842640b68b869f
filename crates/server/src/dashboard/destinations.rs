//! All destinations: searched, sorted, a page at a time, however many there are.

use std::time::Duration;

use axum::Router;
use axum::extract::Query;
use axum::http::HeaderValue;
use axum::http::header::REFRESH;
use axum::routing::get;
use maud::{Markup, html};
use serde::Deserialize;

use super::ask::with_query;
use super::layout::{self, Part};
use super::visitor::{Clock, Page, Visitor};
use super::wire::{Destination, List};
use super::{Dashboard, ui, words};
use crate::api::survey;
use crate::auth::Role;
use tidegate_core::time::Millis;

/// Rows of a page.
const ROWS: &str = "50";
/// So long a page waits for an order that must be read first.
const PATIENCE: Duration = Duration::from_millis(50);
/// The orders that the heads of columns lead to.
const SORTS: [(&str, &str); 8] = [
    ("attention", "Needs attention"),
    ("queued", "Longest queue"),
    ("oldest", "Oldest waiting"),
    ("inflight", "Most in flight"),
    ("success_rate", "Lowest success rate"),
    ("name", "Name"),
    ("timeout", "Longest timeout"),
    ("newest", "Newest"),
];
const STATUSES: [&str; 9] = [
    "active",
    "quiet_hours",
    "rate_limited",
    "at_capacity",
    "throttled",
    "unavailable",
    "circuit_open",
    "paused",
    "disabled",
];

/// The page.
pub(super) fn routes() -> Router<Dashboard> {
    Router::new().route("/destinations", get(show))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    search: String,
    status: String,
    sort: String,
    cursor: String,
    done: Option<String>,
}

impl Asked {
    fn sort(&self) -> &str {
        SORTS.iter().map(|(word, _)| *word).find(|word| *word == self.sort).unwrap_or("attention")
    }
    fn path<'a>(&'a self, base: &str, sort: &'a str, cursor: &'a str, more: &[(&'a str, &'a str)]) -> String {
        let own =
            [("search", self.search.as_str()), ("status", &self.status), ("sort", sort), ("cursor", cursor)];
        with_query(base, own.into_iter().chain(more.iter().copied()).map(|(name, value)| (name, Some(value))))
    }
}

/// A page does not wait for what must be read of each of many destinations: it says so, and looks again.
async fn is_to_be_read(visitor: &Visitor, sort: &str) -> bool {
    let reads = matches!(sort, "oldest" | "success_rate") && visitor.caller.role.permits(Role::Viewer);
    let app = &visitor.dashboard.app;
    reads && matches!(survey::sheet(app, visitor.caller.account, PATIENCE).await, Ok(None))
}

async fn show(visitor: Visitor, Query(asked): Query<Asked>) -> Page {
    if is_to_be_read(&visitor, asked.sort()).await {
        let content = html! {
            h1 { "Destinations" }
            (filter(&asked))
            p.notice role="status" { "What waits at each destination is being read. This page looks again in a second." }
        };
        let mut page = layout::page(&visitor, Part::Destinations, "Destinations", &content);
        page.headers_mut().insert(REFRESH, HeaderValue::from_static("1"));
        return Ok(page);
    }
    let path =
        asked.path("/v1/destinations", asked.sort(), &asked.cursor, &[("limit", ROWS), ("total", "true")]);
    let found: List<Destination> = match visitor.api.get(&path).await {
        Ok(found) => found,
        Err(refused) => return Err(visitor.refuse(refused)),
    };
    let next =
        found.next_cursor.as_deref().map(|cursor| asked.path("/destinations", asked.sort(), cursor, &[]));
    let first = (!asked.cursor.is_empty()).then(|| asked.path("/destinations", asked.sort(), "", &[]));
    let content = html! {
        div.title {
            h1 { "Destinations" }
            @if visitor.may_edit() { a.button.main href="/destinations/new" { "New destination" } }
        }
        (ui::done(asked.done.as_deref()))
        (filter(&asked))
        div data-live="destinations" {
            p.count { (counted(&found)) }
            @if found.items.is_empty() {
                (nothing(&visitor, &asked))
            } @else {
                (table(&visitor.clock, &asked, &found.items))
            }
            (ui::more(next.as_deref(), first.as_deref()))
        }
    };
    Ok(layout::page(&visitor, Part::Destinations, "Destinations", &content))
}

fn counted(found: &List<Destination>) -> String {
    match found.total {
        Some(total) => words::plural(total, "destination", "destinations"),
        None => "More than 10,000 destinations".to_owned(),
    }
}

fn nothing(visitor: &Visitor, asked: &Asked) -> Markup {
    html! {
        @if !asked.search.is_empty() || !asked.status.is_empty() {
            p.empty { "No destination fits. " a href="/destinations" { "Show all" } }
        } @else {
            p.empty {
                "There is no destination yet: a URL that events go to, with its own rules for when and how fast. "
                @if visitor.may_edit() { a href="/destinations/new" { "Create the first" } }
            }
        }
    }
}

fn filter(asked: &Asked) -> Markup {
    html! {
        form.filter method="get" action="/destinations" role="search" {
            div.field.wide {
                label for="search" { "Search" }
                input id="search" name="search" type="search" value=(asked.search) placeholder="Name, URL or id";
            }
            div.field {
                label for="status" { "Status" }
                select id="status" name="status" {
                    option value="" { "Any" }
                    @for status in STATUSES {
                        option value=(status) selected[asked.status == status] { (words::state(status).2) }
                    }
                }
            }
            div.field {
                label for="sort" { "Order" }
                select id="sort" name="sort" {
                    @for (sort, name) in SORTS {
                        option value=(sort) selected[asked.sort() == sort] { (name) }
                    }
                }
            }
            button type="submit" { "Show" }
        }
    }
}

fn table(clock: &Clock, asked: &Asked, items: &[Destination]) -> Markup {
    let head = |sort: &str, name: &str| {
        let sorted = asked.sort() == sort;
        html! {
            th scope="col" aria-sort=[sorted.then_some(if matches!(sort, "name" | "oldest" | "success_rate") { "ascending" } else { "descending" })] {
                a href=(asked.path("/destinations", sort, "", &[])) { (name) @if sorted { span aria-hidden="true" { " ▾" } } }
            }
        }
    };
    html! {
        div.scroll tabindex="0" role="region" aria-label="Destinations" {
            table.rows {
                thead { tr {
                    (head("name", "Name")) (head("attention", "Status"))
                    (head("queued", "Queue")) (head("oldest", "Oldest")) (head("inflight", "In flight"))
                    (head("success_rate", "Success 24 h")) (head("timeout", "Timeout"))
                    th scope="col" { "Rate used" }
                } }
                tbody {
                    @for item in items {
                        tr {
                            th scope="row" {
                                a href={ "/destinations/" (item.id) } { (item.name) } small.url { (item.url) }
                            }
                            td { (ui::state(&item.status)) (hold(clock, item)) }
                            td.number { (words::count(item.queued_events)) }
                            td.number {
                                @if let Some(at) = item.oldest_queued_at {
                                    (ui::countdown(clock, at))
                                } @else { "–" }
                            }
                            td.number { (item.inflight) " / " (item.max_concurrency) }
                            td.number { (item.success_rate_24h.map_or("–".to_owned(), words::percent)) }
                            td.number {
                                (words::span(Millis::new(item.timeout.ms))) " " small { (item.timeout.mode) }
                            }
                            td.number { (rate(item)) }
                        }
                    }
                }
            }
        }
    }
}

fn hold(clock: &Clock, item: &Destination) -> Markup {
    let until = item.holds.first().and_then(|hold| hold.until);
    html! { @if let Some(until) = until { small.until { (ui::countdown(clock, until)) } } }
}

fn rate(item: &Destination) -> Markup {
    html! {
        @match item.rate_now {
            Some(rate) => { (words::count(rate.burst.saturating_sub(rate.tokens))) " / " (words::count(rate.burst)) small { (words::rate(rate.per_minute)) } }
            None => { "no limit" }
        }
    }
}
