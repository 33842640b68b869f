//! What was: when a destination was held, and every request that was made to it.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use tidegate_core::delivery::HoldReason;
use tidegate_core::sequence::Sequence;
use tidegate_core::time::Timestamp;
use tidegate_store::record::{LogPlace, NoticeRow};
use utoipa::{IntoParams, ToSchema};

use super::find::find;
use crate::api::deliveries::attempt::AttemptView;
use crate::api::deliveries::query::time;
use crate::api::error::ApiError;
use crate::api::extract::PathText;
use crate::api::openapi::Refusals;
use crate::api::page::{Cursor, ListAnswer, ListQuery, MAX_TOTAL, PageParams, Total};
use crate::api::{App, Data, as_optional_text, as_text, ok};
use crate::auth::{Call, Viewer};

/// An interval in which work of a destination waited.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PastHold {
    /// The word for what held it.
    #[schema(value_type = String)]
    reason: &'static str,
    /// From when.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    since: Timestamp,
    /// To when; null: it still does.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    until: Option<Timestamp>,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HoldsQuery {
    /// Only what ended after this time.
    #[param(format = DateTime)]
    from: Option<String>,
    /// Only what began before this time.
    #[param(format = DateTime)]
    to: Option<String>,
    /// Items of a page: 25 if not said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// Whether to count all of them.
    total: Option<bool>,
}

/// A place in a log, as a cursor carries it: its time, then its number.
fn position(place: LogPlace) -> u128 {
    u128::from(place.at.as_millis().cast_unsigned()) << 64 | u128::from(place.no.cast_unsigned())
}

/// The place that [`position`] wrote.
#[expect(clippy::cast_possible_truncation, reason = "the two halves")]
const fn place(position: u128) -> LogPlace {
    let (at, no) = ((position >> 64) as u64, position as u64);
    LogPlace { at: Timestamp::from_millis(at.cast_signed()), no: no.cast_signed() }
}

/// When a destination was held, and why: the newest first.
///
/// One row for each interval in which work waited; of waits for a slot or a token, those of 100 ms or longer.
#[utoipa::path(
    get,
    path = "/v1/destinations/{id}/holds",
    tag = "destinations",
    params(("id" = String, Path, description = "Its id or external id."), HoldsQuery),
    responses((status = 200, description = "A page.", body = Data<ListAnswer<PastHold>>), Refusals)
)]
pub(super) async fn holds(
    State(app): State<App>,
    Call { caller, query, .. }: Call<Viewer, HoldsQuery>,
    PathText(name): PathText,
) -> Result<axum::Json<Data<ListAnswer<PastHold>>>, ApiError> {
    let no = find(&app, &caller, &name)?.row.no;
    let list = Cursor { list: "holds", account: caller.account };
    let params = PageParams::new(list, query.limit, query.cursor.as_deref(), query.total)?;
    let from = time("from", query.from.as_deref())?.unwrap_or(Timestamp::from_millis(0));
    let asked_to = time("to", query.to.as_deref())?;
    let cursor = params.cursor.map(place);
    let to = cursor.unwrap_or(LogPlace::before(asked_to.unwrap_or(Timestamp::MAX)));
    let current = if asked_to.is_none_or(|to| app.engine.now().wall < to) {
        app.engine
            .look_at([no], move |view| view.lane(no).and_then(tidegate_engine::dispatcher::Lane::held))
            .await?
    } else {
        None
    };
    // What lasts comes before all others.
    let lasts = current.filter(|_| cursor.is_none());
    let room = params.limit - usize::from(lasts.is_some());
    let mut rows = app.engine.store().holds_before(no, from, to, room + 1).await?;
    let more = rows.len() > room;
    rows.truncate(room);
    let lasting_place = lasts.map(|(_, since)| LogPlace::before(since));
    let last = rows.last().map(|(place, _)| *place).or(lasting_place);
    let next_cursor = last.filter(|_| more).map(|last| list.encode(position(last)));
    let total = if params.total {
        let most = usize::try_from(MAX_TOTAL).unwrap_or(usize::MAX).saturating_add(1);
        let past = app.engine.store().holds(no, from, asked_to.unwrap_or(Timestamp::MAX), most).await?;
        Total::counted((past.len() + usize::from(current.is_some())) as u64)
    } else {
        Total::Unasked
    };
    let lasting =
        |(reason, since): (HoldReason, Timestamp)| PastHold { reason: reason.word(), since, until: None };
    let mut items: Vec<PastHold> = lasts.map(lasting).into_iter().collect();
    items.extend(rows.iter().map(|(_, row)| PastHold {
        reason: row.reason.word(),
        since: row.since,
        until: Some(row.until),
    }));
    Ok(ok(ListAnswer { items, next_cursor, total }))
}

/// Something that happened to a destination.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Notice)]
pub(crate) struct NoticeView {
    /// When.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// What: `circuit_opened`, `circuit_closed`, `throttled`, `disabled`, `timeout_changed`, `order_halted` …
    kind: String,
    /// A sentence.
    detail: String,
}

/// What happened to a destination, the newest first: breaker, throttle, timeout, halted lines, switched off and on.
#[utoipa::path(
    get,
    path = "/v1/destinations/{id}/notices",
    tag = "destinations",
    params(("id" = String, Path, description = "Its id or external id."), HoldsQuery),
    responses((status = 200, description = "A page.", body = Data<ListAnswer<NoticeView>>), Refusals)
)]
pub(super) async fn notices(
    State(app): State<App>,
    Call { caller, query, .. }: Call<Viewer, HoldsQuery>,
    PathText(name): PathText,
) -> Result<axum::Json<Data<ListAnswer<NoticeView>>>, ApiError> {
    let no = find(&app, &caller, &name)?.row.no;
    let list = Cursor { list: "notices", account: caller.account };
    let params = PageParams::new(list, query.limit, query.cursor.as_deref(), query.total)?;
    let from = time("from", query.from.as_deref())?.unwrap_or(Timestamp::from_millis(0));
    let asked_to = time("to", query.to.as_deref())?.unwrap_or(Timestamp::MAX);
    let store = app.engine.store();
    let to = params.cursor.map_or(LogPlace::before(asked_to), place);
    let mut rows = store.notices_before(no, from, to, params.limit + 1).await?;
    let more = rows.len() > params.limit;
    rows.truncate(params.limit);
    let last = rows.last().map(|(place, _)| *place);
    let next_cursor = last.filter(|_| more).map(|last| list.encode(position(last)));
    let total = if params.total {
        let most = usize::try_from(MAX_TOTAL).unwrap_or(usize::MAX).saturating_add(1);
        Total::counted(store.notices(no, from, asked_to, most).await?.len() as u64)
    } else {
        Total::Unasked
    };
    let show =
        |(_, row): (LogPlace, NoticeRow)| NoticeView { at: row.at, kind: row.kind, detail: row.detail };
    let items = rows.into_iter().map(show);
    Ok(ok(ListAnswer { items: items.collect(), next_cursor, total }))
}

/// The requests that were made to a destination, the newest first.
#[utoipa::path(
    get,
    path = "/v1/destinations/{id}/attempts",
    tag = "destinations",
    params(("id" = String, Path, description = "Its id or external id."), ListQuery),
    responses((status = 200, description = "A page.", body = Data<ListAnswer<AttemptView>>), Refusals)
)]
pub(super) async fn attempts(
    State(app): State<App>,
    Call { caller, query, .. }: Call<Viewer, ListQuery>,
    PathText(name): PathText,
) -> Result<axum::Json<Data<ListAnswer<AttemptView>>>, ApiError> {
    let no = find(&app, &caller, &name)?.row.no;
    let list = Cursor { list: "attempts", account: caller.account };
    let params = query.page(list)?;
    let total = if params.total {
        Total::counted(app.engine.store().count_destination_attempts(no, MAX_TOTAL).await?)
    } else {
        Total::Unasked
    };
    let before = params.cursor.and_then(|at| u64::try_from(at).ok()).map(Sequence::from_stored);
    let page = app.engine.store().destination_attempts(no, before, params.limit).await?;
    let next_cursor = page.next.map(|next| list.encode(u128::from(next.get())));
    let items = page.items.iter().map(|attempt| AttemptView::new(&app, attempt)).collect();
    Ok(ok(ListAnswer { items, next_cursor, total }))
}
