//! What owners asked for: accounts, keys, destinations, routes, event types, settings; and who changed what.
//!
//! All of it is small, read once at start and kept in memory by the server. Documents are JSON in the words of the API; the
//! store does not look into them.

use tidegate_core::id::{AccountId, DestinationId, KeyId, ReplayId, RouteId};
use tidegate_core::time::Timestamp;

use crate::job::Job;
use crate::{AccountNo, DestinationNo};

/// Everything, as it is at start.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Accounts.
    pub accounts: Vec<Account>,
    /// Keys that were not revoked.
    pub keys: Vec<ApiKey>,
    /// Destinations that were not deleted.
    pub destinations: Vec<Destination>,
    /// Routes.
    pub routes: Vec<Route>,
    /// Event types.
    pub event_types: Vec<EventTypeRow>,
    /// Destinations that were deleted.
    pub deleted: Vec<Deleted>,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its number; given by the store when it is created.
    pub no: AccountNo,
    /// Its id.
    pub id: AccountId,
    /// Its owner's id for it, unique.
    pub external_id: Option<String>,
    /// Name and the like.
    pub document: String,
    /// Defaults, quotas, pause.
    pub settings: String,
    /// Grows with each change.
    pub version: u64,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A key: only its hash is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Its id.
    pub id: KeyId,
    /// Of which account.
    pub account: AccountNo,
    /// SHA-256 of the key.
    pub hash: [u8; 32],
    /// Name, role, display prefix.
    pub document: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
}

/// A destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Its number; given by the store when it is created.
    pub no: DestinationNo,
    /// Its id.
    pub id: DestinationId,
    /// Whose.
    pub account: AccountNo,
    /// Its owner's id for it, unique in the account.
    pub external_id: Option<String>,
    /// Its policies.
    pub document: String,
    /// Its secrets, encrypted.
    pub secrets: Vec<u8>,
    /// Grows with each change.
    pub version: u64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its id.
    pub id: RouteId,
    /// Whose.
    pub account: AccountNo,
    /// To where.
    pub destination: DestinationNo,
    /// Which types.
    pub document: String,
    /// When it was made.
    pub created_at: Timestamp,
}

/// What is left of a destination that was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// Its number.
    pub no: DestinationNo,
    /// Its id.
    pub id: DestinationId,
    /// Whose it was; the account may be gone, too.
    pub account: AccountNo,
    /// Whether deliveries of it are still open: they are to be withdrawn.
    pub has_open: bool,
}

/// What is known of an event type, or of all that match a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventTypeRow {
    /// Whose.
    pub account: AccountNo,
    /// The name or pattern.
    pub event_type: String,
    /// TTL, retries, guidance.
    pub document: String,
    /// Grows with each change.
    pub version: u64,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// A change, with its line in the audit log: both are committed, or none.
#[derive(Clone, Debug)]
pub struct Change {
    /// What changes. Several changes go together.
    pub edits: Vec<Edit>,
    /// Who changed what.
    pub audit: Option<AuditEntry>,
}

/// One edit. Updates name the version that they replace; another one there is a lost race.
#[derive(Clone, Debug)]
pub enum Edit {
    /// A new account. `no` is ignored and given by the store.
    AddAccount(Account),
    /// Another version of it: `version` is the new one, the stored one must be one less.
    SetAccount(Account),
    /// It is gone, with its keys, routes, event types and destinations. Its deliveries were withdrawn before.
    DropAccount(AccountNo),
    /// A new key.
    AddKey(ApiKey),
    /// A key of the account that this change has added before. `account` is ignored and given by the store.
    AddFirstKey(ApiKey),
    /// It is revoked.
    DropKey(KeyId),
    /// A new destination. `no` is ignored and given by the store.
    AddDestination(Destination),
    /// Another version of it, likewise.
    SetDestination(Destination),
    /// It is deleted: from now on nobody sees it, and its open deliveries are withdrawn.
    DropDestination(DestinationNo),
    /// A new route.
    AddRoute(Route),
    /// It is gone.
    DropRoute(RouteId),
    /// An event type, new (`version` 1) or another version of it.
    SetEventType(EventTypeRow),
    /// It is gone.
    DropEventType {
        /// Whose.
        account: AccountNo,
        /// Which.
        event_type: String,
    },
    /// A new job, to be worked at here.
    AddJob(Job),
    /// A job goes no further, whoever works at it. One that has ended is [`Changed::Missing`].
    StopJob {
        /// Which.
        job: ReplayId,
        /// When.
        at: Timestamp,
    },
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It is committed. The numbers of accounts and destinations that were added, in the order of the edits.
    Done {
        /// New accounts.
        accounts: Vec<AccountNo>,
        /// New destinations.
        destinations: Vec<DestinationNo>,
    },
    /// Somebody else changed it first: nothing was done.
    Outdated,
    /// The external id belongs to another: nothing was done.
    Taken,
    /// It is not there (any more): nothing was done.
    Missing,
}

/// A line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Whose log.
    pub account: AccountNo,
    /// When.
    pub at: Timestamp,
    /// Which key did it; `None`: the server itself.
    pub actor: Option<KeyId>,
    /// What: `destination.update`, `key.revoke` …
    pub action: String,
    /// To what: an id.
    pub subject: String,
    /// What changed, as JSON, without secrets.
    pub detail: String,
}
