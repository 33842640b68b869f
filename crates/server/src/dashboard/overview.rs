//! The overview: what flows, what waits and why, and what needs a person.

mod charts;
mod first_steps;

use maud::{Markup, html};
use serde::de::IgnoredAny;

use super::ask::Api;
use super::layout::{self, Part};
use super::visitor::{Clock, Page, Visitor};
use super::wire::{Destination, Hold, List, Node, Stats};
use super::{ui, words};

/// Destinations that are shown as needing attention.
const MOST: &str = "8";
/// A destination that answers less often than this needs a person.
const POOR: f64 = 0.9;

/// The page.
pub(super) async fn show(visitor: Visitor) -> Page {
    let api = &visitor.api;
    let attention = format!("/v1/destinations?sort=attention&limit={MOST}");
    let asked =
        futures_util::try_join!(api.get::<Stats>("/v1/stats"), api.get::<List<Destination>>(&attention),);
    let (stats, destinations) = match asked {
        Ok(asked) => asked,
        Err(refused) => return Err(visitor.refuse(refused)),
    };
    let nodes = if visitor.is_operator() { api.get::<List<Node>>("/v1/nodes").await.ok() } else { None };
    let is_new = stats.destinations == 0 || !has_events(api, &stats).await;
    let content = html! {
        h1 { "Overview" }
        div data-live="overview" {
            @if is_new { (first_steps::draw(&visitor, stats.destinations, destinations.items.first())) }
            @else {
                (figures(&visitor.clock, &stats))
                div.columns {
                    section aria-labelledby="attention" {
                        h2 #attention { "Needs attention" }
                        (attention_table(&visitor.clock, &destinations.items))
                    }
                    section aria-labelledby="held" { h2 #held { "Held, by reason" } (held(&stats)) }
                }
                section aria-labelledby="hour" {
                    h2 #hour { "The last hour" } (charts::hour(&visitor.clock, &stats))
                }
                section aria-labelledby="day" {
                    h2 #day { "The last 24 hours" } (charts::day(&visitor.clock, &stats))
                }
                @if let Some(nodes) = &nodes {
                    section aria-labelledby="nodes" { h2 #nodes { "Nodes" } (node_table(&nodes.items)) }
                }
            }
        }
    };
    Ok(layout::page(&visitor, Part::Overview, "Overview", &content))
}

/// Whether anything was ever published. The store is asked only where nothing was lately.
async fn has_events(api: &Api, stats: &Stats) -> bool {
    if stats.queued_events > 0 || stats.last_24h.accepted > 0 {
        return true;
    }
    let events = api.get::<List<IgnoredAny>>("/v1/outbound-events?limit=1").await;
    events.is_ok_and(|events| !events.items.is_empty())
}

fn figures(clock: &Clock, stats: &Stats) -> Markup {
    let day = &stats.last_24h;
    let rate = (day.attempts > 0).then(|| day.successes as f64 / day.attempts as f64);
    html! {
        dl.figures {
            (ui::figure("Accepted, 24 h", &html! { (words::count(day.accepted)) }, &html! { "deliveries in" }))
            (ui::figure("Delivered, 24 h", &html! { (words::count(day.delivered)) }, &html! { "deliveries out" }))
            (ui::figure("Success, 24 h", &html! { (rate.map_or("–".to_owned(), words::percent)) }, &html! { "of " (words::plural(day.attempts, "attempt", "attempts")) }))
            (ui::figure("Waiting", &html! { (words::count(stats.queued_events)) }, &html! {
                @if let Some(at) = stats.oldest_queued_at {
                    "oldest " (ui::countdown(clock, at))
                } @else { "nothing waits" }
            }))
            (ui::figure("In flight", &html! { (words::count(stats.inflight as u64)) }, &html! { (words::bytes(stats.queued_bytes)) " wait" }))
            (ui::figure("Dead letters, 24 h", &html! { a href="/log?tab=dead_letter" { (words::count(day.dead_letter)) } }, &html! { "given up" }))
            (ui::figure("Expired, 24 h", &html! { a href="/log?tab=expired" { (words::count(day.expired)) } }, &html! { "went stale" }))
        }
    }
}

/// Why a destination needs a person, or is worth a look.
fn reason(clock: &Clock, item: &Destination) -> Option<Markup> {
    // What goes on by itself concerns nobody while nothing waits for it.
    let concerns = |hold: &&Hold| match hold.reason.as_str() {
        "at_capacity" => false,
        "quiet_hours" | "rate_limited" => item.queued_events > 0,
        _ => true,
    };
    if let Some(hold) = item.holds.iter().find(concerns) {
        return Some(
            html! { (ui::said(clock, &hold.detail)) @if let Some(until) = hold.until { " · " (ui::countdown(clock, until)) } },
        );
    }
    let poor = item.success_rate_24h.filter(|rate| *rate < POOR);
    poor.map(
        |rate| html! { "only " (words::percent(rate)) " of its attempts succeeded in the last 24 hours" },
    )
}

fn attention_table(clock: &Clock, items: &[Destination]) -> Markup {
    let rows: Vec<(&Destination, Markup)> =
        items.iter().filter_map(|item| Some((item, reason(clock, item)?))).collect();
    html! {
        @if rows.is_empty() { p.calm { span.state.good { span.shape aria-hidden="true" { "✓" } " all well" } " No destination is held or failing." } } @else {
            div.scroll tabindex="0" role="region" aria-label="Needs attention" { table.rows.stack {
                thead {
                    tr {
                        th scope="col" { "Destination" } th scope="col" { "Status" } th scope="col" { "Why" }
                        th scope="col" { "Queue" }
                    }
                }
                tbody { @for (item, why) in &rows { tr {
                    th scope="row" { a href={ "/destinations/" (item.id) } { (item.name) } }
                    td { (ui::state(&item.status)) }
                    td.text { (why) }
                    td.number data-label="Queue" { (words::count(item.queued_events)) }
                } } }
            } }
            p { a href="/destinations?sort=attention" { "All destinations, by need of attention" } }
        }
    }
}

fn held(stats: &Stats) -> Markup {
    let most = stats.held.iter().map(|held| held.deliveries).max().unwrap_or(1).max(1);
    html! {
        @if stats.held.is_empty() { p.calm { "Nothing is held." } } @else {
            table.bars { thead { tr { th scope="col" { "Reason" } th scope="col" { "Deliveries" } th scope="col" { span.hidden { "Share" } } th scope="col" { "Destinations" } } }
                tbody { @for held in &stats.held { tr {
                    th scope="row" { a href={ "/log?hold=" (held.reason) } { (ui::state(&held.reason)) } }
                    td.number { (words::count(held.deliveries)) }
                    td {
                        meter min="0" max=(most) value=(held.deliveries) aria-label={ (held.deliveries) " deliveries" } {}
                    }
                    td.number { (words::count(held.destinations)) }
                } } }
            }
        }
    }
}

fn node_table(nodes: &[Node]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Nodes" { table.rows {
            thead {
                tr {
                    th scope="col" { "Node" } th scope="col" { "State" } th scope="col" { "Address" }
                    th scope="col" { "Slots" } th scope="col" { "Destinations" }
                    th scope="col" { "In flight" } th scope="col" { "Version" }
                }
            }
            tbody { @for node in nodes { tr {
                th scope="row" { (node.id) }
                td { (ui::state(&node.status)) }
                td { (node.address.as_deref().unwrap_or("this server")) }
                td.number { (node.slot_count) " of 256" }
                td.number { (words::count(node.destinations as u64)) }
                td.number {
                    @if let (Some(now), Some(most)) = (node.inflight, node.max_in_flight) {
                        (now) " / " (most)
                    } @else { "–" }
                }
                td { (node.version) }
            } } }
        } }
    }
}
