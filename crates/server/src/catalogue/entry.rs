//! The entries: rows of the store with what was made of their documents.

use std::sync::Arc;

use serde::Deserialize;
use tidegate_core::id::KeyId;
use tidegate_core::invalid::Invalid;
use tidegate_core::pattern::{Pattern, Patterns};
use tidegate_core::policy::Policy;
use tidegate_core::time::Timestamp;
use tidegate_engine::sender::Endpoint;
use tidegate_store::AccountNo;
use tidegate_store::catalogue::{Account, ApiKey, Destination, EventTypeRow, Route};

use super::settings::AccountSettings;
use crate::auth::Role;
use crate::auth::key::KeyDocument;
use crate::policy::{Compiled, Spec};

/// An account.
#[derive(Debug)]
pub(crate) struct AccountEntry {
    /// As it is stored.
    pub(crate) row: Account,
    /// Its defaults, quotas and pause.
    pub(crate) settings: Arc<AccountSettings>,
}

impl AccountEntry {
    pub(super) fn new(row: Account) -> Result<Self, Invalid> {
        let settings = Arc::new(AccountSettings::parse(&row.settings)?);
        Ok(Self { row, settings })
    }
}

/// A key.
#[derive(Debug)]
pub(crate) struct KeyEntry {
    /// Its id.
    pub(crate) id: KeyId,
    /// Of which account.
    pub(crate) account: AccountNo,
    /// What it may do.
    pub(crate) role: Role,
    /// What its owner calls it.
    pub(crate) name: String,
    /// How it begins.
    pub(crate) prefix: String,
    /// When it was made.
    pub(crate) created_at: Timestamp,
    /// When it ends by itself.
    pub(crate) expires_at: Option<Timestamp>,
}

impl KeyEntry {
    pub(super) fn new(row: &ApiKey) -> Result<Self, Invalid> {
        let document: KeyDocument = read("api_key", &row.document)?;
        Ok(Self {
            id: row.id,
            account: row.account,
            role: document.role,
            name: document.name,
            prefix: document.prefix,
            created_at: row.created_at,
            expires_at: row.expires_at,
        })
    }
}

/// A destination.
pub(crate) struct DestinationEntry {
    /// As it is stored.
    pub(crate) row: Destination,
    /// What its document says.
    pub(crate) spec: Arc<Spec>,
    /// The types of outbound events that it gets.
    pub(crate) event_types: Patterns,
    /// Its policies, with the account's defaults.
    pub(crate) policy: Arc<Policy>,
    /// Where and how to send.
    pub(crate) endpoint: Arc<Endpoint>,
}

impl DestinationEntry {
    pub(super) fn new(row: Destination, compiled: Compiled) -> Self {
        let Compiled { spec, event_types, policy, endpoint } = compiled;
        Self { row, spec, event_types, policy, endpoint }
    }
}

/// A route.
#[derive(Debug)]
pub(crate) struct RouteEntry {
    /// As it is stored.
    pub(crate) row: Route,
    /// Only events of this source; `None`: outbound ones, and those of any source.
    pub(crate) source_id: Option<String>,
    /// Only these types.
    pub(crate) pattern: Pattern,
}

impl RouteEntry {
    pub(super) fn new(row: Route) -> Result<Self, Invalid> {
        #[derive(Deserialize)]
        struct Document {
            source_id: Option<String>,
            event_type_pattern: Option<String>,
        }
        let document: Document = read("route", &row.document)?;
        let pattern =
            document.event_type_pattern.map_or_else(|| Ok(Pattern::any()), |text| Pattern::parse(&text));
        Ok(Self {
            row,
            source_id: document.source_id,
            pattern: pattern.map_err(|fault| fault.under("event_type_pattern"))?,
        })
    }
}

/// An event type, or all that match a pattern.
#[derive(Debug)]
pub(crate) struct EventTypeEntry {
    /// As it is stored.
    pub(crate) row: EventTypeRow,
    /// Which types it concerns.
    pub(crate) pattern: Pattern,
    /// What it says about them.
    pub(crate) terms: super::routing::TypeTerms,
}

impl EventTypeEntry {
    pub(super) fn new(row: EventTypeRow) -> Result<Self, Invalid> {
        let terms: super::routing::TypeTermsDocument = read("event_type", &row.document)?;
        let pattern = Pattern::parse(&row.event_type).map_err(|fault| fault.under("event_type"))?;
        Ok(Self { pattern, terms: terms.compile()?, row })
    }
}

/// Reads a stored document; what is not needed here is left to others.
pub(super) fn read<'a, T: Deserialize<'a>>(field: &str, document: &'a str) -> Result<T, Invalid> {
    serde_json::from_str(document)
        .map_err(|error| Invalid::new(field, error, "a document that this version can read"))
}
