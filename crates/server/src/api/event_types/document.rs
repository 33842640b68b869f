//! What is written about an event type, and how it is shown.

use serde::{Deserialize, Serialize};
use tidegate_core::delivery::Priority;
use tidegate_core::invalid::{Invalid, check_range};
use tidegate_core::limits;
use tidegate_core::pattern::Pattern;
use tidegate_core::time::Timestamp;
use tidegate_store::catalogue::EventTypeRow;
use utoipa::ToSchema;

use crate::api::as_text;
use crate::policy::retry::RetryDocument;

/// The longest description and guidance, in characters.
const MAX_TEXT: usize = 4_000;

/// What to know of an event type. What is left out is not said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct EventTypeBody {
    /// The same as in the path, if it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_type: Option<String>,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4000)]
    description: Option<String>,
    /// How long a delivery is worth sending, from its receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 2_592_000)]
    delivery_ttl_seconds: Option<i64>,
    /// Caps the attempts of whatever retry policy is chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 50)]
    max_attempts: Option<u64>,
    /// How to retry; comes before the destination's.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_policy: Option<RetryDocument>,
    /// 1 critical … 4 bulk, for events that do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 4)]
    priority: Option<u64>,
    /// What consumers should do with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 4000)]
    consumer_guidance: Option<String>,
}

/// An event type.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EventType)]
pub(crate) struct EventTypeView {
    /// The name or pattern.
    event_type: String,
    /// What it means.
    #[schema(required = true)]
    description: Option<String>,
    /// How long a delivery is worth sending, from its receipt.
    #[schema(required = true)]
    delivery_ttl_seconds: Option<i64>,
    /// Caps the attempts of whatever retry policy is chosen.
    #[schema(required = true)]
    max_attempts: Option<u64>,
    /// How to retry.
    #[schema(required = true)]
    retry_policy: Option<RetryDocument>,
    /// 1 critical … 4 bulk, for events that do not say.
    #[schema(required = true)]
    priority: Option<u64>,
    /// What consumers should do with it.
    #[schema(required = true)]
    consumer_guidance: Option<String>,
    /// When it was last changed.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    updated_at: Timestamp,
    /// Grows with each change; the `ETag`.
    version: u64,
}

impl EventTypeBody {
    /// Says what is wrong with it first, if something is.
    pub(super) fn check(&self, pattern: &Pattern) -> Result<(), Invalid> {
        if let Some(name) = self.event_type.as_deref().filter(|name| *name != pattern.as_str()) {
            return Err(Invalid::new("event_type", name, format!("{pattern}, as in the path")));
        }
        for (field, text) in
            [("description", &self.description), ("consumer_guidance", &self.consumer_guidance)]
        {
            let length = text.as_deref().map_or(0, |text| text.chars().count());
            if length > MAX_TEXT {
                let found = format!("of {length} characters");
                return Err(Invalid::new(field, found, format!("at most {MAX_TEXT} characters")));
            }
        }
        if let Some(seconds) = self.delivery_ttl_seconds {
            check_range("delivery_ttl_seconds", seconds, 1, limits::MAX_TTL.get() / 1_000)?;
        }
        if let Some(attempts) = self.max_attempts {
            check_range("max_attempts", attempts, 1, u64::from(limits::MAX_ATTEMPTS))?;
        }
        if let Some(retry) = &self.retry_policy {
            retry.compile().map_err(|fault| fault.under("retry_policy"))?;
        }
        self.priority.map(Priority::new).transpose().map(|_| ())
    }

    /// What the store keeps: all but the name, which it knows.
    pub(super) fn to_stored(&self) -> String {
        let unnamed = Self { event_type: None, ..self.clone() };
        serde_json::to_string(&unnamed).expect("strings and numbers are JSON")
    }
}

impl EventTypeView {
    /// As it is stored.
    pub(crate) fn new(row: &EventTypeRow) -> Self {
        let body: EventTypeBody = serde_json::from_str(&row.document).unwrap_or_default();
        Self {
            event_type: row.event_type.clone(),
            description: body.description,
            delivery_ttl_seconds: body.delivery_ttl_seconds,
            max_attempts: body.max_attempts,
            retry_policy: body.retry_policy,
            priority: body.priority,
            consumer_guidance: body.consumer_guidance,
            updated_at: row.updated_at,
            version: row.version,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_is_named_by_its_path() {
        let pattern = Pattern::parse("order.*").unwrap();
        for (field, body) in [
            ("event_type", json!({"event_type": "order.paid"})),
            ("description", json!({"description": "x".repeat(4_001)})),
            ("delivery_ttl_seconds", json!({"delivery_ttl_seconds": 0})),
            ("delivery_ttl_seconds", json!({"delivery_ttl_seconds": 2_592_001})),
            ("max_attempts", json!({"max_attempts": 51})),
            ("retry_policy.delays_seconds[0]", json!({"retry_policy": {"delays_seconds": [0]}})),
            ("priority", json!({"priority": 5})),
        ] {
            let parsed: EventTypeBody = serde_json::from_value(body.clone()).unwrap();
            assert_eq!(parsed.check(&pattern).unwrap_err().field, field, "{body}");
        }
        let whole = json!({"event_type": "order.*", "delivery_ttl_seconds": 60, "priority": 1});
        let parsed: EventTypeBody = serde_json::from_value(whole).unwrap();
        assert!(parsed.check(&pattern).is_ok());
        for unknown in ["schema", "source_id"] {
            assert!(serde_json::from_value::<EventTypeBody>(json!({unknown: {}})).is_err(), "{unknown}");
        }
    }
}
