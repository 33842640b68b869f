//! `timeout_seconds` and `timeout`: pinned, learned, or always the default.

use serde::{Deserialize, Serialize};
use tidegate_core::invalid::Invalid;
use tidegate_core::timeout::TimeoutMode;
use utoipa::ToSchema;

use super::PolicyDocument;

/// How the timeout is found where it is not pinned by `timeout_seconds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = TimeoutChoice)]
pub(crate) struct TimeoutDocument {
    /// `adaptive`: learned from its answers; `default`: always the default.
    pub(crate) mode: TimeoutWord,
}

/// The modes that can be asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = TimeoutMode)]
pub(crate) enum TimeoutWord {
    /// Learned from its answers.
    Adaptive,
    /// Always the default.
    Default,
}

/// What a document says about the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// `timeout_seconds`.
    Pinned(u64),
    /// `timeout.mode`.
    Mode(TimeoutWord),
}

/// What `document` says: a pin counts before a mode.
pub(crate) fn said(document: &PolicyDocument) -> Option<Said> {
    let pinned = document.timeout_seconds.map(Said::Pinned);
    pinned.or(document.timeout.map(|timeout| Said::Mode(timeout.mode)))
}

/// The mode that was asked for.
pub(crate) fn compile(said: Said) -> Result<TimeoutMode, Invalid> {
    match said {
        Said::Pinned(seconds) => TimeoutMode::pinned(i64::try_from(seconds).unwrap_or(i64::MAX)),
        Said::Mode(TimeoutWord::Adaptive) => Ok(TimeoutMode::Adaptive),
        Said::Mode(TimeoutWord::Default) => Ok(TimeoutMode::Default),
    }
}
