//! Lists of deliveries.

use axum::extract::State;
use serde::Deserialize;
use tidegate_core::sequence::Sequence;
use tidegate_store::list::PageQuery;
use utoipa::IntoParams;

use super::query::{Asked, StatusWord, hold_reason};
use super::search::Search;
use super::view::DeliveryView;
use crate::api::error::ApiError;
use crate::api::openapi::Refusals;
use crate::api::page::{Cursor, ListAnswer, PageParams, Total};
use crate::api::{App, Data, ok};
use crate::auth::{Call, Viewer};

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

impl ListQuery {
    fn asked(&self) -> Asked<'_> {
        Asked {
            under: "",
            destination_id: self.destination_id.as_deref(),
            event_id: self.event_id.as_deref(),
            event_type: self.event_type.as_deref(),
            from: self.from.as_deref(),
            to: self.to.as_deref(),
            external_event_id: self.external_event_id.as_deref(),
            ordering_key: self.ordering_key.as_deref(),
        }
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
    let reason = hold_reason(query.hold_reason.as_deref())?;
    let search = Search::new(&app, &caller, &query.asked(), query.status, reason).await?;
    let before = params.cursor.and_then(|at| u64::try_from(at).ok()).map(Sequence::from_stored);
    let page = PageQuery { account: caller.account, before, limit: params.limit, oldest_first: false };
    let found = search.page(&app, page).await?;
    let total = if params.total { search.count(&app, &caller).await? } else { Total::Unasked };
    let items = found.items.iter().map(|(stored, standing)| DeliveryView::new(&app, stored, standing));
    let next_cursor = found.next.map(|next| cursor.encode(u128::from(next.get())));
    Ok(ok(ListAnswer { items: items.collect(), next_cursor, total }))
}
