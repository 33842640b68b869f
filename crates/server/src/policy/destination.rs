//! A destination as it is written, and as it is kept.

mod draft;
mod header_pairs;
mod patch;
mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidegate_core::pattern::Patterns;
use utoipa::ToSchema;

use super::PolicyDocument;
pub(crate) use draft::Draft;
pub(crate) use patch::{DestinationPatch, NewDestination};
pub(crate) use text::check_external_id;

/// What the store keeps of a destination in clear: everything but its secrets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct DestinationDocument {
    /// Its name.
    pub(crate) name: String,
    /// Where it is.
    pub(crate) url: String,
    /// Whether it is switched on, as far as its owner said. Its lane knows whether it was disabled since.
    #[serde(default = "switched_on")]
    pub(crate) active: bool,
    /// The outbound events that it gets; `[]`: only what routes or `destination_ids` send.
    #[serde(default = "everything")]
    pub(crate) event_types: Vec<String>,
    /// What the body is.
    #[serde(default)]
    pub(crate) envelope: EnvelopeWord,
    /// Headers to send besides ours.
    #[serde(default)]
    pub(crate) custom_headers: BTreeMap<String, String>,
    /// What may be told of its `auth_config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) auth: Option<AuthShown>,
    /// Its own policies.
    #[serde(default)]
    pub(crate) policies: PolicyDocument,
}

fn switched_on() -> bool {
    true
}

fn everything() -> Vec<String> {
    vec!["*".to_owned()]
}

/// What a request's body is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Envelope)]
pub(crate) enum EnvelopeWord {
    /// The payload, byte for byte.
    #[default]
    Raw,
    /// `{id, type, created_at, expires_at, data}`.
    Standard,
}

/// What may be told of an `auth_config`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct AuthShown {
    /// Which way.
    #[serde(rename = "type")]
    pub(crate) kind: super::sealed::AuthKind,
    /// The header that carries it.
    pub(crate) name: String,
}

impl DestinationDocument {
    /// Reads what the store kept.
    pub(crate) fn from_stored(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }
    /// What the store keeps.
    pub(crate) fn to_stored(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers are JSON")
    }
    /// The types that it gets. What was stored was checked; should it be wrong by now, it gets nothing by type.
    pub(crate) fn patterns(&self) -> Patterns {
        Patterns::parse(&self.event_types).unwrap_or_default()
    }
}
