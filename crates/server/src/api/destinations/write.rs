//! Creating, changing and deleting destinations.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_core::delivery::Withdrawn;
use tidegate_core::dial::{Guard, Target};
use tidegate_core::health::DisabledCause;
use tidegate_core::id::DestinationId;
use tidegate_core::invalid::Invalid;
use tidegate_engine::dispatcher::Command;
use tidegate_store::DestinationNo;
use tidegate_store::catalogue::{AuditEntry, Destination, Edit};

use super::find::find;
use super::standing;
use crate::api::App;
use crate::api::error::ApiError;
use crate::api::etag::IfMatch;
use crate::auth::Caller;
use crate::catalogue::{AccountEntry, DestinationEntry};
use crate::jobs;
use crate::policy::{Change, DestinationDocument, DestinationPatch, Draft, NewDestination};

/// Destinations of one account at most: lists and routing go through all of them.
const MAX_DESTINATIONS: usize = 100_000;

/// Makes a destination; gives back the secret that the server made for it, if it did.
pub(super) async fn create(
    app: &App,
    caller: &Caller,
    body: NewDestination,
) -> Result<(Arc<DestinationEntry>, Option<String>), ApiError> {
    if app.catalogue.destination_count(caller.account) >= MAX_DESTINATIONS {
        let message = format!("an account has at most {MAX_DESTINATIONS} destinations");
        return Err(ApiError::conflict("too_many_destinations", message));
    }
    let (draft, made) = body.build(app.catalogue.compiler().https_only, random(app))?;
    check_address(app, &draft.document)?;
    let now = app.engine.now().wall;
    let id = DestinationId::new(now, (app.engine.draw(), app.engine.draw()));
    let account = account(app, caller)?;
    let row = Destination {
        no: DestinationNo(0),
        id,
        account: caller.account,
        external_id: draft.external_id.clone(),
        document: draft.document.to_stored(),
        secrets: seal(app, &account, id, &draft)?,
        version: 1,
        created_at: now,
        updated_at: now,
    };
    let audit = caller.audit(app, "destination.create", id, &json!({"name": draft.document.name}));
    let done = app.catalogue.change(vec![Edit::AddDestination(row)], Some(audit)).await?;
    let no = done.destinations.first().copied().ok_or_else(ApiError::not_found)?;
    let entry = app.catalogue.destination(no).ok_or_else(ApiError::not_found)?;
    Ok((entry, made))
}

/// Changes a destination as `patch` says.
pub(super) async fn change(
    app: &App,
    caller: &Caller,
    name: &str,
    if_match: &IfMatch,
    patch: &DestinationPatch,
) -> Result<Arc<DestinationEntry>, ApiError> {
    let active = if let Change::Set(active) = patch.active { Some(active) } else { None };
    let how = Rewrite { name, if_match, action: "destination.update", active };
    rewrite(app, caller, how, |draft| {
        patch.clone().apply(draft, app.catalogue.compiler().https_only)?;
        if !patch.url.is_keep() {
            check_address(app, &draft.document)?;
        }
        Ok(())
    })
    .await
}

/// Which destination is written anew, and what goes with it.
pub(super) struct Rewrite<'a> {
    /// Its id or external id.
    pub(super) name: &'a str,
    /// The version that may be replaced.
    pub(super) if_match: &'a IfMatch,
    /// What the audit log calls it.
    pub(super) action: &'a str,
    /// Whether its lane is to be on or off afterwards.
    pub(super) active: Option<bool>,
}

/// Reads a destination, lets `edit` change it, and writes it as the next version. Its lane is switched before anybody else
/// may change it, so that document and lane say the same.
pub(super) async fn rewrite(
    app: &App,
    caller: &Caller,
    Rewrite { name, if_match, action, active }: Rewrite<'_>,
    edit: impl FnOnce(&mut Draft) -> Result<(), ApiError>,
) -> Result<Arc<DestinationEntry>, ApiError> {
    let turn = app.catalogue.turn().await;
    let account = account(app, caller)?;
    let entry = find(app, caller, name)?;
    if_match.check(entry.row.version)?;
    let before = app.catalogue.compiler().draft(&entry.row, &account)?;
    let mut after = before.clone();
    edit(&mut after)?;
    let change = if before == after {
        None
    } else {
        let row = Destination {
            external_id: after.external_id.clone(),
            document: after.document.to_stored(),
            secrets: seal(app, &account, entry.row.id, &after)?,
            version: entry.row.version + 1,
            updated_at: app.engine.now().wall,
            ..entry.row.clone()
        };
        let audit = caller.audit(app, action, row.id, &changed(&before, &after));
        Some((Edit::SetDestination(row), audit))
    };
    // Where the document changes, too, there is a line already.
    let line =
        change.is_none().then(|| caller.audit(app, action, entry.row.id, &json!({"changed": ["active"]})));
    let app = app.clone();
    turn.carry_out(|turn| async move {
        if let Some((edit, audit)) = change {
            turn.apply(vec![edit], Some(audit)).await?;
        }
        let entry = app.catalogue.destination(entry.row.no).ok_or_else(ApiError::not_found)?;
        if let Some(active) = active {
            switch(&app, &entry, active, line).await?;
        }
        Ok(entry)
    })
    .await
}

/// Deletes a destination, and begins to cancel what waits for it.
pub(super) async fn remove(
    app: &App,
    caller: &Caller,
    name: &str,
    if_match: &IfMatch,
) -> Result<(), ApiError> {
    let turn = app.catalogue.turn().await;
    let entry = find(app, caller, name)?;
    if_match.check(entry.row.version)?;
    let audit = caller.audit(app, "destination.delete", entry.row.id, &json!({}));
    let (app, account, no) = (app.clone(), caller.account, entry.row.no);
    turn.carry_out(|turn| async move {
        turn.apply(vec![Edit::DropDestination(no)], Some(audit)).await?;
        jobs::clear(&app, account, vec![no], Withdrawn::DestinationDeleted);
        Ok(())
    })
    .await
}

/// `active`: switches a lane off, or on again if it was off. A pause is another thing, and stays.
async fn switch(
    app: &App,
    entry: &DestinationEntry,
    active: bool,
    audit: Option<AuditEntry>,
) -> Result<(), ApiError> {
    let command = match (active, standing::is_disabled(app, entry).await?) {
        (true, true) => Command::Enable,
        (false, false) => Command::Disable(DisabledCause::ByRequest),
        (true, false) | (false, true) => return Ok(()),
    };
    standing::command(app, entry, command, audit).await
}

/// 32 random bytes for a secret.
pub(super) fn random(app: &App) -> [u8; 32] {
    let draws = [(); 4].map(|()| app.engine.draw().0.to_be_bytes());
    std::array::from_fn(|place| draws[place / 8][place % 8])
}

pub(super) fn account(app: &App, caller: &Caller) -> Result<Arc<AccountEntry>, ApiError> {
    app.catalogue.account(caller.account).ok_or_else(ApiError::not_found)
}

fn seal(app: &App, account: &AccountEntry, id: DestinationId, draft: &Draft) -> Result<Vec<u8>, ApiError> {
    app.catalogue.compiler().seal(account, id, &draft.secrets).map_err(ApiError::unavailable)
}

/// A URL that names an address is judged when it is written; a name is judged at each connection.
fn check_address(app: &App, document: &DestinationDocument) -> Result<(), ApiError> {
    let target = Target::parse(&document.url, false)?;
    let guard = || Guard::new(app.config.allow_destinations.clone());
    match target.literal() {
        Some(address) if !guard().admits(address) => {
            Err(Invalid::new("url", address, "a public address, or one that the operator allows").into())
        }
        _ => Ok(()),
    }
}

/// Which fields changed, for the audit log: names only.
fn changed(before: &Draft, after: &Draft) -> Value {
    let fields = |draft: &Draft| {
        let mut fields = match serde_json::to_value(&draft.document) {
            Ok(Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        if let Some(Value::Object(policies)) = fields.remove("policies") {
            fields.extend(policies);
        }
        fields.insert("external_id".to_owned(), json!(draft.external_id));
        fields
    };
    let (old, new) = (fields(before), fields(after));
    let mut names: Vec<&str> = Vec::new();
    for name in old.keys().chain(new.keys()) {
        if old.get(name) != new.get(name) && !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    if before.secrets.signing != after.secrets.signing {
        names.push("signing_secret");
    }
    if before.secrets.auth != after.secrets.auth {
        names.push("auth_config");
    }
    json!({"changed": names})
}
