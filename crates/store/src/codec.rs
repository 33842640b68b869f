//! How values of the domain lie in columns: numbers as signed integers, enums as small integers or short codes.

use std::sync::Arc;

use tidegate_core::delivery::{End, HoldReason, OwnTime, Status};
use tidegate_core::gate::Probe;
use tidegate_core::id::{Id, Kind};
use tidegate_core::sequence::Sequence;
use tidegate_core::time::Timestamp;

use crate::catalogue::AuditEntry;
use crate::event::Body;
use crate::job::{Job, JobKind, JobState};
use crate::list::Stage;
use crate::source::{Fault, Result, Value};

/// A column holds something that this binary never writes.
pub(crate) fn strange(what: &str, value: impl std::fmt::Display) -> Fault {
    let text = format!("the store holds {what} {value}, which is none");
    Fault::Strange(text)
}

/// A number of acceptance as a column holds it. Those that would not fit are never given out.
pub(crate) fn seq(sequence: Sequence) -> i64 {
    i64::try_from(sequence.get()).unwrap_or(i64::MAX)
}
/// The number again.
pub(crate) fn sequence(stored: i64) -> Sequence {
    Sequence::from_stored(u64::try_from(stored).unwrap_or(0))
}
/// The chance in an id: 60 bits.
pub(crate) fn salt<K: Kind>(id: Id<K>) -> i64 {
    i64::try_from(id.salt()).unwrap_or(i64::MAX)
}
/// An id from its two columns.
pub(crate) fn id<K: Kind>(seq: i64, salt: i64) -> Id<K> {
    Id::from_parts(sequence(seq), u64::try_from(salt).unwrap_or(0))
}
/// An id that has no number, as a blob that sorts as the id does.
pub(crate) fn bits<K: Kind>(id: Id<K>) -> [u8; 16] {
    id.to_bits().to_be_bytes()
}
/// The id again.
pub(crate) fn from_bits<K: Kind>(bytes: [u8; 16]) -> Id<K> {
    Id::from_bits(u128::from_be_bytes(bytes))
}

/// A time from its column.
pub(crate) const fn time(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}
/// A time that may be missing.
pub(crate) fn maybe_ms(at: Option<Timestamp>) -> Option<i64> {
    at.map(Timestamp::as_millis)
}

/// A count that a column holds.
pub(crate) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
/// The count again.
pub(crate) fn uncount(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
/// A length as a column holds it.
pub(crate) fn length(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The number of a stage.
pub(crate) const fn stage(stage: Stage) -> i64 {
    match stage {
        Stage::Open => 0,
        Stage::Delivered => 1,
        Stage::DeadLetter => 2,
        Stage::Expired => 3,
        Stage::Cancelled => 4,
    }
}

/// A status in its columns: stage, own time and its reason, how it ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StatusColumns {
    pub(crate) stage: i64,
    pub(crate) retry_at: Option<i64>,
    pub(crate) retry_reason: Option<i64>,
    pub(crate) end_code: Option<String>,
}

/// The stage of an end.
pub(crate) const fn stage_of(end: &End) -> Stage {
    match end {
        End::Delivered => Stage::Delivered,
        End::DeadLetter(_) => Stage::DeadLetter,
        End::Expired(_) => Stage::Expired,
        End::Cancelled(_) => Stage::Cancelled,
    }
}

/// Puts a status into its columns. In flight is stored as ready: another process would have to send it again.
pub(crate) fn status_columns(status: &Status) -> StatusColumns {
    let open = |own: Option<(Timestamp, OwnTime)>| StatusColumns {
        stage: 0,
        retry_at: own.map(|(at, _)| at.as_millis()),
        retry_reason: own.map(|(_, reason)| i64::from(reason == OwnTime::RetryBackoff)),
        end_code: None,
    };
    match status {
        Status::Queued | Status::Delivering => open(None),
        Status::RetryScheduled { at, reason } => open(Some((*at, *reason))),
        Status::Final(end) => StatusColumns {
            stage: stage(stage_of(end)),
            retry_at: None,
            retry_reason: None,
            end_code: Some(end.to_code()),
        },
    }
}

/// The status again.
pub(crate) fn status(columns: &StatusColumns) -> Result<Status> {
    match (&columns.end_code, columns.retry_at) {
        (Some(code), _) => {
            End::from_code(code).map(Status::Final).ok_or_else(|| strange("the end code", code))
        }
        (None, Some(at)) => {
            let reason =
                if columns.retry_reason == Some(1) { OwnTime::RetryBackoff } else { OwnTime::Scheduled };
            Ok(Status::RetryScheduled { at: time(at), reason })
        }
        (None, None) => Ok(Status::Queued),
    }
}

/// A body's kind and content type.
pub(crate) fn body_columns(body: &Body) -> (i64, Option<&str>) {
    match body {
        Body::Json => (0, None),
        Body::Text(content_type) => (1, content_type.as_deref()),
        Body::JsonAs(content_type) => (2, Some(content_type)),
    }
}
/// The body's kind again.
pub(crate) fn body(kind: i64, content_type: Option<Arc<str>>) -> Result<Body> {
    match (kind, content_type) {
        (0, _) => Ok(Body::Json),
        (1, content_type) => Ok(Body::Text(content_type)),
        (2, Some(content_type)) => Ok(Body::JsonAs(content_type)),
        (other, _) => Err(strange("the body kind", other)),
    }
}

/// What an attempt was to find out.
pub(crate) fn probe_column(probe: Option<Probe>) -> Option<i64> {
    probe.map(|probe| i64::from(probe == Probe::Throttle))
}
/// That again.
pub(crate) fn probe(column: Option<i64>) -> Option<Probe> {
    column.map(|column| if column == 1 { Probe::Throttle } else { Probe::Breaker })
}

/// A hold's reason from its word.
pub(crate) fn hold_reason(word: &str) -> Result<HoldReason> {
    let known = HoldReason::ALL.into_iter().find(|reason| reason.word() == word);
    known.ok_or_else(|| strange("the hold reason", word))
}

/// The number of a kind of job.
pub(crate) fn job_kind_column(kind: JobKind) -> i64 {
    i64::from(kind == JobKind::Cancellation)
}
/// The kind again.
pub(crate) fn job_kind(column: i64) -> JobKind {
    if column == 1 { JobKind::Cancellation } else { JobKind::Replay }
}
/// A job in its columns.
pub(crate) fn job_columns(job: &Job) -> [Value<'_>; 11] {
    [
        bits(job.id).into(),
        job.account.0.into(),
        job_kind_column(job.kind).into(),
        (&job.request).into(),
        job.created_at.as_millis().into(),
        job_state_column(job.state).into(),
        job.position.map(seq).into(),
        job.total.map(count).into(),
        count(job.done).into(),
        count(job.skipped).into(),
        maybe_ms(job.finished_at).into(),
    ]
}
/// A line of the audit log in its columns.
pub(crate) fn audit_columns(entry: &AuditEntry) -> [Value<'_>; 6] {
    [
        entry.account.0.into(),
        entry.at.as_millis().into(),
        entry.actor.map(bits).into(),
        (&entry.action).into(),
        (&entry.subject).into(),
        (&entry.detail).into(),
    ]
}
/// The number of a job's state.
pub(crate) const fn job_state_column(state: JobState) -> i64 {
    match state {
        JobState::Running => 0,
        JobState::Done => 1,
        JobState::Stopped => 2,
    }
}
/// The state again.
pub(crate) const fn job_state(column: i64) -> JobState {
    match column {
        0 => JobState::Running,
        1 => JobState::Done,
        _ => JobState::Stopped,
    }
}
