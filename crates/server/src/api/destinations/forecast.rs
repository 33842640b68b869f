//! When a destination's backlog will be gone, as things stand.

use axum::extract::State;
use serde::Serialize;
use tidegate_core::gate::{self, Hold};
use tidegate_core::time::Timestamp;
use utoipa::ToSchema;

use super::find::find;
use crate::api::deliveries::explain::exchange;
use crate::api::error::ApiError;
use crate::api::extract::PathText;
use crate::api::openapi::Refusals;
use crate::api::{App, Data, as_optional_text, ok};
use crate::auth::{Call, Viewer};

/// When the backlog will be gone.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Forecast {
    /// Deliveries that are neither final nor in flight.
    queued_events: u64,
    /// When all that holds the destination has ended by itself; null where that depends on a person or an answer.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    opens_at: Option<Timestamp>,
    /// When the last of the deliveries that wait now will be sent, if none fails; null where nothing waits, or nobody knows.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    drained_at: Option<Timestamp>,
    /// What has to happen first, where that is not a matter of time.
    #[schema(required = true)]
    waits_for: Option<String>,
}

/// Forecast when a destination's backlog will be gone.
///
/// By the rate, the slots, how long its answers take, what holds it now, the quiet hours for all types that begin meanwhile, and
/// the times that deliveries wait for on their own. Failures and what comes in later make it later.
#[utoipa::path(
    get,
    path = "/v1/destinations/{id}/forecast",
    tag = "destinations",
    params(("id" = String, Path, description = "Its id or external id.")),
    responses((status = 200, description = "As things stand.", body = Data<Forecast>), Refusals)
)]
pub(super) async fn forecast(
    State(app): State<App>,
    Call { caller, .. }: Call<Viewer>,
    PathText(name): PathText,
) -> Result<axum::Json<Data<Forecast>>, ApiError> {
    let no = find(&app, &caller, &name)?.row.no;
    let look = app.engine.look_at([no], move |view| {
        let lane = view.lane(no)?;
        Some((view.now, lane.shared_policy(), lane.state().clone(), view.in_flight_of(no)))
    });
    let (now, policy, state, in_flight) = look.await?.ok_or_else(ApiError::not_found)?;
    let open: u64 = app.engine.store().still_open(vec![no], now.wall).await?.iter().sum();
    let queued_events = open.saturating_sub(u64::from(in_flight));
    let holds = gate::holds(now, &policy, &state);
    // A slot and a token come by themselves; the estimate counts them.
    let holds =
        holds.iter().filter(|hold| !matches!(hold, Hold::AtCapacity { .. } | Hold::RateLimited { .. }));
    let mut opens_at = Some(now.wall);
    let mut waits_for = None;
    for hold in holds {
        match hold.until() {
            Some(until) => opens_at = opens_at.map(|at| at.max(until)),
            None => {
                opens_at = None;
                waits_for.get_or_insert_with(|| hold.to_string());
            }
        }
    }
    let own = if queued_events > 0 { app.engine.store().last_due(no).await? } else { None };
    let drained_at = opens_at.filter(|_| queued_events > 0).map(|opens| {
        let sent = gate::estimate(now, opens, queued_events - 1, exchange(&state), &policy, &state);
        // Windows that are for some types only are left out.
        let mask = policy.quiet.mask_without_type();
        let sent = gate::through_quiet_hours(opens, sent, &policy, mask);
        // The last that waits for a time of its own goes then, or when the night is over into which that falls.
        let own = own.map(|at| policy.quiet.release(mask, at).unwrap_or(at));
        sent.max(own.unwrap_or(sent))
    });
    Ok(ok(Forecast { queued_events, opens_at, drained_at, waits_for }))
}
