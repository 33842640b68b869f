//! Versions: `ETag` on what can be changed, `If-Match` on the change.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, header};

use super::App;
use super::error::ApiError;

/// The `ETag` header of a version: put it before the body in an answer.
pub(crate) fn etag(version: u64) -> [(HeaderName, HeaderValue); 1] {
    let value =
        HeaderValue::from_str(&format!("\"{version}\"")).expect("digits in quotes are a header value");
    [(header::ETAG, value)]
}

/// The versions that a change may replace: what `If-Match` says, or any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IfMatch {
    /// No header, or `*`.
    Any,
    /// One of these.
    OneOf(Vec<u64>),
}

impl IfMatch {
    /// 412 unless `version` is one that may be replaced.
    pub(crate) fn check(&self, version: u64) -> Result<(), ApiError> {
        match self {
            Self::Any => Ok(()),
            Self::OneOf(versions) if versions.contains(&version) => Ok(()),
            Self::OneOf(_) => Err(ApiError::outdated()),
        }
    }

    /// Reads a header. What is none of our tags matches nothing.
    fn read(text: &str) -> Self {
        if text.trim() == "*" {
            return Self::Any;
        }
        let version = |tag: &str| tag.trim().strip_prefix('"')?.strip_suffix('"')?.parse().ok();
        Self::OneOf(text.split(',').filter_map(version).collect())
    }
}

impl FromRequestParts<App> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, ApiError> {
        // Several headers are one list.
        let headers = parts.headers.get_all(header::IF_MATCH).iter();
        let lists: Vec<&str> = headers.map(|value| value.to_str().unwrap_or("")).collect();
        Ok(if lists.is_empty() { Self::Any } else { Self::read(&lists.join(",")) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_version_that_was_read_may_be_replaced() {
        assert!(IfMatch::read("*").check(9).is_ok());
        assert!(IfMatch::read("\"9\"").check(9).is_ok());
        assert!(IfMatch::read("\"7\", \"9\"").check(9).is_ok());
        for stale in ["\"8\"", "9", "W/\"9\"", "", "nonsense"] {
            assert!(IfMatch::read(stale).check(9).is_err(), "{stale}");
        }
    }
}
