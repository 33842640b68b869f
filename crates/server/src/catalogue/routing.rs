//! Where events of one type go, and on which terms: worked out once, remembered until something changes.

use std::sync::Arc;

use serde::Deserialize;
use tidegate_core::delivery::Priority;
use tidegate_core::invalid::{Invalid, check_range};
use tidegate_core::limits;
use tidegate_core::pattern::EventType;
use tidegate_core::retry::{Jitter, RetryPolicy};
use tidegate_core::settle::Terms;
use tidegate_core::time::Millis;

use super::entry::DestinationEntry;
use super::state::Tenant;

/// The answer for one account and type.
pub(crate) struct Routing {
    /// The type, checked.
    pub(crate) event_type: EventType,
    /// Every destination whose `event_types` or routes match, once each.
    pub(crate) destinations: Arc<[Arc<DestinationEntry>]>,
    /// What type and account say about deliveries.
    pub(crate) terms: Terms,
    /// What the type says about urgency.
    pub(crate) priority: Option<Priority>,
}

/// What an event type says.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypeTerms {
    /// `source_id`: it concerns only what comes from there.
    pub(crate) source_id: Option<String>,
    /// `delivery_ttl_seconds`.
    pub(crate) ttl: Option<Millis>,
    /// `retry_policy`.
    pub(crate) retry: Option<Arc<RetryPolicy>>,
    /// `max_attempts`.
    pub(crate) max_attempts: Option<u32>,
    /// `priority`.
    pub(crate) priority: Option<Priority>,
}

/// The part of an event type's document that decides something.
#[derive(Debug, Deserialize)]
pub(crate) struct TypeTermsDocument {
    source_id: Option<String>,
    delivery_ttl_seconds: Option<i64>,
    max_attempts: Option<u64>,
    retry_policy: Option<RetryDocument>,
    priority: Option<u64>,
}

/// A `retry_policy` as it is written.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RetryDocument {
    max_attempts: Option<u64>,
    delays_seconds: Option<Vec<i64>>,
    jitter: Option<String>,
}

impl RetryDocument {
    /// The policy; what is left out is as the built-in one has it.
    pub(crate) fn compile(&self) -> Result<Arc<RetryPolicy>, Invalid> {
        let attempts = self.max_attempts.unwrap_or_else(|| RetryPolicy::default().max_attempts().into());
        let default = || vec![30, 120, 600, 3_600];
        let delays = self.delays_seconds.clone().unwrap_or_else(default);
        let jitter = self.jitter.as_deref().map_or(Ok(Jitter::default()), Jitter::parse)?;
        RetryPolicy::new(attempts, delays.into_iter().map(Millis::seconds).collect(), jitter).map(Arc::new)
    }
}

impl TypeTermsDocument {
    pub(super) fn compile(self) -> Result<TypeTerms, Invalid> {
        let most = u64::from(limits::MAX_ATTEMPTS);
        let attempts =
            |max| check_range("max_attempts", max, 1, most).map(|max| u32::try_from(max).unwrap_or(u32::MAX));
        let ttl = |seconds| check_range("delivery_ttl_seconds", seconds, 1, limits::MAX_TTL.get() / 1_000);
        Ok(TypeTerms {
            source_id: self.source_id,
            ttl: self.delivery_ttl_seconds.map(ttl).transpose()?.map(Millis::seconds),
            retry: self
                .retry_policy
                .map(|retry| retry.compile())
                .transpose()
                .map_err(|fault| fault.under("retry_policy"))?,
            max_attempts: self.max_attempts.map(attempts).transpose()?,
            priority: self.priority.map(Priority::new).transpose()?,
        })
    }
}

impl Routing {
    pub(super) fn work_out(tenant: &Tenant, event_type: &str) -> Result<Self, Invalid> {
        let event_type = EventType::parse(event_type).map_err(|fault| fault.under("event_type"))?;
        let routed: std::collections::HashSet<_> = (tenant.routes.values())
            .filter(|route| route.source_id.is_none() && route.pattern.matches(&event_type))
            .map(|route| route.row.destination)
            .collect();
        let goes = |entry: &&Arc<DestinationEntry>| {
            entry.event_types.any_match(&event_type) || routed.contains(&entry.row.no)
        };
        let destinations = tenant.destinations.values().filter(goes).cloned().collect();
        let matching = (tenant.event_types.values())
            .filter(|entry| entry.terms.source_id.is_none() && entry.pattern.matches(&event_type));
        // The most specific that matches decides alone.
        let entry = matching.max_by(|a, b| a.pattern.by_specificity(&b.pattern)).cloned();
        let of_type = entry.as_ref().map(|entry| entry.terms.clone()).unwrap_or_default();
        let terms = Terms {
            type_ttl: of_type.ttl,
            type_retry: of_type.retry,
            type_max_attempts: of_type.max_attempts,
            account_retry: tenant.settings.retry.clone(),
            max_age: tenant.settings.max_age.or(tenant.max_age),
        };
        Ok(Self { event_type, destinations, terms, priority: of_type.priority })
    }
}
