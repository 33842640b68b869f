//! The first start: an account, and an operator key to begin with.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use tidegate_core::id::{AccountId, KeyId};
use tidegate_store::AccountNo;
use tidegate_store::catalogue::{Account, ApiKey, AuditEntry, Edit};

use crate::api::App;
use crate::auth::Role;
use crate::auth::key::{self, KeyDocument};

/// What the first account is called until somebody renames it.
const FIRST_ACCOUNT: &str = "default";

/// How long another node may take to make the first account.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const LOOKS: u32 = 50;

/// Makes an account and an operator key where there is no key at all, the `given` one or a new one; gives back a key that must
/// be shown.
pub(super) async fn first_key(app: &App, given: Option<&str>) -> anyhow::Result<Option<String>> {
    let accounts = app.catalogue.accounts();
    if accounts.iter().any(|account| !app.catalogue.keys(account.row.no).is_empty()) {
        if let Some(key) = given
            && app.catalogue.key(&key::hash(key)).is_none()
        {
            tracing::warn!(
                "TIDEGATE_BOOTSTRAP_KEY is not used: there are keys here already, and it is none of them. \
                 Use one of those, or another --data-dir for a new installation"
            );
        }
        return Ok(None);
    }
    let key = match given {
        Some(key) => key.to_owned(),
        None => new_key()?,
    };
    // An account without a key is a first start that broke off here.
    let account = match accounts.first() {
        Some(account) => account.row.no,
        None => first_account(app).await?,
    };
    if let Err(error) = add_key(app, account, &key).await {
        // One that was given to several nodes is made by the first.
        app.catalogue.refresh().await.context("cannot read what another node has made")?;
        app.catalogue.key(&key::hash(&key)).ok_or(error)?;
    }
    Ok(given.is_none().then_some(key))
}

/// A key of 32 random bytes.
fn new_key() -> anyhow::Result<String> {
    let mut random = [0; 32];
    getrandom::fill(&mut random).context("the system gives no random numbers")?;
    Ok(key::make(random))
}

/// Makes the first account, or waits for the node that does. If that one has died meanwhile, this one makes another.
async fn first_account(app: &App) -> anyhow::Result<AccountNo> {
    let id = AccountId::new(app.engine.now().wall, (app.engine.draw(), app.engine.draw()));
    if !app.engine.store().is_first_account(id).await? {
        for _ in 0..LOOKS {
            tokio::time::sleep(LOOK_EVERY).await;
            app.catalogue.refresh().await.context("cannot read what another node has made")?;
            if let Some(account) = app.catalogue.accounts().first() {
                return Ok(account.row.no);
            }
        }
    }
    add_account(app, id).await
}

async fn add_account(app: &App, id: AccountId) -> anyhow::Result<AccountNo> {
    let now = app.engine.now().wall;
    let row = Account {
        no: AccountNo(0),
        id,
        external_id: None,
        document: json!({"name": FIRST_ACCOUNT}).to_string(),
        settings: String::new(),
        version: 1,
        created_at: now,
    };
    let done =
        app.catalogue.change(vec![Edit::AddAccount(row)], None).await.context("cannot make an account")?;
    done.accounts.first().copied().context("the store gave the new account no number")
}

async fn add_key(app: &App, account: AccountNo, key: &str) -> anyhow::Result<()> {
    let now = app.engine.now().wall;
    let id = KeyId::new(now, (app.engine.draw(), app.engine.draw()));
    let document =
        KeyDocument { name: "bootstrap".to_owned(), role: Role::Operator, prefix: key::shown(key) };
    let document = serde_json::to_string(&document).context("a key's document")?;
    let row = ApiKey { id, account, hash: key::hash(key), document, created_at: now, expires_at: None };
    let audit = AuditEntry {
        account,
        at: now,
        actor: None,
        action: "key.create".to_owned(),
        subject: id.to_string(),
        detail: json!({"name": "bootstrap", "role": "operator"}).to_string(),
    };
    app.catalogue.change(vec![Edit::AddKey(row)], Some(audit)).await.context("cannot make a key")?;
    Ok(())
}

/// Shows the key, once, and what to do with it.
pub(super) fn greet(key: &str, address: SocketAddr) -> anyhow::Result<()> {
    let text = format!(
        "
Welcome to Tidegate. This is your operator key. It is shown this once and kept only as a hash:

    {key}

Open http://{address}/ and sign in with it, or try the API:

    curl -H 'Authorization: Bearer {key}' http://{address}/v1/stats

"
    );
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot show the operator key")
}
