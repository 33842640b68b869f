//! Asking the API, within the process.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::ServiceExt;
use zeroize::Zeroizing;

use crate::auth::{ACCOUNT_HEADER, Peer, Within};

/// Calls the API with one key.
#[derive(Clone)]
pub(super) struct Api {
    pub(super) router: Router,
    pub(super) key: Zeroizing<String>,
    pub(super) account: Option<String>,
    pub(super) peer: Option<Peer>,
}

/// A refused call, as the API tells it.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Refused {
    /// The status of the answer.
    #[serde(skip)]
    pub(super) status: StatusCode,
    /// What was wrong, as a sentence.
    pub(super) error: String,
    /// Which field is at fault.
    #[serde(default)]
    pub(super) field: Option<String>,
}

impl Refused {
    /// Whether what was written is at fault, and not who wrote it: then the form is shown again.
    pub(super) fn is_about_form(&self) -> bool {
        !matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
    }
    fn unreadable(status: StatusCode) -> Self {
        let error = "the answer could not be read".to_owned();
        Self { status, error, field: None }
    }
}

#[derive(Deserialize)]
struct Data<T> {
    data: T,
}

impl Api {
    /// What is there.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Refused> {
        self.read(Method::GET, path, None, None).await
    }

    /// Asks for something to be done.
    pub(super) async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Refused> {
        self.read(Method::POST, path, Some(body), None).await
    }

    /// Changes this version of something.
    pub(super) async fn change(
        &self,
        method: Method,
        path: &str,
        body: &Value,
        version: Option<u64>,
    ) -> Result<Value, Refused> {
        self.read(method, path, Some(body), version).await
    }

    /// Deletes, or stops.
    pub(super) async fn delete(&self, path: &str) -> Result<(), Refused> {
        self.call(Method::DELETE, path, None, None).await.map(drop)
    }

    /// An answer that goes on for as long as somebody listens.
    pub(super) async fn listen(&self, path: &str) -> Response<Body> {
        self.exchange(Method::GET, path, None, None).await
    }

    async fn read<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        version: Option<u64>,
    ) -> Result<T, Refused> {
        let (status, bytes) = self.call(method, path, body, version).await?;
        let read: Result<Data<T>, _> = serde_json::from_slice(&bytes);
        read.map(|answer| answer.data).map_err(|error| {
            tracing::error!(%error, path, "the dashboard does not understand an answer of the API");
            Refused::unreadable(status)
        })
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        version: Option<u64>,
    ) -> Result<(StatusCode, bytes::Bytes), Refused> {
        let response = self.exchange(method, path, body, version).await;
        let status = response.status();
        let bytes = response.into_body().collect().await.map_err(|_| Refused::unreadable(status))?.to_bytes();
        if status.is_success() {
            return Ok((status, bytes));
        }
        let refused = serde_json::from_slice(&bytes).map(|refused| Refused { status, ..refused });
        Err(refused.unwrap_or_else(|_| Refused::unreadable(status)))
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        version: Option<u64>,
    ) -> Response<Body> {
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().unwrap_or_default();
        let headers = request.headers_mut();
        if let Ok(bearer) = HeaderValue::from_str(&format!("Bearer {}", *self.key)) {
            headers.insert(header::AUTHORIZATION, bearer);
        }
        if let Some(Ok(account)) = self.account.as_deref().map(HeaderValue::from_str) {
            headers.insert(ACCOUNT_HEADER, account);
        }
        if let Some(Ok(etag)) = version.map(|version| HeaderValue::from_str(&format!("\"{version}\""))) {
            headers.insert(header::IF_MATCH, etag);
        }
        request.extensions_mut().insert(Within);
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

impl Default for Refused {
    fn default() -> Self {
        Self::unreadable(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// A path with parameters; those without a value are left out.
pub(super) fn with_query<'a>(
    path: &str,
    pairs: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            query.append_pair(name, value);
        }
    }
    let query = query.finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// A part of a path, whatever it consists of.
pub(super) fn segment(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}
