//! Who looks at a page, and what they brought.

use std::fmt;

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{CONTENT_TYPE, HOST, LOCATION, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use jiff::tz::TimeZone;
use tidegate_core::time::Timestamp;

use super::Dashboard;
use super::ask::{Api, Refused, segment};
use super::form::Values;
use super::layout;
use super::session::{Session, cookie};
use crate::api::extract::read_body;
use crate::auth::{Caller, Peer, Role};

/// The viewer's time zone, as the script found it.
const ZONE_COOKIE: &str = "tidegate_zone";
/// The longest form: all windows with all their patterns.
const MAX_FORM: usize = 256 * 1024;

/// Somebody who is signed in.
pub(super) struct Visitor {
    /// What the page is made from.
    pub(super) dashboard: Dashboard,
    /// Asks the API in their name.
    pub(super) api: Api,
    /// Their session.
    pub(super) session: Session,
    /// What they may do, and in which account.
    pub(super) caller: Caller,
    /// When they looked, and where they are.
    pub(super) clock: Clock,
    /// How they reached us: `https://hooks.example.com`.
    pub(super) origin: String,
    /// Path and query of the page.
    pub(super) path: String,
    /// Where else the page is to be found, if it answers a form whose own address is none.
    pub(super) stands_at: Option<String>,
}

/// The moment of a page, and the zone its times are shown in.
#[derive(Clone)]
pub(super) struct Clock {
    /// The moment.
    pub(super) now: Timestamp,
    /// The viewer's zone; UTC until the script has told us.
    pub(super) zone: TimeZone,
}

impl Clock {
    /// The zone as it is called now: `CET`.
    pub(super) fn zone_name(&self) -> String {
        self.now.to_jiff().to_zoned(self.zone.clone()).strftime("%Z").to_string()
    }
}

/// Why there is no page.
pub(super) enum NoPage {
    /// Nobody is signed in: they are asked to, and come back to this path.
    SignIn(String),
    /// The API refused what the page needs.
    Refused(Box<Visitor>, Refused),
    /// The request is none of ours.
    Forged,
    /// It could not be read.
    Unreadable(Response),
}

impl IntoResponse for NoPage {
    fn into_response(self) -> Response {
        match self {
            Self::SignIn(next) => see(&format!("/sign-in?next={}", segment(&next))),
            Self::Refused(visitor, refused) => layout::refusal(&visitor, &refused),
            Self::Forged => {
                let text = "This form did not come from a page of this session. Go back, load the page again, and repeat it.";
                layout::plain(StatusCode::FORBIDDEN, "Not accepted", text)
            }
            Self::Unreadable(response) => response,
        }
    }
}

impl fmt::Debug for NoPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NoPage")
    }
}

/// A page, or why there is none.
pub(super) type Page = Result<Response, NoPage>;

impl Visitor {
    /// 403 or 404 and the like, as a page.
    pub(super) fn refuse(self, refused: Refused) -> NoPage {
        if refused.status == StatusCode::UNAUTHORIZED {
            return NoPage::SignIn(self.path);
        }
        NoPage::Refused(Box::new(self), refused)
    }
    /// Whether forms that change destinations and deliveries are shown.
    pub(super) fn may_edit(&self) -> bool {
        self.caller.role.permits(Role::Editor)
    }
    /// Whether forms that change settings and keys are shown.
    pub(super) fn may_own(&self) -> bool {
        self.caller.role.permits(Role::Owner)
    }
    /// Whether they run the installation.
    pub(super) fn is_operator(&self) -> bool {
        self.caller.role.permits(Role::Operator)
    }
}

impl FromRequestParts<Dashboard> for Visitor {
    type Rejection = NoPage;

    async fn from_request_parts(parts: &mut Parts, dashboard: &Dashboard) -> Result<Self, NoPage> {
        let app = &dashboard.app;
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let now = app.engine.now().wall;
        let back = || NoPage::SignIn(if parts.method == Method::GET { path.clone() } else { "/".to_owned() });
        let secrets = &app.catalogue.compiler().secrets;
        let session = Session::of(&parts.headers, secrets, now)
            .filter(|session| !dashboard.ended.has(session))
            .ok_or_else(back)?;
        let peer = parts.extensions.get::<Peer>().copied();
        let caller = identify(dashboard, &session, peer).ok_or_else(back)?;
        let api = Api {
            router: dashboard.api.clone(),
            key: session.key.clone(),
            account: session.account.clone(),
            peer,
        };
        Ok(Self {
            dashboard: dashboard.clone(),
            api,
            session,
            caller,
            clock: Clock { now, zone: zone(&parts.headers) },
            origin: origin(&parts.headers, &parts.uri, &app.config.listen.to_string()),
            path,
            stands_at: None,
        })
    }
}

/// The caller that a session's key makes; `None` where the key, or the account it looks into, is good no longer.
fn identify(dashboard: &Dashboard, session: &Session, peer: Option<Peer>) -> Option<Caller> {
    let mut request = axum::http::Request::new(());
    let bearer = HeaderValue::from_str(&format!("Bearer {}", *session.key)).ok()?;
    request.headers_mut().insert(axum::http::header::AUTHORIZATION, bearer);
    if let Some(account) = &session.account {
        request.headers_mut().insert(crate::auth::ACCOUNT_HEADER, HeaderValue::from_str(account).ok()?);
    }
    if let Some(peer) = peer {
        request.extensions_mut().insert(peer);
    }
    Caller::of(&request.into_parts().0, &dashboard.app).ok()
}

/// A form that was posted from a page of the visitor's own session.
pub(super) struct Posted {
    /// By whom.
    pub(super) visitor: Visitor,
    /// What it says.
    pub(super) values: Values,
}

impl FromRequest<Dashboard> for Posted {
    type Rejection = NoPage;

    async fn from_request(request: Request, dashboard: &Dashboard) -> Result<Self, NoPage> {
        let (mut parts, body) = request.into_parts();
        if !is_ours(&parts.headers, &parts.uri) {
            return Err(NoPage::Forged);
        }
        let visitor = Visitor::from_request_parts(&mut parts, dashboard).await?;
        let values = read_form(Request::from_parts(parts, body)).await?;
        if !visitor.session.sent(values.get("csrf")) {
            return Err(NoPage::Forged);
        }
        Ok(Self { visitor, values })
    }
}

/// Reads a form's fields.
pub(super) async fn read_form(request: Request) -> Result<Values, NoPage> {
    let kind = request.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    if !kind.starts_with("application/x-www-form-urlencoded") {
        return Err(NoPage::Forged);
    }
    let body = read_body(request, MAX_FORM).await;
    body.map(|body| Values::parse(&body)).map_err(|error| NoPage::Unreadable(error.into_response()))
}

/// Whether a browser says that a post comes from a page of this server. One that says nothing is judged by its form alone.
pub(super) fn is_ours(headers: &HeaderMap, uri: &Uri) -> bool {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let fetched = text("sec-fetch-site").is_none_or(|site| site == "same-origin" || site == "none");
    // A proxy may tell of another host than its own; no page elsewhere can make a browser send that.
    let hosts = [text(HOST.as_str()), text("x-forwarded-host"), uri.authority().map(|host| host.as_str())];
    let origin = text(ORIGIN.as_str());
    let same = origin.is_none_or(|origin| {
        let from = origin.split_once("://").map(|(_, from)| from);
        from.is_some() && (hosts.contains(&from) || text("sec-fetch-site") == Some("same-origin"))
    });
    fetched && same
}

/// Whether the visitor's connection is under TLS, as the proxy before us says: the server itself speaks HTTP.
pub(super) fn is_secure(headers: &HeaderMap) -> bool {
    let forwarded = headers.get("x-forwarded-proto").and_then(|proto| proto.to_str().ok());
    forwarded.is_some_and(|proto| proto.split(',').next().is_some_and(|first| first.trim() == "https"))
}

fn origin(headers: &HeaderMap, uri: &Uri, listen: &str) -> String {
    let allowed = |host: &&str| {
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".:-[]".contains(&byte))
    };
    let host = headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .or_else(|| uri.authority().map(|host| host.as_str()));
    let scheme = if is_secure(headers) { "https" } else { "http" };
    format!("{scheme}://{}", host.filter(allowed).unwrap_or(listen))
}

fn zone(headers: &HeaderMap) -> TimeZone {
    let named = cookie(headers, ZONE_COOKIE).map(|name| name.replace("%2F", "/").replace("%2B", "+"));
    named.and_then(|name| TimeZone::get(&name).ok()).unwrap_or(TimeZone::UTC)
}

/// 303: the page to look at now.
pub(super) fn see(path: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let location = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(LOCATION, location);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_from_elsewhere_is_told_by_what_the_browser_says() {
        let ours = |pairs: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, HeaderValue::from_static(value));
            }
            is_ours(&headers, &Uri::default())
        };
        assert!(ours(&[("host", "a:1"), ("origin", "http://a:1"), ("sec-fetch-site", "same-origin")]));
        assert!(ours(&[("host", "inside"), ("origin", "https://a"), ("sec-fetch-site", "same-origin")]));
        assert!(ours(&[("host", "inside"), ("x-forwarded-host", "a"), ("origin", "https://a")]));
        assert!(ours(&[("host", "a:1")]), "no browser");
        assert!(!ours(&[("host", "a:1"), ("origin", "http://b")]));
        assert!(!ours(&[("host", "a:1"), ("origin", "null")]));
        assert!(!ours(&[("host", "a:1"), ("sec-fetch-site", "cross-site")]));
        assert!(!ours(&[("host", "a:1"), ("origin", "http://a:1"), ("sec-fetch-site", "same-site")]));
    }
}
