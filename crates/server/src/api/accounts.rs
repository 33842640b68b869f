//! Accounts: the tenants of the installation. For operators only.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tidegate_core::delivery::Withdrawn;
use tidegate_core::id::AccountId;
use tidegate_core::invalid::Invalid;
use tidegate_store::AccountNo;
use tidegate_store::catalogue::{Account, Edit};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::etag::{IfMatch, etag};
use super::extract::{Json, PathText, check_text};
use super::keys;
use super::openapi::{Refusals, WriteRefusals};
use super::page::{Cursor, ListAnswer, ListQuery, page_of};
use super::{App, Data, created, new_id, ok};
use crate::auth::{Call, Operator, Role};
use crate::catalogue::{AccountEntry, SettingsDocument};
use crate::jobs;
use crate::policy::{Change, check_external_id};

/// The longest name.
const MAX_NAME: usize = 200;

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(create, list)).routes(routes!(show, change, delete))
}

/// What is stored of an account.
#[derive(Debug, Serialize, Deserialize)]
struct AccountDocument {
    name: String,
}

/// An account to make.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewAccount {
    /// What it is called.
    #[schema(min_length = 1, max_length = 200)]
    name: String,
    /// Your own id for it, unique; usable wherever the id is: letters, digits and `._:@-`.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 128)]
    external_id: Option<String>,
}

/// What to change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccountPatch {
    /// What it is called.
    #[serde(default)]
    #[schema(value_type = String, min_length = 1, max_length = 200)]
    name: Change<String>,
    /// Your own id for it; null removes it.
    #[serde(default)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 128)]
    external_id: Change<String>,
}

/// An account.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AccountView {
    /// Its id.
    id: String,
    /// Your own id for it.
    #[schema(required = true)]
    external_id: Option<String>,
    /// What it is called.
    name: String,
    /// How many destinations it has.
    destinations: usize,
    /// When it was made.
    #[schema(format = DateTime)]
    created_at: String,
    /// Its first key, with the role `owner`: in the answer to its creation only.
    #[serde(skip_serializing_if = "Option::is_none")]
    api_key: Option<String>,
}

impl AccountView {
    fn new(app: &App, entry: &AccountEntry) -> Self {
        let document: Option<AccountDocument> = serde_json::from_str(&entry.row.document).ok();
        Self {
            id: entry.row.id.to_string(),
            external_id: entry.row.external_id.clone(),
            name: document.map(|document| document.name).unwrap_or_default(),
            destinations: app.catalogue.destination_count(entry.row.no),
            created_at: entry.row.created_at.to_string(),
            api_key: None,
        }
    }
}

/// Make an account, and its first key.
#[utoipa::path(
    post, path = "/v1/accounts", tag = "administration",
    responses((status = 201, description = "Made.", body = Data<AccountView>), WriteRefusals)
)]
async fn create(
    State(app): State<App>,
    Call { caller, .. }: Call<Operator>,
    Json(body): Json<NewAccount>,
) -> Result<impl IntoResponse, ApiError> {
    check_text("name", &body.name, MAX_NAME)?;
    if let Some(external_id) = &body.external_id {
        check_external_id(external_id)?;
    }
    let mut settings = SettingsDocument::default();
    // A server that was started to send nothing sends nothing for those who come later, either.
    if app.config.paused {
        settings.pause(app.engine.now().wall);
    }
    let id: AccountId = new_id(&app);
    let row = Account {
        no: AccountNo(0),
        id,
        external_id: body.external_id,
        document: json!({"name": body.name}).to_string(),
        settings: settings.to_stored(),
        version: 1,
        created_at: app.engine.now().wall,
    };
    // One change: an account without a key could not be made again under its external id.
    let (key, key_row) = keys::make(&app, AccountNo(0), "first key", Role::Owner, None)?;
    let said = json!({"name": body.name, "key": key_row.id.to_string(), "role": "owner"});
    let audit = caller.audit(&app, "account.create", id, &said);
    let edits = vec![Edit::AddAccount(row), Edit::AddFirstKey(key_row)];
    let done = app.catalogue.change(edits, Some(audit)).await?;
    let no = done.accounts.first().copied().ok_or_else(ApiError::not_found)?;
    let entry = app.catalogue.account(no).ok_or_else(ApiError::not_found)?;
    let view = AccountView { api_key: Some(key), ..AccountView::new(&app, &entry) };
    Ok((etag(entry.row.version), created(view)))
}

/// List the accounts.
#[utoipa::path(
    get, path = "/v1/accounts", tag = "administration", params(ListQuery),
    responses((status = 200, description = "A page of accounts, the newest first.", body = Data<ListAnswer<AccountView>>), Refusals)
)]
async fn list(
    State(app): State<App>,
    Call { query, .. }: Call<Operator, ListQuery>,
) -> Result<impl IntoResponse, ApiError> {
    let list = Cursor { list: "accounts", account: AccountNo(0) };
    let page = query.page(list)?;
    let accounts = app.catalogue.accounts();
    Ok(ok(page_of(
        accounts,
        |entry| entry.row.id.to_bits(),
        page,
        list,
        |entry| AccountView::new(&app, &entry),
    )))
}

/// Show an account.
#[utoipa::path(
    get, path = "/v1/accounts/{id}", tag = "administration",
    params(("id" = String, Path, description = "The account's id or external id.")),
    responses((status = 200, description = "The account.", body = Data<AccountView>), Refusals)
)]
async fn show(
    State(app): State<App>,
    _: Call<Operator>,
    PathText(id): PathText,
) -> Result<impl IntoResponse, ApiError> {
    let entry = app.catalogue.find_account(&id).ok_or_else(ApiError::not_found)?;
    Ok((etag(entry.row.version), ok(AccountView::new(&app, &entry))))
}

/// Change an account.
#[utoipa::path(
    patch, path = "/v1/accounts/{id}", tag = "administration",
    params(("id" = String, Path, description = "The account's id or external id."),
           ("If-Match" = Option<String>, Header, description = "Change only this version.")),
    responses((status = 200, description = "Changed.", body = Data<AccountView>), WriteRefusals)
)]
async fn change(
    State(app): State<App>,
    Call { caller, .. }: Call<Operator>,
    PathText(id): PathText,
    if_match: IfMatch,
    Json(body): Json<AccountPatch>,
) -> Result<impl IntoResponse, ApiError> {
    let turn = app.catalogue.turn().await;
    let entry = app.catalogue.find_account(&id).ok_or_else(ApiError::not_found)?;
    if_match.check(entry.row.version)?;
    let mut row = entry.row.clone();
    let mut changed = Map::new();
    match body.name {
        Change::Keep => {}
        Change::Remove => return Err(Invalid::new("name", "null", "1 to 200 characters").into()),
        Change::Set(name) => {
            check_text("name", &name, MAX_NAME)?;
            row.document = json!({"name": name}).to_string();
            changed.insert("name".to_owned(), name.into());
        }
    }
    if let Change::Set(external_id) = &body.external_id {
        check_external_id(external_id)?;
    }
    body.external_id.apply(&mut row.external_id);
    if row.external_id != entry.row.external_id {
        changed.insert("external_id".to_owned(), row.external_id.clone().into());
    }
    row.version += 1;
    let no = row.no;
    let audit = caller.audit(&app, "account.update", row.id, &Value::Object(changed));
    turn.change(vec![Edit::SetAccount(row)], Some(audit)).await?;
    let entry = app.catalogue.account(no).ok_or_else(ApiError::not_found)?;
    Ok((etag(entry.row.version), ok(AccountView::new(&app, &entry))))
}

/// Delete an account with its keys, routes, event types and destinations; what waits is withdrawn.
#[utoipa::path(
    delete, path = "/v1/accounts/{id}", tag = "administration",
    params(("id" = String, Path, description = "The account's id or external id."),
           ("If-Match" = Option<String>, Header, description = "Delete only this version.")),
    responses((status = 204, description = "Deleted."), WriteRefusals)
)]
async fn delete(
    State(app): State<App>,
    Call { caller, .. }: Call<Operator>,
    PathText(id): PathText,
    if_match: IfMatch,
) -> Result<StatusCode, ApiError> {
    let turn = app.catalogue.turn().await;
    let entry = app.catalogue.find_account(&id).ok_or_else(ApiError::not_found)?;
    if_match.check(entry.row.version)?;
    if app.catalogue.keys(entry.row.no).iter().any(|key| key.role == Role::Operator) {
        let message = "this account holds operator keys: revoke them first, with a key of another account";
        return Err(ApiError::conflict("operator_account", message));
    }
    let no = entry.row.no;
    // First the destinations, so that their deliveries are withdrawn like those of any deleted destination.
    let destinations: Vec<_> = app.catalogue.destinations(no).iter().map(|entry| entry.row.no).collect();
    let mut edits: Vec<Edit> = destinations.iter().copied().map(Edit::DropDestination).collect();
    edits.push(Edit::DropAccount(no));
    let audit =
        caller.audit(&app, "account.delete", entry.row.id, &json!({"destinations": destinations.len()}));
    turn.carry_out(|turn| async move {
        turn.apply(edits, Some(audit)).await?;
        jobs::clear(&app, no, destinations, Withdrawn::DestinationDeleted);
        Ok::<_, ApiError>(StatusCode::NO_CONTENT)
    })
    .await
}
