//! `retry_policy`.

use serde::{Deserialize, Serialize};
use tidegate_core::invalid::Invalid;
use tidegate_core::retry::{Jitter, RetryPolicy};
use tidegate_core::time::Millis;
use utoipa::ToSchema;

/// How failed deliveries are tried again. The last delay repeats where the list is shorter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RetryPolicy)]
pub(crate) struct RetryDocument {
    /// Attempts that may be used.
    #[serde(default = "default_attempts")]
    #[schema(minimum = 1, maximum = 50, default = 5)]
    pub(crate) max_attempts: u64,
    /// Seconds after the previous failure: 1 to 604,800 each.
    #[serde(default = "default_delays")]
    #[schema(min_items = 1, max_items = 50)]
    pub(crate) delays_seconds: Vec<u64>,
    /// How far chance moves a delay.
    #[serde(default)]
    pub(crate) jitter: JitterWord,
}

/// How far chance moves a delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Jitter)]
pub(crate) enum JitterWord {
    /// Not at all.
    None,
    /// By up to a fifth either way.
    #[default]
    Proportional,
    /// Anywhere between at once and the delay.
    Full,
}

fn default_attempts() -> u64 {
    5
}

fn default_delays() -> Vec<u64> {
    vec![30, 120, 600, 3_600]
}

impl RetryDocument {
    /// The policy that it asks for. Faults name the field within it.
    pub(crate) fn compile(&self) -> Result<RetryPolicy, Invalid> {
        let seconds = |s: &u64| Millis::seconds(i64::try_from(*s).unwrap_or(i64::MAX));
        let jitter = match self.jitter {
            JitterWord::None => Jitter::None,
            JitterWord::Proportional => Jitter::Proportional,
            JitterWord::Full => Jitter::Full,
        };
        RetryPolicy::new(self.max_attempts, self.delays_seconds.iter().map(seconds).collect(), jitter)
    }
}
