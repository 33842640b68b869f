//! The policies of an account for destinations that say nothing: changed as a destination's are, kept as one document.

use serde::Deserialize;
use serde_json::{Map, Value};
use tidegate_core::invalid::{Invalid, check_range};
use tidegate_core::limits;
use utoipa::ToSchema;

use super::breaker::BreakerDocument;
use super::changes::PolicyChanges;
use super::document::{OnExhaustedWord, OrderingWord};
use super::rate::RateLimitDocument;
use super::retry::RetryDocument;
use super::schedule::ScheduleDocument;
use super::timeout::TimeoutDocument;
use super::{Change, PolicyDocument};

/// The one word among an account's defaults that is no policy of a destination.
const MAX_AGE: &str = "max_age_seconds";
/// Quiet hours as a single window, where there is one.
const SINGLE: &str = "delivery_schedule";
/// Quiet hours as a list: how they are kept.
const LIST: &str = "delivery_schedules";

/// Policies for destinations that say nothing, in the words of a destination. In a change, each that is named replaces the
/// one before, and `null` removes it.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Defaults)]
pub(crate) struct DefaultsPatch {
    /// Requests in flight at most.
    #[serde(default)]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 1_000)]
    max_concurrency: Change<u64>,
    /// In which order destinations get their deliveries.
    #[serde(default)]
    #[schema(value_type = Option<OrderingWord>)]
    ordering: Change<OrderingWord>,
    /// What follows in a line when a delivery is dead.
    #[serde(default)]
    #[schema(value_type = Option<OnExhaustedWord>)]
    on_exhausted: Change<OnExhaustedWord>,
    /// Pins the timeout.
    #[serde(default)]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 120)]
    timeout_seconds: Change<u64>,
    /// How the timeout is found otherwise.
    #[serde(default)]
    #[schema(value_type = Option<TimeoutDocument>)]
    timeout: Change<TimeoutDocument>,
    /// How fast.
    #[serde(default)]
    #[schema(value_type = Option<RateLimitDocument>)]
    rate_limit: Change<RateLimitDocument>,
    /// Quiet hours: a single window.
    #[serde(default)]
    #[schema(value_type = Option<ScheduleDocument>)]
    delivery_schedule: Change<ScheduleDocument>,
    /// Quiet hours: a list of windows.
    #[serde(default)]
    #[schema(value_type = Option<Vec<ScheduleDocument>>, max_items = 20)]
    delivery_schedules: Change<Vec<ScheduleDocument>>,
    /// How to retry.
    #[serde(default)]
    #[schema(value_type = Option<RetryDocument>)]
    retry_policy: Change<RetryDocument>,
    /// When to stop trying.
    #[serde(default)]
    #[schema(value_type = Option<BreakerDocument>)]
    circuit_breaker: Change<BreakerDocument>,
    /// Statuses that are final at once: 400 to 599, but not 429.
    #[serde(default)]
    #[schema(value_type = Option<Vec<u16>>)]
    permanent_statuses: Change<Vec<u16>>,
    /// How long a delivery is tried at most.
    #[serde(default)]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 2_592_000)]
    max_age_seconds: Change<i64>,
}

impl DefaultsPatch {
    /// Does to stored defaults what it says, or says what is wrong with it first.
    pub(crate) fn apply(self, stored: &mut Map<String, Value>) -> Result<(), Invalid> {
        let mut policies = read(stored)?;
        let mut max_age = stored.get(MAX_AGE).and_then(Value::as_i64);
        if let Change::Set(seconds) = self.max_age_seconds {
            check_range(MAX_AGE, seconds, 1, limits::MAX_MAX_AGE.get() / 1_000)?;
        }
        self.max_age_seconds.clone().apply(&mut max_age);
        self.policies().apply(&mut policies)?;
        *stored = match serde_json::to_value(&policies) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        };
        if let Some(seconds) = max_age {
            stored.insert(MAX_AGE.to_owned(), seconds.into());
        }
        Ok(())
    }

    fn policies(self) -> PolicyChanges {
        PolicyChanges {
            max_concurrency: self.max_concurrency,
            ordering: self.ordering,
            on_exhausted: self.on_exhausted,
            timeout_seconds: self.timeout_seconds,
            timeout: self.timeout,
            rate_limit: self.rate_limit,
            delivery_schedule: self.delivery_schedule,
            delivery_schedules: self.delivery_schedules,
            retry_policy: self.retry_policy,
            circuit_breaker: self.circuit_breaker,
            permanent_statuses: self.permanent_statuses,
        }
    }
}

/// The policies among stored defaults.
pub(super) fn read(stored: &Map<String, Value>) -> Result<PolicyDocument, Invalid> {
    let mut map = stored.clone();
    map.remove(MAX_AGE);
    if let Some(window) = map.remove(SINGLE).filter(|window| !window.is_null()) {
        map.insert(LIST.to_owned(), Value::Array(vec![window]));
    }
    serde_json::from_value(Value::Object(map))
        .map_err(|error| Invalid::new("defaults", error, "policies that this version can read"))
}

/// Stored defaults as they are shown: a list of windows, and the single one where there is one.
pub(crate) fn shown(stored: &Map<String, Value>) -> Map<String, Value> {
    let mut map = stored.clone();
    if let Some([window]) = map.get(LIST).and_then(Value::as_array).map(Vec::as_slice) {
        let window = window.clone();
        map.insert(SINGLE.to_owned(), window);
    }
    map
}
