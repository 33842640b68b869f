//! A change: into the store, into memory, to the engine.

use std::sync::Arc;

use tidegate_core::invalid::Invalid;
use tidegate_engine::{Engine, NewLane};
use tidegate_store::catalogue::{AuditEntry, Change, Changed, Edit};
use tidegate_store::{AccountNo, DestinationNo};

use super::entry::{AccountEntry, DestinationEntry, EventTypeEntry, KeyEntry, RouteEntry};
use super::{ChangeError, Shared};
use crate::catalogue::SettingsDocument;
use crate::policy::Compiled;

/// The numbers of what was added, in the order of the edits.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// New accounts.
    pub(crate) accounts: Vec<AccountNo>,
    /// New destinations.
    pub(crate) destinations: Vec<DestinationNo>,
}

/// An edit that is understood, ready for memory.
enum Ready {
    AddAccount(AccountEntry),
    AddFirstKey([u8; 32], KeyEntry),
    SetAccount(AccountEntry, Vec<Arc<DestinationEntry>>),
    DropAccount(AccountNo),
    AddKey([u8; 32], KeyEntry),
    DropKey(tidegate_core::id::KeyId),
    AddDestination(DestinationEntry),
    SetDestination(DestinationEntry),
    DropDestination(DestinationNo),
    AddRoute(RouteEntry),
    DropRoute(tidegate_core::id::RouteId),
    SetEventType(EventTypeEntry),
    DropEventType(AccountNo, String),
    /// Jobs are not kept in memory.
    Job,
}

/// What the engine has to hear of.
enum Tell {
    Open(Arc<DestinationEntry>),
    Adopt(Arc<DestinationEntry>),
    Retire(DestinationNo),
}

/// The caller has the [turn](super::Turn): one change at a time.
pub(super) async fn change(
    shared: &Shared,
    edits: Vec<Edit>,
    audit: Option<AuditEntry>,
) -> Result<Done, ChangeError> {
    // What cannot be understood is found before anything is written.
    let ready = edits.iter().map(|edit| understand(shared, edit)).collect::<Result<Vec<_>, _>>()?;
    let done = match shared.engine.store().change(Change { edits, audit }).await? {
        Changed::Done { accounts, destinations } => Done { accounts, destinations },
        Changed::Outdated => return Err(ChangeError::Outdated),
        Changed::Taken => return Err(ChangeError::Taken),
        Changed::Missing => return Err(ChangeError::Missing),
    };
    let mut tell = Vec::new();
    let revokes = ready.iter().any(|edit| matches!(edit, Ready::DropKey(_) | Ready::DropAccount(_)));
    take_in(shared, ready, &done, &mut tell);
    if revokes {
        shared.revoked.send_replace(());
    }
    for what in tell {
        inform(&shared.engine, what).await?;
    }
    Ok(done)
}

fn understand(shared: &Shared, edit: &Edit) -> Result<Ready, Invalid> {
    Ok(match edit {
        Edit::AddAccount(row) => Ready::AddAccount(AccountEntry::new(row.clone())?),
        Edit::SetAccount(row) => set_account(shared, AccountEntry::new(row.clone())?)?,
        Edit::DropAccount(no) => Ready::DropAccount(*no),
        Edit::AddKey(row) => Ready::AddKey(row.hash, KeyEntry::new(row)?),
        Edit::AddFirstKey(row) => Ready::AddFirstKey(row.hash, KeyEntry::new(row)?),
        Edit::DropKey(id) => Ready::DropKey(*id),
        Edit::AddDestination(row) => {
            Ready::AddDestination(DestinationEntry::new(row.clone(), compile(shared, row)?))
        }
        Edit::SetDestination(row) => {
            Ready::SetDestination(DestinationEntry::new(row.clone(), compile(shared, row)?))
        }
        Edit::DropDestination(no) => Ready::DropDestination(*no),
        Edit::AddRoute(row) => Ready::AddRoute(RouteEntry::new(row.clone())?),
        Edit::DropRoute(id) => Ready::DropRoute(*id),
        Edit::SetEventType(row) => Ready::SetEventType(EventTypeEntry::new(row.clone())?),
        Edit::DropEventType { account, event_type } => Ready::DropEventType(*account, event_type.clone()),
        Edit::AddJob(_) | Edit::StopJob { .. } => Ready::Job,
    })
}

fn compile(shared: &Shared, row: &tidegate_store::catalogue::Destination) -> Result<Compiled, Invalid> {
    let account = shared.read().accounts.get(&row.account).cloned();
    let account = account.ok_or_else(|| Invalid::missing("account", "an account that is there"))?;
    shared.compiler.compile(row, &account)
}

fn take_in(shared: &Shared, ready: Vec<Ready>, done: &Done, tell: &mut Vec<Tell>) {
    let (mut accounts, mut destinations) = (done.accounts.iter(), done.destinations.iter());
    let mut newest = None;
    let mut state = shared.write();
    for edit in ready {
        match edit {
            Ready::AddAccount(mut entry) => {
                entry.row.no = accounts.next().copied().unwrap_or(entry.row.no);
                newest = Some(entry.row.no);
                state.put_account(entry);
            }
            Ready::SetAccount(entry, destinations) => {
                state.put_account(entry);
                for destination in destinations {
                    state.put_destination(Arc::clone(&destination));
                    tell.push(Tell::Adopt(destination));
                }
            }
            Ready::DropAccount(no) => tell.extend(state.drop_account(no).into_iter().map(Tell::Retire)),
            Ready::AddKey(hash, entry) => state.put_key(hash, entry),
            Ready::AddFirstKey(hash, mut entry) => {
                entry.account = newest.unwrap_or(entry.account);
                state.put_key(hash, entry);
            }
            Ready::DropKey(id) => state.drop_key(id),
            Ready::AddDestination(mut entry) => {
                entry.row.no = destinations.next().copied().unwrap_or(entry.row.no);
                let entry = Arc::new(entry);
                state.put_destination(Arc::clone(&entry));
                tell.push(Tell::Open(entry));
            }
            Ready::SetDestination(entry) => {
                let entry = Arc::new(entry);
                state.put_destination(Arc::clone(&entry));
                tell.push(Tell::Adopt(entry));
            }
            Ready::DropDestination(no) => {
                state.drop_destination(no);
                tell.push(Tell::Retire(no));
            }
            Ready::AddRoute(entry) => state.put_route(entry),
            Ready::DropRoute(id) => state.drop_route(id),
            Ready::SetEventType(entry) => state.put_event_type(entry),
            Ready::DropEventType(account, event_type) => state.drop_event_type(account, &event_type),
            Ready::Job => {}
        }
    }
}

/// Other defaults make other policies: every destination of the account gets its own anew, before anything is locked.
fn set_account(shared: &Shared, entry: AccountEntry) -> Result<Ready, Invalid> {
    let no = entry.row.no;
    let state = shared.read();
    let before = state.accounts.get(&no).map(|old| Arc::clone(&old.settings));
    let same = |before: &SettingsDocument, after: &SettingsDocument| {
        before.defaults == after.defaults && before.paused_since == after.paused_since
    };
    if before.is_some_and(|before| same(&before.document, &entry.settings.document)) {
        return Ok(Ready::SetAccount(entry, Vec::new()));
    }
    let rows: Vec<_> = state
        .tenant(no)
        .map(|tenant| tenant.destinations.values().map(|old| old.row.clone()).collect())
        .unwrap_or_default();
    drop(state);
    let compile = |row| {
        shared.compiler.compile(&row, &entry).map(|compiled| Arc::new(DestinationEntry::new(row, compiled)))
    };
    let destinations = rows.into_iter().map(compile).collect::<Result<_, _>>()?;
    Ok(Ready::SetAccount(entry, destinations))
}

async fn inform(engine: &Engine, what: Tell) -> Result<(), ChangeError> {
    match what {
        Tell::Open(entry) => engine.open(lane(&entry, None)),
        Tell::Adopt(entry) => {
            engine.adopt(entry.row.no, Arc::clone(&entry.policy), Arc::clone(&entry.endpoint));
        }
        Tell::Retire(no) => engine.retire(no).await.map_err(|_| ChangeError::Stopped)?,
    }
    Ok(())
}

/// The lane of a destination.
pub(super) fn lane(entry: &DestinationEntry, stored: Option<tidegate_store::lane::StoredLane>) -> NewLane {
    NewLane {
        destination: entry.row.no,
        id: Some(entry.row.id),
        account: entry.row.account,
        policy: Arc::clone(&entry.policy),
        endpoint: Arc::clone(&entry.endpoint),
        disabled: stored.is_none() && !entry.spec.document.active,
        stored,
    }
}
