//! Lists of events.
//!
//! By what an event itself says they are walked through as they are stored. What became of them is known by their deliveries:
//! those are searched, and each event stands at the newest delivery of its own that fits, so that none comes twice.

use std::collections::HashSet;

use axum::extract::State;
use futures_util::future::try_join_all;
use serde::Deserialize;
use tidegate_core::sequence::Sequence;
use tidegate_store::AccountNo;
use tidegate_store::delivery::StoredDelivery;
use tidegate_store::list::{EventFilter, Page, PageQuery};
use utoipa::IntoParams;

use super::view::{self, Deliveries, EventView};
use crate::api::deliveries::query::{Asked, StatusWord, event_type, hold_reason, time};
use crate::api::deliveries::search::Search;
use crate::api::error::ApiError;
use crate::api::openapi::Refusals;
use crate::api::page::{Cursor, ListAnswer, MAX_TOTAL, PageParams, Total};
use crate::api::{App, Data, ok};
use crate::auth::{Call, Caller, Viewer};

/// Events looked through in one go to count what only deliveries tell.
const COUNTED_AT_ONCE: usize = 1_000;
/// Searches for one page: with events for many destinations most of what one finds is of one event.
const SEARCHES: usize = 6;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// With a delivery to this destination, by id or external id.
    destination_id: Option<String>,
    /// Of this type.
    event_type: Option<String>,
    /// With this status.
    #[param(inline)]
    status: Option<StatusWord>,
    /// With a delivery that is held by this now.
    hold_reason: Option<String>,
    /// Accepted at or after this time.
    #[param(format = DateTime)]
    from: Option<String>,
    /// Accepted before this time.
    #[param(format = DateTime)]
    to: Option<String>,
    /// With this id of its publisher.
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

impl ListQuery {
    /// Whether deliveries must be searched. An event without any counts as delivered.
    fn is_by_deliveries(&self) -> bool {
        self.destination_id.is_some()
            || self.hold_reason.is_some()
            || self.status.is_some_and(|status| status != StatusWord::Delivered)
    }

    fn filter(&self) -> Result<EventFilter, ApiError> {
        Ok(EventFilter {
            event_type: event_type("event_type", self.event_type.as_deref())?,
            from: time("from", self.from.as_deref())?,
            to: time("to", self.to.as_deref())?,
            external_event_id: self.external_event_id.as_deref().map(Into::into),
            ordering_key: self.ordering_key.as_deref().map(Into::into),
        })
    }

    /// For the deliveries. A replay may have been accepted long after its event.
    fn asked(&self) -> Asked<'_> {
        Asked {
            destination_id: self.destination_id.as_deref(),
            event_type: self.event_type.as_deref(),
            from: self.from.as_deref(),
            external_event_id: self.external_event_id.as_deref(),
            ordering_key: self.ordering_key.as_deref(),
            ..Asked::default()
        }
    }
}

/// List outbound events, the newest first.
///
/// By `status`, `destination_id` or `hold_reason` they come in the order of the deliveries that fit. A page examines a bounded
/// number of rows: it may be short, even empty, while `next_cursor` goes on.
#[utoipa::path(
    get,
    path = "/v1/outbound-events",
    tag = "deliveries",
    params(ListQuery),
    responses((status = 200, description = "A page.", body = Data<ListAnswer<EventView>>), Refusals)
)]
pub(super) async fn list(
    State(app): State<App>,
    Call { caller, query, .. }: Call<Viewer, ListQuery>,
) -> Result<axum::Json<Data<ListAnswer<EventView>>>, ApiError> {
    let by_deliveries = query.is_by_deliveries();
    let list = if by_deliveries { "events by deliveries" } else { "events" };
    let cursor = Cursor { list, account: caller.account };
    let params = PageParams::new(cursor, query.limit, query.cursor.as_deref(), query.total)?;
    let events = Events::new(&app, &caller, &query).await?;
    let total = if params.total { events.count(&app, caller.account).await? } else { Total::Unasked };
    let before = params.cursor.and_then(|at| u64::try_from(at).ok()).map(Sequence::from_stored);
    let page = PageQuery { account: caller.account, before, limit: params.limit, oldest_first: false };
    let Page { items, next } = events.page(&app, page).await?;
    let next_cursor = next.map(|next| cursor.encode(u128::from(next.get())));
    Ok(ok(ListAnswer { items, next_cursor, total }))
}

/// What is looked for.
struct Events {
    filter: EventFilter,
    /// The deliveries that they are found by, if they are.
    search: Option<Search>,
    status: Option<StatusWord>,
}

impl Events {
    async fn new(app: &App, caller: &Caller, query: &ListQuery) -> Result<Self, ApiError> {
        let search = if query.is_by_deliveries() {
            let reason = hold_reason(query.hold_reason.as_deref())?;
            // The status of an event is that of one of its deliveries, at whichever destination.
            let status = query.status.filter(|_| query.destination_id.is_none() && reason.is_none());
            Some(Search::new(app, caller, &query.asked(), status, reason).await?)
        } else {
            None
        };
        Ok(Self { filter: query.filter()?, search, status: query.status })
    }

    async fn page(&self, app: &App, page: PageQuery) -> Result<Page<EventView>, ApiError> {
        let Page { items, next } = match &self.search {
            Some(search) => of_deliveries(app, search, page, &self.filter).await?,
            None => {
                let found = app.engine.store().events(page, self.filter.clone()).await?;
                let items = try_join_all(found.items.iter().map(|event| view::summary(app, event))).await?;
                Page { items, next: found.next }
            }
        };
        let fits = |event: &EventView| self.status.is_none_or(|status| status.word() == event.status());
        Ok(Page { items: items.into_iter().filter(fits).collect(), next })
    }

    /// How many there are: the store knows, unless their deliveries must tell. Then these are looked through.
    async fn count(&self, app: &App, account: AccountNo) -> Result<Total, ApiError> {
        if self.search.is_none() && self.status.is_none() {
            let counted = app.engine.store().count_events(account, self.filter.clone(), MAX_TOTAL).await?;
            return Ok(counted.map_or(Total::Many, Total::counted));
        }
        let (mut count, mut before) = (0, None);
        loop {
            let page = PageQuery { account, before, limit: COUNTED_AT_ONCE, oldest_first: false };
            let found = self.page(app, page).await?;
            count += found.items.len() as u64;
            let total = Total::counted(count);
            match found.next {
                Some(_) if total != Total::Many => before = found.next,
                _ => return Ok(total),
            }
        }
    }
}

/// The events of what a search finds.
async fn of_deliveries(
    app: &App,
    search: &Search,
    mut page: PageQuery,
    filter: &EventFilter,
) -> Result<Page<EventView>, ApiError> {
    let (mut items, mut looked_at) = (Vec::new(), HashSet::new());
    for _ in 0..SEARCHES {
        let found = search.page(app, page).await?;
        let first =
            found.items.iter().map(|(stored, _)| stored).filter(|stored| looked_at.insert(stored.event));
        let looks = first.map(|stored| look(app, search, stored, filter));
        for (event, passed) in try_join_all(looks).await? {
            page.before = Some(passed);
            items.extend(event);
            if items.len() >= page.limit {
                return Ok(Page { items, next: page.before });
            }
        }
        let Some(next) = found.next else { return Ok(Page { items, next: None }) };
        page.before = Some(page.before.map_or(next, |passed| passed.min(next)));
    }
    Ok(Page { items, next: page.before })
}

/// The event of a delivery that was found, if this is its place; and where to go on after it.
async fn look(
    app: &App,
    search: &Search,
    found: &StoredDelivery,
    filter: &EventFilter,
) -> Result<(Option<EventView>, Sequence), ApiError> {
    let number = found.delivery.id.sequence();
    let Some(event) = app.engine.store().event(found.account, found.event).await? else {
        return Ok((None, number));
    };
    let all = Deliveries::of(app, &event).await?;
    let accepted_at = event.message.accepted_at;
    let is_meant = filter.from.is_none_or(|from| accepted_at >= from)
        && filter.to.is_none_or(|to| accepted_at < to)
        && all.newest(|stored, standing| search.fits(stored, standing)) == Some(number);
    // What an event was accepted for has numbers in a row: the rest of it need not be read.
    let passed = all.first().filter(|_| found.replay_of.is_none()).unwrap_or(number);
    Ok((is_meant.then(|| view::show(&event, &all)), passed))
}
