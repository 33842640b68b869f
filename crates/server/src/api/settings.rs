//! The settings of an account: defaults for all policies, quotas, and a pause of everything.
//!
//! A pause of the account is part of each destination's policy, and holds beside a pause of the destination's own.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidegate_core::invalid::Invalid;
use tidegate_store::AccountNo;
use tidegate_store::catalogue::{AuditEntry, Edit};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::etag::{IfMatch, etag};
use super::extract::Json;
use super::openapi::{Refusals, WriteRefusals};
use super::told::Told;
use super::{App, Data, ok};
use crate::auth::{Call, Owner, Viewer};
use crate::catalogue::{AccountEntry, AccountSettings, SettingsDocument, Turn};
use crate::policy::Change;
use crate::policy::defaults::{self, DefaultsPatch};

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show, change))
}

/// The settings of an account.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SettingsView {
    /// Policies for destinations that say nothing.
    #[schema(value_type = DefaultsPatch)]
    defaults: Map<String, Value>,
    /// Above this many waiting deliveries publishing answers 429; null: no limit.
    #[schema(required = true)]
    max_queued_events: Option<u64>,
    /// Above this many bytes of waiting payloads publishing answers 429; null: no limit.
    #[schema(required = true)]
    max_queued_bytes: Option<u64>,
    /// Whether nothing is sent.
    paused: bool,
    /// Whether anybody may read the event types, at `/catalogue/{account}`.
    public_event_types: bool,
}

impl SettingsView {
    fn new(document: &SettingsDocument) -> Self {
        Self {
            defaults: defaults::shown(&document.defaults),
            max_queued_events: document.max_queued_events,
            max_queued_bytes: document.max_queued_bytes,
            paused: document.paused_since.is_some(),
            public_event_types: document.public_event_types,
        }
    }
}

/// What to change. What is left out stays; null removes.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SettingsPatch {
    /// Policies for destinations that say nothing; null removes them all.
    #[serde(default)]
    #[schema(value_type = Option<DefaultsPatch>)]
    defaults: Change<DefaultsPatch>,
    /// Above this many waiting deliveries publishing answers 429.
    #[serde(default)]
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_queued_events: Change<u64>,
    /// Above this many bytes of waiting payloads publishing answers 429.
    #[serde(default)]
    #[schema(value_type = Option<u64>, minimum = 1)]
    max_queued_bytes: Change<u64>,
    /// Hold everything, or go on.
    #[serde(default)]
    #[schema(value_type = bool)]
    paused: Change<bool>,
    /// Let anybody read the event types, at `/catalogue/{account}`, or only those with a key.
    #[serde(default)]
    #[schema(value_type = bool)]
    public_event_types: Change<bool>,
}

/// Show the settings of the account.
#[utoipa::path(
    get, path = "/v1/settings", tag = "administration",
    responses((status = 200, description = "The settings.", body = Data<SettingsView>), Refusals)
)]
async fn show(
    State(app): State<App>,
    Call { caller, .. }: Call<Viewer>,
) -> Result<impl IntoResponse, ApiError> {
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
    Call { caller, .. }: Call<Owner>,
    if_match: IfMatch,
    Json(body): Json<SettingsPatch>,
) -> Result<impl IntoResponse, ApiError> {
    let turn = app.catalogue.turn().await;
    let account = app.catalogue.account(caller.account).ok_or_else(ApiError::not_found)?;
    if_match.check(account.row.version)?;
    let before = &account.settings.document;
    let mut after = before.clone();
    apply(&app, &mut after, body)?;
    let audit = caller.audit(&app, "settings.update", account.row.id, &changed(before, &after));
    let pause = (before.paused_since.is_some(), after.paused_since.is_some());
    let account = store(turn, &app, &account, &after, Some(audit)).await?;
    tell_pause(&app, account.row.no, pause);
    Ok((etag(account.row.version), ok(SettingsView::new(&account.settings.document))))
}

fn apply(app: &App, document: &mut SettingsDocument, patch: SettingsPatch) -> Result<(), ApiError> {
    match patch.defaults {
        Change::Keep => {}
        Change::Remove => document.defaults.clear(),
        Change::Set(defaults) => {
            defaults.apply(&mut document.defaults).map_err(|fault| fault.under("defaults"))?;
        }
    }
    let quotas = [
        ("max_queued_events", patch.max_queued_events, &mut document.max_queued_events),
        ("max_queued_bytes", patch.max_queued_bytes, &mut document.max_queued_bytes),
    ];
    for (field, change, quota) in quotas {
        if change == Change::Set(0) {
            return Err(Invalid::new(field, 0, "at least 1, or null for no limit").into());
        }
        change.apply(quota);
    }
    match patch.paused {
        Change::Keep => {}
        Change::Remove => return Err(Invalid::new("paused", "null", "true or false").into()),
        Change::Set(true) => document.pause(app.engine.now().wall),
        Change::Set(false) => document.paused_since = None,
    }
    match patch.public_event_types {
        Change::Keep => {}
        Change::Remove => return Err(Invalid::new("public_event_types", "null", "true or false").into()),
        Change::Set(public) => document.public_event_types = public,
    }
    AccountSettings::new(document.clone())?;
    Ok(())
}

/// What changed, for the audit log: the new values, null for what is gone.
fn changed(before: &SettingsDocument, after: &SettingsDocument) -> Value {
    let fields = |document: &SettingsDocument| match serde_json::to_value(document) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let (before, mut after) = (fields(before), fields(after));
    for name in before.keys() {
        after.entry(name).or_insert(Value::Null);
    }
    after.retain(|name, value| before.get(name) != Some(value));
    Value::Object(after)
}

/// Tells watchers that nothing is sent any more, or that it is again.
fn tell_pause(app: &App, account: AccountNo, (before, after): (bool, bool)) {
    let (kind, detail) = match (before, after) {
        (false, true) => ("account_paused", "a person paused the account; resuming it releases what waits"),
        (true, false) => ("account_resumed", "a person resumed the account; what waits may go"),
        _ => return,
    };
    app.told.tell(Told::of_account(account, app.engine.now().wall, kind, detail));
}

async fn store(
    turn: Turn,
    app: &App,
    account: &AccountEntry,
    document: &SettingsDocument,
    audit: Option<AuditEntry>,
) -> Result<Arc<AccountEntry>, ApiError> {
    let mut row = account.row.clone();
    row.settings = document.to_stored();
    row.version += 1;
    let no = row.no;
    turn.change(vec![Edit::SetAccount(row)], audit).await?;
    app.catalogue.account(no).ok_or_else(ApiError::not_found)
}

/// Pauses every account: for a restored backup, which must not send what was sent since.
pub(crate) async fn pause_all(app: &App) -> Result<(), ApiError> {
    for account in app.catalogue.accounts() {
        let mut document = account.settings.document.clone();
        document.pause(app.engine.now().wall);
        store(app.catalogue.turn().await, app, &account, &document, None).await?;
    }
    Ok(())
}
