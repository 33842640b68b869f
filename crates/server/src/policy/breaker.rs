//! `circuit_breaker`.

use serde::{Deserialize, Serialize};
use tidegate_core::breaker::BreakerPolicy;
use tidegate_core::invalid::Invalid;
use tidegate_core::time::Millis;
use utoipa::ToSchema;

/// When to stop trying a destination that does not work, and for how long. What is left out is as by default.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = CircuitBreaker)]
pub(crate) struct BreakerDocument {
    /// `false`: it never opens.
    pub(crate) enabled: bool,
    /// Opens when at least this share of the window failed …
    #[schema(exclusive_minimum = 0, maximum = 1)]
    pub(crate) failure_ratio: f64,
    /// … and the window has at least this many attempts.
    #[schema(minimum = 1, maximum = 10_000)]
    pub(crate) min_attempts: u32,
    /// How far back the window reaches.
    #[schema(minimum = 1, maximum = 3_600)]
    pub(crate) window_seconds: u32,
    /// Opens after this many failures in a row, of at least two deliveries.
    #[schema(minimum = 1, maximum = 1_000)]
    pub(crate) consecutive_failures: u32,
    /// How long it stays open at first.
    #[schema(minimum = 1, maximum = 86_400)]
    pub(crate) open_seconds: u32,
    /// How long at most, after doubling.
    #[schema(minimum = 1, maximum = 86_400)]
    pub(crate) max_open_seconds: u32,
    /// Probes in a row that must succeed to close it.
    #[schema(minimum = 1, maximum = 100)]
    pub(crate) successes_to_close: u32,
}

impl Default for BreakerDocument {
    fn default() -> Self {
        Self::from(&BreakerPolicy::default())
    }
}

impl From<&BreakerPolicy> for BreakerDocument {
    fn from(policy: &BreakerPolicy) -> Self {
        let seconds = |time: Millis| u32::try_from(time.get() / 1_000).unwrap_or(u32::MAX);
        Self {
            enabled: policy.enabled,
            failure_ratio: policy.failure_ratio,
            min_attempts: policy.min_attempts,
            window_seconds: seconds(policy.window),
            consecutive_failures: policy.consecutive_failures,
            open_seconds: seconds(policy.open),
            max_open_seconds: seconds(policy.max_open),
            successes_to_close: policy.successes_to_close,
        }
    }
}

impl BreakerDocument {
    /// The policy that it asks for. Faults name the field within it.
    pub(crate) fn compile(&self) -> Result<BreakerPolicy, Invalid> {
        let seconds = |s: u32| Millis::seconds(i64::from(s));
        BreakerPolicy {
            enabled: self.enabled,
            failure_ratio: self.failure_ratio,
            min_attempts: self.min_attempts,
            window: seconds(self.window_seconds),
            consecutive_failures: self.consecutive_failures,
            open: seconds(self.open_seconds),
            max_open: seconds(self.max_open_seconds),
            successes_to_close: self.successes_to_close,
        }
        .validated()
    }
}
