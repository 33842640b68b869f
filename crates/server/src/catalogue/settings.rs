//! The settings of an account: defaults for all policies, quotas, pause.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidegate_core::invalid::Invalid;
use tidegate_core::retry::RetryPolicy;
use tidegate_core::time::{Millis, Timestamp};

use super::entry::read;
use super::routing::RetryDocument;

/// What an account's settings say, read.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccountSettings {
    /// As they are stored.
    pub(crate) document: SettingsDocument,
    /// The default `retry_policy`.
    pub(crate) retry: Option<Arc<RetryPolicy>>,
    /// How long a delivery is tried at most; `None`: as the operator configured.
    pub(crate) max_age: Option<Millis>,
}

/// The settings as they are stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct SettingsDocument {
    /// Policies that destinations get which say nothing, in the words of a destination.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub(crate) defaults: serde_json::Map<String, serde_json::Value>,
    /// Above this many waiting deliveries publishing answers 429.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_queued_events: Option<u64>,
    /// Above this many bytes of waiting payloads, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_queued_bytes: Option<u64>,
    /// Whether anybody may read the event types.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) public_event_types: bool,
    /// Since when nothing is sent, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) paused_since: Option<i64>,
}

impl SettingsDocument {
    /// Pauses the whole account, if it is not paused already.
    pub(crate) fn pause(&mut self, now: Timestamp) {
        self.paused_since.get_or_insert(now.as_millis());
    }
    /// What the store keeps.
    pub(crate) fn to_stored(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers are JSON")
    }
    /// Since when the whole account is paused.
    pub(crate) fn paused(&self) -> Option<Timestamp> {
        self.paused_since.map(Timestamp::from_millis)
    }
}

impl AccountSettings {
    /// Reads what is stored; nothing stored is nothing set.
    pub(crate) fn parse(text: &str) -> Result<Self, Invalid> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        Self::new(read("settings", text)?)
    }

    /// Makes of a document what the rules need.
    pub(crate) fn new(document: SettingsDocument) -> Result<Self, Invalid> {
        let retry = match document.defaults.get("retry_policy") {
            None | Some(serde_json::Value::Null) => None,
            Some(value) => {
                let retry: RetryDocument = serde_json::from_value(value.clone()).map_err(|error| {
                    Invalid::new("retry_policy", error, "a retry policy").under("defaults")
                })?;
                Some(retry.compile().map_err(|fault| fault.under("defaults.retry_policy"))?)
            }
        };
        let max_age =
            document.defaults.get("max_age_seconds").and_then(serde_json::Value::as_i64).map(Millis::seconds);
        Ok(Self { document, retry, max_age })
    }
}
