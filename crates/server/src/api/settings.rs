//! The settings of an account: defaults for all policies, quotas, and a pause of everything.
//!
//! A pause of the account is part of each destination's policy, and holds beside a pause of the destination's own.

use axum::extract::State;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tidegate_store::catalogue::Edit;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::etag::{IfMatch, etag};
use super::extract::{Json, given};
use super::openapi::{Refusals, WriteRefusals};
use super::{App, Data, ok};
use crate::auth::{Caller, Role};
use crate::catalogue::{AccountEntry, AccountSettings, SettingsDocument};

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show, change))
}

/// The settings of an account.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SettingsView {
    /// Policies for destinations that say nothing, in the words of a destination: `rate_limit`, `retry_policy`,
    /// `circuit_breaker`, `delivery_schedules`, `max_concurrency` …
    #[schema(value_type = Object)]
    defaults: Map<String, Value>,
    /// Above so many waiting deliveries publishing answers 429; null: no limit.
    #[schema(required = true)]
    max_queued_events: Option<u64>,
    /// Above so many bytes of waiting payloads publishing answers 429; null: no limit.
    #[schema(required = true)]
    max_queued_bytes: Option<u64>,
    /// Whether nothing is sent.
    paused: bool,
}

impl SettingsView {
    fn new(document: &SettingsDocument) -> Self {
        Self {
            defaults: document.defaults.clone(),
            max_queued_events: document.max_queued_events,
            max_queued_bytes: document.max_queued_bytes,
            paused: document.paused_since.is_some(),
        }
    }
}

/// What to change. What is left out stays; null removes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettingsPatch {
    /// Each policy that is named replaces the one before; null removes it.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    defaults: Option<Map<String, Value>>,
    /// Above so many waiting deliveries publishing answers 429.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_queued_events: Option<Option<u64>>,
    /// Above so many bytes of waiting payloads publishing answers 429.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_queued_bytes: Option<Option<u64>>,
    /// Hold everything, or go on.
    #[serde(default)]
    paused: Option<bool>,
}

/// Show the settings of the account.
#[utoipa::path(
    get, path = "/v1/settings", tag = "administration",
    responses((status = 200, description = "The settings.", body = Data<SettingsView>), Refusals)
)]
async fn show(State(app): State<App>, caller: Caller) -> Result<impl IntoResponse, ApiError> {
    caller.require(Role::Viewer)?;
    let account = app.catalogue.account(caller.account).ok_or_else(ApiError::not_found)?;
    Ok((etag(account.row.version), ok(SettingsView::new(&account.settings.document))))
}

/// Change the settings of the account. Other defaults hold at once, also for what waits.
#[utoipa::path(
    patch, path = "/v1/settings", tag = "administration",
    params(("If-Match" = Option<String>, Header, description = "Change only this version.")),
    responses((status = 200, description = "Changed.", body = Data<SettingsView>), WriteRefusals)
)]
async fn change(
    State(app): State<App>,
    caller: Caller,
    if_match: IfMatch,
    Json(body): Json<SettingsPatch>,
) -> Result<impl IntoResponse, ApiError> {
    caller.require(Role::Owner)?;
    let account = app.catalogue.account(caller.account).ok_or_else(ApiError::not_found)?;
    if_match.check(account.row.version)?;
    let mut document = account.settings.document.clone();
    let changed = json!({"defaults": body.defaults, "max_queued_events": body.max_queued_events,
                         "max_queued_bytes": body.max_queued_bytes, "paused": body.paused});
    apply(&app, &mut document, body)?;
    let audit = caller.audit(&app, "settings.update", account.row.id, &changed);
    let account = store(&app, &account, document, Some(audit)).await?;
    Ok((etag(account.row.version), ok(SettingsView::new(&account.settings.document))))
}

fn apply(app: &App, document: &mut SettingsDocument, patch: SettingsPatch) -> Result<(), ApiError> {
    for (key, value) in patch.defaults.unwrap_or_default() {
        match value {
            Value::Null => document.defaults.remove(&key),
            value => document.defaults.insert(key, value),
        };
    }
    app.catalogue.compiler().check_defaults(&document.defaults)?;
    let quota = |field: &str, value: Option<u64>| match value {
        Some(0) => {
            Err(ApiError::invalid(field, format!("`{field}` must be at least 1, or null for no limit")))
        }
        value => Ok(value),
    };
    if let Some(value) = patch.max_queued_events {
        document.max_queued_events = quota("max_queued_events", value)?;
    }
    if let Some(value) = patch.max_queued_bytes {
        document.max_queued_bytes = quota("max_queued_bytes", value)?;
    }
    if let Some(paused) = patch.paused {
        let since = document.paused_since.unwrap_or_else(|| app.engine.now().wall.as_millis());
        document.paused_since = paused.then_some(since);
    }
    AccountSettings::new(document.clone())?;
    Ok(())
}

async fn store(
    app: &App,
    account: &AccountEntry,
    document: SettingsDocument,
    audit: Option<tidegate_store::catalogue::AuditEntry>,
) -> Result<std::sync::Arc<AccountEntry>, ApiError> {
    let mut row = account.row.clone();
    row.settings = serde_json::to_string(&document).map_err(ApiError::unavailable)?;
    row.version += 1;
    let no = row.no;
    app.catalogue.change(vec![Edit::SetAccount(row)], audit).await?;
    app.catalogue.account(no).ok_or_else(ApiError::not_found)
}

/// Pauses every account: for a restored backup, which must not send what was sent since.
pub(crate) async fn pause_all(app: &App) -> Result<(), ApiError> {
    for account in app.catalogue.accounts() {
        let mut document = account.settings.document.clone();
        document.paused_since.get_or_insert(app.engine.now().wall.as_millis());
        store(app, &account, document, None).await?;
    }
    Ok(())
}
