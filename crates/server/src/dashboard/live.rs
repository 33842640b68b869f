//! What happens as it happens, for the script: the API's own stream, with the session's key.

use axum::response::Response;

use super::visitor::Visitor;

/// State changes of the account.
pub(super) async fn watch(visitor: Visitor) -> Response {
    visitor.api.listen("/v1/stream").await
}
