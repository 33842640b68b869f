//! Deliveries that somebody looks for.
//!
//! The store filters by what it knows. What only lanes know (in flight, held by what) is asked for each page: first which
//! destinations come into question, then delivery by delivery.

use tidegate_core::delivery::HoldReason;
use tidegate_core::gate;
use tidegate_core::limits::MIN_TIME_TO_SEND;
use tidegate_core::order::Ordering;
use tidegate_core::time::Now;
use tidegate_engine::dispatcher::Lane;
use tidegate_store::delivery::StoredDelivery;
use tidegate_store::list::{DeliveryFilter, Open, Page, PageQuery, Stage};
use tidegate_store::{AccountNo, DestinationNo};

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
/// Deliveries read in one go to count those that lanes tell apart.
const COUNTED_AT_ONCE: usize = 10_000;

/// What is looked for.
#[derive(Debug)]
pub(crate) struct Search {
    filter: DeliveryFilter,
    status: Option<StatusWord>,
    reason: Option<HoldReason>,
    /// The destinations that may hold it, where lanes were asked: too many of them are not in the filter.
    holders: Option<Vec<DestinationNo>>,
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
        let mut search = Self { filter, status, reason, holders: None };
        match (reason, status) {
            (Some(reason), _) => search.ask_for_reason(app, caller, reason).await?,
            (None, Some(status)) => search.ask_for_status(app, caller, status).await?,
            (None, None) => {}
        }
        Ok(search)
    }

    async fn ask_for_reason(
        &mut self,
        app: &App,
        caller: &Caller,
        reason: HoldReason,
    ) -> Result<(), ApiError> {
        self.filter.stages.get_or_insert_with(|| vec![Stage::Open]);
        if matches!(reason, HoldReason::Scheduled | HoldReason::RetryBackoff) {
            self.filter.open = Some(Open::Waiting(app.engine.now().wall));
            return Ok(());
        }
        let among = self.filter.destinations.take();
        let held = lanes(app, caller, among, move |now, no, lane| may_hold(now, lane, reason).then_some(no));
        let held: Vec<DestinationNo> = held.await?;
        self.filter.destinations = Some(held.clone()).filter(|held| held.len() <= MAX_SEPARATE);
        self.holders = Some(held);
        Ok(())
    }

    /// What is over is shown so at once, and written soon: it may still be stored as open.
    async fn ask_for_status(
        &mut self,
        app: &App,
        caller: &Caller,
        status: StatusWord,
    ) -> Result<(), ApiError> {
        let now = app.engine.now().wall;
        let open = match status {
            StatusWord::Queued => Open::Ready(now),
            StatusWord::RetryScheduled => Open::Waiting(now),
            StatusWord::Delivering => {
                let among = self.filter.destinations.clone();
                Open::These(
                    lanes(app, caller, among, |_, _, lane| lane.on_their_way().collect::<Vec<_>>()).await?,
                )
            }
            StatusWord::DeadLetter | StatusWord::Expired => Open::Overdue(now + MIN_TIME_TO_SEND),
            StatusWord::Cancelled => {
                let mut waiting = app.engine.store().with_open(caller.account);
                waiting.retain(|no| app.catalogue.destination(*no).is_none());
                Open::To(waiting)
            }
            StatusWord::Delivered => return Ok(()),
        };
        let stages = self.filter.stages.get_or_insert_default();
        if !stages.contains(&Stage::Open) && open != Open::To(Vec::new()) {
            stages.push(Stage::Open);
        }
        self.filter.open = Some(open);
        Ok(())
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

    /// How many there are: the store knows, unless lanes must tell.
    pub(crate) async fn count(&self, app: &App, caller: &Caller) -> Result<Total, ApiError> {
        let (store, account) = (app.engine.store(), caller.account);
        let open = |stages: &Vec<Stage>| stages.contains(&Stage::Open);
        if self.reason.is_none() && !self.filter.stages.as_ref().is_some_and(open) {
            let counted = store.count_deliveries(account, self.filter.clone(), MAX_TOTAL).await?;
            return Ok(counted.map_or(Total::Many, Total::counted));
        }
        let Some(holders) = &self.holders else {
            return self.count_one_by_one(app, account, self.filter.clone(), 0).await;
        };
        let mut total = Total::Exactly(0);
        for some in holders.chunks(MAX_SEPARATE) {
            let Total::Exactly(count) = total else { break };
            let filter = DeliveryFilter { destinations: Some(some.to_vec()), ..self.filter.clone() };
            total = self.count_one_by_one(app, account, filter, count).await?;
        }
        Ok(total)
    }

    /// Those of a filter, and `count` others. What ends meanwhile has one number, open or ended: it is counted once.
    async fn count_one_by_one(
        &self,
        app: &App,
        account: AccountNo,
        filter: DeliveryFilter,
        mut count: u64,
    ) -> Result<Total, ApiError> {
        let mut before = None;
        loop {
            let page = PageQuery { account, before, limit: COUNTED_AT_ONCE, oldest_first: false };
            let found = app.engine.store().deliveries(page, filter.clone()).await?;
            let standings = state::many(app, &found.items).await?;
            count += standings.iter().filter(|standing| self.passes(standing)).count() as u64;
            let total = Total::counted(count);
            match found.next {
                Some(_) if total != Total::Many => before = found.next,
                _ => return Ok(total),
            }
        }
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

/// What is seen in the lanes of the account's destinations, or of those among them.
async fn lanes<T: Send + 'static, S: IntoIterator<Item = T>>(
    app: &App,
    caller: &Caller,
    among: Option<Vec<DestinationNo>>,
    see: impl Fn(Now, DestinationNo, &Lane) -> S + Copy + Send + 'static,
) -> Result<Vec<T>, ApiError> {
    let all = || app.catalogue.destinations(caller.account).iter().map(|entry| entry.row.no).collect();
    let all: Vec<DestinationNo> = among.unwrap_or_else(all);
    let mut found = Vec::new();
    for some in all.chunks(LANES_AT_ONCE) {
        let some = some.to_vec();
        let look = app.engine.look_at(some.clone(), move |view| {
            let lanes = some.iter().filter_map(|no| Some((*no, view.lane(*no)?)));
            lanes.flat_map(|(no, lane)| see(view.now, no, lane)).collect::<Vec<T>>()
        });
        found.extend(look.await?);
    }
    Ok(found)
}
