//! What a job was asked to do, as it is written and stored.

use serde::{Deserialize, Serialize};
use tidegate_core::invalid::{Invalid, check_range};
use tidegate_core::time::{Millis, Timestamp};
use tidegate_store::AccountNo;
use tidegate_store::job::JobKind;
use tidegate_store::list::{DeliveryFilter, Stage};
use utoipa::ToSchema;

use super::replay;
use crate::api::App;
use crate::api::deliveries::query::{Asked, StatusWord};
use crate::api::deliveries::replay::{ReplayBody, TtlWord};
use crate::api::deliveries::search::Search;
use crate::api::error::ApiError;
use crate::auth::Caller;

/// Replays that come in where nobody says how fast: 100 a second keep a lane busy without filling it.
pub(crate) const DEFAULT_PER_MINUTE: u64 = 6_000;
/// Deliveries that are counted out before a cancellation begins.
const MAX_COUNTED: u64 = 50_000;
/// The fastest that can be asked for.
const MAX_PER_MINUTE: u64 = 600_000;

/// Which deliveries a job concerns. What is left out is not asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct JobFilter {
    /// To this destination, by id or external id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) destination_id: Option<String>,
    /// Of this type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) event_type: Option<String>,
    /// With this status. Replays: `dead_letter` and `expired` if not said, and none that is still on its way;
    /// cancellations: all that are not over, or of these only `queued` or `retry_scheduled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<StatusWord>,
    /// Accepted at or after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) from: Option<String>,
    /// Accepted before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(format = DateTime)]
    pub(crate) to: Option<String>,
}

/// A job as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JobRequest {
    /// Which deliveries. It must be there, so that nobody asks for everything by leaving it out: `{}` does.
    pub(crate) filter: JobFilter,
    /// Only count them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) dry_run: bool,
    /// How fast. Replays: 6,000 a minute if not said; cancellations: as fast as they can be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 600_000)]
    pub(crate) max_per_minute: Option<u64>,
    /// Of replays: what to do about the time to live; `reset` if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ttl: Option<TtlWord>,
    /// Of replays: 1 critical … 4 bulk; 4 if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 4)]
    pub(crate) priority: Option<u64>,
}

impl JobRequest {
    /// Reads what the store kept.
    pub(super) fn from_stored(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }
    /// What the store keeps.
    pub(crate) fn to_stored(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers are JSON")
    }

    /// How replays are made.
    pub(super) const fn replay(&self) -> ReplayBody {
        let ttl = match self.ttl {
            Some(ttl) => ttl,
            None => TtlWord::Reset,
        };
        ReplayBody { ttl, priority: self.priority }
    }

    /// Says what is wrong with it first, if something is. The destination is named by its id from then on.
    pub(crate) fn check(&mut self, app: &App, account: AccountNo, kind: JobKind) -> Result<(), ApiError> {
        if let Some(max) = self.max_per_minute {
            check_range("max_per_minute", max, 1, MAX_PER_MINUTE)?;
        }
        self.replay().check()?;
        if kind == JobKind::Cancellation {
            for (field, given) in [("ttl", self.ttl.is_some()), ("priority", self.priority.is_some())] {
                if given {
                    return Err(Invalid::new(field, "given", "nothing: it is for replays").into());
                }
            }
        }
        if let Some(status) = self.filter.status {
            let open = status.stage() == Stage::Open;
            let fits = match kind {
                JobKind::Replay => !open,
                JobKind::Cancellation => open && status != StatusWord::Delivering,
            };
            if !fits {
                let allowed = match kind {
                    JobKind::Replay => "delivered, dead_letter, expired or cancelled",
                    JobKind::Cancellation => "queued or retry_scheduled",
                };
                return Err(Invalid::new("status", status.word(), allowed).under("filter").into());
            }
        }
        if let Some(name) = &mut self.filter.destination_id {
            let entry = app.catalogue.find_destination(account, name).ok_or_else(ApiError::not_found)?;
            *name = entry.row.id.to_string();
        }
        self.within(app, account, kind, Timestamp::MAX).map(|_| ())
    }

    /// How many deliveries it would send again or withdraw; `None`: too many to count.
    pub(crate) async fn count(
        &self,
        app: &App,
        caller: &Caller,
        kind: JobKind,
        asked_at: Timestamp,
    ) -> Result<Option<u64>, ApiError> {
        if let (JobKind::Cancellation, Some(status)) = (kind, self.filter.status) {
            let search = Search::new(app, caller, &self.asked(), Some(status), None).await?;
            return Ok(search.count(app, caller).await?.number());
        }
        let filter = self.within(app, caller.account, kind, asked_at)?;
        match kind {
            JobKind::Replay => replay::count(app, caller.account, &filter).await,
            JobKind::Cancellation => {
                Ok(app.engine.store().count_deliveries(caller.account, filter, MAX_COUNTED).await?)
            }
        }
    }

    fn asked(&self) -> Asked<'_> {
        Asked {
            under: "filter.",
            destination_id: self.filter.destination_id.as_deref(),
            event_type: self.filter.event_type.as_deref(),
            from: self.filter.from.as_deref(),
            to: self.filter.to.as_deref(),
            ..Asked::default()
        }
    }

    /// The store's filter: what it concerns, and was accepted by the time it was asked for.
    pub(crate) fn within(
        &self,
        app: &App,
        account: AccountNo,
        kind: JobKind,
        asked_at: Timestamp,
    ) -> Result<DeliveryFilter, ApiError> {
        let mut filter = self.asked().filter(app, account)?;
        let latest = asked_at + Millis::new(1);
        filter.to = Some(filter.to.map_or(latest, |to| to.min(latest)));
        filter.stages = Some(match (kind, self.filter.status) {
            (JobKind::Cancellation, _) => vec![Stage::Open],
            (JobKind::Replay, None) => vec![Stage::DeadLetter, Stage::Expired],
            (JobKind::Replay, Some(status)) => vec![status.stage()],
        });
        Ok(filter)
    }
}
