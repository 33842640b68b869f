//! Event types: what they mean, how long they are worth sending, and what consumers should do; for customers, too.

use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Map, Value};
use tidegate_core::time::Millis;

use super::ask::{Refused, segment, with_query};
use super::form::{Fields, Values};
use super::layout::{self, Part, account_name};
use super::visitor::{Page, Posted, Visitor, see};
use super::wire::{EventType, List, Settings};
use super::{Dashboard, policies, ui, words};
use crate::api::event_types::EventTypeView;

/// Types of a page.
const ROWS: &str = "100";
/// Types that the page for customers shows.
const MAX_PUBLIC: usize = 1_000;

/// The pages.
pub(super) fn routes() -> Router<Dashboard> {
    Router::new()
        .route("/event-types", get(show).post(save))
        .route("/event-types/edit", get(edit))
        .route("/event-types/delete", get(back).post(remove))
        .route("/catalogue/{account}", get(public))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    event_type: String,
    cursor: String,
    done: Option<String>,
}

/// The address of a form is no page.
async fn back() -> Response {
    see("/event-types")
}

async fn show(visitor: Visitor, Query(asked): Query<Asked>) -> Page {
    let path =
        with_query("/v1/event-types", [("limit", Some(ROWS)), ("cursor", Some(asked.cursor.as_str()))]);
    let found = futures_util::try_join!(
        visitor.api.get::<List<EventType>>(&path),
        visitor.api.get::<Settings>("/v1/settings")
    );
    let (found, settings) = match found {
        Ok(found) => found,
        Err(refused) => return Err(visitor.refuse(refused)),
    };
    let next =
        found.next_cursor.as_deref().map(|cursor| with_query("/event-types", [("cursor", Some(cursor))]));
    let first = (!asked.cursor.is_empty()).then_some("/event-types");
    let account = visitor.dashboard.app.catalogue.account(visitor.caller.account);
    let link =
        account.map(|account| format!("{}/catalogue/{}", visitor.origin, account.row.id)).unwrap_or_default();
    let content = html! {
        div.title {
            h1 { "Event types" }
            @if visitor.may_edit() { a.button.main href="/event-types/edit" { "New event type" } }
        }
        (ui::done(asked.done.as_deref()))
        @if found.items.is_empty() {
            p.empty {
                "No event type is described yet. Events of any type are accepted; a description gives them a time to live, retries and guidance for those who receive them."
            }
        }
        @for item in &found.items { (entry(item, visitor.may_edit())) }
        (ui::more(next.as_deref(), first))
        section aria-labelledby="public" {
            h2 #public { "For your customers" }
            @if settings.public_event_types {
                p { "Anybody may read this catalogue at " a href=(link) { (link) } "." }
            }
            @else {
                p {
                    "Only those with a key may read this catalogue. An owner may publish it in the "
                    a href="/settings" { "settings" } "."
                }
            }
        }
    };
    Ok(layout::page(&visitor, Part::EventTypes, "Event types", &content))
}

/// One type, as it is shown to everybody.
fn entry(item: &EventType, may_edit: bool) -> Markup {
    let ttl = item.delivery_ttl_seconds.map(|seconds| words::span(Millis::seconds(seconds)));
    html! {
        article.type {
            div.title {
                h2 { code { (item.event_type) } }
                @if may_edit {
                    a.button href=(with_query("/event-types/edit", [("event_type", Some(item.event_type.as_str()))])) {
                        "Edit"
                    }
                }
            }
            @if let Some(text) = &item.description { p.lines { (text) } }
            dl.pairs {
                dt { "Worth sending for" }
                dd { (ttl.unwrap_or_else(|| "as long as retries go on".to_owned())) }
                dt { "Attempts" } dd { @match (item.max_attempts, &item.retry_policy) {
                    (Some(most), _) => { "at most " (most) },
                    (None, Some(retry)) => { "at most " (retry.max_attempts) },
                    (None, None) => "as the destination says",
                } }
                @if let Some(retry) = &item.retry_policy {
                    dt { "Seconds between them" }
                    dd {
                        (retry.delays_seconds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
                    }
                }
                @if let Some(priority) = item.priority {
                    dt { "Priority" } dd { (priority) " (1 critical … 4 bulk)" }
                }
            }
            @if let Some(text) = &item.consumer_guidance { p.lines { strong { "For consumers: " } (text) } }
        }
    }
}

async fn edit(visitor: Visitor, Query(asked): Query<Asked>) -> Page {
    let mut values = Values::default();
    if !asked.event_type.is_empty() {
        let found: Result<EventType, Refused> =
            visitor.api.get(&format!("/v1/event-types/{}", segment(&asked.event_type))).await;
        match found {
            Ok(found) => values = of(&found),
            Err(refused) => return Err(visitor.refuse(refused)),
        }
    }
    Ok(form(&visitor, &values, None))
}

fn of(item: &EventType) -> Values {
    let mut values = Values::default();
    values.put("event_type", &item.event_type);
    values.put("version", item.version);
    values.put_some("description", item.description.as_ref());
    values.put_some("delivery_ttl_seconds", item.delivery_ttl_seconds);
    values.put_some("max_attempts", item.max_attempts);
    values.put_some("priority", item.priority);
    values.put_some("consumer_guidance", item.consumer_guidance.as_ref());
    if let Some(retry) = &item.retry_policy {
        policies::put_retry(&mut values, retry);
    }
    values
}

fn form(visitor: &Visitor, values: &Values, fault: Option<&Refused>) -> Response {
    let fields = Fields { values, fault };
    let content = html! {
        nav.crumbs aria-label="Path" { a href="/event-types" { "Event types" } }
        h1 {
            @if values.get("version").is_empty() {
                "New event type"
            } @else { "Edit " (values.get("event_type")) }
        }
        @if visitor.may_edit() {
            form.edit novalidate method="post" action="/event-types" {
                (ui::csrf(visitor)) (fields.notice())
                input type="hidden" name="version" value=(values.get("version"));
                fieldset {
                    legend { "Event type" }
                    div.grid {
                        // Another name is another type.
                        @if values.get("version").is_empty() {
                            (fields.text("event_type", "Name or pattern", "Such as order.paid or order.*"))
                        } @else { input type="hidden" name="event_type" value=(values.get("event_type")); }
                        (fields.area("description", "What it means", "", 3))
                        (fields.area("consumer_guidance", "What consumers should do with it", "", 3))
                    }
                }
                fieldset {
                    legend { "How it is delivered" }
                    div.grid {
                        (fields.input("delivery_ttl_seconds", "Worth sending for seconds", "From its receipt. Empty: no limit.", "number"))
                        (fields.input("priority", "Priority", "1 critical … 4 bulk. Empty: 3.", "number"))
                        (fields.input("max_attempts", "Attempts at most", "Caps whatever retry policy is chosen.", "number"))
                    }
                }
                (policies::draw_retry(&fields, "A policy of its own, instead of the destination's", &html! {}))
                div.bar { button.main type="submit" { "Save" } a href="/event-types" { "Discard" } }
            }
            @if !values.get("version").is_empty() {
                (ui::action(visitor, "/event-types/delete", "Delete this description", &[("event_type", values.get("event_type"))]))
            }
        } @else { p.notice.bad { "This needs a key with the role editor." } }
    };
    layout::page(visitor, Part::EventTypes, "Event type", &content)
}

/// What the form says, in the words of the API. A type is written as a whole: what the form does not ask about stays as it was.
fn document(before: Map<String, Value>, values: &Values) -> Value {
    let mut document = before;
    let said = [
        ("description", values.some("description").into()),
        ("consumer_guidance", values.some("consumer_guidance").into()),
        ("delivery_ttl_seconds", values.number("delivery_ttl_seconds")),
        ("max_attempts", values.number("max_attempts")),
        ("priority", values.number("priority")),
        ("retry_policy", policies::retry(values)),
    ];
    document.extend(said.map(|(name, value)| (name.to_owned(), value)));
    // What only tells of the last change is not written.
    document.retain(|name, value| !value.is_null() && name != "version" && name != "updated_at");
    Value::Object(document)
}

async fn save(Posted { visitor, values }: Posted) -> Page {
    let name = values.get("event_type");
    if name.is_empty() {
        // Without a name there is no path to write to.
        let error = "an event type has a name, such as order.paid, or a pattern, such as order.*".to_owned();
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        let refused = Refused { status, error, field: Some("event_type".to_owned()) };
        return Ok(form(&visitor, &values, Some(&refused)));
    }
    let path = format!("/v1/event-types/{}", segment(name));
    let version = values.get("version").parse().ok();
    let before = match version {
        Some(_) => visitor.api.get(&path).await,
        None => Ok(Map::new()),
    };
    let saved = match before {
        Ok(before) => visitor.api.change(Method::PUT, &path, &document(before, &values), version).await,
        Err(refused) => Err(refused),
    };
    match saved {
        Ok(_) => Ok(see("/event-types?done=saved")),
        Err(refused) if !refused.is_about_form() => Err(visitor.refuse(refused)),
        Err(refused) => Ok(form(&visitor, &values, Some(&refused))),
    }
}

async fn remove(Posted { visitor, values }: Posted) -> Page {
    match visitor.api.delete(&format!("/v1/event-types/{}", segment(values.get("event_type")))).await {
        Ok(()) => Ok(see("/event-types?done=deleted")),
        Err(refused) => Err(visitor.refuse(refused)),
    }
}

/// The catalogue of an account that lets everybody read it.
async fn public(State(dashboard): State<Dashboard>, Path(name): Path<String>) -> Response {
    let catalogue = &dashboard.app.catalogue;
    let account =
        catalogue.find_account(&name).filter(|account| account.settings.document.public_event_types);
    let Some(account) = account else {
        return layout::plain(
            StatusCode::NOT_FOUND,
            "Not found",
            "There is no catalogue here that everybody may read.",
        );
    };
    let types = catalogue.event_types(account.row.no);
    let read = |view: EventTypeView| {
        serde_json::to_value(view).ok().and_then(|view| serde_json::from_value::<EventType>(view).ok())
    };
    let types: Vec<EventType> =
        types.iter().take(MAX_PUBLIC).filter_map(|entry| read(EventTypeView::new(&entry.row))).collect();
    let title = format!("Events of {}", account_name(&account));
    let content = html! {
        h1 { (title) }
        p.under { "Each event is posted to your URL and signed; see Standard Webhooks for how to verify it." }
        @if types.is_empty() { p.empty { "No event type is described yet." } }
        @for item in &types { (entry(item, false)) }
    };
    layout::alone(StatusCode::OK, &title, &content)
}
