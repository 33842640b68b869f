//! Settings of the account: defaults, quotas, a pause of everything; and its keys.

mod defaults;

use axum::Router;
use axum::extract::{Path, Query};
use axum::http::Method;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ask::{Refused, segment};
use super::form::{Fields, Values, instant};
use super::layout::{self, Part};
use super::policies::Whose;
use super::visitor::{Page, Posted, Visitor, see};
use super::wire::{Key, List, Settings};
use super::{Dashboard, policies, ui};

/// What each role may do.
const ROLES: [(&str, &str); 5] = [
    ("viewer", "viewer: reads"),
    ("publisher", "publisher: publishes, and nothing else"),
    ("editor", "editor: changes destinations and deliveries"),
    ("owner", "owner: keys and settings, too"),
    ("operator", "operator: the whole installation"),
];

/// The pages.
pub(super) fn routes() -> Router<Dashboard> {
    Router::new()
        .route("/settings", get(show).post(save))
        .route("/settings/keys", get(back).post(make))
        .route("/settings/keys/{id}/revoke", get(back).post(revoke))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    done: Option<String>,
}

async fn back() -> Response {
    see("/settings")
}

async fn show(visitor: Visitor, Query(asked): Query<Asked>) -> Page {
    page(visitor, None, &ui::done(asked.done.as_deref())).await
}

/// Which form was refused, with what it held.
enum Fault {
    Settings(Values, Refused),
    Key(Values, Refused),
}

async fn page(visitor: Visitor, fault: Option<Fault>, first: &Markup) -> Page {
    let settings: Settings = match visitor.api.get("/v1/settings").await {
        Ok(settings) => settings,
        Err(refused) => return Err(visitor.refuse(refused)),
    };
    let keys = if visitor.may_own() {
        visitor.api.get::<List<Key>>("/v1/api-keys?limit=200").await.ok()
    } else {
        None
    };
    let mut own = of(&settings);
    let account = visitor.dashboard.app.catalogue.account(visitor.caller.account);
    own.put_some("version", account.map(|account| account.row.version));
    let fresh = {
        let mut values = Values::default();
        values.put("role", "viewer");
        values
    };
    let (settings_form, key_form) = match &fault {
        Some(Fault::Settings(values, refused)) => {
            (Fields { values, fault: Some(refused) }, Fields { values: &fresh, fault: None })
        }
        Some(Fault::Key(values, refused)) => {
            (Fields { values: &own, fault: None }, Fields { values, fault: Some(refused) })
        }
        None => (Fields { values: &own, fault: None }, Fields { values: &fresh, fault: None }),
    };
    let content = html! {
        h1 { "Settings" }
        (first)
        @if visitor.may_own() { (form(&visitor, &settings_form)) } @else { (shown(&settings)) }
        section aria-labelledby="keys" {
            h2 #keys { "API keys" }
            @match &keys { Some(keys) => { (table(&visitor, &keys.items)) (key_form_of(&visitor, &key_form)) }, None => { p { "Only owners see the keys. Yours has the role " strong { (visitor.caller.role.word()) } "." } } }
        }
    };
    Ok(layout::page(&visitor, Part::Settings, "Settings", &content))
}

fn of(settings: &Settings) -> Values {
    let mut values = Values::default();
    defaults::put(&mut values, &settings.defaults);
    values.put_some("max_queued_events", settings.max_queued_events);
    values.put_some("max_queued_bytes", settings.max_queued_bytes);
    for (name, on) in [("paused", settings.paused), ("public_event_types", settings.public_event_types)] {
        if on {
            values.put(name, "on");
        }
    }
    values
}

fn form(visitor: &Visitor, fields: &Fields<'_>) -> Markup {
    html! {
        form.edit novalidate method="post" action="/settings" {
            (ui::csrf(visitor)) (fields.notice())
            input type="hidden" name="version" value=(fields.values.get("version"));
            fieldset {
                legend { "Account" }
                (fields.tick("paused", "Pause the whole account: accept events, send nothing"))
                (fields.tick("public_event_types", "Let anybody read the event types"))
                div.grid {
                    (fields.input("max_queued_events", "Waiting deliveries at most", "Above it publishing answers 429. Empty: no limit.", "number"))
                    (fields.input("max_queued_bytes", "Bytes of waiting payloads at most", "Empty: no limit.", "number"))
                }
            }
            details open[fields.fault.is_some() || defaults::are_set(fields.values)] {
                summary { "Defaults: policies for destinations that say nothing" }
                p.note { "They hold at once, also for what waits. What is left empty is as built in." }
                fieldset {
                    legend { "Age" }
                    div.grid {
                        (fields.input("max_age_seconds", "Seconds that a delivery is tried at most", "Empty: as the operator configured.", "number"))
                    }
                }
                (policies::draw(fields, Whose::Account)) (policies::zones())
            }
            div.bar { button.main type="submit" { "Save" } }
        }
    }
}

fn shown(settings: &Settings) -> Markup {
    let limit = |limit: Option<u64>| limit.map_or("no limit".to_owned(), super::words::count);
    html! {
        dl.pairs {
            dt { "Waiting deliveries at most" } dd { (limit(settings.max_queued_events)) }
            dt { "Bytes of waiting payloads at most" } dd { (limit(settings.max_queued_bytes)) }
            dt { "Event types" }
            dd {
                @if settings.public_event_types {
                    "anybody may read them"
                } @else { "only those with a key read them" }
            }
            dt { "Defaults" }
            dd { pre { (serde_json::to_string_pretty(&settings.defaults).unwrap_or_default()) } }
        }
    }
}

async fn save(Posted { visitor, values }: Posted) -> Page {
    let settings: Settings = match visitor.api.get("/v1/settings").await {
        Ok(settings) => settings,
        Err(refused) => return Err(visitor.refuse(refused)),
    };
    let values = policies::tidy(values);
    let patch = patch(&settings, &values);
    // Whoever changed them since this form was made is not overruled.
    let version = values.get("version").parse().ok();
    match visitor.api.change(Method::PATCH, "/v1/settings", &patch, version).await {
        Ok(_) => Ok(see("/settings?done=saved")),
        Err(refused) if !refused.is_about_form() => Err(visitor.refuse(refused)),
        Err(refused) => {
            let fault = Fault::Settings(values, defaults::within(refused));
            page(visitor, Some(fault), &html! {}).await
        }
    }
}

/// What the form says otherwise than what is in force.
fn patch(settings: &Settings, values: &Values) -> Value {
    let mut patch = json!({
        "max_queued_events": values.number("max_queued_events"),
        "max_queued_bytes": values.number("max_queued_bytes"),
        "paused": values.is_on("paused"),
        "public_event_types": values.is_on("public_event_types"),
    });
    let changed = defaults::changes(&settings.defaults, values);
    if !changed.is_empty() {
        patch["defaults"] = Value::Object(changed);
    }
    patch
}

fn table(visitor: &Visitor, keys: &[Key]) -> Markup {
    let clock = &visitor.clock;
    html! {
        div.scroll tabindex="0" role="region" aria-label="API keys" { table.rows.stack {
            thead {
                tr {
                    th scope="col" { "Name" } th scope="col" { "Role" } th scope="col" { "Begins with" }
                    th scope="col" { "Made" } th scope="col" { "Ends" }
                    th scope="col" { "" span.hidden { "Revoke" } }
                }
            }
            tbody { @for key in keys { tr {
                th scope="row" { (key.name) }
                td { (key.role) }
                td { code { (key.prefix) "…" } }
                td data-label="made" { (ui::moment(clock, key.created_at)) }
                td data-label="ends" { @if let Some(at) = key.expires_at { (ui::moment(clock, at)) } @else { "never" } }
                td { @if visitor.caller.key.to_string() == key.id { small { "you are using it" } } @else { (ui::action(visitor, &format!("/settings/keys/{}/revoke", key.id), "Revoke", &[])) } }
            } } }
        } }
    }
}

fn key_form_of(visitor: &Visitor, fields: &Fields<'_>) -> Markup {
    let roles = if visitor.is_operator() { &ROLES[..] } else { &ROLES[..4] };
    html! {
        form.edit method="post" action="/settings/keys" {
            (ui::csrf(visitor))
            fieldset {
                legend { "New key" }
                (fields.notice())
                div.grid {
                    (fields.text("name", "What it is for", ""))
                    (fields.choice("role", "Role", "", roles))
                    (fields.input("expires_at", &format!("Ends at ({})", visitor.clock.zone_name()), "Empty: never.", "datetime-local"))
                }
                div.bar { button.main type="submit" { "Make a key" } }
            }
        }
    }
}

/// A new key: the page shows it once.
async fn make(Posted { mut visitor, values }: Posted) -> Page {
    visitor.stands_at = Some("/settings".to_owned());
    let mut body = json!({"name": values.get("name"), "role": values.get("role")});
    if let Some(end) = values.some("expires_at") {
        body["expires_at"] = instant(&visitor.clock, end).into();
    }
    match visitor.api.post::<Key>("/v1/api-keys", &body).await {
        Ok(key) => {
            let first = html! { @if let Some(text) = &key.api_key { (ui::secret(&format!("The new key “{}”", key.name), text)) } };
            page(visitor, None, &first).await
        }
        // Whoever may make keys, but not this one, chooses another role.
        Err(refused) if !refused.is_about_form() && !visitor.may_own() => Err(visitor.refuse(refused)),
        Err(refused) => page(visitor, Some(Fault::Key(values, refused)), &html! {}).await,
    }
}

async fn revoke(Path(id): Path<String>, Posted { visitor, .. }: Posted) -> Page {
    match visitor.api.delete(&format!("/v1/api-keys/{}", segment(&id))).await {
        Ok(()) => Ok(see("/settings?done=revoked")),
        Err(refused) => Err(visitor.refuse(refused)),
    }
}
