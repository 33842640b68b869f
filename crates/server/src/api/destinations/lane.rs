//! What a destination's lane knows, taken out of the engine at one moment.

use tidegate_core::delivery::HoldReason;
use tidegate_core::gate::{self, Hold};
use tidegate_core::sequence::Sequence;
use tidegate_core::time::Timestamp;
use tidegate_core::timeout::TimeoutReport;
use tidegate_engine::View;
use tidegate_engine::dispatcher::Lane;
use tidegate_store::DestinationNo;

use crate::api::App;
use crate::api::error::ApiError;

/// Lanes looked at in one go: the engine stands still meanwhile.
const AT_ONCE: usize = 250;
/// Of what is in flight, so many are told: of more, the oldest that waits is told as if the others waited.
const MAX_FLIGHTS: usize = 64;

/// A lane at one moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    /// Whether it is switched on.
    pub(super) enabled: bool,
    /// The one word for how it does.
    pub(super) status: &'static str,
    /// All that holds it, and since when as far as that is known.
    pub(super) holds: Vec<(Hold, Option<Timestamp>)>,
    /// Until when it is left alone because of their 429.
    pub(super) throttled_until: Option<Timestamp>,
    /// Episodes of that in a row.
    pub(super) episodes: u32,
    /// Requests in flight.
    pub(super) in_flight: u32,
    /// Which deliveries these are, as far as they are worked here: the first of very many.
    pub(super) flights: Vec<Sequence>,
    /// What is left of its rate, where it has one.
    pub(super) rate: Option<RateNow>,
    /// How long an attempt may take.
    pub(super) timeout: TimeoutReport,
    /// When this was stored, if another node works it.
    pub(super) as_of: Option<Timestamp>,
}

/// What is left of a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateNow {
    /// Attempts that may start at once.
    pub(super) tokens: u64,
    /// The most that this can be.
    pub(super) burst: u64,
    /// Attempts a minute in the long run; of an adaptive limit the learned rate.
    pub(super) per_minute: f64,
}

impl Snapshot {
    fn of(view: &View<'_>, no: DestinationNo, lane: &Lane) -> Self {
        let now = view.now;
        let (policy, state) = (lane.policy(), lane.state());
        let holds = lane.holds(now);
        let throttled = holds.iter().find(|hold| hold.reason() == HoldReason::Throttled);
        Self {
            enabled: state.standing.disabled.is_none(),
            status: gate::status(&holds).word(),
            throttled_until: throttled.and_then(Hold::until),
            episodes: state.throttle.episodes(),
            in_flight: view.in_flight_of(no),
            flights: lane.in_flight().map(|(out, _)| out.id.sequence()).take(MAX_FLIGHTS).collect(),
            rate: policy.rate_limit.as_ref().map(|limit| RateNow {
                tokens: state.tokens(now.mono).unwrap_or(0),
                burst: limit.quota.burst(),
                per_minute: state.paced_per_minute(now.mono).unwrap_or_else(|| limit.quota.per_minute()),
            }),
            timeout: state.timeouts.report(&policy.timeout, &policy.timeout_params),
            holds: holds.into_iter().map(|hold| (hold, lane.held_since(now, &hold))).collect(),
            as_of: view.as_of(no),
        }
    }
}

/// The lanes of these destinations, in their order; `None` where there is none (any more).
pub(super) async fn snapshots(
    app: &App,
    destinations: Vec<DestinationNo>,
) -> Result<Vec<Option<Snapshot>>, ApiError> {
    let mut all = Vec::with_capacity(destinations.len());
    for some in destinations.chunks(AT_ONCE) {
        let some = some.to_vec();
        let asked = some.clone();
        let look = move |view: &View<'_>| {
            let snapshot = |no: &DestinationNo| view.lane(*no).map(|lane| Snapshot::of(view, *no, lane));
            some.iter().map(snapshot).collect::<Vec<_>>()
        };
        all.extend(app.engine.look_at(asked, look).await?);
    }
    Ok(all)
}
