//! What the writer is asked for, and what became of it.

use tidegate_core::time::{Millis, Timestamp};
use tokio::sync::oneshot;

use crate::catalogue::{AuditEntry, Change, Changed};
use crate::cluster::OrderNo;
use crate::event::{Accept, Accepted, NewReplay};
use crate::job::{Job, Progress};
use crate::record::Record;
use crate::{DestinationNo, StoreError};

/// Where an answer goes.
pub(crate) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// Events in one commit: past this a larger group gains nothing, and its first waits for its last.
const GROUP_EVENTS: usize = 4_096;
/// Payload bytes in one commit: a commit that writes more would make small requests wait.
const GROUP_BYTES: usize = 8 << 20;

/// How long they are kept, in case the clock was set.
pub(crate) const KEYS_KEPT: Millis = Millis::hours(48);
/// Deliveries that are made ready in one go: many came due at once after an outage, and others wait for the writer.
pub(crate) const PROMOTED: u64 = 1_000;

/// One thing to be written.
pub(crate) enum Work {
    Accept(Box<Accepting>),
    Replays {
        replays: Vec<NewReplay>,
        job: Option<Job>,
        audit: Option<AuditEntry>,
        answer: Answer<Progress>,
    },
    Record {
        record: Record,
        /// A record that was refused as a whole is tried in parts, one after the other: it is in with its last.
        last: bool,
    },
    Change {
        change: Change,
        answer: Answer<Changed>,
    },
    PutJob {
        job: Job,
        answer: Answer<Progress>,
    },
    Promote {
        destination: DestinationNo,
        now: Timestamp,
        answer: Answer<u64>,
    },
    PostOrder {
        destination: DestinationNo,
        body: Vec<u8>,
        audit: Option<AuditEntry>,
        answer: Answer<OrderNo>,
    },
    /// Not where retention has a thread of its own.
    Forget(Forgetting),
    Close(oneshot::Sender<()>),
}

/// A step of retention that is asked for.
pub(crate) struct Forgetting {
    pub(crate) before: Timestamp,
    pub(crate) limit: usize,
    pub(crate) answer: Answer<u64>,
}

/// A request on its way into the store.
pub(crate) struct Accepting {
    pub(crate) accept: Accept,
    pub(crate) answer: Answer<Accepted>,
}

/// What became of a thing, to be told after the commit.
#[derive(Debug)]
pub(crate) enum Done {
    Accepted(Accepted),
    /// Which of the replays are in.
    Replayed(Vec<bool>),
    Changed(Changed),
    Counted(u64),
    Posted(OrderNo),
    /// A record, and how many of its results were refused because another node works their destinations by now.
    Stale(usize),
    /// The progress of a job that is another's by now, or has ended: nothing is written.
    Lost,
    Nothing,
}

impl Work {
    /// Tells whoever asked that it could not be done. Records have nobody: what is in them is sent again after a restart.
    pub(crate) fn fail(self, error: &StoreError) {
        match self {
            Self::Accept(accepting) => drop(accepting.answer.send(Err(error.clone()))),
            Self::Change { answer, .. } => drop(answer.send(Err(error.clone()))),
            Self::Replays { answer, .. } | Self::PutJob { answer, .. } => {
                drop(answer.send(Err(error.clone())));
            }
            Self::PostOrder { answer, .. } => drop(answer.send(Err(error.clone()))),
            Self::Promote { answer, .. } | Self::Forget(Forgetting { answer, .. }) => {
                drop(answer.send(Err(error.clone())));
            }
            Self::Close(closed) => drop(closed.send(())),
            Self::Record { .. } => {}
        }
    }

    /// Tells whoever asked that nobody knows yet what became of it; the work itself goes on.
    pub(crate) fn give_up(&mut self, error: &StoreError) {
        match self {
            Self::Accept(accepting) => refuse(&mut accepting.answer, error),
            Self::Change { answer, .. } => refuse(answer, error),
            Self::Replays { answer, .. } | Self::PutJob { answer, .. } => {
                refuse(answer, error);
            }
            Self::PostOrder { answer, .. } => refuse(answer, error),
            Self::Promote { answer, .. } | Self::Forget(Forgetting { answer, .. }) => refuse(answer, error),
            Self::Close(_) | Self::Record { .. } => {}
        }
    }

    /// Lines of the audit log that are committed with it. A change, which may come to nothing, sees to its own.
    pub(crate) fn audit(&self) -> &[AuditEntry] {
        match self {
            Self::Record { record, .. } => &record.audit,
            Self::Replays { audit, .. } | Self::PostOrder { audit, .. } => audit.as_slice(),
            _ => &[],
        }
    }

    /// Events or deliveries in it, and bytes.
    fn weight(&self) -> (usize, usize) {
        match self {
            Self::Accept(accepting) => {
                let events = &accepting.accept.events;
                (events.len(), events.iter().map(|event| event.message.payload.len()).sum())
            }
            Self::Replays { replays, .. } => (replays.len(), 0),
            Self::Record { record, .. } => (record.settled.len(), 0),
            Self::Forget(Forgetting { limit, .. }) => (*limit, 0),
            _ => (1, 0),
        }
    }
}

/// Answers with an error; what is answered later is heard by nobody.
fn refuse<T>(answer: &mut Answer<T>, error: &StoreError) {
    let (nobody, _) = oneshot::channel();
    drop(std::mem::replace(answer, nobody).send(Err(error.clone())));
}

/// How much is in a group.
#[derive(Debug, Default)]
pub(crate) struct Weight {
    events: usize,
    bytes: usize,
    closes: bool,
}

impl Weight {
    /// Whether `work` still fits; if so, it is counted. Nothing comes after a close.
    pub(crate) fn admits(&mut self, work: &Work) -> bool {
        let (events, bytes) = work.weight();
        let fits = !self.closes && self.events + events <= GROUP_EVENTS && self.bytes + bytes <= GROUP_BYTES;
        self.events += events;
        self.bytes += bytes;
        self.closes |= matches!(work, Work::Close(_));
        fits
    }
}
