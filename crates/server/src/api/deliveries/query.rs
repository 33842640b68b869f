//! Filters of lists and jobs, as they are written.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidegate_core::delivery::HoldReason;
use tidegate_core::id::EventId;
use tidegate_core::pattern::EventType;
use tidegate_core::time::Timestamp;
use tidegate_store::AccountNo;
use tidegate_store::list::{DeliveryFilter, Stage};
use utoipa::ToSchema;

use crate::api::App;
use crate::api::error::ApiError;

/// The status of a delivery, as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = DeliveryStatus)]
pub(crate) enum StatusWord {
    /// May go as soon as its destination's gates open.
    Queued,
    /// Waits for its own time.
    RetryScheduled,
    /// On its way.
    Delivering,
    /// They have it.
    Delivered,
    /// Given up.
    DeadLetter,
    /// Stale.
    Expired,
    /// Withdrawn.
    Cancelled,
}

impl StatusWord {
    /// As the store tells them apart.
    pub(crate) const fn stage(self) -> Stage {
        match self {
            Self::Queued | Self::RetryScheduled | Self::Delivering => Stage::Open,
            Self::Delivered => Stage::Delivered,
            Self::DeadLetter => Stage::DeadLetter,
            Self::Expired => Stage::Expired,
            Self::Cancelled => Stage::Cancelled,
        }
    }
    /// The word for it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::RetryScheduled => "retry_scheduled",
            Self::Delivering => "delivering",
            Self::Delivered => "delivered",
            Self::DeadLetter => "dead_letter",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The parts of a filter that lists and jobs share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked<'a> {
    /// What the fields lie under, dot included; empty in a query.
    pub(crate) under: &'static str,
    /// A destination's id or external id.
    pub(crate) destination_id: Option<&'a str>,
    /// An event's id.
    pub(crate) event_id: Option<&'a str>,
    /// The name of a type.
    pub(crate) event_type: Option<&'a str>,
    /// RFC 3339.
    pub(crate) from: Option<&'a str>,
    /// RFC 3339.
    pub(crate) to: Option<&'a str>,
    /// The publisher's own id.
    pub(crate) external_event_id: Option<&'a str>,
    /// The key.
    pub(crate) ordering_key: Option<&'a str>,
}

impl Asked<'_> {
    /// The store's filter. A destination or event that is not there (or another account's) is 404.
    pub(crate) fn filter(&self, app: &App, account: AccountNo) -> Result<DeliveryFilter, ApiError> {
        let named = |field: &str| format!("{}{field}", self.under);
        let find = |name| app.catalogue.destination_ever(account, name).ok_or_else(ApiError::not_found);
        let destination = self.destination_id.map(find).transpose()?;
        let event =
            self.event_id.map(|id| EventId::parse(id).map_err(|_| ApiError::not_found())).transpose()?;
        Ok(DeliveryFilter {
            destinations: destination.map(|no| vec![no]),
            event,
            event_type: event_type(&named("event_type"), self.event_type)?,
            stages: None,
            open: None,
            from: time(&named("from"), self.from)?,
            to: time(&named("to"), self.to)?,
            external_event_id: self.external_event_id.map(Arc::from),
            ordering_key: self.ordering_key.map(Arc::from),
        })
    }
}

/// The name of a type.
pub(crate) fn event_type(field: &str, text: Option<&str>) -> Result<Option<EventType>, ApiError> {
    let parse = |text| EventType::parse(text).map_err(|fault| fault.under(field));
    Ok(text.map(parse).transpose()?)
}

/// A time in a query or body.
pub(crate) fn time(field: &str, text: Option<&str>) -> Result<Option<Timestamp>, ApiError> {
    let refused = |text: &str| {
        let fault = tidegate_core::invalid::Invalid::new(
            field,
            text,
            "an RFC 3339 time such as 2026-04-23T14:32:00Z",
        );
        ApiError::from(fault)
    };
    text.map(|text| Timestamp::parse(text).ok_or_else(|| refused(text))).transpose()
}

/// The word for a hold.
pub(crate) fn hold_reason(text: Option<&str>) -> Result<Option<HoldReason>, ApiError> {
    let Some(text) = text else { return Ok(None) };
    let found = HoldReason::ALL.into_iter().find(|reason| reason.word() == text);
    let refused = || {
        let words = HoldReason::ALL.map(HoldReason::word).join(", ");
        ApiError::from(tidegate_core::invalid::Invalid::new("hold_reason", text, words))
    };
    found.map(Some).ok_or_else(refused)
}
