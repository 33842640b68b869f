//! Making and accepting replays: new deliveries of events that were delivered, or were not.

use serde::{Deserialize, Serialize};
use tidegate_core::delivery::Priority;
use tidegate_core::id::DeliveryId;
use tidegate_core::invalid::Invalid;
use tidegate_core::sequence::Sequence;
use tidegate_core::settle::{self, ReplayAs, ReplayTtl};
use tidegate_core::time::Timestamp;
use tidegate_store::AccountNo;
use tidegate_store::catalogue::AuditEntry;
use tidegate_store::delivery::StoredDelivery;
use tidegate_store::event::NewReplay;
use tidegate_store::job::{Job, Progress};
use utoipa::ToSchema;

use crate::api::error::ApiError;
use crate::api::{App, told};
use crate::catalogue::DestinationEntry;

/// What a replay does about the time to live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = ReplayTtl)]
pub(crate) enum TtlWord {
    /// It lives as long again as the original did.
    #[default]
    Reset,
    /// It expires when the original did.
    Keep,
    /// It does not expire.
    None,
}

/// How to replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ReplayBody {
    /// What to do about the time to live: `reset` if not said.
    pub(crate) ttl: TtlWord,
    /// 1 critical … 4 bulk; 4 if not said, so that it never crowds out live traffic.
    #[schema(minimum = 1, maximum = 4)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) priority: Option<u64>,
}

/// How to replay, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplayTerms {
    ttl: ReplayTtl,
    priority: Priority,
}

impl ReplayBody {
    /// The same, checked.
    pub(crate) fn check(self) -> Result<ReplayTerms, Invalid> {
        let ttl = match self.ttl {
            TtlWord::Reset => ReplayTtl::Reset,
            TtlWord::Keep => ReplayTtl::Keep,
            TtlWord::None => ReplayTtl::None,
        };
        Ok(ReplayTerms { ttl, priority: self.priority.map_or(Ok(Priority::BULK), Priority::new)? })
    }
}

/// A replay of `original` to the same destination, ready to be accepted.
pub(crate) fn make(
    app: &App,
    now: Timestamp,
    sequence: Sequence,
    original: &StoredDelivery,
    destination: &DestinationEntry,
    terms: ReplayTerms,
) -> Result<NewReplay, Invalid> {
    let routing = app.catalogue.routing(original.account, original.delivery.event_type.as_str())?;
    let id = DeliveryId::numbered(sequence, app.engine.draw());
    let new = ReplayAs { id, sequence: sequence.get(), priority: terms.priority };
    let delivery =
        settle::replay(now, &original.delivery, new, terms.ttl, &destination.policy, &routing.terms);
    Ok(NewReplay {
        destination: original.destination,
        replay_of: original.delivery.id,
        event: original.event,
        delivery,
    })
}

/// Accepts replays, with the progress of the job that they belong to and the line for the audit log. Where that is lost, none is made.
pub(crate) async fn accept(
    app: &App,
    account: AccountNo,
    new: Vec<NewReplay>,
    job: Option<Job>,
    audit: Option<AuditEntry>,
) -> Result<Progress, ApiError> {
    let over: Vec<_> =
        new.iter().filter_map(|replay| told::over(replay.destination, &replay.delivery)).collect();
    let progress = app.engine.store().accept_replays(new, job, audit).await?;
    if progress == Progress::Written {
        told::tell_over(app, account, over);
    }
    Ok(progress)
}
