//! Signing in with an API key, and out again.

use axum::extract::{FromRequest, Query, Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::ask::{Api, segment};
use super::session::{Session, no_cookie};
use super::visitor::{NoPage, Page, Posted, is_ours, is_secure, read_form, see};
use super::{Dashboard, layout};
use crate::auth::Peer;

/// Where to go afterwards.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Next {
    next: String,
}

/// The form.
pub(super) async fn show(Query(Next { next }): Query<Next>) -> Response {
    layout::alone(StatusCode::OK, "Sign in", &form(&next, None))
}

/// Judges a key, and gives a session for it.
pub(super) async fn enter(State(dashboard): State<Dashboard>, request: Request) -> Page {
    if !is_ours(request.headers(), request.uri()) {
        return Err(NoPage::Forged);
    }
    let secure = is_secure(request.headers());
    let peer = request.extensions().get::<Peer>().copied();
    let values = read_form(request).await?;
    let (key, next) = (values.get("key"), values.get("next"));
    let api = Api { router: dashboard.api.clone(), key: key.to_owned().into(), account: None, peer };
    // Whoever may read statistics may look at pages; others learn why not in the API's words.
    if let Err(refused) = api.get::<serde::de::IgnoredAny>("/v1/stats").await {
        let message = match refused.status {
            StatusCode::UNAUTHORIZED => {
                "This is no valid key. Keys begin with tg_ and are shown once, when they are made."
            }
            StatusCode::FORBIDDEN => {
                "This key may publish, but not read. The dashboard needs a viewer, editor, owner or operator key."
            }
            _ => refused.error.as_str(),
        };
        return Ok(layout::alone(refused.status, "Sign in", &form(next, Some(message))));
    }
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| unavailable())?;
    let app = &dashboard.app;
    let session = Session::new(key, app.engine.now().wall, random);
    let cookie = session.cookie(&app.catalogue.compiler().secrets, secure).ok_or_else(unavailable)?;
    Ok(give(see(inside(next)), &cookie))
}

/// Ends the session: in this browser, and for every copy of its cookie that comes to this node.
pub(super) async fn leave(State(dashboard): State<Dashboard>, request: Request) -> Page {
    if !is_ours(request.headers(), request.uri()) {
        return Err(NoPage::Forged);
    }
    let app = &dashboard.app;
    let now = app.engine.now().wall;
    if let Some(session) = Session::of(request.headers(), &app.catalogue.compiler().secrets, now) {
        dashboard.ended.end(&session, now);
    }
    Ok(give(see("/sign-in"), &no_cookie(is_secure(request.headers()))))
}

/// An operator looks into another account.
pub(super) async fn choose_account(State(dashboard): State<Dashboard>, request: Request) -> Page {
    let secure = is_secure(request.headers());
    let Posted { visitor, values } = Posted::from_request(request, &dashboard).await?;
    let app = &dashboard.app;
    let mut session = visitor.session.clone();
    // By its id, whatever it was named by; one that is not there is the API's to refuse.
    let named = values.some("account");
    let found = named.and_then(|name| app.catalogue.find_account(name));
    session.account = found.map(|account| account.row.id.to_string()).or(named.map(segment));
    let api = Api { account: session.account.clone(), ..visitor.api.clone() };
    if let Err(refused) = api.get::<serde::de::IgnoredAny>("/v1/stats").await {
        return Err(visitor.refuse(refused));
    }
    let cookie = session.cookie(&app.catalogue.compiler().secrets, secure).ok_or_else(unavailable)?;
    Ok(give(see("/"), &cookie))
}

fn give(mut response: Response, cookie: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
    response
}

fn unavailable() -> NoPage {
    let text = "The server has no random numbers just now. Try again.";
    NoPage::Unreadable(layout::plain(StatusCode::SERVICE_UNAVAILABLE, "Not available", text).into_response())
}

/// A path of ours, and of nobody else.
fn inside(next: &str) -> &str {
    let ours = next.starts_with('/') && !next.starts_with("//") && !next.contains(['\\', '\r', '\n']);
    if ours { next } else { "/" }
}

fn form(next: &str, fault: Option<&str>) -> Markup {
    html! {
        h1 { "Sign in" }
        form method="post" action="/sign-in" {
            input type="hidden" name="next" value=(inside(next));
            div.field.faulty[fault.is_some()] {
                label for="key" { "API key" }
                input id="key" name="key" type="password" required autofocus autocomplete="current-password" spellcheck="false"
                    aria-describedby=(if fault.is_some() { "key-fault" } else { "key-hint" }) aria-invalid=[fault.map(|_| "true")];
                small id="key-hint" {
                    "The key decides what you see and may do. It is kept, sealed, in this browser for 12 hours; revoking it ends the session."
                }
                @if let Some(fault) = fault { small.fault id="key-fault" role="alert" { "✕ " (fault) } }
            }
            button.main type="submit" { "Sign in" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::inside;

    #[test]
    fn nobody_is_sent_elsewhere_after_signing_in() {
        for (next, then) in [
            ("/log?x=1", "/log?x=1"),
            ("//evil", "/"),
            ("https://evil", "/"),
            ("/\\evil", "/"),
            ("", "/"),
            ("/a\nb", "/"),
        ] {
            assert_eq!(inside(next), then, "{next}");
        }
    }
}
