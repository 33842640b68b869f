//! What owners asked for, in memory: accounts, keys, destinations, routes, event types.
//!
//! All of it is read from the store at start, and every change goes through [`Catalogue::change`]: first into the store,
//! then into memory, then to the engine, one change after the other, so that the three never disagree. Publishing asks
//! [`Catalogue::routing`], which remembers the answer for each account and type until something changes there.
//!
//! ```text
//!   change ──► store.change ──► State (write lock, short) ──► engine.open / adopt / command
//!   publish ──► routing: one read lock, one look-up ──► Arc<Routing>
//! ```

mod apply;
mod entry;
mod load;
mod refresh;
mod routing;
mod settings;
mod state;

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tidegate_core::id::{AccountId, DestinationId, RouteId};
use tidegate_engine::Engine;
use tidegate_store::catalogue::{AuditEntry, Edit};
use tidegate_store::{AccountNo, DestinationNo, StoreError};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};

pub(crate) use self::apply::Done;
pub(crate) use self::entry::{AccountEntry, DestinationEntry, EventTypeEntry, KeyEntry, RouteEntry};
pub(crate) use self::routing::Routing;
pub(crate) use self::settings::{AccountSettings, SettingsDocument};
use self::state::State;
use crate::api::error::ApiError;
use crate::policy::Compiler;

/// Everything in memory. Clones share it.
#[derive(Clone)]
pub(crate) struct Catalogue {
    shared: Arc<Shared>,
}

struct Shared {
    engine: Engine,
    compiler: Compiler,
    state: RwLock<State>,
    /// One change at a time: memory takes them in the order of their commits.
    changing: Arc<Mutex<()>>,
    /// Says that keys or accounts went away.
    revoked: watch::Sender<()>,
}

/// The right to make the next change. What is read while one has it is what the change will replace, so a change that
/// builds on what is there is never refused because of another.
pub(crate) struct Turn {
    shared: Arc<Shared>,
    _held: OwnedMutexGuard<()>,
}

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    /// The store cannot.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Somebody else changed it first.
    #[error("somebody else changed it first")]
    Outdated,
    /// The external id belongs to another.
    #[error("the external id belongs to another")]
    Taken,
    /// It is not there any more.
    #[error("it is not there any more")]
    Missing,
    /// What was written cannot be understood.
    #[error(transparent)]
    Invalid(#[from] tidegate_core::invalid::Invalid),
    /// The server is shutting down.
    #[error("the server is shutting down")]
    Stopped,
}

impl From<ChangeError> for ApiError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Store(error) => error.into(),
            ChangeError::Outdated => {
                Self::conflict("version_conflict", "somebody else changed it at the same time: read it again")
            }
            ChangeError::Taken => Self::conflict("external_id_taken", "this external_id belongs to another")
                .field("external_id"),
            ChangeError::Missing => Self::not_found(),
            ChangeError::Invalid(fault) => fault.into(),
            ChangeError::Stopped => Self::unavailable(error),
        }
    }
}

impl Catalogue {
    /// Makes a change in its turn: see [`Turn::change`].
    pub(crate) async fn change(
        &self,
        edits: Vec<Edit>,
        audit: Option<AuditEntry>,
    ) -> Result<Done, ChangeError> {
        self.turn().await.change(edits, audit).await
    }

    /// Waits for the turn to make a change on top of what is there: first come, first served.
    pub(crate) async fn turn(&self) -> Turn {
        let shared = Arc::clone(&self.shared);
        let held = Arc::clone(&shared.changing).lock_owned().await;
        Turn { shared, _held: held }
    }

    /// Changes whenever keys or accounts went away: whatever goes on with one must look whether it may.
    pub(crate) fn revoked(&self) -> watch::Receiver<()> {
        self.shared.revoked.subscribe()
    }

    /// Makes policies and endpoints from documents.
    pub(crate) fn compiler(&self) -> &Compiler {
        &self.shared.compiler
    }

    /// Where events of this type go, and on which terms. `None`: it is no well-formed type.
    pub(crate) fn routing(
        &self,
        account: AccountNo,
        event_type: &str,
    ) -> Result<Arc<Routing>, tidegate_core::invalid::Invalid> {
        self.shared.read().routing(account, event_type)
    }

    /// The key with this hash.
    pub(crate) fn key(&self, hash: &[u8; 32]) -> Option<Arc<KeyEntry>> {
        self.shared.read().keys.get(hash).cloned()
    }
    /// The keys of an account.
    pub(crate) fn keys(&self, account: AccountNo) -> Vec<Arc<KeyEntry>> {
        self.shared.read().keys.values().filter(|key| key.account == account).cloned().collect()
    }

    /// An account by its number.
    pub(crate) fn account(&self, no: AccountNo) -> Option<Arc<AccountEntry>> {
        self.shared.read().accounts.get(&no).cloned()
    }
    /// An account by its id or external id.
    pub(crate) fn find_account(&self, name: &str) -> Option<Arc<AccountEntry>> {
        let state = self.shared.read();
        let by_id = AccountId::parse(name).ok().and_then(|id| state.account_ids.get(&id));
        let no = by_id.or_else(|| state.account_names.get(name))?;
        state.accounts.get(no).cloned()
    }
    /// All accounts.
    pub(crate) fn accounts(&self) -> Vec<Arc<AccountEntry>> {
        self.shared.read().accounts.values().cloned().collect()
    }

    /// A destination of any account, by its number.
    pub(crate) fn destination(&self, no: DestinationNo) -> Option<Arc<DestinationEntry>> {
        self.shared.read().destinations.get(&no).cloned()
    }
    /// A destination of this account by its id or external id.
    pub(crate) fn find_destination(&self, account: AccountNo, name: &str) -> Option<Arc<DestinationEntry>> {
        self.shared.read().find_destination(account, name)
    }
    /// The destinations of an account, by their ids.
    pub(crate) fn destinations(&self, account: AccountNo) -> Vec<Arc<DestinationEntry>> {
        self.shared
            .read()
            .tenant(account)
            .map(|tenant| tenant.destinations.values().cloned().collect())
            .unwrap_or_default()
    }
    /// How many destinations an account has.
    pub(crate) fn destination_count(&self, account: AccountNo) -> usize {
        self.shared.read().tenant(account).map_or(0, |tenant| tenant.destinations.len())
    }
    /// Its id, for answers; also of one that was deleted.
    pub(crate) fn destination_id(&self, no: DestinationNo) -> Option<DestinationId> {
        let state = self.shared.read();
        state.destinations.get(&no).map(|entry| entry.row.id).or_else(|| state.deleted.get(&no).copied())
    }
    /// The number of a destination of this account by its id or external id, or of one that was deleted by its id.
    pub(crate) fn destination_ever(&self, account: AccountNo, name: &str) -> Option<DestinationNo> {
        let state = self.shared.read();
        let now = state.find_destination(account, name).map(|entry| entry.row.no);
        now.or_else(|| state.tenant(account)?.deleted.get(&DestinationId::parse(name).ok()?).copied())
    }

    /// How often quiet hours were found whose time zone is unknown by now.
    pub(crate) fn schedule_errors(&self) -> u64 {
        self.shared.read().schedule_errors
    }

    /// A route of this account.
    pub(crate) fn route(&self, account: AccountNo, id: RouteId) -> Option<Arc<RouteEntry>> {
        self.shared.read().tenant(account)?.routes.get(&id).cloned()
    }
    /// The routes of an account, by their ids.
    pub(crate) fn routes(&self, account: AccountNo) -> Vec<Arc<RouteEntry>> {
        self.shared
            .read()
            .tenant(account)
            .map(|tenant| tenant.routes.values().cloned().collect())
            .unwrap_or_default()
    }

    /// An event type of this account, as it is written.
    pub(crate) fn event_type(&self, account: AccountNo, event_type: &str) -> Option<Arc<EventTypeEntry>> {
        self.shared.read().tenant(account)?.event_types.get(event_type).cloned()
    }
    /// The event types of an account, by name.
    pub(crate) fn event_types(&self, account: AccountNo) -> Vec<Arc<EventTypeEntry>> {
        let state = self.shared.read();
        state.tenant(account).map(|tenant| tenant.event_types.values().cloned().collect()).unwrap_or_default()
    }
}

impl Turn {
    /// Makes a change, with its line in the audit log; returns when it is committed and in force. It is carried through
    /// even if the caller goes away.
    pub(crate) async fn change(
        self,
        edits: Vec<Edit>,
        audit: Option<AuditEntry>,
    ) -> Result<Done, ChangeError> {
        self.carry_out(|turn| async move { turn.apply(edits, audit).await }).await
    }

    /// Does what belongs together, a change and what follows from it, before anybody else has the turn. It is carried
    /// through even if the caller goes away.
    pub(crate) async fn carry_out<T, E, F>(self, work: impl FnOnce(Self) -> F) -> Result<T, E>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
        E: From<ChangeError> + Send + 'static,
    {
        tokio::spawn(work(self)).await.unwrap_or_else(|_| Err(ChangeError::Stopped.into()))
    }

    /// Makes a change and keeps the turn: for [`Turn::carry_out`].
    pub(crate) async fn apply(
        &self,
        edits: Vec<Edit>,
        audit: Option<AuditEntry>,
    ) -> Result<Done, ChangeError> {
        apply::change(&self.shared, edits, audit).await
    }
}

impl Shared {
    /// A panic while the lock was held would have left half a change; there is none that could.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}
