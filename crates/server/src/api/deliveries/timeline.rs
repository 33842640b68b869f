//! What happened to a delivery, and why it waited: its own history, and the destination's hold log while it was open.

use serde::Serialize;
use tidegate_core::delivery::{End, HoldReason, Status};
use tidegate_core::order::Line;
use tidegate_core::outcome::Outcome;
use tidegate_core::time::Timestamp;
use tidegate_store::DestinationNo;
use tidegate_store::delivery::{StoredAttempt, StoredDelivery};
use tidegate_store::list::{DeliveryFilter, PageQuery};
use tidegate_store::record::{HoldRow, NoticeRow};
use utoipa::ToSchema;

use super::state::Standing;
use crate::api::error::ApiError;
use crate::api::{App, as_optional_text, as_text};

/// Rows of the hold log and of the notices that one timeline shows, of each the newest.
const MAX_ROWS: usize = 200;

/// One moment in a delivery's life.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TimelineEntry)]
pub(crate) struct Moment {
    /// When.
    #[serde(serialize_with = "as_text")]
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// A status, an outcome, a hold's reason, or what happened to the destination.
    status: String,
    /// When it went on, or is to go on.
    #[serde(serialize_with = "as_optional_text", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, format = DateTime, required = false)]
    retry_at: Option<Timestamp>,
    /// A hold of its destination that has not ended.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    lasts: bool,
    /// A sentence.
    detail: String,
}

impl Moment {
    fn new(at: Timestamp, status: &str, retry_at: Option<Timestamp>, detail: String) -> Self {
        Self { at, status: status.to_owned(), retry_at, lasts: false, detail }
    }
}

/// The timeline of a delivery.
pub(super) async fn of(
    app: &App,
    stored: &StoredDelivery,
    standing: &Standing,
    attempts: &[StoredAttempt],
) -> Result<Vec<Moment>, ApiError> {
    let from = stored.delivery.accepted_at;
    let to = stored.finished_at.unwrap_or_else(|| app.engine.now().wall);
    let (store, destination) = (app.engine.store(), stored.destination);
    let holds = store.holds(destination, from, to, MAX_ROWS).await?;
    let lasting = current_hold(app, destination).await?.filter(|(_, since)| *since < to);
    let notices = store.notices(destination, from, to, MAX_ROWS).await?;
    let entry = app.catalogue.destination(destination);
    let never_quiet =
        entry.is_some_and(|entry| entry.policy.quiet.mask_for(&stored.delivery.event_type).is_empty());
    let delivered = standing.status == Status::Final(End::Delivered);
    let waits = waits(attempts, from, (!delivered).then_some(to));
    let concerns = |reason: HoldReason, since: Timestamp, until: Timestamp| {
        let mut meanwhile = waits.iter().filter(|(begin, end)| *begin < until && since < *end);
        match reason {
            // Of other deliveries of the destination.
            HoldReason::Scheduled | HoldReason::RetryBackoff => false,
            // Not by the windows that there are now: by those that there were, if it waited to their end.
            HoldReason::QuietHours if never_quiet => meanwhile.any(|(_, end)| until <= *end),
            _ => meanwhile.next().is_some(),
        }
    };
    let mut all = vec![begin(stored)];
    all.extend(scheduled(stored));
    all.extend(attempts.iter().map(attempted));
    all.extend(attempts.windows(2).filter_map(|pair| retried(&pair[0], &pair[1])));
    all.extend(attempts.last().and_then(|last| was_to_be_retried(last, standing, stored)));
    let meant = |row: &&HoldRow| concerns(row.reason, row.since, row.until);
    all.extend(holds.iter().filter(meant).map(|row| held(row, from, to)));
    let meant = |(reason, since): &(HoldReason, Timestamp)| concerns(*reason, *since, Timestamp::MAX);
    all.extend(lasting.filter(meant).map(|(reason, since)| lasts(reason, since, from)));
    all.extend(behind(app, stored, attempts.first().map_or(to, |first| first.started_at)).await?);
    all.extend(notices.iter().map(noticed));
    all.sort_by_key(|moment| moment.at);
    all.extend(ends(app, stored, standing));
    Ok(all)
}

/// When it waited: until its first attempt, between two, and from the last one to `to`. A hold of its destination at another
/// time is none of its own.
fn waits(attempts: &[StoredAttempt], from: Timestamp, to: Option<Timestamp>) -> Vec<(Timestamp, Timestamp)> {
    let ends = attempts.iter().map(|attempt| attempt.started_at + attempt.response_time);
    let starts = attempts.iter().map(|attempt| attempt.started_at);
    [from].into_iter().chain(ends).zip(starts.chain(to)).filter(|(begin, end)| begin < end).collect()
}

fn begin(stored: &StoredDelivery) -> Moment {
    let detail = match stored.replay_of {
        Some(original) => format!("asked for again: a replay of {original}"),
        None => "accepted".to_owned(),
    };
    Moment::new(stored.delivery.accepted_at, "queued", None, detail)
}

fn scheduled(stored: &StoredDelivery) -> Option<Moment> {
    let at =
        stored.deliver_at.filter(|at| *at > stored.delivery.accepted_at && stored.replay_of.is_none())?;
    let detail = format!("its publisher asked for {at}");
    Some(Moment::new(stored.delivery.accepted_at, HoldReason::Scheduled.word(), Some(at), detail))
}

fn attempted(attempt: &StoredAttempt) -> Moment {
    let number = attempt.number;
    let error = super::attempt::error(&attempt.outcome, attempt.error.as_deref());
    let ended = match error {
        Some(error) => format!("attempt {number}: {error}"),
        None => format!("attempt {number}: {}", attempt.outcome),
    };
    Moment::new(attempt.started_at + attempt.response_time, attempt.outcome.word(), None, ended)
}

/// The delivery that was before it in its line, by the order that its destination keeps now, if that ended while this one
/// waited. (A line that stood until a person resumed it is in the hold log; while it waits, the gates tell.)
async fn behind(
    app: &App,
    stored: &StoredDelivery,
    waited_until: Timestamp,
) -> Result<Option<Moment>, ApiError> {
    let entry = app.catalogue.destination(stored.destination);
    let line = entry.and_then(|entry| entry.policy.ordering.line(&stored.delivery));
    let Some(line) = line else { return Ok(None) };
    let before = Some(stored.delivery.id.sequence());
    let page = PageQuery { account: stored.account, before, limit: 1, oldest_first: false };
    let filter = DeliveryFilter {
        destinations: Some(vec![stored.destination]),
        ordering_key: if let Line::Key(key) = line { Some(key) } else { None },
        ..DeliveryFilter::default()
    };
    let found = app.engine.store().deliveries(page, filter).await?;
    let from = stored.delivery.accepted_at;
    let ended = found.items.first().and_then(|head| Some((head.delivery.id, head.finished_at?)));
    Ok(ended.filter(|(_, at)| from < *at && *at <= waited_until).map(|(head, at)| {
        let detail = format!("it waited its turn behind {head}, which ended at {at}");
        Moment::new(from, HoldReason::OrderBlocked.word(), Some(at), detail)
    }))
}

/// Why it was not tried again at once. What used no attempt goes back to its place, and waits for its destination alone.
fn retried(before: &StoredAttempt, after: &StoredAttempt) -> Option<Moment> {
    if matches!(before.outcome, Outcome::RateLimited { .. } | Outcome::Cancelled) {
        return None;
    }
    let reason = HoldReason::RetryBackoff.word();
    let detail = format!("attempt {} went at {}", after.number, after.started_at);
    Some(Moment::new(before.started_at + before.response_time, reason, Some(after.started_at), detail))
}

/// That it waited for another try which did not come: it is over, or held by its destination by now. While it waits, its last
/// moment tells.
fn was_to_be_retried(last: &StoredAttempt, standing: &Standing, stored: &StoredDelivery) -> Option<Moment> {
    let answered_at = last.started_at + last.response_time;
    let waited = match standing.status {
        Status::Final(End::Cancelled(_) | End::Expired(_)) => {
            stored.finished_at.is_some_and(|at| answered_at < at)
        }
        Status::Queued | Status::Delivering => true,
        Status::Final(_) | Status::RetryScheduled { .. } => false,
    };
    let goes_back = matches!(last.outcome, Outcome::RateLimited { .. } | Outcome::Cancelled);
    if !waited || goes_back || matches!(last.outcome, Outcome::Success { .. }) {
        return None;
    }
    let reason = HoldReason::RetryBackoff.word();
    let detail = format!("it was to be tried again after attempt {}", last.number);
    Some(Moment::new(answered_at, reason, None, detail))
}

/// What keeps its destination from sending, and since when: no row of the log yet.
async fn current_hold(app: &App, no: DestinationNo) -> Result<Option<(HoldReason, Timestamp)>, ApiError> {
    Ok(app.engine.look_at([no], move |view| view.lane(no).and_then(|lane| lane.held())).await?)
}

fn lasts(reason: HoldReason, since: Timestamp, from: Timestamp) -> Moment {
    let detail = format!("its destination has been held by {reason} since {since}");
    Moment { lasts: true, ..Moment::new(since.max(from), reason.word(), None, detail) }
}

fn held(row: &HoldRow, from: Timestamp, to: Timestamp) -> Moment {
    let detail = format!("its destination was held by {} from {} to {}", row.reason, row.since, row.until);
    Moment::new(row.since.max(from), row.reason.word(), Some(row.until.min(to)), detail)
}

fn noticed(row: &NoticeRow) -> Moment {
    Moment::new(row.at, &row.kind, None, row.detail.clone())
}

/// How it stands now: over, on its way, or why it waits.
fn ends(app: &App, stored: &StoredDelivery, standing: &Standing) -> Option<Moment> {
    let now = app.engine.now().wall;
    match standing.status {
        Status::Final(end) => {
            Some(Moment::new(stored.finished_at.unwrap_or(now), end.word(), None, end.to_string()))
        }
        Status::Delivering => {
            Some(Moment::new(now, "delivering", None, "an attempt is in flight".to_owned()))
        }
        Status::Queued | Status::RetryScheduled { .. } => {
            let reason = standing.hold_reason?;
            let detail = match standing.hold() {
                Some(hold) if hold.reason() == reason => hold.to_string(),
                _ => format!("held by {reason}"),
            };
            Some(Moment::new(now, reason.word(), standing.retry_at, detail))
        }
    }
}
