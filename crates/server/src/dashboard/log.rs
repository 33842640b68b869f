//! The log: deliveries and events, by what became of them and by what they wait for.

use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use maud::{Markup, html};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tidegate_core::time::Millis;

use super::ask::{Refused, with_query};
use super::form::instant;
use super::layout::{self, Part};
use super::visitor::{Clock, Page, Visitor};
use super::wire::{At, Delivery, Ended, Event, List};
use super::{Dashboard, event, ui, words};
use crate::auth::Role;

/// Rows of a page.
const ROWS: &str = "50";
/// The tabs: a word, a name, and the status that they ask for.
const TABS: [(&str, &str, &str); 8] = [
    ("all", "All deliveries", ""),
    ("waiting", "Queued", "queued"),
    ("retrying", "Retrying", "retry_scheduled"),
    ("delivering", "In flight", "delivering"),
    ("delivered", "Delivered", "delivered"),
    ("dead_letter", "Dead letter", "dead_letter"),
    ("expired", "Expired", "expired"),
    ("cancelled", "Cancelled", "cancelled"),
];
/// The tab of events.
const EVENTS: &str = "events";
const REASONS: [&str; 11] = [
    "scheduled",
    "retry_backoff",
    "quiet_hours",
    "rate_limited",
    "throttled",
    "unavailable",
    "circuit_open",
    "at_capacity",
    "order_blocked",
    "paused",
    "disabled",
];

/// So long a page looks on where what it read first had nothing to show. Each reading looks at a bounded number of rows, and what
/// is looked for may lie behind many others.
const PATIENCE: Millis = Millis::new(50);

/// The pages.
pub(super) fn routes() -> Router<Dashboard> {
    Router::new().route("/log", get(show)).route("/log/events", get(events))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    tab: String,
    /// Of deliveries: whose they are.
    event: String,
    destination: String,
    event_type: String,
    hold: String,
    from: String,
    to: String,
    external_id: String,
    ordering_key: String,
    /// Of events; deliveries have tabs for it.
    status: String,
    cursor: String,
}

impl Asked {
    fn tab(&self) -> (&'static str, &'static str) {
        let found = TABS.iter().find(|(tab, ..)| *tab == self.tab);
        found.map_or(("all", ""), |(tab, _, status)| (*tab, *status))
    }
    fn filters(&self, tab: &str) -> [(&str, &str); 8] {
        [
            if tab == EVENTS { ("status", &self.status) } else { ("event", &self.event) },
            ("destination", &self.destination),
            ("event_type", &self.event_type),
            ("hold", &self.hold),
            ("from", &self.from),
            ("to", &self.to),
            ("external_id", &self.external_id),
            ("ordering_key", &self.ordering_key),
        ]
    }
    fn is_filtered(&self, tab: &str) -> bool {
        self.filters(tab).iter().any(|(_, value)| !value.is_empty())
    }
    fn page(&self, tab: &str, cursor: &str) -> String {
        let own = [("tab", tab), ("cursor", cursor)];
        let all = own.into_iter().chain(self.filters(tab)).map(|(name, value)| (name, Some(value)));
        with_query(address(tab), all)
    }
    /// What to ask of the API.
    fn api(&self, clock: &Clock, tab: &str, status: &str, cursor: &str) -> String {
        let (from, to) = (instant(clock, &self.from), instant(clock, &self.to));
        let (list, event) = match tab {
            EVENTS => ("/v1/outbound-events", ""),
            _ => ("/v1/deliveries", self.event.as_str()),
        };
        let all = [
            ("event_id", event),
            ("status", status),
            ("destination_id", &self.destination),
            ("event_type", &self.event_type),
            ("hold_reason", &self.hold),
            ("from", &from),
            ("to", &to),
            ("external_event_id", &self.external_id),
            ("ordering_key", &self.ordering_key),
            ("limit", ROWS),
            ("cursor", cursor),
        ];
        with_query(list, all.map(|(name, value)| (name, Some(value))))
    }
}

fn address(tab: &str) -> &'static str {
    if tab == EVENTS { "/log/events" } else { "/log" }
}

/// The first page from here on that has something, as far as patience reaches.
async fn look<T: DeserializeOwned>(
    visitor: &Visitor,
    from: &str,
    path: impl Fn(&str) -> String,
) -> Result<List<T>, Refused> {
    let now = || visitor.dashboard.app.engine.now().mono;
    let began = now();
    let mut found: List<T> = visitor.api.get(&path(from)).await?;
    while found.items.is_empty()
        && let Some(next) = found.next_cursor.clone().filter(|_| now().since(began) < PATIENCE)
    {
        found = visitor.api.get(&path(&next)).await?;
    }
    Ok(found)
}

async fn show(visitor: Visitor, Query(asked): Query<Asked>) -> Page {
    let (tab, status) = asked.tab();
    let found = look(&visitor, &asked.cursor, |cursor| asked.api(&visitor.clock, tab, status, cursor)).await;
    let found: List<Delivery> = match found {
        Ok(found) => found,
        Err(refused) if refused.status.is_client_error() && visitor.caller.role.permits(Role::Viewer) => {
            let content =
                html! { (head(&visitor, &asked, tab, None)) p.notice.bad role="alert" { (refused.error) } };
            return Ok(layout::page(&visitor, Part::Log, "Log", &content));
        }
        Err(refused) => return Err(visitor.refuse(refused)),
    };
    // With a filter nobody has counted them.
    let ended = match asked.is_filtered(tab) {
        true => None,
        false => visitor.api.get::<Ended>("/v1/stats/ended").await.ok(),
    };
    let next = found.next_cursor.as_deref().map(|cursor| asked.page(tab, cursor));
    let first = (!asked.cursor.is_empty()).then(|| asked.page(tab, ""));
    let content = html! {
        (head(&visitor, &asked, tab, ended))
        div data-live=[asked.cursor.is_empty().then_some("log")] {
            @if found.items.is_empty() {
                p.empty {
                    @if found.next_cursor.is_some() {
                        "None among the newest; the next page looks further back. "
                        @if let Some(held) = held_destinations(&asked, status) { a href=(held) { "The destinations that hold what waits" } }
                    } @else if asked.is_filtered(tab) || !status.is_empty() || !asked.cursor.is_empty() { "No delivery fits." } @else {
                        "Nothing was published yet. " a href="/" { "What to do next" }
                    }
                }
            }
            @else { (table(&visitor, &found.items)) }
            (ui::more(next.as_deref(), first.as_deref()))
        }
    };
    Ok(layout::page(&visitor, Part::Log, "Log", &content))
}

/// Where the same is told by destinations: those have counted what waits for them.
fn held_destinations(asked: &Asked, status: &str) -> Option<String> {
    let own = matches!(asked.hold.as_str(), "scheduled" | "retry_backoff" | "order_blocked");
    let waits = matches!(status, "" | "queued");
    let pairs = [("status", Some(asked.hold.as_str())), ("sort", Some("queued"))];
    (waits && !own && asked.destination.is_empty()).then(|| with_query("/destinations", pairs))
}

fn head(visitor: &Visitor, asked: &Asked, tab: &str, ended: Option<Ended>) -> Markup {
    let counted = |tab: &str| match (tab, ended) {
        ("dead_letter", Some(ended)) => Some(words::count(ended.dead_letter)),
        ("expired", Some(ended)) => Some(words::count(ended.expired)),
        _ => None,
    };
    html! {
        h1 { "Log" }
        nav.tabs aria-label="By status" data-live="tabs" {
            @for (word, name, _) in TABS {
                a href=(asked.page(word, "")) aria-current=[(word == tab).then_some("page")] {
                    (name) @if let Some(count) = counted(word) { " " span.badge { (count) } }
                }
            }
            a href=(asked.page(EVENTS, "")) aria-current=[(tab == EVENTS).then_some("page")] { "Events" }
        }
        (filter(asked, tab, &visitor.clock))
        form.filter method="get" action="/find" role="search" {
            div.field.wide {
                label for="find" { "Go to an event or delivery by its id" }
                input id="find" name="id" placeholder="evt_… or dlv_…";
            }
            button type="submit" { "Go" }
        }
        @if !visitor.caller.role.permits(Role::Viewer) { p { "This key may not read." } }
    }
}

fn filter(asked: &Asked, tab: &str, clock: &Clock) -> Markup {
    let zone = clock.zone_name();
    html! {
        form.filter method="get" action=(address(tab)) role="search" {
            input type="hidden" name="tab" value=(tab);
            div.field {
                label for="event_type" { "Event type" }
                input id="event_type" name="event_type" value=(asked.event_type) placeholder="order.paid";
            }
            @if tab == EVENTS {
                div.field {
                    label for="status" { "Status" }
                    select id="status" name="status" {
                        @for (_, name, status) in TABS {
                            option value=(status) selected[asked.status == status] { (if status.is_empty() { "Any" } else { name }) }
                        }
                    }
                }
            }
            @if tab != EVENTS {
                div.field {
                    label for="event" { "Event" }
                    input id="event" name="event" value=(asked.event) placeholder="evt_…";
                }
            }
            div.field {
                label for="destination" { "Destination" }
                input id="destination" name="destination" value=(asked.destination) placeholder="dst_… or your own id";
            }
            div.field {
                label for="hold" { "Held by" }
                select id="hold" name="hold" {
                    option value="" { "Anything" }
                    @for reason in REASONS {
                        option value=(reason) selected[asked.hold == reason] { (words::state(reason).2) }
                    }
                }
            }
            div.field {
                label for="from" { "From (" (zone) ")" }
                input id="from" name="from" type="datetime-local" value=(asked.from);
            }
            div.field {
                label for="to" { "To (" (zone) ")" }
                input id="to" name="to" type="datetime-local" value=(asked.to);
            }
            div.field {
                label for="external_id" { "Your event id" }
                input id="external_id" name="external_id" value=(asked.external_id);
            }
            div.field {
                label for="ordering_key" { "Ordering key" }
                input id="ordering_key" name="ordering_key" value=(asked.ordering_key);
            }
            button type="submit" { "Show" }
            @if asked.is_filtered(tab) {
                a href={ (address(tab)) "?tab=" (tab) } { "Clear" }
            }
        }
    }
}

fn table(visitor: &Visitor, items: &[Delivery]) -> Markup {
    let clock = &visitor.clock;
    html! {
        div.scroll tabindex="0" role="region" aria-label="Deliveries" { table.rows.stack {
            thead {
                tr {
                    th scope="col" { "Accepted" } th scope="col" { "Status" }
                    th scope="col" { "Event type" } th scope="col" { "Destination" }
                    th scope="col" { "Why, until when" } th scope="col" { "Attempts" }
                }
            }
            tbody { @for item in items { tr {
                td { (ui::moment(clock, item.created_at)) }
                td { (ui::state(&item.status)) }
                th scope="row" {
                    a href=(event::address(&item.event_id, &item.id)) { (item.event_type) }
                    @if item.replay_of.is_some() { small { " replay" } }
                }
                td.name { (destination(visitor, item)) }
                td.text { (why(visitor, item)) }
                td.number data-label="Attempts" {
                    (item.attempts_used)
                    @if let Some(most) = item.max_attempts { " / " (most) }
                    @if item.attempts_count != item.attempts_used {
                        small { " (" (item.attempts_count) " sent)" }
                    }
                }
            } } }
        } }
    }
}

/// The destination's name, as far as it is still there.
pub(super) fn destination(visitor: &Visitor, item: &Delivery) -> Markup {
    let Some(id) = &item.destination_id else { return html! { "deleted" } };
    let entry = visitor.dashboard.app.catalogue.find_destination(visitor.caller.account, id);
    html! {
        @match entry {
            Some(entry) => a href={ "/destinations/" (id) } { (entry.spec.document.name) },
            None => { "deleted " (ui::id(id)) }
        }
    }
}

/// Why a delivery waits and until when, or how it ended.
pub(super) fn why(visitor: &Visitor, item: &Delivery) -> Markup {
    let clock = &visitor.clock;
    html! {
        @match (&item.final_reason, &item.hold_reason) {
            (Some(reason), _) => { (ui::said(clock, reason)) },
            (None, Some(reason)) => { (words::state(reason).2) @if let Some(at) = item.retry_at { ", " (ui::countdown(clock, at)) } },
            (None, None) => { @if item.status == "queued" { "its turn comes" } },
        }
        @if item.will_expire { " " strong.warn { "▲ will expire first" } }
    }
}

async fn events(visitor: Visitor, Query(asked): Query<Asked>) -> Page {
    let path = |cursor: &str| asked.api(&visitor.clock, EVENTS, &asked.status, cursor);
    let found: List<Event> = match look(&visitor, &asked.cursor, path).await {
        Ok(found) => found,
        Err(refused) if refused.status.is_client_error() && visitor.caller.role.permits(Role::Viewer) => {
            let content = html! { (head(&visitor, &asked, EVENTS, None)) p.notice.bad role="alert" { (refused.error) } };
            return Ok(layout::page(&visitor, Part::Log, "Events", &content));
        }
        Err(refused) => return Err(visitor.refuse(refused)),
    };
    let next = found.next_cursor.as_deref().map(|cursor| asked.page(EVENTS, cursor));
    let first = (!asked.cursor.is_empty()).then(|| asked.page(EVENTS, ""));
    let clock = &visitor.clock;
    let dash = |at: Option<At>| html! { @if let Some(at) = at { (ui::countdown(clock, at)) } @else { "–" } };
    let content = html! {
        (head(&visitor, &asked, EVENTS, None))
        div data-live=[asked.cursor.is_empty().then_some("events")] {
            @if found.items.is_empty() {
                p.empty {
                    @if found.next_cursor.is_some() {
                        "None among the newest; the next page looks further back. "
                        @if let Some(held) = held_destinations(&asked, &asked.status) { a href=(held) { "The destinations that hold what waits" } }
                    }
                    @else if asked.is_filtered(EVENTS) || !asked.cursor.is_empty() { "No event fits." } @else {
                        "Nothing was published yet. " a href="/" { "What to do next" }
                    }
                }
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Events" { table.rows {
                    thead {
                        tr {
                            th scope="col" { "Accepted" } th scope="col" { "Status" }
                            th scope="col" { "Event type" } th scope="col" { "Destinations" }
                            th scope="col" { "Expires" } th scope="col" { "Your id" }
                            th scope="col" { "Size" }
                        }
                    }
                    tbody { @for event in &found.items { tr {
                        td { (ui::moment(clock, event.created_at)) }
                        td { (ui::state(&event.status)) }
                        th scope="row" { a href={ "/events/" (event.id) } { (event.event_type) } }
                        td.number { (event.routed) }
                        td.number { (dash(event.expires_at)) }
                        td { @if let Some(id) = &event.external_event_id { code { (id) } } @else { "–" } }
                        td.number { (words::bytes(event.payload_size)) }
                    } } }
                } }
            }
            (ui::more(next.as_deref(), first.as_deref()))
        }
    };
    Ok(layout::page(&visitor, Part::Log, "Events", &content))
}
