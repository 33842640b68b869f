//! What a changed policy would have done to a destination's recent traffic: its recorded arrivals, played again by the
//! simulator under both policies.
//!
//! The destination is modelled from what is known of it: its response times of the last days, the hours in which most of its
//! attempts failed, and its share of timeouts in the others.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::extract::State;
use serde::Serialize;
use tidegate_core::delivery::Priority;
use tidegate_core::pattern::EventType;
use tidegate_core::policy::Policy;
use tidegate_core::sketch::{Quantile, Sketch};
use tidegate_core::time::{Millis, Timestamp};
use tidegate_sim::scenario::file::{Figures, Past};
use tidegate_sim::traffic::{Arrivals, Source, Template};
use tidegate_sim::world::{Latency, Model, Trouble, TroubleKind};
use tidegate_store::DestinationNo;
use tidegate_store::catalogue::Destination;
use tidegate_store::delivery::StoredDelivery;
use tidegate_store::lane::Of;
use tidegate_store::list::{DeliveryFilter, PageQuery};
use tidegate_store::stats::Hour;
use tokio::sync::Semaphore;
use utoipa::ToSchema;

use super::find::find;
use super::write::account;
use crate::api::error::ApiError;
use crate::api::extract::{Json, PathText};
use crate::api::openapi::WriteRefusals;
use crate::api::{App, Data, as_text, ok};
use crate::auth::{Call, Caller, Editor};
use crate::policy::DestinationPatch;

/// The past that is played.
const LENGTH: Millis = Millis::hours(24);
/// How long what is left then is given.
const DRAIN: Millis = Millis::hours(24);
/// Deliveries that are played at most: the newest of that time.
const MAX_ARRIVALS: usize = 10_000;
/// Rows read at a time.
const ROWS: usize = 1_000;
/// A run that takes longer is called off.
const LONGEST: Duration = Duration::from_secs(20);
/// Runs at a time: each takes a core.
const AT_ONCE: usize = 1;
/// Seconds after which another may be asked for.
const RETRY_SECONDS: u32 = 5;
/// An hour with at least so many attempts, most of which failed, is an outage.
const ENOUGH: u64 = 5;
/// What an exchange takes where nothing is known of it.
const USUAL: Latency = Latency::LogNormal { median_ms: 200.0, sigma: 0.5 };
/// Both runs meet the same chance.
const SEED: u64 = 1;

/// What the change would have done.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PolicyPreview {
    /// The beginning of what was played again.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    from: Timestamp,
    /// Its end.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    to: Timestamp,
    /// Deliveries that came in meanwhile.
    deliveries: usize,
    /// Whether there were more, so that less than a day was played.
    cut: bool,
    /// How the destination was modelled, in sentences.
    assumes: Vec<String>,
    /// Under the policy in force.
    before: Played,
    /// Under the changed one.
    after: Played,
}

/// What came of it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Played {
    /// They have it.
    delivered: u64,
    /// Given up.
    dead_letter: u64,
    /// Went stale.
    expired: u64,
    /// Not over a day after the last came in.
    still_open: u64,
    /// Requests made.
    requests: u64,
    /// Half of the deliveries waited no longer, in milliseconds.
    #[schema(required = true)]
    p50_ms: Option<i64>,
    /// 99 of 100 waited no longer.
    #[schema(required = true)]
    p99_ms: Option<i64>,
    /// The longest that one waited.
    #[schema(required = true)]
    longest_wait_ms: Option<i64>,
    /// What it mostly waited for.
    #[schema(value_type = Option<String>, required = true)]
    longest_wait_reason: Option<&'static str>,
    /// For how many seconds work was held, by reason.
    held_seconds: BTreeMap<String, f64>,
    /// Requests in the busiest minute.
    busiest_minute: u64,
    /// Requests in flight at most.
    peak_in_flight: u32,
    /// How often the breaker opened.
    breaker_opened: u64,
}

impl From<Figures> for Played {
    fn from(figures: Figures) -> Self {
        Self {
            delivered: figures.ends.delivered,
            dead_letter: figures.ends.dead_letter,
            expired: figures.ends.expired,
            still_open: figures.still_open,
            requests: figures.requests,
            p50_ms: figures.p50_ms,
            p99_ms: figures.p99_ms,
            longest_wait_ms: figures.longest_wait_ms,
            longest_wait_reason: figures.longest_wait_reason,
            held_seconds: figures
                .held_seconds
                .into_iter()
                .map(|(word, held)| (word.to_owned(), held))
                .collect(),
            busiest_minute: figures.busiest_minute,
            peak_in_flight: figures.peak_in_flight,
            breaker_opened: figures.breaker_opened,
        }
    }
}

/// Preview a change: what it would have done to the last 24 hours. Nothing is changed.
#[utoipa::path(
    post,
    path = "/v1/destinations/{id}/preview",
    tag = "destinations",
    params(("id" = String, Path, description = "Its id or external id.")),
    request_body = DestinationPatch,
    responses((status = 200, description = "Before and after.", body = Data<PolicyPreview>), WriteRefusals)
)]
pub(super) async fn preview(
    State(app): State<App>,
    Call { caller, .. }: Call<Editor>,
    PathText(name): PathText,
    Json(patch): Json<DestinationPatch>,
) -> Result<axum::Json<Data<PolicyPreview>>, ApiError> {
    static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(AT_ONCE)));
    let entry = find(&app, &caller, &name)?;
    let after = changed(&app, &caller, &entry.row, patch)?;
    let place = Arc::clone(&PLACES).try_acquire_owned().map_err(|_| ApiError::rate_limited(RETRY_SECONDS))?;
    let now = app.engine.now().wall;
    let (arrivals, cut) = recorded(&app, &caller, entry.row.no, now - LENGTH).await?;
    let start = arrivals.first().filter(|_| cut).map_or(now - LENGTH, |first| first.delivery.accepted_at);
    let (model, assumes) = model(&app, entry.row.no, start).await?;
    let deliveries = arrivals.len();
    let past = Past { start, length: now - start, drain: DRAIN, model, sources: sources(&app, &arrivals)? };
    let (before, until) = (Policy::clone(&entry.policy), app.engine.now().mono);
    let engine = app.engine.clone();
    let played = tokio::task::spawn_blocking(move || {
        let _held = place;
        let go_on = || {
            engine.now().mono.since(until) < Millis::new(LONGEST.as_millis().try_into().unwrap_or(i64::MAX))
        };
        // A pause is no policy: the question is what it would have done while it ran.
        let free = |policy: Policy| Policy { account_paused: None, ..policy };
        Some((past.play(free(before), SEED, go_on)?, past.play(free(after), SEED, go_on)?))
    });
    let played = played.await.map_err(ApiError::unavailable)?;
    let (before, after) =
        played.ok_or_else(|| ApiError::unavailable("it would take too long to play this past again"))?;
    let (before, after) = (before.into(), after.into());
    Ok(ok(PolicyPreview { from: start, to: now, deliveries, cut, assumes, before, after }))
}

/// The policy that the change would lead to.
fn changed(
    app: &App,
    caller: &Caller,
    row: &Destination,
    patch: DestinationPatch,
) -> Result<Policy, ApiError> {
    let (account, compiler) = (account(app, caller)?, app.catalogue.compiler());
    let mut draft = compiler.draft(row, &account)?;
    patch.apply(&mut draft, compiler.https_only)?;
    let row = Destination { document: draft.document.to_stored(), ..row.clone() };
    Ok(Policy::clone(&compiler.compile(&row, &account)?.policy))
}

/// What came in since then, the oldest first, and whether there was more than is played.
async fn recorded(
    app: &App,
    caller: &Caller,
    no: DestinationNo,
    from: Timestamp,
) -> Result<(Vec<StoredDelivery>, bool), ApiError> {
    let filter =
        DeliveryFilter { destinations: Some(vec![no]), from: Some(from), ..DeliveryFilter::default() };
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let page = PageQuery { account: caller.account, before, limit: ROWS, oldest_first: false };
        let found = app.engine.store().deliveries(page, filter.clone()).await?;
        // A replay is no traffic of its own.
        all.extend(found.items.into_iter().filter(|stored| stored.replay_of.is_none()));
        before = found.next;
        if before.is_none() || all.len() >= MAX_ARRIVALS {
            break;
        }
    }
    all.truncate(MAX_ARRIVALS);
    all.reverse();
    Ok((all, before.is_some()))
}

/// Events of one kind belong together: their times in order.
fn sources(app: &App, arrivals: &[StoredDelivery]) -> Result<Vec<Source>, ApiError> {
    type Kind = (EventType, u8, Option<i64>);
    let mut kinds: BTreeMap<Kind, Vec<Timestamp>> = BTreeMap::new();
    for StoredDelivery { delivery, .. } in arrivals {
        let ttl = delivery.expires_at.map(|expiry| (expiry - delivery.accepted_at).get().max(1));
        let kind = (delivery.event_type.clone(), delivery.priority.get(), ttl);
        kinds.entry(kind).or_default().push(delivery.accepted_at);
    }
    let Some(account) = arrivals.first().map(|stored| stored.account) else { return Ok(Vec::new()) };
    let source = |((event_type, priority, ttl), mut at): (Kind, Vec<Timestamp>)| {
        at.sort_unstable();
        let terms = Arc::new(app.catalogue.routing(account, event_type.as_str())?.terms.clone());
        let template = Template {
            priority: Priority::new(u64::from(priority))?,
            ttl: ttl.map(Millis::new),
            terms,
            ..Template::new(event_type.as_str())
        };
        Ok(Source { destination: 0, template, arrivals: Arrivals::Recorded { at } })
    };
    kinds.into_iter().map(source).collect()
}

/// The destination as it was, as far as that is known.
async fn model(app: &App, no: DestinationNo, start: Timestamp) -> Result<(Model, Vec<String>), ApiError> {
    let days = app.engine.look_at([no], move |view| {
        view.lane(no).map(|lane| lane.state().timeouts.days().collect::<Vec<_>>()).unwrap_or_default()
    });
    let mut took = Sketch::new();
    for (_, bytes) in days.await? {
        if let Ok(day) = Sketch::decode(&bytes) {
            took.merge(&day);
        }
    }
    let (latency, said) = latency(&took);
    let mut assumes = vec![said];
    let hours = app.engine.store().hours(Of::Destination(no), start).await?;
    let failed =
        |hour: &&Hour| hour.tally.attempts >= ENOUGH && hour.tally.successes * 2 < hour.tally.attempts;
    let troubles: Vec<Trouble> = hours
        .iter()
        .filter(failed)
        .map(|hour| Trouble {
            from: hour.start,
            to: hour.start + Millis::hours(1),
            kind: TroubleKind::Errors { status: 500 },
        })
        .collect();
    if !troubles.is_empty() {
        assumes.push(format!("in {} hours most attempts failed: it answers 500 in these", troubles.len()));
    }
    let well = || hours.iter().filter(|hour| !failed(hour));
    let attempts: u64 = well().map(|hour| hour.tally.attempts).sum();
    let timeouts: u64 = well().map(|hour| hour.tally.timeouts).sum();
    let lost = if attempts > 0 { timeouts as f64 / attempts as f64 } else { 0.0 };
    if lost > 0.0 {
        assumes.push(format!("otherwise it leaves {:.1}% of the attempts unanswered", lost * 100.0));
    }
    Ok((Model::healthy(latency).troubled(troubles).losing(lost), assumes))
}

fn latency(took: &Sketch) -> (Latency, String) {
    let at = |permyriad| match took.quantile(permyriad) {
        Quantile::At(time) => Some(time.get().max(1) as f64),
        Quantile::AmongCensored { beyond } => Some(beyond.get().max(1) as f64),
        Quantile::Empty => None,
    };
    /// How many standard deviations the 99th percentile is from the middle.
    const P99: f64 = 2.326;
    match (at(5_000), at(9_900)) {
        (Some(median_ms), Some(slow)) => {
            let sigma = ((slow / median_ms).ln() / P99).clamp(0.0, 3.0);
            let said = format!(
                "it answers as in the last days: half within {median_ms:.0} ms, 99 of 100 within {slow:.0} ms"
            );
            (Latency::LogNormal { median_ms, sigma }, said)
        }
        _ => (USUAL, "nothing is known of its response times: half within 200 ms".to_owned()),
    }
}
