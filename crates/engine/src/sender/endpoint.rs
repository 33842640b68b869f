//! Where and how to send for one destination. Made once for each change of it, shared by its attempts.

use std::fmt;

use http::header::{ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use tidegate_core::dial::Target;
use tidegate_core::headers::CustomHeaders;
use tidegate_core::invalid::Invalid;
use tidegate_core::sign::Secret;
use tidegate_core::time::Timestamp;

use super::compose::{ATTEMPT, DELIVERY, EVENT_TYPE, ID, SIGNATURE, TIMESTAMP};

/// Headers of ours in a request: those of the template, and `tidegate-expires-at` where there is one.
const OURS: usize = 12;
const AGENT: &str = concat!("Tidegate/", env!("CARGO_PKG_VERSION"));

/// How the body is made of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Envelope {
    /// The payload, byte for byte.
    Raw,
    /// `{id, type, created_at, expires_at, data}` around it.
    Standard,
}

/// A secret, and until when it is used.
#[derive(Clone, Debug)]
pub struct SigningKey {
    /// The secret.
    pub secret: Secret,
    /// The end of its use, while it is being replaced.
    pub valid_until: Option<Timestamp>,
}

/// How the destination knows its callers, besides the signature.
#[derive(Clone)]
pub enum Auth {
    /// `authorization: Bearer TOKEN`.
    Bearer(String),
    /// A header of its own.
    Header {
        /// Its name, which no custom header may have, either.
        name: String,
        /// Its value.
        value: String,
    },
}

/// Says of which kind it is and nothing more.
impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bearer(_) => "Bearer(…)",
            Self::Header { .. } => "Header(…)",
        })
    }
}

/// What an endpoint is made of.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to.
    pub target: Target,
    /// What to sign with, the current one first.
    pub secrets: Vec<SigningKey>,
    /// The customer's headers.
    pub headers: CustomHeaders,
    /// How we show who we are; wins over a custom header of the same name.
    pub auth: Option<Auth>,
    /// How the body is made.
    pub envelope: Envelope,
}

/// Where and how to send, made ready: what does not change from attempt to attempt is built here.
#[derive(Debug)]
pub struct Endpoint {
    /// Where to.
    pub target: Target,
    pub(super) secrets: Vec<SigningKey>,
    pub(super) envelope: Envelope,
    /// The header that holds a credential, which nobody is shown.
    pub(super) credential: Option<HeaderName>,
    /// All headers of an HTTP/1.1 request, those of the attempt still empty. One map and no second for HTTP/2: it takes more than
    /// a kilobyte, and there may be many thousands of destinations.
    headers: HeaderMap,
    pub(super) uri_http1: Uri,
    pub(super) uri_http2: Uri,
}

impl Endpoint {
    /// Builds what all attempts share. The faults are of `url` and `auth_config`.
    pub fn new(settings: Settings) -> Result<Self, Invalid> {
        let Settings { target, secrets, headers, auth, envelope } = settings;
        let unusable = || Invalid::new("url", target.authority(), "a URL that fits into a request line");
        let path: PathAndQuery = target.path_and_query().parse().map_err(|_| unusable())?;
        let host = HeaderValue::from_str(target.authority()).map_err(|_| unusable())?;
        let uri_http2 = Uri::builder()
            .scheme(if target.is_https() { "https" } else { "http" })
            .authority(target.authority())
            .path_and_query(path.clone())
            .build()
            .map_err(|_| unusable())?;
        let headers = template(host, &headers, auth.as_ref())?;
        let credential = match &auth {
            None => None,
            Some(Auth::Bearer(_)) => Some(AUTHORIZATION),
            Some(Auth::Header { name, .. }) => Some(header_name(name, || "auth_config.name".to_owned())?),
        };
        Ok(Self { target, secrets, envelope, credential, headers, uri_http1: path.into(), uri_http2 })
    }

    /// All headers of an HTTP/1.1 request, those of the attempt still empty.
    pub(super) fn headers_http1(&self) -> HeaderMap {
        self.headers.clone()
    }
    /// The same for HTTP/2, where the URI names the host.
    pub(super) fn headers_http2(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.remove(HOST);
        headers
    }

    /// How the body is made.
    pub const fn envelope(&self) -> Envelope {
        self.envelope
    }

    /// The secrets in force at `now`.
    pub(super) fn secrets_at(&self, now: Timestamp) -> impl Iterator<Item = &Secret> {
        let in_force = move |key: &&SigningKey| key.valid_until.is_none_or(|until| now < until);
        self.secrets.iter().filter(in_force).map(|key| &key.secret)
    }
}

/// Ours first, with room for those of the attempt, so that filling them in moves nothing; then the customer's.
fn template(host: HeaderValue, custom: &CustomHeaders, auth: Option<&Auth>) -> Result<HeaderMap, Invalid> {
    let mut headers = HeaderMap::with_capacity(OURS + custom.iter().count());
    headers.insert(HOST, host);
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    for name in [CONTENT_TYPE, CONTENT_LENGTH, ID, TIMESTAMP, SIGNATURE, EVENT_TYPE, DELIVERY, ATTEMPT] {
        headers.insert(name, HeaderValue::from_static(""));
    }
    for (name, value) in custom.iter() {
        let field = || format!("custom_headers.{name}");
        headers.insert(header_name(name, field)?, secret_value(value, field)?);
    }
    match auth {
        None => {}
        Some(Auth::Bearer(token)) => {
            let value = secret_value(&format!("Bearer {token}"), || "auth_config.token".to_owned())?;
            headers.insert(AUTHORIZATION, value);
        }
        Some(Auth::Header { name, value }) => {
            // The same rules as for a custom header: it must not stand in for one of ours.
            let checked = CustomHeaders::parse([(name, value)]).map_err(|fault| in_auth(fault, name))?;
            for (name, value) in checked.iter() {
                let name = header_name(name, || "auth_config.name".to_owned())?;
                headers.insert(name, secret_value(value, || "auth_config.value".to_owned())?);
            }
        }
    }
    Ok(headers)
}

fn in_auth(fault: Invalid, name: &str) -> Invalid {
    let part = if fault.value.as_deref() == Some(name) { "name" } else { "value" };
    Invalid { field: format!("auth_config.{part}"), ..fault }
}

fn header_name(name: &str, field: impl Fn() -> String) -> Result<HeaderName, Invalid> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| Invalid::new(field(), name, "a header name"))
}

/// A value that may be a credential: kept out of debug text and of HTTP/2's compression tables.
fn secret_value(value: &str, field: impl Fn() -> String) -> Result<HeaderValue, Invalid> {
    let mut value = HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_| Invalid::new(field(), "(not shown)", "no control characters"))?;
    value.set_sensitive(true);
    Ok(value)
}
