//! Lists of deliveries.
//!
//! The store filters by what it knows. What only lanes know (in flight, held by what) is asked for each page: first which
//! destinations come into question, then delivery by delivery.

use axum::extract::State;
use serde::Deserialize;
use tidegate_core::delivery::HoldReason;
use tidegate_core::gate;
use tidegate_core::order::Ordering;
use tidegate_core::sequence::Sequence;
use tidegate_store::DestinationNo;
use tidegate_store::delivery::StoredDelivery;
use tidegate_store::list::{DeliveryFilter, PageQuery, Stage};
use utoipa::IntoParams;

use super::query::{Asked, StatusWord, hold_reason};
use super::state::{self, Standing};
use super::view::DeliveryView;
use crate::api::error::ApiError;
use crate::api::openapi::Refusals;
use crate::api::page::{Cursor, ListAnswer, MAX_TOTAL, PageParams, Total};
use crate::api::{App, Data, ok};
use crate::auth::{Call, Caller, Viewer};

/// Lanes looked at in one go: the engine stands still meanwhile.
const LANES_AT_ONCE: usize = 500;
/// Destinations that a list looks through one by one. With more of them it looks through all that is open, the newest first,
/// and its pages may be short.
const MAX_SEPARATE: usize = 50;
/// Deliveries read to count those that lanes tell apart, at most.
const MAX_EXAMINED: usize = 20_000;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// To this destination, by id or external id.
    destination_id: Option<String>,
    /// Of this event.
    event_id: Option<String>,
    /// Of this type.
    event_type: Option<String>,
    /// With this status.
    #[param(inline)]
    status: Option<StatusWord>,
    /// Held by this now.
    hold_reason: Option<String>,
    /// Accepted at or after this time.
    #[param(format = DateTime)]
    from: Option<String>,
    /// Accepted before this time.
    #[param(format = DateTime)]
    to: Option<String>,
    /// Of an event with this id of its publisher.
    external_event_id: Option<String>,
    /// With this key.
    ordering_key: Option<String>,
    /// Items of a page: 25 if not said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// Whether to count all of them.
    total: Option<bool>,
}

/// What the store cannot filter by.
#[derive(Clone, Copy)]
struct Sieve {
    status: Option<StatusWord>,
    reason: Option<HoldReason>,
}

impl Sieve {
    /// Whether the store's filter is not the whole one.
    fn is_needed(self) -> bool {
        self.reason.is_some() || self.status.is_some_and(|status| status.stage() == Stage::Open)
    }
    fn passes(self, standing: &Standing) -> bool {
        let held = |reason| !standing.status.is_final() && standing.is_held_by(reason);
        self.status.is_none_or(|status| status.word() == standing.status.word())
            && self.reason.is_none_or(held)
    }
}

/// List deliveries, the newest first.
///
/// `hold_reason` asks for what its destination (or its own time) holds now. A page examines a bounded number of rows: it
/// may be short, even empty, while `next_cursor` goes on.
#[utoipa::path(
    get,
    path = "/v1/deliveries",
    tag = "deliveries",
    params(ListQuery),
    responses((status = 200, description = "A page.", body = Data<ListAnswer<DeliveryView>>), Refusals)
)]
pub(super) async fn list(
    State(app): State<App>,
    Call { caller, query, .. }: Call<Viewer, ListQuery>,
) -> Result<axum::Json<Data<ListAnswer<DeliveryView>>>, ApiError> {
    let cursor = Cursor { list: "deliveries", account: caller.account };
    let params = PageParams::new(cursor, query.limit, query.cursor.as_deref(), query.total)?;
    let sieve = Sieve { status: query.status, reason: hold_reason(query.hold_reason.as_deref())? };
    let filter = filter(&app, &caller, &query, sieve).await?;
    let before = params.cursor.and_then(|at| u64::try_from(at).ok()).map(Sequence::from_stored);
    let page = PageQuery { account: caller.account, before, limit: params.limit, oldest_first: false };
    let found = app.engine.store().deliveries(page, filter.clone()).await?;
    let standings = state::many(&app, &found.items).await?;
    let total = if params.total { count(&app, &caller, filter, sieve).await? } else { Total::Unasked };
    let items = passing(&found.items, &standings, sieve);
    let items = items.map(|(stored, standing)| DeliveryView::new(&app, stored, standing)).collect();
    let next_cursor = found.next.map(|next| cursor.encode(u128::from(next.get())));
    Ok(ok(ListAnswer { items, next_cursor, total }))
}

fn passing<'a>(
    stored: &'a [StoredDelivery],
    standings: &'a [Standing],
    sieve: Sieve,
) -> impl Iterator<Item = (&'a StoredDelivery, &'a Standing)> {
    stored.iter().zip(standings).filter(move |(_, standing)| sieve.passes(standing))
}

async fn filter(
    app: &App,
    caller: &Caller,
    query: &ListQuery,
    sieve: Sieve,
) -> Result<DeliveryFilter, ApiError> {
    let asked = Asked {
        under: "",
        destination_id: query.destination_id.as_deref(),
        event_id: query.event_id.as_deref(),
        event_type: query.event_type.as_deref(),
        from: query.from.as_deref(),
        to: query.to.as_deref(),
        external_event_id: query.external_event_id.as_deref(),
        ordering_key: query.ordering_key.as_deref(),
    };
    let mut filter = asked.filter(app, caller.account)?;
    filter.stages = query.status.map(|status| vec![status.stage()]);
    if let Some(reason) = sieve.reason {
        filter.stages.get_or_insert_with(|| vec![Stage::Open]);
        if !matches!(reason, HoldReason::Scheduled | HoldReason::RetryBackoff) {
            let among = filter.destinations.take();
            let held = lanes(app, caller, among, move |now, lane| may_hold(now, lane, reason)).await?;
            filter.destinations = Some(held).filter(|held| held.len() <= MAX_SEPARATE);
        }
    } else if query.status == Some(StatusWord::Delivering) {
        let among = filter.destinations.take();
        let busy = lanes(app, caller, among, |_, lane| lane.in_flight_count() > 0).await?;
        filter.destinations = Some(busy).filter(|busy| busy.len() <= MAX_SEPARATE);
    }
    Ok(filter)
}

/// Whether a destination may hold some of its deliveries for this reason.
fn may_hold(
    now: tidegate_core::time::Now,
    lane: &tidegate_engine::dispatcher::Lane,
    reason: HoldReason,
) -> bool {
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
    fits: impl Fn(tidegate_core::time::Now, &tidegate_engine::dispatcher::Lane) -> bool + Copy + Send + 'static,
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

/// How many there are: the store knows, unless lanes must tell them apart.
async fn count(app: &App, caller: &Caller, filter: DeliveryFilter, sieve: Sieve) -> Result<Total, ApiError> {
    if !sieve.is_needed() {
        let counted = app.engine.store().count_deliveries(caller.account, filter, MAX_TOTAL).await?;
        return Ok(counted.map_or(Total::Many, Total::counted));
    }
    let (mut examined, mut matching, mut before) = (0, 0_u64, None);
    while examined < MAX_EXAMINED {
        let page = PageQuery { account: caller.account, before, limit: 1_000, oldest_first: false };
        let found = app.engine.store().deliveries(page, filter.clone()).await?;
        let standings = state::many(app, &found.items).await?;
        matching += passing(&found.items, &standings, sieve).count() as u64;
        // Rows that did not fit were looked at, too.
        examined += found.items.len().max(100);
        match found.next {
            None => return Ok(Total::counted(matching)),
            next => before = next,
        }
    }
    Ok(Total::Many)
}
