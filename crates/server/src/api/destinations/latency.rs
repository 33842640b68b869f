//! How long a destination takes to answer: the histogram that its timeout is made from.

use axum::extract::State;
use serde::Serialize;
use tidegate_core::sketch::{Quantile, Sketch};
use tidegate_core::time::{Millis, Timestamp};
use utoipa::ToSchema;

use super::find::find;
use super::view::TimeoutView;
use crate::api::error::ApiError;
use crate::api::extract::PathText;
use crate::api::openapi::Refusals;
use crate::api::{App, Data, ok};
use crate::auth::{Call, Viewer};

/// How long a destination takes to answer, over the last days.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Latency {
    /// The timeout in force.
    timeout: TimeoutView,
    /// All days together.
    all: Distribution,
    /// Attempts by how long they took.
    buckets: Vec<Bucket>,
    /// Day by day, the oldest first.
    days: Vec<Day>,
}

/// The shape of a distribution. A percentile is null without samples, and where it lies among timeouts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Distribution {
    /// Attempts.
    samples: u64,
    /// Attempts among them that were not answered in time.
    timeouts: u64,
    /// The median.
    #[schema(required = true)]
    p50_ms: Option<i64>,
    /// The 90th percentile.
    #[schema(required = true)]
    p90_ms: Option<i64>,
    /// The 95th percentile.
    #[schema(required = true)]
    p95_ms: Option<i64>,
    /// The 99th percentile.
    #[schema(required = true)]
    p99_ms: Option<i64>,
}

/// Attempts that took about equally long.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Bucket {
    /// From this length on.
    from_ms: i64,
    /// Up to this length.
    to_ms: i64,
    /// Attempts that were answered after such a time.
    answered: u32,
    /// Attempts that were given up after such a time.
    timeouts: u32,
}

/// One day, in UTC.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Day {
    /// The day: `2026-04-23`.
    date: String,
    /// What it looked like.
    #[serde(flatten)]
    distribution: Distribution,
}

impl From<&Sketch> for Distribution {
    fn from(sketch: &Sketch) -> Self {
        let at = |permyriad| match sketch.quantile(permyriad) {
            Quantile::At(time) => Some(time.get()),
            Quantile::Empty | Quantile::AmongCensored { .. } => None,
        };
        Self {
            samples: sketch.samples(),
            timeouts: sketch.censored(),
            p50_ms: at(5_000),
            p90_ms: at(9_000),
            p95_ms: at(9_500),
            p99_ms: at(9_900),
        }
    }
}

/// How long a destination takes to answer.
#[utoipa::path(
    get,
    path = "/v1/destinations/{id}/latency",
    tag = "destinations",
    params(("id" = String, Path, description = "Its id or external id.")),
    responses((status = 200, description = "Over the last seven days.", body = Data<Latency>), Refusals)
)]
pub(super) async fn latency(
    State(app): State<App>,
    Call { caller, .. }: Call<Viewer>,
    PathText(name): PathText,
) -> Result<axum::Json<Data<Latency>>, ApiError> {
    let no = find(&app, &caller, &name)?.row.no;
    let look = app.engine.look_at([no], move |view| {
        let lane = view.lane(no)?;
        let (policy, timeouts) = (lane.policy(), &lane.state().timeouts);
        let report = timeouts.report(&policy.timeout, &policy.timeout_params);
        Some((report, timeouts.days().collect::<Vec<_>>()))
    });
    let (report, encoded) = look.await?.ok_or_else(ApiError::not_found)?;
    let mut all = Sketch::new();
    let mut days = Vec::new();
    for (day, bytes) in encoded {
        let Ok(sketch) = Sketch::decode(&bytes) else { continue };
        all.merge(&sketch);
        let noon = Timestamp::from_millis(0) + Millis::days(i64::from(day));
        let date = noon.to_string().chars().take("2026-04-23".len()).collect();
        days.push(Day { date, distribution: Distribution::from(&sketch) });
    }
    let buckets = all.bins().map(|bin| Bucket {
        from_ms: bin.low.get(),
        to_ms: bin.high.get(),
        answered: bin.completed,
        timeouts: bin.censored,
    });
    let buckets = buckets.collect();
    Ok(ok(Latency { timeout: TimeoutView::from(&report), all: Distribution::from(&all), buckets, days }))
}
