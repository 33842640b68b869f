//! API keys: made, listed, revoked. The key itself is in the answer to its creation only.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tidegate_core::id::kind::Key;
use tidegate_core::time::Timestamp;
use tidegate_store::AccountNo;
use tidegate_store::catalogue::{ApiKey, Edit};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::extract::{Json, PathId, check_text};
use super::openapi::{Refusals, WriteRefusals};
use super::page::{Cursor, ListAnswer, ListQuery, page_of};
use super::{App, Data, created, new_id, ok};
use crate::auth::key::{self, KeyDocument};
use crate::auth::{Call, Owner, Role};
use crate::catalogue::KeyEntry;

/// The longest name.
const MAX_NAME: usize = 200;

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(create, list)).routes(routes!(revoke))
}

/// A key to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewKey {
    /// What you call it.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// What it may do.
    role: Role,
    /// When it ends by itself.
    #[serde(default)]
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// A key, without the key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyView {
    /// Its id.
    id: String,
    /// What its owner calls it.
    name: String,
    /// What it may do.
    role: Role,
    /// How it begins.
    prefix: String,
    /// When it was made.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it ends by itself.
    #[schema(format = DateTime, required = true)]
    expires_at: Option<String>,
    /// The key itself: in the answer to its creation only.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key: Option<String>,
}

impl KeyView {
    fn new(entry: &KeyEntry) -> Self {
        Self {
            id: entry.id.to_string(),
            name: entry.name.clone(),
            role: entry.role,
            prefix: entry.prefix.clone(),
            created_at: entry.created_at.to_string(),
            expires_at: entry.expires_at.map(|at| at.to_string()),
            api_key: None,
        }
    }
}

/// Make a key.
#[utoipa::path(
    post, path = "/v1/api-keys", tag = "administration",
    responses((status = 201, description = "Made. The key is shown here only.", body = Data<KeyView>), WriteRefusals)
)]
async fn create(
    State(app): State<App>,
    Call { caller, .. }: Call<Owner>,
    Json(body): Json<NewKey>,
) -> Result<impl IntoResponse, ApiError> {
    if body.role == Role::Operator {
        caller.require(Role::Operator)?;
    }
    check_text("name", &body.name, MAX_NAME)?;
    let expires_at = body.expires_at.as_deref().map(|text| end(&app, text)).transpose()?;
    let (key, row) = make(&app, caller.account, &body.name, body.role, expires_at)?;
    let audit = caller.audit(&app, "key.create", row.id, &json!({"name": body.name, "role": body.role}));
    let view = KeyView {
        id: row.id.to_string(),
        name: body.name,
        role: body.role,
        prefix: key::shown(&key),
        created_at: row.created_at.to_string(),
        expires_at: expires_at.map(|at| at.to_string()),
        api_key: Some(key),
    };
    app.catalogue.change(vec![Edit::AddKey(row)], Some(audit)).await?;
    Ok(created(view))
}

/// A new key, and the row that keeps its hash.
pub(super) fn make(
    app: &App,
    account: AccountNo,
    name: &str,
    role: Role,
    expires_at: Option<Timestamp>,
) -> Result<(String, ApiKey), ApiError> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)
        .map_err(|error| ApiError::unavailable(format!("no random numbers: {error}")))?;
    let key = key::make(random);
    let document = KeyDocument { name: name.to_owned(), role, prefix: key::shown(&key) };
    let document = serde_json::to_string(&document).map_err(ApiError::unavailable)?;
    let created_at = app.engine.now().wall;
    let row = ApiKey { id: new_id(app), account, hash: key::hash(&key), document, created_at, expires_at };
    Ok((key, row))
}

fn end(app: &App, text: &str) -> Result<Timestamp, ApiError> {
    let at = Timestamp::parse(text).filter(|at| *at > app.engine.now().wall);
    at.ok_or_else(|| ApiError::invalid("expires_at", "`expires_at` must be an RFC 3339 time in the future"))
}

/// List the keys of the account.
#[utoipa::path(
    get, path = "/v1/api-keys", tag = "administration", params(ListQuery),
    responses((status = 200, description = "A page of keys, the newest first.", body = Data<ListAnswer<KeyView>>), Refusals)
)]
async fn list(
    State(app): State<App>,
    Call { caller, query, .. }: Call<Owner, ListQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let list = Cursor { list: "api-keys", account: caller.account };
    let page = query.page(list)?;
    let keys = app.catalogue.keys(caller.account);
    Ok(ok(page_of(keys, |entry| entry.id.to_bits(), page, list, |entry| KeyView::new(&entry))))
}

/// Revoke a key: it is refused from now on.
#[utoipa::path(
    delete, path = "/v1/api-keys/{id}", tag = "administration",
    params(("id" = String, Path, description = "The key's id.")),
    responses((status = 204, description = "Revoked."), WriteRefusals)
)]
async fn revoke(
    State(app): State<App>,
    Call { caller, .. }: Call<Owner>,
    PathId(id): PathId<Key>,
) -> Result<StatusCode, ApiError> {
    let keys = app.catalogue.keys(caller.account);
    let key = keys.iter().find(|key| key.id == id).ok_or_else(ApiError::not_found)?;
    if key.role == Role::Operator {
        caller.require(Role::Operator)?;
        let all = app.catalogue.accounts().into_iter().flat_map(|account| app.catalogue.keys(account.row.no));
        if all.filter(|other| other.role == Role::Operator && other.expires_at.is_none()).count() <= 1
            && key.expires_at.is_none()
        {
            let message = "this is the last operator key without an end: make another one first";
            return Err(ApiError::conflict("last_operator_key", message));
        }
    }
    let audit = caller.audit(&app, "key.revoke", id, &json!({"name": key.name, "role": key.role}));
    app.catalogue.change(vec![Edit::DropKey(id)], Some(audit)).await?;
    Ok(StatusCode::NO_CONTENT)
}
