//! What a delivery schedule would do: pure, for people who try out quiet hours before they set them.

use std::slice;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use tidegate_core::invalid::{Invalid, check_range};
use tidegate_core::pattern::EventType;
use tidegate_core::quiet::QuietHours;
use tidegate_core::time::Timestamp;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ApiError;
use super::extract::Json;
use super::openapi::WriteRefusals;
use super::{App, Data, as_text, ok};
use crate::auth::{Call, Viewer};
use crate::policy::Reading;
use crate::policy::schedule::{self, ScheduleDocument};

/// Quiet intervals that one answer shows at most.
const MAX_COUNT: u64 = 100;
/// How many where nobody says.
const DEFAULT_COUNT: u64 = 3;

/// The calls.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(preview))
}

/// A schedule to try out: a single window, or a list of them.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PreviewBody {
    /// A single window.
    delivery_schedule: Option<ScheduleDocument>,
    /// A list of windows.
    #[schema(max_items = 20)]
    delivery_schedules: Option<Vec<ScheduleDocument>>,
    /// When; now if not said.
    #[schema(format = DateTime)]
    at: Option<String>,
    /// For which type; without it, windows with `applies_to` are left out.
    event_type: Option<String>,
    /// How many quiet intervals to show: 3 if not said.
    #[schema(minimum = 1, maximum = 100)]
    count: Option<u64>,
}

/// What the schedule does.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Preview {
    /// Whether it is quiet then.
    quiet: bool,
    /// The first open instant from then on.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    release_at: Timestamp,
    /// The next quiet intervals, merged where they touch; the first may have begun before.
    windows: Vec<QuietInterval>,
}

/// A quiet interval.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct QuietInterval {
    /// Its first instant.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    start: Timestamp,
    /// The first instant after it.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    end: Timestamp,
}

/// Try out quiet hours. Needs no destination, and changes nothing.
#[utoipa::path(
    post,
    path = "/v1/schedules/preview",
    tag = "destinations",
    request_body = PreviewBody,
    responses((status = 200, description = "What the schedule does.", body = Data<Preview>), WriteRefusals)
)]
async fn preview(
    State(app): State<App>,
    _: Call<Viewer>,
    Json(body): Json<PreviewBody>,
) -> Result<axum::Json<Data<Preview>>, ApiError> {
    Ok(ok(work_out(&body, app.engine.now().wall)?))
}

impl PreviewBody {
    /// The quiet hours that it asks for.
    pub(crate) fn hours(&self) -> Result<QuietHours, Invalid> {
        let (windows, single) = match (&self.delivery_schedule, &self.delivery_schedules) {
            (Some(_), Some(_)) => return Err(schedule::both_given()),
            (Some(one), None) => (slice::from_ref(one), true),
            (None, Some(list)) => (list.as_slice(), false),
            (None, None) => {
                return Err(Invalid::missing("delivery_schedule", "a window, or delivery_schedules"));
            }
        };
        schedule::compile(windows, Reading::Written).map_err(|fault| {
            let fault = fault.under("delivery_schedules");
            if single { schedule::as_single(fault) } else { fault }
        })
    }
}

fn work_out(body: &PreviewBody, now: Timestamp) -> Result<Preview, Invalid> {
    let hours = body.hours()?;
    let at = match body.at.as_deref() {
        None => now,
        Some(text) => Timestamp::parse(text)
            .ok_or_else(|| Invalid::new("at", text, "an RFC 3339 time such as 2026-04-23T14:32:00Z"))?,
    };
    let mask = match body.event_type.as_deref() {
        None => hours.mask_without_type(),
        Some(name) => hours.mask_for(&EventType::parse(name).map_err(|fault| fault.under("event_type"))?),
    };
    let count = check_range("count", body.count.unwrap_or(DEFAULT_COUNT), 1, MAX_COUNT)?;
    let intervals = hours.intervals(mask, at, usize::try_from(count).unwrap_or(usize::MAX));
    let release = hours.release(mask, at);
    Ok(Preview {
        quiet: release.is_some(),
        release_at: release.unwrap_or(at),
        windows: intervals.into_iter().map(|(start, end)| QuietInterval { start, end }).collect(),
    })
}

#[cfg(test)]
#[path = "schedules/tests.rs"]
mod tests;
