//! What a refused call is answered: a status, a word for machines, a sentence for people, and where the fault lies.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tidegate_core::invalid::Invalid;
use tidegate_engine::Stopped;
use tidegate_store::StoreError;
use utoipa::ToSchema;

/// Seconds after which a call that met a full or closing store may be tried again.
const STORE_RETRY_SECONDS: u32 = 5;

/// A refused call.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    field: Option<String>,
    index: Option<usize>,
    retry_after: Option<u32>,
}

/// The body of every refusal.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// What was wrong, as a sentence.
    error: String,
    /// What was wrong, as a word: stable, for programs.
    code: &'static str,
    /// Which field or parameter is at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// Which event of a batch is at fault, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<usize>,
}

impl ApiError {
    /// Any refusal.
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), field: None, index: None, retry_after: None }
    }
    /// 400: the body is not JSON.
    pub(crate) fn bad_json(message: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_json", format!("the body is not JSON: {message}"))
    }
    /// 401: no key, or none that is valid.
    pub(crate) fn unauthorized() -> Self {
        let message = "a valid API key is needed: send it as `Authorization: Bearer tg_…`";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", message)
    }
    /// 403: the key's role does not allow this.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }
    /// 404: there is no such thing in this account. Another account's is answered in the same words.
    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "there is no such resource in this account")
    }
    /// 409: it contradicts what is there.
    pub(crate) fn conflict(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, code, message)
    }
    /// 412: `If-Match` names another version than the one that is there.
    pub(crate) fn outdated() -> Self {
        let message = "it was changed meanwhile: read it again, and repeat the change with the new ETag";
        Self::new(StatusCode::PRECONDITION_FAILED, "version_conflict", message)
    }
    /// 413: the body is longer than `limit` bytes.
    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("the body is larger than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
    }
    /// 422: a field is missing, unknown, of the wrong type or out of range.
    pub(crate) fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_field", message).field(field)
    }
    /// 429: too much of the account waits already.
    pub(crate) fn quota(message: impl Into<String>, retry_after: u32) -> Self {
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "quota_exceeded", message);
        Self { retry_after: Some(retry_after), ..error }
    }
    /// 429: too many calls.
    pub(crate) fn rate_limited(retry_after: u32) -> Self {
        let message = format!("too many requests: try again in {retry_after} s");
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", message);
        Self { retry_after: Some(retry_after), ..error }
    }
    /// 503: the store cannot take it now; nothing was done.
    pub(crate) fn unavailable(why: impl std::fmt::Display) -> Self {
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", why.to_string());
        Self { retry_after: Some(STORE_RETRY_SECONDS), ..error }
    }

    /// The status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Whether it is refused for what is so now and need not have been before: a quota, a destination that is gone.
    pub(crate) fn is_of_the_moment(&self) -> bool {
        let gone = |field: &str| field.starts_with("destination_ids[");
        self.status == StatusCode::TOO_MANY_REQUESTS || self.field.as_deref().is_some_and(gone)
    }

    /// Whether this field is at fault.
    pub(crate) fn is_about(&self, field: &str) -> bool {
        self.field.as_deref() == Some(field)
    }

    /// The same with another code.
    #[must_use]
    pub(crate) fn code(mut self, code: &'static str) -> Self {
        self.code = code;
        self
    }
    /// The same, with the field that is at fault.
    #[must_use]
    pub(crate) fn field(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }
    /// The same, seen from the list `list` that holds the object at `index`: `payload` becomes `events[3].payload`,
    /// and where no field is at fault, all of it is.
    #[must_use]
    pub(crate) fn within(mut self, list: &str, index: usize) -> Self {
        self.index = Some(index);
        self.field = Some(match self.field.as_deref().unwrap_or_default() {
            "" => format!("{list}[{index}]"),
            field if field.starts_with('[') => format!("{list}[{index}]{field}"),
            field => format!("{list}[{index}].{field}"),
        });
        self
    }
}

/// The sentence.
impl std::fmt::Display for ApiError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = self.status;
        // A fault of the body as a whole lies in no field.
        let field = self.field.filter(|field| !field.is_empty());
        let body = ErrorBody { error: self.message, code: self.code, field, index: self.index };
        let mut response = (status, Json(body)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}

impl From<Invalid> for ApiError {
    fn from(fault: Invalid) -> Self {
        let message = fault.to_string();
        Self::invalid(fault.field, message)
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Self::unavailable(error)
    }
}

impl From<Stopped> for ApiError {
    fn from(stopped: Stopped) -> Self {
        Self::unavailable(stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_in_a_batch_names_its_event() {
        let error = ApiError::from(Invalid::new("priority", 9, "1 to 4")).within("events", 3);
        assert_eq!((error.field.as_deref(), error.index), (Some("events[3].priority"), Some(3)));
        let error = ApiError::invalid("[0]", "no").within("events", 1);
        assert_eq!(error.field.as_deref(), Some("events[1][0]"));
    }

    #[test]
    fn a_full_store_is_answered_503_with_a_time_to_come_back() {
        let response = ApiError::from(StoreError::Full).into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[header::RETRY_AFTER], "5");
    }
}
