//! Writing a destination: new, or changed. Only what was changed is said to the API.

use axum::extract::Path;
use axum::http::Method;
use maud::{Markup, html};
use serde_json::{Value, json};

use super::{fields, preview};
use crate::dashboard::ask::{Refused, segment};
use crate::dashboard::form::{Fields, Values, difference};
use crate::dashboard::layout::{self, Part};
use crate::dashboard::visitor::{Page, Posted, Visitor, see};
use crate::dashboard::wire::Destination;
use crate::dashboard::{policies, ui};
use crate::policy::breaker::BreakerDocument;

/// The form for a new one.
pub(super) async fn blank(visitor: Visitor) -> Page {
    let mut values = Values::default();
    values.put("active", "on");
    values.put("event_types", "*");
    values.put("max_concurrency", 5);
    values.put("timeout.mode", "adaptive");
    policies::put_breaker(&mut values, &BreakerDocument::default());
    values.put("auth_config.type", "none");
    Ok(new_page(&visitor, &values, None))
}

fn new_page(visitor: &Visitor, values: &Values, fault: Option<&Refused>) -> axum::response::Response {
    let fields = Fields { values, fault };
    let content = html! {
        nav.crumbs aria-label="Path" { a href="/destinations" { "Destinations" } }
        h1 { "New destination" }
        @if visitor.may_edit() {
            form.edit novalidate method="post" action="/destinations/new" {
                (ui::csrf(visitor)) (fields.notice()) (fields::draw(&fields, None)) (policies::zones())
                div.bar { button.main type="submit" { "Create" } a href="/destinations" { "Discard" } }
            }
        } @else { p.notice.bad { "This needs a key with the role editor." } }
    };
    layout::page(visitor, Part::Destinations, "New destination", &content)
}

/// Makes a new one: the page shows its signing secret once.
pub(super) async fn create(Posted { visitor, values }: Posted) -> Page {
    let values = policies::tidy(values);
    let mut document = fields::document(&values);
    // What is left empty is the API's to fill in.
    if let Some(document) = document.as_object_mut() {
        let kept = |name: &str, value: &Value| !(value.is_null() || name == "name" && value == "");
        document.retain(|name, value| kept(name, value));
    }
    let made: Result<Destination, Refused> = visitor.api.post("/v1/destinations", &document).await;
    match made {
        Ok(made) => {
            let first = html! {
                p.notice.good role="status" { "✓ The destination is there." }
                @if let Some(secret) = &made.signing_secret {
                    (ui::secret("Its signing secret, for the receiver", secret))
                }
            };
            super::show_with(visitor, &made.id, &first).await
        }
        Err(refused) if !refused.is_about_form() => Err(visitor.refuse(refused)),
        Err(refused) => Ok(new_page(&visitor, &values, Some(&refused))),
    }
}

/// The form of one that is there.
pub(super) async fn show(visitor: Visitor, Path(id): Path<String>) -> Page {
    match read(&visitor, &id).await {
        Ok(destination) => {
            let values = fields::of(&destination);
            Ok(page(&visitor, &destination, &values, None, &html! {}))
        }
        Err(refused) => Err(visitor.refuse(refused)),
    }
}

async fn read(visitor: &Visitor, id: &str) -> Result<Destination, Refused> {
    visitor.api.get(&format!("/v1/destinations/{}", segment(id))).await
}

fn page(
    visitor: &Visitor,
    destination: &Destination,
    values: &Values,
    fault: Option<&Refused>,
    preview: &Markup,
) -> axum::response::Response {
    let fields = Fields { values, fault };
    let path = format!("/destinations/{}", destination.id);
    let auth = destination.auth_config.as_ref().map(|auth| format!("{} in {}", auth.kind, auth.name));
    let version = values.some("version").map_or_else(|| destination.version.to_string(), str::to_owned);
    let content = html! {
        nav.crumbs aria-label="Path" {
            a href="/destinations" { "Destinations" } " / " a href=(path) { (destination.name) }
        }
        h1 { "Edit " (destination.name) }
        @if visitor.may_edit() {
            form.edit novalidate method="post" action={ (path) "/edit" } {
                (ui::csrf(visitor)) input type="hidden" name="version" value=(version);
                (fields.notice()) (preview)
                (fields::draw(&fields, auth.as_deref())) (policies::zones())
                div.bar {
                    button.main type="submit" { "Save" }
                    button type="submit" formaction={ (path) "/preview" } { "Preview on the last 24 hours" }
                    a href=(path) { "Discard" }
                }
            }
        } @else { p.notice.bad { "This needs a key with the role editor." } }
    };
    layout::page(visitor, Part::Destinations, &format!("Edit {}", destination.name), &content)
}

/// What the form says otherwise than what is in force.
fn changes(destination: &Destination, values: &Values) -> Value {
    let before = fields::document(&policies::tidy(fields::of(destination)));
    let mut changes = difference(&before, &fields::document(values));
    // Where a list is emptied, the policy goes.
    if changes.get("delivery_schedules") == Some(&json!([])) {
        changes["delivery_schedules"] = Value::Null;
    }
    changes
}

/// Saves what was changed, or shows the form again with what is wrong beside it.
pub(super) async fn save(Path(id): Path<String>, Posted { visitor, values }: Posted) -> Page {
    let destination = match read(&visitor, &id).await {
        Ok(destination) => destination,
        Err(refused) => return Err(visitor.refuse(refused)),
    };
    let values = policies::tidy(values);
    let changes = changes(&destination, &values);
    let back = format!("/destinations/{}", segment(&id));
    if changes.as_object().is_none_or(serde_json::Map::is_empty) {
        return Ok(see(&format!("{back}?done=unchanged")));
    }
    let version = values.get("version").parse().ok();
    match visitor.api.change(Method::PATCH, &format!("/v1{back}"), &changes, version).await {
        Ok(_) => Ok(see(&format!("{back}?done=saved"))),
        Err(refused) if !refused.is_about_form() => Err(visitor.refuse(refused)),
        Err(refused) => Ok(page(&visitor, &destination, &values, Some(&refused), &html! {})),
    }
}

/// What the change would have done to the last day's traffic.
pub(super) async fn preview(Path(id): Path<String>, Posted { visitor, values }: Posted) -> Page {
    let destination = match read(&visitor, &id).await {
        Ok(destination) => destination,
        Err(refused) => return Err(visitor.refuse(refused)),
    };
    let values = policies::tidy(values);
    let changes = changes(&destination, &values);
    match preview::run(&visitor, &destination, &changes).await {
        Ok(shown) => Ok(page(&visitor, &destination, &values, None, &shown)),
        Err(refused) if !refused.is_about_form() => Err(visitor.refuse(refused)),
        Err(refused) => Ok(page(&visitor, &destination, &values, Some(&refused), &html! {})),
    }
}
