//! What a person may do to a destination: pause, resume, probe, test, rotate its secret, delete it.

use axum::extract::Path;
use axum::http::Method;
use maud::{Markup, html};
use serde::de::IgnoredAny;
use serde_json::json;
use tidegate_core::time::Millis;

use super::show_with;
use crate::dashboard::ask::segment;
use crate::dashboard::visitor::{Page, Posted, Visitor, see};
use crate::dashboard::wire::{Destination, Rotated, TestResult};
use crate::dashboard::{ui, words};

/// The buttons, for those who may.
pub(super) fn bar(visitor: &Visitor, destination: &Destination) -> Markup {
    if !visitor.may_edit() {
        return html! {};
    }
    let holds = |reason: &str| destination.holds.iter().any(|hold| hold.reason == reason);
    let act = format!("/destinations/{}/do", destination.id);
    let (disabled, paused, halted) = (holds("disabled"), holds("paused"), holds("order_blocked"));
    html! {
        div.actions data-live="actions" {
            @if disabled { (ui::action(visitor, &act, "Switch on", &[("what", "enable")])) }
            @if halted && !paused {
                (ui::action(visitor, &act, "Resume after the one that failed", &[("what", "resume")]))
            }
            @if paused { (ui::action(visitor, &act, "Resume", &[("what", "resume")])) }
            @else if !disabled { (ui::action(visitor, &act, "Pause", &[("what", "pause")])) }
            @if holds("circuit_open") || holds("throttled") || holds("unavailable") {
                (ui::action(visitor, &act, "Retry now", &[("what", "retry")]))
            }
            (ui::action(visitor, &format!("/destinations/{}/test", destination.id), "Send a test event", &[]))
            details.menu { summary { "More" }
                div {
                    (ui::action(visitor, &format!("/destinations/{}/secret", destination.id), "Rotate the signing secret", &[]))
                    form method="post" action=(act) {
                        (ui::csrf(visitor)) input type="hidden" name="what" value="delete";
                        label {
                            input type="checkbox" name="sure" value="on" required;
                            " Cancel what waits and delete it"
                        }
                        button.danger type="submit" { "Delete" }
                    }
                }
            }
        }
    }
}

/// One of the buttons.
pub(super) async fn act(Path(id): Path<String>, Posted { visitor, values }: Posted) -> Page {
    let path = format!("/v1/destinations/{}", segment(&id));
    let empty = json!({});
    let api = &visitor.api;
    let done = |result: Result<IgnoredAny, _>, word: &'static str| result.map(|_| word);
    let result = match values.get("what") {
        "pause" => done(api.post(&format!("{path}/pause"), &empty).await, "paused"),
        "resume" => done(api.post(&format!("{path}/resume"), &empty).await, "resumed"),
        "enable" => {
            let body = json!({"active": true});
            api.change(Method::PATCH, &path, &body, None).await.map(|_| "enabled")
        }
        "retry" => done(api.post(&format!("{path}/retry-now"), &empty).await, "probing"),
        "delete" if values.is_on("sure") => api.delete(&path).await.map(|()| "deleted"),
        _ => Ok("unchanged"),
    };
    match result {
        Ok("deleted") => Ok(see("/destinations?done=deleted")),
        Ok(word) => Ok(see(&format!("/destinations/{}?done={word}", segment(&id)))),
        Err(refused) => Err(visitor.refuse(refused)),
    }
}

/// A new signing secret: the page shows it once.
pub(super) async fn rotate(Path(id): Path<String>, Posted { visitor, .. }: Posted) -> Page {
    let rotated: Result<Rotated, _> =
        visitor.api.post(&format!("/v1/destinations/{}/rotate-secret", segment(&id)), &json!({})).await;
    let rotated = match rotated {
        Ok(rotated) => rotated,
        Err(refused) => return Err(visitor.refuse(refused)),
    };
    let first = html! {
        @if let Some(secret) = &rotated.signing_secret { (ui::secret("The new signing secret", secret)) }
        @if let Some(until) = rotated.previous_valid_until {
            p.notice.good role="status" {
                "Requests carry signatures of both secrets until " (ui::moment(&visitor.clock, until)) "."
            }
        }
    };
    show_with(visitor, &id, &first).await
}

/// A test event, and what came of it.
pub(super) async fn test(Path(id): Path<String>, Posted { visitor, .. }: Posted) -> Page {
    let tested: Result<TestResult, _> =
        visitor.api.post(&format!("/v1/destinations/{}/test", segment(&id)), &json!({})).await;
    let tested = match tested {
        Ok(tested) => tested,
        Err(refused) => return Err(visitor.refuse(refused)),
    };
    let well = tested.outcome == "success";
    let first = html! {
        div.notice.good[well].bad[!well] role="status" {
            p { strong { "Test event: " } (ui::state(&tested.outcome)) @if let Some(status) = tested.status_code { " " (status) }
                " after " (words::span(Millis::new(tested.response_time_ms))) " of " (words::span(Millis::new(tested.timeout_ms))) "." }
            @if let Some(error) = &tested.error { p { (error) } }
            @if let Some(body) = &tested.response_body { pre { (body) } }
            p.note {
                "It was signed like any other, with webhook-id " code { (tested.event_id) }
                ", and went past all gates."
            }
        }
    };
    show_with(visitor, &id, &first).await
}
