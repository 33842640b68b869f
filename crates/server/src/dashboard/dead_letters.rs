//! Dead letters: what was given up or went stale, selected by a filter and sent again at a rate.

use axum::Router;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ask::{Refused, segment};
use super::form::{Fields, Values, instant};
use super::layout::{self, Part};
use super::visitor::{Clock, Page, Posted, Visitor, see};
use super::wire::{Delivery, DryRun, Ended, Job, List};
use super::{Dashboard, event, log, ui, words};

/// The pages.
pub(super) fn routes() -> Router<Dashboard> {
    Router::new()
        .route("/dead-letters", get(show).post(replay))
        .route("/dead-letters/jobs/{id}", get(job))
        .route("/dead-letters/jobs/{id}/stop", get(back).post(stop))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    destination_id: String,
    done: Option<String>,
}

/// The address of a form is no page.
async fn back(Path(id): Path<String>) -> Response {
    see(&format!("/dead-letters/jobs/{}", segment(&id)))
}

/// What a dry run found.
enum Found {
    Nothing,
    Counted(Option<u64>),
    Refused(Refused),
}

async fn show(visitor: Visitor, Query(asked): Query<Asked>) -> Page {
    let mut values = Values::default();
    values.put("filter.status", "dead_letter");
    values.put("filter.destination_id", &asked.destination_id);
    page(visitor, &values, &Found::Nothing, asked.done.as_deref()).await
}

/// The form's filter in the words of the API; what is empty is not said.
fn request(clock: &Clock, values: &Values, dry_run: bool) -> Value {
    let moment = |name: &str| values.some(name).map(|text| instant(clock, text));
    let mut filter = json!({
        "destination_id": values.some("filter.destination_id"),
        "event_type": values.some("filter.event_type"),
        "status": values.some("filter.status").filter(|status| *status != "both"),
        "from": moment("filter.from"),
        "to": moment("filter.to"),
    });
    let mut request = json!({
        "max_per_minute": values.number("max_per_minute"),
        "ttl": values.some("ttl"),
        "dry_run": dry_run,
    });
    for object in [&mut filter, &mut request] {
        if let Some(object) = object.as_object_mut() {
            object.retain(|_, value| !value.is_null());
        }
    }
    request["filter"] = filter;
    request
}

/// Counts, or begins.
async fn replay(Posted { visitor, values }: Posted) -> Page {
    if values.get("what") == "replay" {
        let asked = request(&visitor.clock, &values, false);
        let begun: Result<Job, Refused> = visitor.api.post("/v1/replays", &asked).await;
        return match begun {
            Ok(job) => Ok(see(&format!("/dead-letters/jobs/{}?done=started", job.id))),
            Err(refused) if !refused.is_about_form() => Err(visitor.refuse(refused)),
            Err(refused) => page(visitor, &values, &Found::Refused(refused), None).await,
        };
    }
    let asked = request(&visitor.clock, &values, true);
    let counted: Result<DryRun, Refused> = visitor.api.post("/v1/replays", &asked).await;
    let found = match counted {
        Ok(counted) => Found::Counted(counted.count),
        Err(refused) if !refused.is_about_form() => return Err(visitor.refuse(refused)),
        Err(refused) => Found::Refused(refused),
    };
    page(visitor, &values, &found, None).await
}

async fn page(visitor: Visitor, values: &Values, found: &Found, done: Option<&str>) -> Page {
    let api = &visitor.api;
    let lists = futures_util::try_join!(
        api.get::<List<Job>>("/v1/replays?limit=10"),
        api.get::<List<Delivery>>("/v1/deliveries?status=dead_letter&limit=10"),
        api.get::<List<Delivery>>("/v1/deliveries?status=expired&limit=10"),
        api.get::<Ended>("/v1/stats/ended"),
    );
    let (jobs, dead, expired, ended) = match lists {
        Ok(lists) => lists,
        Err(refused) => return Err(visitor.refuse(refused)),
    };
    let content = html! {
        h1 { "Dead letters" }
        (ui::done(done))
        @if visitor.may_edit() { (form(&visitor, values, found)) }
        section aria-labelledby="jobs" data-live="jobs" {
            h2 #jobs { "Replays" } (job_table(&visitor, &jobs.items))
        }
        (latest(&visitor, "dead_letter", "Given up", &dead, ended.dead_letter))
        (latest(&visitor, "expired", "Expired: not sent because it was stale", &expired, ended.expired))
    };
    Ok(layout::page(&visitor, Part::DeadLetters, "Dead letters", &content))
}

fn form(visitor: &Visitor, values: &Values, found: &Found) -> Markup {
    let fault = match found {
        Found::Refused(refused) => Some(refused),
        Found::Nothing | Found::Counted(_) => None,
    };
    let fields = Fields { values, fault };
    let zone = visitor.clock.zone_name();
    html! {
        form.edit method="post" action="/dead-letters" {
            (ui::csrf(visitor))
            fieldset {
                legend { "Send again" }
                (fields.notice())
                div.grid {
                    (fields.choice("filter.status", "Which", "", &[("dead_letter", "given up"), ("expired", "expired"), ("both", "given up and expired"), ("cancelled", "cancelled"), ("delivered", "delivered")]))
                    (fields.text("filter.destination_id", "Destination", "Its id, or your own. Empty: all."))
                    (fields.text("filter.event_type", "Event type", "Empty: all."))
                    (fields.input("filter.from", &format!("Accepted from ({zone})"), "", "datetime-local"))
                    (fields.input("filter.to", &format!("Accepted before ({zone})"), "", "datetime-local"))
                    (fields.input("max_per_minute", "At most per minute", "6,000 if not said. Replays never crowd out live traffic.", "number"))
                    (fields.choice("ttl", "Time to live", "", &[("reset", "reset: as long again"), ("keep", "keep: as it was"), ("none", "none: never expires")]))
                }
                @if let Found::Counted(count) = found {
                    p.notice.good role="status" {
                        @match count { Some(count) => { strong { (words::plural(*count, "delivery fits", "deliveries fit")) } "." }, None => { strong { "More than 50,000 deliveries fit" } "." } }
                        " Nothing was sent."
                    }
                }
                div.bar {
                    button type="submit" name="what" value="count" { "Count them (dry run)" }
                    button.main type="submit" name="what" value="replay" { "Replay them" }
                }
            }
        }
    }
}

fn latest(visitor: &Visitor, tab: &str, title: &str, list: &List<Delivery>, count: u64) -> Markup {
    html! {
        section aria-labelledby={ "s-" (tab) } data-live={ "s-" (tab) } {
            h2 id={ "s-" (tab) } {
                (title) " " span.badge { (words::count(count)) }
            }
            @if list.items.is_empty() { p.empty { "None." } } @else {
                div.scroll tabindex="0" role="region" aria-label=(title) { table.rows.stack {
                    thead {
                        tr {
                            th scope="col" { "Ended" } th scope="col" { "Event type" }
                            th scope="col" { "Destination" } th scope="col" { "Why" }
                        }
                    }
                    tbody { @for item in &list.items { tr {
                        td { @if let Some(at) = item.finished_at { (ui::moment(&visitor.clock, at)) } }
                        th scope="row" {
                            a href=(event::address(&item.event_id, &item.id)) { (item.event_type) }
                        }
                        td.name { (log::destination(visitor, item)) }
                        td.text {
                            (ui::said(&visitor.clock, item.final_reason.as_deref().unwrap_or_default()))
                        }
                    } } }
                } }
                p { a href={ "/log?tab=" (tab) } { "All of them" } }
            }
        }
    }
}

fn job_table(visitor: &Visitor, jobs: &[Job]) -> Markup {
    html! {
        @if jobs.is_empty() { p.empty { "Nothing has been replayed so far." } } @else {
            div.scroll tabindex="0" role="region" aria-label="Replays" { table.rows {
                thead {
                    tr {
                        th scope="col" { "Asked for" } th scope="col" { "Which" } th scope="col" { "State" }
                        th scope="col" { "Progress" }
                    }
                }
                tbody { @for job in jobs { tr {
                    th scope="row" {
                        a href={ "/dead-letters/jobs/" (job.id) } {
                            (ui::moment(&visitor.clock, job.created_at))
                        }
                    }
                    td.text { (asked(job)) }
                    td { (ui::state(&job.status)) }
                    td { (progress(job)) }
                } } }
            } }
        }
    }
}

/// What a job was asked, as a person reads it.
fn asked(job: &Job) -> String {
    let filter = job.request["filter"].as_object().cloned().unwrap_or_default();
    let part = |(name, value): (&String, &Value)| {
        let value = value.as_str().unwrap_or_default();
        let shown = if name == "status" { words::state(value).2 } else { value.to_owned() };
        format!("{} {shown}", name.replace('_', " "))
    };
    let parts: Vec<String> = filter.iter().map(part).collect();
    if parts.is_empty() { "everything given up or expired".to_owned() } else { parts.join(", ") }
}

fn progress(job: &Job) -> Markup {
    let seen = job.done + job.skipped;
    html! {
        @if let Some(total) = job.total {
            progress max=(total.max(1)) value=(if job.status == "done" { total.max(1) } else { seen.min(total) }) aria-label="Progress" {}
            " "
        }
        (words::count(job.done)) @if let Some(total) = job.total { " of " (words::count(total)) }
        @if job.skipped > 0 { small { " (" (words::count(job.skipped)) " left alone)" } }
    }
}

async fn job(visitor: Visitor, Path(id): Path<String>, Query(asked_for): Query<Asked>) -> Page {
    let found: Result<Job, Refused> = visitor.api.get(&format!("/v1/replays/{}", segment(&id))).await;
    let job = match found {
        Ok(job) => job,
        Err(refused) => return Err(visitor.refuse(refused)),
    };
    let content = html! {
        nav.crumbs aria-label="Path" { a href="/dead-letters" { "Dead letters" } }
        h1 { "Replay" }
        (ui::done(asked_for.done.as_deref()))
        div data-live="job" data-often[job.status == "running"] { (job_body(&visitor, &visitor.clock, &job)) }
    };
    Ok(layout::page(&visitor, Part::DeadLetters, "Replay", &content))
}

fn job_body(visitor: &Visitor, clock: &Clock, job: &Job) -> Markup {
    html! {
        p { (ui::state(&job.status)) " · " (asked(job)) " · " (ui::id(&job.id)) }
        p.progress { (progress(job)) }
        p {
            "Asked for " (ui::moment(clock, job.created_at))
            @if let Some(at) = job.finished_at { ", ended " (ui::moment(clock, at)) }
            "."
        }
        @if job.status == "running" && visitor.may_edit() { (ui::action(visitor, &format!("/dead-letters/jobs/{}/stop", job.id), "Stop", &[])) }
    }
}

async fn stop(Path(id): Path<String>, Posted { visitor, .. }: Posted) -> Page {
    match visitor.api.delete(&format!("/v1/replays/{}", segment(&id))).await {
        Ok(()) => Ok(see(&format!("/dead-letters/jobs/{}?done=stopped", segment(&id)))),
        Err(refused) if refused.status == StatusCode::NOT_FOUND => Ok(see("/dead-letters")),
        Err(refused) => Err(visitor.refuse(refused)),
    }
}
