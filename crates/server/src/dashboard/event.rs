//! One event: its payload, what became of it at each destination on one time axis, and why it waits.

mod lanes;
mod payload;
mod request;

use std::collections::BTreeMap;

use axum::Router;
use axum::extract::{Path, Query};
use axum::response::Response;
use axum::routing::get;
use futures_util::future::try_join_all;
use maud::{Markup, html};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::json;
use serde_json::value::RawValue;
use tidegate_core::time::Millis;

use super::ask::{Refused, segment};
use super::layout::{self, Part};
use super::visitor::{Page, Posted, Visitor, see};
use super::wire::{Attempt, Deliveries, Delivery, DeliveryStory, Event, Explanation, Payload, Requests};
use super::{Dashboard, log, ui, words};

/// Deliveries whose whole story one page tells.
const MAX_STORIES: usize = 50;

/// The pages.
pub(super) fn routes() -> Router<Dashboard> {
    Router::new()
        .route("/find", get(find))
        .route("/events/{id}", get(show))
        .route("/events/{id}/do", get(back).post(act))
        .route("/deliveries/{id}", get(of_delivery))
        .route("/deliveries/{id}/do", get(of_delivery).post(act_on_delivery))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Asked {
    done: Option<String>,
    id: String,
    /// A delivery that is to be told of, also where there are more than can be told.
    delivery: String,
}

/// Where a delivery is told of.
pub(super) fn address(event: &str, delivery: &str) -> String {
    format!("/events/{event}?delivery={delivery}#{delivery}")
}

async fn find(visitor: Visitor, Query(asked): Query<Asked>) -> Page {
    let id = segment(asked.id.trim());
    let path = match id.split('_').next() {
        Some("") => "/log".to_owned(),
        Some("evt") => format!("/events/{id}"),
        Some("dst") => format!("/destinations/{id}"),
        _ => format!("/deliveries/{id}"),
    };
    drop(visitor);
    Ok(see(&path))
}

/// The address of a form is no page.
async fn back(Path(id): Path<String>) -> Response {
    see(&format!("/events/{}", segment(&id)))
}

/// A delivery is shown with its event.
async fn of_delivery(visitor: Visitor, Path(id): Path<String>) -> Page {
    let story: Result<DeliveryStory, _> = visitor.api.get(&format!("/v1/deliveries/{}", segment(&id))).await;
    match story {
        Ok(story) => Ok(see(&address(&story.delivery.event_id, &story.delivery.id))),
        Err(refused) => Err(visitor.refuse(refused)),
    }
}

/// A delivery with its story, its requests if there were any, and why it waits if it does.
pub(super) struct Lane {
    story: DeliveryStory,
    requests: Option<Requests>,
    explanation: Option<Explanation>,
}

struct Facts {
    event: Event,
    /// How many of its deliveries have each status.
    counts: BTreeMap<String, u64>,
    payload: Payload,
    lanes: Vec<Lane>,
}

impl Facts {
    async fn ask(visitor: &Visitor, id: &str, asked: &str) -> Result<Self, Refused> {
        let api = &visitor.api;
        let path = format!("/v1/outbound-events/{}?deliveries={MAX_STORIES}", segment(id));
        // Whatever the payload holds, such as numbers beyond all bounds, what stands beside it is read.
        let answer: Box<RawValue> = api.get(&path).await?;
        let event: Event = part(&answer)?;
        let (Deliveries { deliveries, counts }, payload) = (part(&answer)?, part(&answer)?);
        let told = deliveries.iter().map(|delivery| Lane::ask(visitor, &delivery.id));
        let mut lanes = try_join_all(told).await?;
        let is_told = lanes.iter().any(|lane| lane.story.delivery.id == asked);
        if !asked.is_empty() && !is_told && lanes.len() >= MAX_STORIES {
            let lane = Lane::ask(visitor, asked).await.ok();
            let own = |lane: &Lane| lane.story.delivery.event_id == event.id;
            lanes.splice(0..0, lane.filter(own));
        }
        Ok(Self { event, counts, payload, lanes })
    }
}

impl Lane {
    async fn ask(visitor: &Visitor, id: &str) -> Result<Self, Refused> {
        let (api, path) = (&visitor.api, format!("/v1/deliveries/{}", segment(id)));
        let story: DeliveryStory = api.get(&path).await?;
        let (over, tried) = (story.delivery.final_reason.is_some(), story.delivery.attempts_count > 0);
        let requests = if tried { Some(api.get(&format!("{path}/requests")).await?) } else { None };
        let explanation = if over { None } else { Some(api.get(&format!("{path}/explain")).await?) };
        Ok(Self { story, requests, explanation })
    }
}

fn part<T: DeserializeOwned>(answer: &RawValue) -> Result<T, Refused> {
    serde_json::from_str(answer.get()).map_err(|_| Refused::default())
}

async fn show(visitor: Visitor, Path(id): Path<String>, Query(asked): Query<Asked>) -> Page {
    let facts = match Facts::ask(&visitor, &id, &asked.delivery).await {
        Ok(facts) => facts,
        Err(refused) => return Err(visitor.refuse(refused)),
    };
    let (clock, event) = (&visitor.clock, &facts.event);
    let hidden = facts.counts.values().sum::<u64>().saturating_sub(facts.lanes.len() as u64);
    let content = html! {
        nav.crumbs aria-label="Path" { a href="/log/events" { "Events" } }
        div.title { h1 { (event.event_type) } span data-live="status" { (ui::state(&event.status)) } }
        p.under {
            (ui::id(&event.id)) @if let Some(own) = &event.external_event_id { " · your id " code { (own) } }
        }
        (ui::done(asked.done.as_deref()))
        @if visitor.may_edit() { (actions(&visitor, &facts)) }
        dl.figures {
            (ui::figure("Accepted", &ui::countdown(clock, event.created_at), &html! { (ui::moment(clock, event.created_at)) @if event.occurred_at != event.created_at { ", happened " (ui::moment(clock, event.occurred_at)) } }))
            (ui::figure("Destinations", &html! { (words::count(event.routed.into())) }, &spread(&facts)))
            (ui::figure("Priority", &html! { (event.priority) }, &html! { "1 critical … 4 bulk" }))
            @if let Some(at) = event.expires_at {
                (ui::figure("Expires", &ui::countdown(clock, at), &ui::moment(clock, at)))
            }
            @if let Some(at) = event.deliver_at {
                (ui::figure("Not before", &ui::countdown(clock, at), &ui::moment(clock, at)))
            }
            @if let Some(key) = &event.ordering_key { (ui::figure("Ordering key", &html! { code { (key) } }, &html! {})) }
        }
        section aria-labelledby="lanes" data-live="lanes" {
            h2 #lanes { "From acceptance to the end" }
            @if facts.lanes.is_empty() {
                p { "It went to no destination: none takes events of this type." }
            } @else { (lanes::draw(&visitor, &facts.lanes)) }
        }
        @for lane in &facts.lanes { (delivery(&visitor, lane)) }
        @if hidden > 0 {
            p {
                (words::plural(hidden, "more delivery is", "more deliveries are")) " "
                a href={ "/log?event=" (event.id) } { "in the log" } "."
            }
        }
        section aria-labelledby="payload" { h2 #payload { "Payload" } (payload::draw(event, &facts.payload)) }
    };
    Ok(layout::page(&visitor, Part::Log, &event.event_type, &content))
}

/// How many of its deliveries have come how far.
fn spread(facts: &Facts) -> Markup {
    html! {
        @if facts.counts.is_empty() { "no destination takes this type" }
        span data-live="spread" { @for (place, (status, count)) in facts.counts.iter().enumerate() {
            @if place > 0 { ", " } (words::count(*count)) " " (words::state(status).2)
        } }
    }
}

fn actions(visitor: &Visitor, facts: &Facts) -> Markup {
    let path = format!("/events/{}/do", facts.event.id);
    let is_open = |status: &str| matches!(status, "queued" | "retry_scheduled" | "delivering");
    let open = facts.counts.keys().any(|status| is_open(status));
    let over = facts.counts.keys().any(|status| !is_open(status));
    html! {
        div.actions data-live="actions" {
            @if over { (ui::action(visitor, &path, "Replay to all its destinations", &[("what", "replay")])) }
            @if open { (ui::action(visitor, &path, "Cancel what is not sent", &[("what", "cancel")])) }
        }
    }
}

async fn act(Path(id): Path<String>, Posted { visitor, values }: Posted) -> Page {
    let path = format!("/v1/outbound-events/{}", segment(&id));
    let (call, word) = match values.get("what") {
        "replay" => ("replay", "replayed"),
        _ => ("cancel", "cancelled"),
    };
    match visitor.api.post::<IgnoredAny>(&format!("{path}/{call}"), &json!({})).await {
        Ok(_) => Ok(see(&format!("/events/{}?done={word}", segment(&id)))),
        Err(refused) => Err(visitor.refuse(refused)),
    }
}

async fn act_on_delivery(Path(id): Path<String>, Posted { visitor, values }: Posted) -> Page {
    let path = format!("/v1/deliveries/{}", segment(&id));
    let (call, word) = match values.get("what") {
        "replay" => ("replay", "replayed"),
        "hasten" => ("retry-now", "hastened"),
        _ => ("cancel", "cancelled"),
    };
    match visitor.api.post::<Delivery>(&format!("{path}/{call}"), &json!({})).await {
        Ok(delivery) => Ok(see(&format!(
            "/events/{}?done={word}&delivery={id}#{id}",
            delivery.event_id,
            id = delivery.id
        ))),
        Err(refused) => Err(visitor.refuse(refused)),
    }
}

fn delivery(visitor: &Visitor, lane: &Lane) -> Markup {
    let DeliveryStory { delivery, attempts, timeline } = &lane.story;
    let clock = &visitor.clock;
    let over = delivery.final_reason.is_some();
    let path = format!("/deliveries/{}/do", delivery.id);
    html! {
        section.delivery id=(delivery.id) data-live=(delivery.id) aria-labelledby={ "h-" (delivery.id) } {
            div.title {
                h2 id={ "h-" (delivery.id) } { "To " (log::destination(visitor, delivery)) }
                (ui::state(&delivery.status))
                @if visitor.may_edit() {
                    @if over { (ui::action(visitor, &path, "Replay", &[("what", "replay")])) }
                    @else {
                        @if delivery.status == "retry_scheduled" {
                            (ui::action(visitor, &path, "Send without waiting", &[("what", "hasten")]))
                        }
                        (ui::action(visitor, &path, "Cancel", &[("what", "cancel")]))
                    }
                }
            }
            p.under {
                (ui::id(&delivery.id)) " · " (log::why(visitor, delivery)) " · " (delivery.attempts_used)
                @if let Some(most) = delivery.max_attempts { " of " (most) }
                " attempts used"
                " · priority " (delivery.priority)
                @if let Some(key) = &delivery.ordering_key { " · key " code { (key) } }
                @if let Some(original) = &delivery.replay_of {
                    " · replay of " a href={ "#" (original) } { (ui::id(original)) }
                }
                @if let Some(at) = delivery.expires_at.filter(|_| !over) {
                    " · expires " (ui::countdown(clock, at))
                }
                @if let Some(at) = delivery.finished_at { " · ended " (ui::moment(clock, at)) }
            }
            @if let Some(explanation) = &lane.explanation { (explained(visitor, explanation)) }
            @for attempt in attempts { (attempted(visitor, attempt, lane.requests.as_ref())) }
            details { summary { "Timeline" }
                div.scroll tabindex="0" role="region" aria-label="Timeline" { table.rows { tbody { @for moment in timeline {
                    tr {
                        td { (ui::moment(clock, moment.at)) } td { (ui::state(&moment.status)) }
                        td.text { (ui::said(clock, &moment.detail)) }
                        td { @if let Some(at) = moment.retry_at { "until " (ui::moment(clock, at)) } }
                    }
                } } } }
            }
        }
    }
}

/// Why it is not sent, gate by gate.
fn explained(visitor: &Visitor, explanation: &Explanation) -> Markup {
    let clock = &visitor.clock;
    html! {
        div.explain {
            p { strong { (ui::said(clock, &explanation.summary)) } }
            p {
                @match explanation.estimated_at { Some(at) => { "It should be sent " strong { (ui::until(clock, at)) } }, None => "When it will be sent depends on more than time" }
                @if let Some(place) = &explanation.queue {
                    ", with " @if !place.exact { "more than " } (words::count(place.ahead)) " before it"
                }
                "."
                @if explanation.will_expire { " " strong.warn { "▲ It will expire first." } }
            }
            details { summary { "Every gate" }
                table.gates { tbody { @for gate in &explanation.gates {
                    tr.closed[!gate.open] {
                        th scope="row" { (gate.gate.replace('_', " ")) }
                        td {
                            @if gate.open {
                                span.state.good { span.shape aria-hidden="true" { "✓" } " open" }
                            } @else { span.state.wait { span.shape aria-hidden="true" { "‖" } " closed" } }
                        }
                        td {
                            (ui::said(clock, &gate.detail))
                            @if let Some(at) = gate.until { " · opens " (ui::countdown(clock, at)) }
                        }
                    }
                } } }
            }
        }
    }
}

fn attempted(visitor: &Visitor, attempt: &Attempt, requests: Option<&Requests>) -> Markup {
    let clock = &visitor.clock;
    html! {
        details.attempt {
            summary {
                "Attempt " (attempt.number) " · " (ui::state(&attempt.outcome)) @if let Some(status) = attempt.status_code { " " (status) }
                " · " (words::span(Millis::new(attempt.response_time_ms))) " · " (ui::moment(clock, attempt.started_at))
            }
            dl.pairs {
                dt { "Took" }
                dd {
                    (words::span(Millis::new(attempt.response_time_ms))) " of "
                    (words::span(Millis::new(attempt.timeout_ms))) " allowed"
                }
                @if let Some(error) = &attempt.error { dt { "Error" } dd { (error) } }
                @if let Some(probe) = &attempt.probe {
                    dt { "Probe" } dd { "It went alone, to find out whether the " (probe) " may open." }
                }
                dt { "Counts" }
                dd {
                    @if attempt.counted {
                        "against the attempts allowed"
                    } @else { "not against the attempts allowed" }
                }
                dt { "Node" } dd { (attempt.node) }
                @if let Some(requests) = requests { (request::draw(clock, requests, attempt.number)) }
                @if !attempt.response_headers.is_empty() {
                    dt { "Response headers" }
                    dd {
                        pre { @for (name, value) in &attempt.response_headers { (name) ": " (value) "\n" } }
                    }
                }
                @if let Some(body) = &attempt.response_body { dt { "Response body" } dd { pre { (body) } } }
            }
        }
    }
}
