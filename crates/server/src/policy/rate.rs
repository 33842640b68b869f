//! `rate_limit`, in both of its forms.

use serde::{Deserialize, Serialize};
use tidegate_core::invalid::Invalid;
use tidegate_core::rate::{Per, Quota, RateLimit, RateMode};
use utoipa::ToSchema;

/// How fast: `max_per_minute`, or `max` with `per`. In any interval of `T` at most `burst_capacity + rate · T` attempts
/// start, so "never more than N in any minute" is `burst_capacity: 1`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RateLimit)]
pub(crate) struct RateLimitDocument {
    /// Attempts per minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 600_000)]
    pub(crate) max_per_minute: Option<u64>,
    /// Attempts in the period that `per` names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub(crate) max: Option<u64>,
    /// That period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) per: Option<Period>,
    /// The size of the bucket; by default what one period brings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub(crate) burst_capacity: Option<u64>,
    /// `fixed`, or `adaptive`: learns the destination's real ceiling below this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Mode>,
}

/// The period of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = RatePeriod)]
pub(crate) enum Period {
    /// One second.
    Second,
    /// Sixty seconds.
    Minute,
    /// Sixty minutes.
    Hour,
    /// Twenty-four hours.
    Day,
}

/// How a rate is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = RateMode)]
pub(crate) enum Mode {
    /// As written.
    Fixed,
    /// Learned, up to what is written.
    Adaptive,
}

impl From<Period> for Per {
    fn from(period: Period) -> Self {
        match period {
            Period::Second => Self::Second,
            Period::Minute => Self::Minute,
            Period::Hour => Self::Hour,
            Period::Day => Self::Day,
        }
    }
}

impl RateLimitDocument {
    /// The limit that it asks for. Faults name the field within it.
    pub(crate) fn compile(&self) -> Result<RateLimit, Invalid> {
        let (field, max, per) = match (self.max_per_minute, self.max, self.per) {
            (Some(max), None, None) => ("max_per_minute", max, Per::Minute),
            (None, Some(max), Some(per)) => ("max", max, per.into()),
            (None, Some(_), None) => return Err(Invalid::missing("per", "second, minute, hour or day")),
            (Some(_), _, Some(_)) | (Some(_), Some(_), None) => {
                let field = if self.max.is_some() { "max" } else { "per" };
                return Err(Invalid::new(
                    field,
                    "given beside max_per_minute",
                    "either max_per_minute, or max with per",
                ));
            }
            (None, None, _) => {
                return Err(Invalid::missing("max_per_minute", "1 to 600000, or max with per"));
            }
        };
        let quota = Quota::new(max, per, self.burst_capacity).map_err(|mut fault| {
            if fault.field != "burst_capacity" {
                field.clone_into(&mut fault.field);
            }
            fault
        })?;
        let mode = match self.mode {
            None | Some(Mode::Fixed) => RateMode::Fixed,
            Some(Mode::Adaptive) => RateMode::Adaptive,
        };
        Ok(RateLimit { quota, mode })
    }

    /// The same with nothing left to guess: for an answer.
    #[must_use]
    pub(crate) fn shown(mut self) -> Self {
        if let Ok(limit) = self.compile() {
            self.burst_capacity = Some(limit.quota.burst());
        }
        self.mode = Some(self.mode.unwrap_or(Mode::Fixed));
        self
    }
}
