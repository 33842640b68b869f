//! Why is it not sent? Every gate in order, its place in the queue, and when it will go.

use axum::extract::State;
use serde::Serialize;
use tidegate_core::delivery::Delivery;
use tidegate_core::gate::{self, Decision, Explanation, Gate, Hold};
use tidegate_core::id::{DeliveryId, kind};
use tidegate_core::lane::LaneState;
use tidegate_core::order::Turn;
use tidegate_core::policy::Policy;
use tidegate_core::sketch::{Quantile, Sketch};
use tidegate_core::time::{Millis, Now, Timestamp};
use tidegate_store::delivery::StoredDelivery;
use utoipa::ToSchema;

use super::state::{self, Standing};
use crate::api::error::ApiError;
use crate::api::extract::PathId;
use crate::api::openapi::Refusals;
use crate::api::{App, Data, as_optional_text, as_text, ok};
use crate::auth::{Call, Viewer};

/// Deliveries before it that are counted out.
const MAX_AHEAD: u64 = 10_000;
/// What an exchange takes where nothing is known of it.
const USUAL_EXCHANGE: Millis = Millis::new(200);

/// Why a delivery is where it is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Explanation)]
pub(crate) struct ExplanationView {
    /// Which delivery.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String)]
    delivery_id: DeliveryId,
    /// Its status.
    #[schema(value_type = String)]
    status: &'static str,
    /// One sentence.
    summary: String,
    /// The first that holds it.
    #[schema(value_type = Option<String>, required = true)]
    hold_reason: Option<&'static str>,
    /// The earliest moment at which every gate is open, where that is known.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    retry_at: Option<Timestamp>,
    /// Every gate, in the order in which they are asked. Empty where it is over.
    gates: Vec<GateAnswer>,
    /// Its place in the destination's queue; null where it does not wait.
    #[schema(required = true)]
    queue: Option<QueuePlace>,
    /// When it will be sent, as things stand; null where that depends on a person.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    estimated_at: Option<Timestamp>,
    /// The node that works its destination; null where there is only one.
    #[schema(required = true)]
    node: Option<String>,
    /// When the state behind this was stored, if another node works the destination. Null: it is of this moment.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    as_of: Option<Timestamp>,
    /// When it goes stale.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    expires_at: Option<Timestamp>,
    /// Whether that comes first.
    will_expire: bool,
}

/// One gate as it is now.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GateAnswer)]
pub(crate) struct GateAnswer {
    /// Which.
    #[schema(value_type = String)]
    gate: &'static str,
    /// Whether it lets this delivery pass.
    open: bool,
    /// When it opens by itself, where it is closed and does.
    #[serde(serialize_with = "as_optional_text")]
    #[schema(value_type = Option<String>, format = DateTime, required = true)]
    until: Option<Timestamp>,
    /// A sentence.
    detail: String,
}

/// A place in a queue.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueuePlace {
    /// Deliveries that go before it.
    ahead: u64,
    /// Whether that is all of them; `false`: there are more.
    exact: bool,
}

/// A lane as an estimate needs it.
struct Lane {
    now: Now,
    /// When its state was stored, if another node works it.
    as_of: Option<Timestamp>,
    policy: std::sync::Arc<Policy>,
    state: LaneState,
    /// Those in flight that were before it.
    under_way: u64,
    /// Where it keeps an order: when the first of its line can go, if that is known.
    line_opens: Option<Option<Timestamp>>,
    /// The delivery that goes first to find out whether the destination is well again, if one does.
    probe: Option<DeliveryId>,
}

/// Explain why a delivery is where it is.
#[utoipa::path(
    get,
    path = "/v1/deliveries/{id}/explain",
    tag = "deliveries",
    params(("id" = String, Path)),
    responses((status = 200, description = "As it is now.", body = Data<ExplanationView>), Refusals)
)]
pub(super) async fn explain(
    State(app): State<App>,
    Call { caller, .. }: Call<Viewer>,
    PathId(id): PathId<kind::Delivery>,
) -> Result<axum::Json<Data<ExplanationView>>, ApiError> {
    let stored = super::find(&app, &caller, id).await?;
    let standing = state::one(&app, &stored).await?;
    let mut view = ExplanationView {
        delivery_id: id,
        status: standing.status.word(),
        summary: summary(&standing),
        hold_reason: standing.hold_reason.map(tidegate_core::delivery::HoldReason::word),
        retry_at: standing.retry_at,
        gates: Vec::new(),
        queue: None,
        estimated_at: None,
        node: crate::api::nodes::worker_of(&app, stored.destination),
        as_of: None,
        expires_at: stored.delivery.expires_at,
        will_expire: standing.will_expire,
    };
    if let Some(explanation) = standing.explanation.as_ref().filter(|_| !standing.status.is_final()) {
        view.gates = explanation.gates.iter().map(answer).collect();
        estimate(&app, &stored, explanation, &mut view).await?;
    }
    Ok(ok(view))
}

async fn estimate(
    app: &App,
    stored: &StoredDelivery,
    explanation: &Explanation,
    view: &mut ExplanationView,
) -> Result<(), ApiError> {
    let (no, delivery) = (stored.destination, stored.delivery.clone());
    let opens = opens(app.engine.now().wall, explanation);
    let probes = explanation
        .gates
        .iter()
        .any(|view| matches!(view.hold, Some(Hold::CircuitOpen { .. } | Hold::Throttled { .. })));
    let look = app.engine.look_at([no], move |view| {
        let lane = view.lane(no)?;
        // In a line, whatever is before it goes before it, in flight or not.
        let in_line = lane.policy().ordering.line(&delivery).is_some();
        let line_opens = in_line.then(|| line_opens(lane, view.now, &delivery));
        Some(Lane {
            now: view.now,
            as_of: view.as_of(no),
            policy: lane.shared_policy(),
            state: lane.state().clone(),
            under_way: if in_line { 0 } else { lane.in_flight_before(&delivery) as u64 },
            line_opens,
            probe: opens.filter(|_| probes).and_then(|at| lane.next_probe(at)),
        })
    });
    let Some(lane) = look.await? else { return Ok(()) };
    view.as_of = lane.as_of;
    let by = opens.unwrap_or(lane.now.wall);
    let counted = app.engine.store().ahead(no, &stored.delivery, &lane.policy, by, MAX_AHEAD).await?;
    let ahead = match lane.probe {
        Some(probe) if probe == stored.delivery.id => 0,
        Some(_) => counted.saturating_sub(lane.under_way).max(1),
        None => counted.saturating_sub(lane.under_way),
    };
    view.queue = Some(QueuePlace { ahead: ahead.min(MAX_AHEAD), exact: counted < MAX_AHEAD });
    let (Some(opens), Some(line_opens)) = (opens, lane.line_opens.unwrap_or(Some(lane.now.wall))) else {
        return Ok(());
    };
    let exchange = exchange(&lane.state);
    // The probe has to come back first.
    let probed = if lane.probe.is_some() && ahead > 0 { exchange } else { Millis::ZERO };
    let begins = begins(lane.now.wall, explanation).max(line_opens) + probed;
    let mut at = gate::estimate(lane.now, begins, ahead, exchange, &lane.policy, &lane.state);
    if lane.line_opens.is_some() {
        // One after the other, whatever the destination could take at once.
        at = at.max(begins + exchange.scaled(i64::try_from(ahead).unwrap_or(i64::MAX), 1));
    }
    let mask = lane.policy.quiet.mask_for(&stored.delivery.event_type);
    let at = gate::through_quiet_hours(begins, at, &lane.policy, mask).max(opens + probed);
    view.estimated_at = Some(at);
    // With less time than that left nothing starts any more.
    let too_late = |expiry: Timestamp| expiry - at < tidegate_core::limits::MIN_TIME_TO_SEND;
    view.will_expire |= stored.delivery.expires_at.is_some_and(too_late);
    Ok(())
}

/// When the first of a delivery's line can go, as far as the lane knows it; now, where that is in flight.
fn line_opens(lane: &tidegate_engine::dispatcher::Lane, now: Now, delivery: &Delivery) -> Option<Timestamp> {
    match lane.turn(delivery) {
        Turn::Its => Some(now.wall),
        Turn::Behind(head) if lane.is_in_flight(head) => Some(now.wall),
        Turn::Behind(head) => {
            let head = lane.deliveries().find(|waiting| waiting.id == head)?;
            opens(now.wall, &lane.explain(now, head))
        }
        Turn::Halted(_) => None,
    }
}

/// When every gate is open, where time alone decides that. A slot comes with an answer, and so does a turn: they count as
/// open.
fn opens(now: Timestamp, explanation: &Explanation) -> Option<Timestamp> {
    if let Decision::Wait(wait) = explanation.decision
        && let Some(until) = wait.until
    {
        return Some(until);
    }
    let mut opens = now;
    for view in &explanation.gates {
        opens = match (view.hold, view.until()) {
            (None, _) | (Some(Hold::AtCapacity { .. } | Hold::OrderBlocked { halted: false, .. }), _) => {
                opens
            }
            (Some(_), Some(until)) => opens.max(until),
            (Some(Hold::CircuitOpen { .. } | Hold::Throttled { .. }), None) => opens,
            (Some(_), None) => return None,
        };
    }
    Some(opens)
}

/// When the destination begins to send to somebody, whatever this delivery waits for on its own: those before it go meanwhile.
fn begins(now: Timestamp, explanation: &Explanation) -> Timestamp {
    let of_destination = |view: &&gate::GateView| {
        let own = matches!(view.hold, Some(Hold::Scheduled { .. } | Hold::RetryBackoff { .. }));
        // Tokens and slots are counted, not waited for.
        let counted = matches!(view.hold, Some(Hold::RateLimited { .. } | Hold::AtCapacity { .. }));
        !own && !counted
    };
    explanation
        .gates
        .iter()
        .filter(of_destination)
        .filter_map(gate::GateView::until)
        .fold(now, Timestamp::max)
}

/// What an exchange with this destination takes: the median of the last days.
pub(crate) fn exchange(state: &LaneState) -> Millis {
    let mut all = Sketch::new();
    for (_, bytes) in state.timeouts.days() {
        if let Ok(day) = Sketch::decode(&bytes) {
            all.merge(&day);
        }
    }
    match all.quantile(5_000) {
        Quantile::At(median) => median,
        Quantile::AmongCensored { beyond } => beyond,
        Quantile::Empty => USUAL_EXCHANGE,
    }
}

fn answer(view: &gate::GateView) -> GateAnswer {
    let detail = match view.hold {
        Some(hold) => hold.to_string(),
        None => open_words(view.gate).to_owned(),
    };
    GateAnswer { gate: view.gate.word(), open: view.hold.is_none(), until: view.until(), detail }
}

/// What an open gate means.
const fn open_words(gate: Gate) -> &'static str {
    match gate {
        Gate::Standing => "the destination is switched on and not paused",
        Gate::OwnTime => "it need not wait for a time of its own",
        Gate::Breaker => "the circuit is closed, or lets a probe pass",
        Gate::Throttle => "no 429 of the destination is in force, or a probe may go",
        Gate::Unavailable => "the destination did not ask us to wait",
        Gate::QuietHours => "no quiet hours for this event type now",
        Gate::Order => "it is its turn, or it keeps no order",
        Gate::Concurrency => "a slot is free",
        Gate::Rate => "a token is there, or no rate limit is set",
    }
}

fn summary(standing: &Standing) -> String {
    use tidegate_core::delivery::Status;
    match (standing.status, standing.hold()) {
        (Status::Final(end), _) => format!("it is over: {end}"),
        (Status::Delivering, _) => "an attempt is in flight".to_owned(),
        (_, Some(hold)) => format!("it waits: {hold}"),
        (_, None) => "every gate is open: it goes as soon as its turn comes".to_owned(),
    }
}
