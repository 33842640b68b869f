//! Deliveries that somebody looks for.
//!
//! The store filters by what it knows. What only lanes know (in flight, held by what) is asked for each page: first which
//! destinations come into question, then delivery by delivery.

use tidegate_core::delivery::HoldReason;
use tidegate_core::gate;
use tidegate_core::order::Ordering;
use tidegate_core::time::Now;
use tidegate_engine::dispatcher::Lane;
use tidegate_store::DestinationNo;
use tidegate_store::delivery::StoredDelivery;
use tidegate_store::list::{DeliveryFilter, Page, PageQuery, Stage};

use super::query::{Asked, StatusWord};
use super::state::{self, Standing};
use crate::api::App;
use crate::api::error::ApiError;
use crate::api::page::{MAX_TOTAL, Total};
use crate::auth::Caller;

/// Lanes looked at in one go: the engine stands still meanwhile.
const LANES_AT_ONCE: usize = 500;
/// Destinations that a list looks through one by one. With more of them it looks through all that is open, the newest first,
/// and its pages may be short.
const MAX_SEPARATE: usize = 50;
/// Deliveries read to count those that lanes tell apart, at most.
const MAX_EXAMINED: usize = 20_000;

/// What is looked for.
#[derive(Debug)]
pub(crate) struct Search {
    filter: DeliveryFilter,
    status: Option<StatusWord>,
    reason: Option<HoldReason>,
}

impl Search {
    /// Those that fit all of it.
    pub(crate) async fn new(
        app: &App,
        caller: &Caller,
        asked: &Asked<'_>,
        status: Option<StatusWord>,
        reason: Option<HoldReason>,
    ) -> Result<Self, ApiError> {
        let mut filter = asked.filter(app, caller.account)?;
        filter.stages = status.map(|status| vec![status.stage()]);
        if let Some(reason) = reason {
            filter.stages.get_or_insert_with(|| vec![Stage::Open]);
            if !matches!(reason, HoldReason::Scheduled | HoldReason::RetryBackoff) {
                let among = filter.destinations.take();
                let held = lanes(app, caller, among, move |now, lane| may_hold(now, lane, reason)).await?;
                filter.destinations = Some(held).filter(|held| held.len() <= MAX_SEPARATE);
            }
        } else if status == Some(StatusWord::Delivering) {
            let among = filter.destinations.take();
            let busy = lanes(app, caller, among, |_, lane| lane.in_flight_count() > 0).await?;
            filter.destinations = Some(busy).filter(|busy| busy.len() <= MAX_SEPARATE);
        } else if status == Some(StatusWord::Cancelled) {
            // What waited for a destination that was deleted is cancelled, also where that is not written yet.
            let deleted = |no: &DestinationNo| app.catalogue.destination(*no).is_none();
            if filter.destinations.as_ref().is_some_and(|all| all.iter().any(deleted)) {
                filter.stages.get_or_insert_default().push(Stage::Open);
            }
        }
        Ok(Self { filter, status, reason })
    }

    /// A page of them, each with how it stands.
    pub(crate) async fn page(
        &self,
        app: &App,
        page: PageQuery,
    ) -> Result<Page<(StoredDelivery, Standing)>, ApiError> {
        let found = app.engine.store().deliveries(page, self.filter.clone()).await?;
        let standings = state::many(app, &found.items).await?;
        let items = found.items.into_iter().zip(standings);
        Ok(Page { items: items.filter(|(_, standing)| self.passes(standing)).collect(), next: found.next })
    }

    /// How many there are: the store knows, unless lanes must tell them apart.
    pub(crate) async fn count(&self, app: &App, caller: &Caller) -> Result<Total, ApiError> {
        let open = |stages: &Vec<Stage>| stages.contains(&Stage::Open);
        if self.reason.is_none() && !self.filter.stages.as_ref().is_some_and(open) {
            let store = app.engine.store();
            let counted = store.count_deliveries(caller.account, self.filter.clone(), MAX_TOTAL).await?;
            return Ok(counted.map_or(Total::Many, Total::counted));
        }
        let (mut examined, mut matching, mut before) = (0, 0_u64, None);
        while examined < MAX_EXAMINED {
            let page = PageQuery { account: caller.account, before, limit: 1_000, oldest_first: false };
            let found = app.engine.store().deliveries(page, self.filter.clone()).await?;
            let standings = state::many(app, &found.items).await?;
            matching += standings.iter().filter(|standing| self.passes(standing)).count() as u64;
            // Rows that did not fit were looked at, too.
            examined += found.items.len().max(100);
            match found.next {
                None => return Ok(Total::counted(matching)),
                next => before = next,
            }
        }
        Ok(Total::Many)
    }

    /// Whether this is one of them.
    pub(crate) fn fits(&self, stored: &StoredDelivery, standing: &Standing) -> bool {
        self.filter.means(stored) && self.passes(standing)
    }

    /// What the store cannot filter by.
    fn passes(&self, standing: &Standing) -> bool {
        let held = |reason| !standing.status.is_final() && standing.is_held_by(reason);
        self.status.is_none_or(|status| status.word() == standing.status.word())
            && self.reason.is_none_or(held)
    }
}

/// Whether a destination may hold some of its deliveries for this reason.
fn may_hold(now: Now, lane: &Lane, reason: HoldReason) -> bool {
    let policy = lane.policy();
    match reason {
        HoldReason::OrderBlocked => policy.ordering != Ordering::None,
        // Windows may concern some types only: these are told apart one by one.
        HoldReason::QuietHours => !policy.quiet.is_empty(),
        reason => gate::holds(now, policy, lane.state()).iter().any(|hold| hold.reason() == reason),
    }
}

/// The account's destinations (or those among them) whose lanes fit.
async fn lanes(
    app: &App,
    caller: &Caller,
    among: Option<Vec<DestinationNo>>,
    fits: impl Fn(Now, &Lane) -> bool + Copy + Send + 'static,
) -> Result<Vec<DestinationNo>, ApiError> {
    let all = || app.catalogue.destinations(caller.account).iter().map(|entry| entry.row.no).collect();
    let all: Vec<DestinationNo> = among.unwrap_or_else(all);
    let mut found = Vec::new();
    for some in all.chunks(LANES_AT_ONCE) {
        let some = some.to_vec();
        let look = app.engine.look_at(some.clone(), move |view| {
            let fits = |no: &DestinationNo| view.lane(*no).is_some_and(|lane| fits(view.now, lane));
            some.into_iter().filter(fits).collect::<Vec<_>>()
        });
        found.extend(look.await?);
    }
    Ok(found)
}
