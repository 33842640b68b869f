//! One destination: every gate in words, the next day, the backlog, and what happened.

mod actions;
mod edit;
mod fields;
mod gates;
mod histogram;
mod history;
mod preview;
mod strip;
mod timeline;

use axum::Router;
use axum::extract::{Path, Query};
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde::Deserialize;
use tidegate_core::time::Millis;

use super::ask::{Refused, segment, with_query};
use super::layout::{self, Part};
use super::visitor::{Clock, Page, Visitor, see};
use super::wire::{Attempt, Destination, Forecast, Latency, List, Notice, PastHold};
use super::{Dashboard, ui, words};

/// The pages.
pub(super) fn routes() -> Router<Dashboard> {
    Router::new()
        .route("/destinations/new", get(edit::blank).post(edit::create))
        .route("/destinations/{id}", get(show))
        .route("/destinations/{id}/edit", get(edit::show).post(edit::save))
        .route("/destinations/{id}/preview", get(back_to_form).post(edit::preview))
        .route("/destinations/{id}/do", get(back).post(actions::act))
        .route("/destinations/{id}/secret", get(back).post(actions::rotate))
        .route("/destinations/{id}/test", get(back).post(actions::test))
}

/// The address of a form is no page: whoever comes there looks for the page that has it.
async fn back(Path(id): Path<String>) -> Response {
    see(&format!("/destinations/{}", segment(&id)))
}

async fn back_to_form(Path(id): Path<String>) -> Response {
    see(&format!("/destinations/{}/edit", segment(&id)))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    done: Option<String>,
}

/// All that the page shows.
struct Facts {
    destination: Destination,
    forecast: Forecast,
    latency: Latency,
    attempts: List<Attempt>,
    holds: List<PastHold>,
    notices: List<Notice>,
    strip: strip::Strip,
}

impl Facts {
    async fn ask(visitor: &Visitor, id: &str) -> Result<Self, Refused> {
        let path = format!("/v1/destinations/{}", segment(id));
        let api = &visitor.api;
        let destination: Destination = api.get(&path).await?;
        let day_ago = (visitor.clock.now - Millis::hours(24)).to_string();
        let of = |what: &str| {
            with_query(&format!("{path}/{what}"), [("limit", Some("200")), ("from", Some(day_ago.as_str()))])
        };
        let (forecast, latency, attempts) =
            (format!("{path}/forecast"), format!("{path}/latency"), format!("{path}/attempts?limit=200"));
        let (holds, notices) = (of("holds"), with_query(&format!("{path}/notices"), [("limit", Some("50"))]));
        let (forecast, latency, mut attempts, holds, notices, strip) = futures_util::try_join!(
            api.get(&forecast),
            api.get(&latency),
            api.get::<List<Attempt>>(&attempts),
            api.get(&holds),
            api.get(&notices),
            strip::Strip::ask(api, &visitor.clock, &destination.delivery_schedules),
        )?;
        // They come in the order in which they ended.
        attempts.items.sort_by_key(|attempt| std::cmp::Reverse(attempt.started_at));
        Ok(Self { destination, forecast, latency, attempts, holds, notices, strip })
    }
}

async fn show(visitor: Visitor, Path(id): Path<String>, Query(asked): Query<Asked>) -> Page {
    let facts = match Facts::ask(&visitor, &id).await {
        Ok(facts) => facts,
        Err(refused) => return Err(visitor.refuse(refused)),
    };
    let content = html! { (ui::done(asked.done.as_deref())) (body(&visitor, &facts, &html! {})) };
    Ok(layout::page(&visitor, Part::Destinations, &facts.destination.name, &content))
}

/// The page with something to say first, in answer to a form.
async fn show_with(mut visitor: Visitor, id: &str, first: &Markup) -> Page {
    visitor.stands_at = Some(format!("/destinations/{}", segment(id)));
    match Facts::ask(&visitor, id).await {
        Ok(facts) => {
            let content = body(&visitor, &facts, first);
            Ok(layout::page(&visitor, Part::Destinations, &facts.destination.name, &content))
        }
        Err(refused) => Err(visitor.refuse(refused)),
    }
}

fn body(visitor: &Visitor, facts: &Facts, first: &Markup) -> Markup {
    let (clock, destination) = (&visitor.clock, &facts.destination);
    html! {
        nav.crumbs aria-label="Path" { a href="/destinations" { "Destinations" } }
        div.title {
            h1 { (destination.name) }
            span data-live="status" { (ui::state(&destination.status)) }
            @if visitor.may_edit() {
                a.button href={ "/destinations/" (destination.id) "/edit" } { "Edit policies" }
            }
        }
        p.under {
            code { (destination.url) } " · " (ui::id(&destination.id))
            @if let Some(own) = &destination.external_id { " · " code { (own) } }
            " · since " (ui::moment(clock, destination.created_at))
        }
        @if let Some(at) = destination.previous_valid_until {
            p.under {
                "The signing secret was changed: the one before signs as well until " (ui::moment(clock, at))
                "."
            }
        }
        @if let Some(key) = &destination.signing_public_key {
            p.under { "Receivers verify with " code { (key) } }
        }
        (first)
        (actions::bar(visitor, destination))
        div data-live="figures" { (figures(clock, facts)) }
        div.columns {
            section aria-labelledby="gates" data-live="gates" {
                h2 #gates { "Gates" } (gates::table(clock, destination))
            }
            section aria-labelledby="backlog" data-live="backlog" {
                h2 #backlog { "Backlog" } (backlog(clock, facts))
            }
        }
        section aria-labelledby="day" data-live="day" { h2 #day { "The next 24 hours" } (facts.strip.draw(clock)) }
        section aria-labelledby="attempts" data-live="attempts" {
            h2 #attempts { "Attempts and holds" }
            (timeline::draw(clock, &facts.attempts.items, &facts.holds.items))
        }
        div.columns {
            section aria-labelledby="latency" data-live="latency" {
                h2 #latency { "Response times, 7 days" }
                (histogram::draw(&facts.latency, &destination.timeout))
                (histogram::timeout(clock, &destination.timeout)) (histogram::days(&facts.latency))
            }
            section aria-labelledby="history" data-live="history" {
                h2 #history { "Breaker, throttle and timeout history" }
                (history::table(clock, &facts.notices.items))
            }
        }
    }
}

fn figures(clock: &Clock, facts: &Facts) -> Markup {
    let destination = &facts.destination;
    let rate = |share: Option<f64>| html! { (share.map_or("–".to_owned(), words::percent)) };
    html! {
        dl.figures {
            (ui::figure("Waiting", &html! { (words::count(destination.queued_events)) }, &html! {
                @if let Some(at) = destination.oldest_queued_at {
                    "oldest " (ui::countdown(clock, at))
                } @else { "nothing waits" }
            }))
            (ui::figure("In flight", &html! { (destination.inflight) " / " (destination.max_concurrency) }, &html! {
                meter min="0" max=(destination.max_concurrency) value=(destination.inflight) aria-label="Slots taken" {}
            }))
            (ui::figure("Success, 24 h", &rate(destination.success_rate_24h), &html! { "of attempts" }))
            (ui::figure("Timeouts, 24 h", &rate(destination.timeout_rate_24h), &html! { "of attempts" }))
            (ui::figure("Timeout", &html! { (words::span(Millis::new(destination.timeout.ms))) }, &html! { (destination.timeout.mode) }))
            (ui::figure("Rate", &html! { @match destination.rate_now { Some(rate) => { (words::rate(rate.per_minute)) } None => { "no limit" } } }, &html! {
                @if let Some(rate) = destination.rate_now {
                    (words::count(rate.tokens)) " of " (words::count(rate.burst)) " tokens left"
                }
            }))
        }
        @if let Some(at) = destination.as_of {
            p.note {
                "Worked by node " (destination.node.as_deref().unwrap_or("?")) "; its state is as of "
                (ui::moment(clock, at)) "."
            }
        }
    }
}

fn backlog(clock: &Clock, facts: &Facts) -> Markup {
    let Forecast { queued_events, opens_at, drained_at, waits_for } = &facts.forecast;
    html! {
        @if *queued_events == 0 {
            p { "Nothing waits." }
        } @else {
            p.forecast { strong { (words::plural(*queued_events, "delivery waits", "deliveries wait")) } }
            @match (drained_at, waits_for) {
                (Some(at), _) => p.forecast { "Drained " strong { (ui::until(clock, *at)) } ", if nothing fails and nothing more comes in." },
                (None, Some(what)) => p.forecast { "Not by itself: " (ui::said(clock, what)) "." },
                (None, None) => p.forecast { "Nobody can say when it will be drained." },
            }
            @if let Some(at) = opens_at.filter(|at| at.0 > clock.now + Millis::seconds(1)) {
                p { "Sending begins " (ui::until(clock, at)) "." }
            }
        }
        p {
            a href={ "/log?destination=" (facts.destination.id) } { "All its deliveries" } " · "
            a href={ "/log?tab=waiting&destination=" (facts.destination.id) } { "Those that wait" }
        }
    }
}
