//! How a request is read: each fault is answered with its field, and nothing is silently ignored.
//!
//! Wire types carry `#[serde(deny_unknown_fields)]`. Not JSON is 400; JSON with a field that is missing, unknown or of the
//! wrong type is 422; an id that is malformed, unknown or another account's is 404.

mod objects;

pub(crate) use objects::Objects;

use std::borrow::Cow;
use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tidegate_core::id::{Id, Kind};

use super::App;
use super::error::ApiError;

/// The longest body of calls that change the catalogue: far above what 100 patterns and 32 headers need.
pub(crate) const MAX_DOCUMENT: usize = 1 << 20;
/// A body that takes longer is given up: who sends it byte by byte holds a connection.
const LONGEST_BODY: Duration = Duration::from_secs(30);

/// A JSON body, at most 1 MiB.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &App) -> Result<Self, ApiError> {
        check_content_type(request.headers())?;
        let body = read_body(request, MAX_DOCUMENT).await?;
        parse(&body).map(Self)
    }
}

/// A JSON body that may be left out: then it is the default.
#[derive(Debug)]
pub(crate) struct OptionalJson<T>(pub(crate) T);

impl<T: DeserializeOwned + Default> FromRequest<App> for OptionalJson<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &App) -> Result<Self, ApiError> {
        let headers = check_content_type(request.headers());
        let body = read_body(request, MAX_DOCUMENT).await?;
        if body.iter().all(u8::is_ascii_whitespace) {
            return Ok(Self(T::default()));
        }
        headers.and_then(|()| parse(&body)).map(Self)
    }
}

/// The parameters behind the `?`.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        axum::extract::Query::try_from_uri(&parts.uri).map(|query| Self(query.0)).map_err(|rejection| {
            let text = rejection.body_text();
            let text = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
            let (path, message) = match text.split_once(": ") {
                Some((path, message)) if !path.contains(' ') => (path, message),
                _ => ("", text),
            };
            fault("", path, message)
        })
    }
}

/// The one id in the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathId<K: Kind>(pub(crate) Id<K>);

impl<K: Kind + Send> FromRequestParts<App> for PathId<K> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let PathText(text) = PathText::from_request_parts(parts, app).await?;
        Id::parse(&text).map(Self).map_err(|_| ApiError::not_found())
    }
}

/// The one variable part of the path, as text: an id or an external id, or the name of an event type.
#[derive(Clone, Debug)]
pub(crate) struct PathText(pub(crate) String);

impl FromRequestParts<App> for PathText {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, app).await;
        path.map(|path| Self(path.0)).map_err(|_| ApiError::not_found())
    }
}

/// A header that counts once: two of them would contradict each other, and one be ignored.
pub(crate) fn single_header<'a>(
    headers: &'a HeaderMap,
    name: &'static str,
) -> Result<Option<&'a HeaderValue>, ApiError> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(ApiError::invalid(name, format!("`{name}` must be given once at most"))),
    }
}

/// Checks a text that a person wrote: its length in characters, and that a line is a line.
pub(crate) fn check_text(field: &str, text: &str, most: usize) -> Result<(), ApiError> {
    let length = text.chars().take(most + 1).count();
    if (1..=most).contains(&length) && !text.trim().is_empty() && !text.chars().any(char::is_control) {
        return Ok(());
    }
    Err(ApiError::invalid(
        field,
        format!("`{field}` must be 1 to {most} characters, none of them a control character"),
    ))
}

/// Refuses bodies that we would not understand. A missing type, and what `curl -d` sends, count as JSON.
pub(crate) fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    check_encoding(headers)?;
    match media_type(headers).as_deref() {
        None | Some("application/json" | "application/x-www-form-urlencoded" | "text/plain") => Ok(()),
        Some(other) if other.starts_with("application/") && other.ends_with("+json") => Ok(()),
        Some(_) => Err(unsupported("the body must be application/json")),
    }
}

/// Compressed bodies are refused: the limits count the bytes that are read.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers.get(header::CONTENT_ENCODING) {
        None => Ok(()),
        Some(encoding) if encoding.as_bytes().eq_ignore_ascii_case(b"identity") => Ok(()),
        Some(_) => Err(unsupported("the body must not be compressed")),
    }
}

fn unsupported(message: &str) -> ApiError {
    ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message)
}

/// The type of the body without its parameters, in lower case; an empty one where it is no text.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<Cow<'_, str>> {
    let value = headers.get(header::CONTENT_TYPE)?;
    let name = value.to_str().unwrap_or("").split(';').next().unwrap_or("").trim();
    let is_lower = !name.bytes().any(|byte| byte.is_ascii_uppercase());
    Some(if is_lower { Cow::Borrowed(name) } else { Cow::Owned(name.to_ascii_lowercase()) })
}

/// Reads a body of at most `limit` bytes, counted as they come.
pub(crate) async fn read_body(request: Request, limit: usize) -> Result<Bytes, ApiError> {
    let claimed = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let claimed = claimed.and_then(|length| length.parse::<usize>().ok());
    if claimed.is_some_and(|length| length > limit) {
        return Err(ApiError::too_large(limit));
    }
    let collected = tokio::time::timeout(LONGEST_BODY, collect(request, limit)).await;
    collected.unwrap_or_else(|_| {
        let message = "the body did not come in within 30 s";
        Err(ApiError::new(StatusCode::REQUEST_TIMEOUT, "request_timeout", message))
    })
}

async fn collect(request: Request, limit: usize) -> Result<Bytes, ApiError> {
    let mut body = request.into_body();
    let mut whole: Option<Bytes> = None;
    let mut joined = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let broken = |_| ApiError::new(StatusCode::BAD_REQUEST, "incomplete_body", "the body broke off");
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if joined.len() + whole.as_ref().map_or(0, Bytes::len) + data.len() > limit {
            return Err(ApiError::too_large(limit));
        }
        // Most bodies come in one piece: that one is kept as it is.
        match (whole.take(), joined.is_empty()) {
            (None, true) => whole = Some(data),
            (None, false) => joined.extend_from_slice(&data),
            (Some(first), _) => {
                joined.extend_from_slice(&first);
                joined.extend_from_slice(&data);
            }
        }
    }
    Ok(whole.unwrap_or_else(|| joined.freeze()))
}

/// The same without saying where a fault lies: for what is right nearly always.
pub(crate) fn parse_quickly<'a, T: serde::Deserialize<'a>>(body: &'a [u8]) -> Result<T, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = T::deserialize(Objects(&mut reader))?;
    reader.end()?;
    Ok(value)
}

/// Reads JSON into a wire type; borrowed parts stay borrowed.
pub(crate) fn parse<'a, T: serde::Deserialize<'a>>(body: &'a [u8]) -> Result<T, ApiError> {
    parse_under("", body)
}

/// The same for a part of a body, whose faults lie under `parent`.
pub(crate) fn parse_under<'a, T: serde::Deserialize<'a>>(
    parent: &str,
    body: &'a [u8],
) -> Result<T, ApiError> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(Objects(&mut reader)).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        // A field may be wrong before the place at which it ceases to be JSON; and a number too large for any type, or half a
        // character, is the fault of a field, though the parser calls it one of syntax.
        match serde_json::from_slice::<serde::de::IgnoredAny>(body) {
            Err(syntax) => ApiError::bad_json(syntax),
            Ok(_) if str::from_utf8(body).is_err() => ApiError::bad_json("it is not UTF-8"),
            Ok(_) => fault(parent, &path, &without_value(&without_place(&inner))),
        }
    })?;
    reader.end().map_err(ApiError::bad_json)?;
    Ok(value)
}

/// Line and column help with syntax; a field is found by its path.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// What was expected, and of what kind it is, but not what it is: somebody may have written a credential where an object with
/// one belongs. ``invalid type: string "…", expected u32``.
fn without_value(message: &str) -> Cow<'_, str> {
    let is_quoted = ["invalid type: ", "invalid value: "].iter().any(|kind| message.starts_with(kind));
    let value = message.find(['"', '`']).filter(|_| is_quoted);
    match (value, message.rfind(", expected ")) {
        (Some(value), Some(rest)) if value < rest => {
            Cow::Owned(format!("{}{}", message[..value].trim_end(), &message[rest..]))
        }
        _ => Cow::Borrowed(message),
    }
}

/// 422 with the path of the field. Where the message names a field that is missing or unknown, it belongs to the path.
fn fault(parent: &str, path: &str, message: &str) -> ApiError {
    let named = ["unknown field `", "missing field `", "duplicate field `"].iter().find_map(|beginning| {
        let rest = message.strip_prefix(beginning)?;
        let end =
            rest.find("`, expected").or_else(|| rest.find("`, there are")).or_else(|| rest.rfind('`'))?;
        Some(&rest[..end])
    });
    let path = if path == "." { "" } else { path };
    // Inside a tagged or nested value the path may end with the name already.
    let named = named.filter(|name| path != *name && !path.ends_with(&format!(".{name}")));
    let parts: Vec<&str> =
        [parent, path, named.unwrap_or("")].into_iter().filter(|part| !part.is_empty()).collect();
    let field = parts.join(".").replace(".[", "[");
    let shown: String = message.chars().filter(|letter| !letter.is_control()).take(300).collect();
    let field: String = field.chars().filter(|letter| !letter.is_control()).take(200).collect();
    let message = if field.is_empty() { shown } else { format!("`{field}`: {shown}") };
    ApiError::invalid(field, message)
}

#[cfg(test)]
#[path = "extract/tests.rs"]
mod tests;
