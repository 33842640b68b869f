//! Who changed what, and when.

use axum::extract::State;
use axum::response::IntoResponse;
use serde::Serialize;
use tidegate_core::sequence::Sequence;
use tidegate_store::catalogue::AuditEntry;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::openapi::Refusals;
use super::page::{Cursor, ListAnswer, ListQuery, MAX_TOTAL, Total};
use super::{App, Data, ok};
use crate::auth::{Call, Viewer};

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

/// One change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditView {
    /// When.
    #[schema(format = DateTime)]
    at: String,
    /// The key that did it; null: the server itself.
    #[schema(required = true)]
    actor: Option<String>,
    /// What: `destination.update`, `key.revoke` …
    action: String,
    /// To what: an id.
    subject: String,
    /// What changed, without secrets.
    #[schema(value_type = serde_json::Value)]
    detail: serde_json::Value,
}

impl AuditView {
    fn new(entry: AuditEntry) -> Self {
        Self {
            at: entry.at.to_string(),
            actor: entry.actor.map(|key| key.to_string()),
            action: entry.action,
            subject: entry.subject,
            detail: serde_json::from_str(&entry.detail).unwrap_or(serde_json::Value::Null),
        }
    }
}

/// List the changes that were made in this account.
#[utoipa::path(
    get, path = "/v1/audit-log", tag = "administration", params(ListQuery),
    responses((status = 200, description = "A page of changes, the newest first.", body = Data<ListAnswer<AuditView>>), Refusals)
)]
async fn list(
    State(app): State<App>,
    Call { caller, query, .. }: Call<Viewer, ListQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let list = Cursor { list: "audit-log", account: caller.account };
    let page = query.page(list)?;
    let before = page.cursor.map(|cursor| Sequence::from_stored(u64::try_from(cursor).unwrap_or(u64::MAX)));
    let total = if page.total {
        Total::counted(app.engine.store().count_audit_log(caller.account, MAX_TOTAL).await?)
    } else {
        Total::Unasked
    };
    let found = app.engine.store().audit_log(caller.account, before, page.limit).await?;
    Ok(ok(ListAnswer {
        items: found.items.into_iter().map(|(_, entry)| AuditView::new(entry)).collect(),
        next_cursor: found.next.map(|next| list.encode(next.get().into())),
        total,
    }))
}
