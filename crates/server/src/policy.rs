//! Policies in the words of the API, and what the rules make of them.
//!
//! A destination's owner writes JSON: that is checked here once, kept as the same JSON by the store, and turned into the
//! rules' own [`Policy`] each time it is read. Where a destination says nothing, its account's defaults hold, and where
//! these say nothing, the built-in ones.
//!
//! What is written must be right in every part. What is stored was right once: a part that no longer is (a time zone
//! that vanished, a limit that was lowered since) is reported and left out, so that no document keeps a server from
//! starting or a destination from being served.

pub(crate) mod breaker;
pub(crate) mod change;
pub(crate) mod changes;
mod compiler;
pub(crate) mod defaults;
pub(crate) mod destination;
pub(crate) mod document;
mod endpoint;
pub(crate) mod rate;
pub(crate) mod retry;
pub(crate) mod schedule;
pub(crate) mod sealed;
pub(crate) mod timeout;

use std::sync::Arc;

use tidegate_core::invalid::Invalid;
use tidegate_core::policy::{Concurrency, Policy};
use tidegate_core::quiet::QuietHours;
use tidegate_core::time::Timestamp;
use tidegate_core::timeout::TimeoutParams;

pub(crate) use change::Change;
pub(crate) use compiler::{Compiled, Compiler, Spec};
pub(crate) use destination::{
    DestinationDocument, DestinationPatch, Draft, NewDestination, check_external_id,
};
pub(crate) use document::PolicyDocument;
pub(crate) use sealed::DestinationSecrets;

/// Whether a document comes from a person or from the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// From a person: every fault is told.
    Written,
    /// From the store: it was checked when it was written.
    Stored,
}

/// What the installation adds to a destination's own words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ground {
    /// The account's defaults.
    pub(crate) defaults: PolicyDocument,
    /// The numbers behind adaptive timeouts.
    pub(crate) timeout_params: TimeoutParams,
    /// Since when the whole account is paused.
    pub(crate) account_paused: Option<Timestamp>,
}

/// The policy that `own` asks for, and all that is wrong with it. A part that is wrong counts as not said.
pub(crate) fn compile(own: &PolicyDocument, ground: &Ground, reading: Reading) -> (Policy, Vec<Invalid>) {
    let mut faults = Vec::new();
    let mut parts = Parts { own, defaults: &ground.defaults, faults: &mut faults };
    let policy = Policy {
        max_concurrency: parts.read(|d| d.max_concurrency, Concurrency::new).unwrap_or_default(),
        rate_limit: parts
            .read(|d| d.rate_limit, |rate| rate.compile().map_err(|fault| fault.under("rate_limit"))),
        quiet: parts
            .read(
                |d| d.delivery_schedules.clone(),
                |windows| {
                    schedule::compile(&windows, reading).map_err(|fault| fault.under("delivery_schedules"))
                },
            )
            .unwrap_or_else(QuietHours::none),
        ordering: own.ordering.or(ground.defaults.ordering).map(Into::into).unwrap_or_default(),
        on_exhausted: own.on_exhausted.or(ground.defaults.on_exhausted).map(Into::into).unwrap_or_default(),
        timeout: parts.read(timeout::said, timeout::compile).unwrap_or_default(),
        timeout_params: ground.timeout_params.clone(),
        breaker: parts
            .read(
                |d| d.circuit_breaker,
                |breaker| breaker.compile().map_err(|fault| fault.under("circuit_breaker")),
            )
            .unwrap_or_default(),
        // The account's default comes after the plan that an event's life suggests, so it is not the destination's.
        retry: own.retry_policy.as_ref().and_then(|retry| {
            let compiled = retry.compile().map_err(|fault| fault.under("retry_policy"));
            compiled.map_err(|fault| parts.faults.push(fault)).ok().map(Arc::new)
        }),
        permanent_statuses: parts
            .read(|d| d.permanent_statuses.clone(), document::permanent_statuses)
            .unwrap_or_default(),
        account_paused: ground.account_paused,
    };
    (policy, faults)
}

/// Reads one part after the other: the destination's own word, else the account's.
struct Parts<'a> {
    own: &'a PolicyDocument,
    defaults: &'a PolicyDocument,
    faults: &'a mut Vec<Invalid>,
}

impl Parts<'_> {
    fn read<D, P>(
        &mut self,
        said: impl Fn(&PolicyDocument) -> Option<D>,
        compile: impl Fn(D) -> Result<P, Invalid>,
    ) -> Option<P> {
        if let Some(own) = said(self.own) {
            match compile(own) {
                Ok(part) => return Some(part),
                Err(fault) => self.faults.push(fault),
            }
        }
        said(self.defaults).and_then(|default| compile(default).ok())
    }
}

#[cfg(test)]
mod tests;
