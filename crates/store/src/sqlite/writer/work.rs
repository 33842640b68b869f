//! What the writer is asked for, and what became of it.

use tidegate_core::time::Timestamp;
use tokio::sync::oneshot;

use crate::catalogue::{Change, Changed};
use crate::event::{Accept, Accepted, IdempotencyKey, Item, NewReplay};
use crate::job::Job;
use crate::record::Record;
use crate::{DestinationNo, StoreError};

/// Where an answer goes.
pub(in crate::sqlite) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;

/// Events in one commit: past this a larger group gains nothing, and its first waits for its last.
const GROUP_EVENTS: usize = 4_096;
/// Payload bytes in one commit: a commit that writes more would make small requests wait.
const GROUP_BYTES: usize = 8 << 20;

/// One thing to be written.
pub(in crate::sqlite) enum Work {
    Accept(Box<Accepting>),
    Replays { replays: Vec<NewReplay>, job: Option<Job>, answer: Answer<()> },
    Record(Record),
    Change { change: Change, answer: Answer<Changed> },
    PutJob { job: Job, answer: Answer<()> },
    Promote { destination: DestinationNo, now: Timestamp, answer: Answer<u64> },
    Forget { before: Timestamp, limit: usize, answer: Answer<u64> },
    Close(oneshot::Sender<()>),
}

/// A request on its way into the store.
pub(in crate::sqlite) struct Accepting {
    pub(in crate::sqlite) accept: Accept,
    /// The answer that is stored with the key, once it was put into bytes: that can be done only once.
    pub(in crate::sqlite) rendered: Option<Rendered>,
    pub(in crate::sqlite) answer: Answer<Accepted>,
}

/// An answer, and what it says.
pub(in crate::sqlite) struct Rendered {
    pub(in crate::sqlite) key: IdempotencyKey,
    pub(in crate::sqlite) items: Vec<Item>,
    pub(in crate::sqlite) bytes: Vec<u8>,
}

/// What became of a thing, to be told after the commit.
pub(super) enum Done {
    Accepted(Accepted),
    /// Which of the replays are in.
    Replayed(Vec<bool>),
    Changed(Changed),
    Counted(u64),
    Nothing,
}

impl Work {
    /// Tells whoever asked that it could not be done. Records have nobody: what is in them is sent again after a restart.
    pub(in crate::sqlite) fn fail(self, error: &StoreError) {
        match self {
            Self::Accept(accepting) => drop(accepting.answer.send(Err(error.clone()))),
            Self::Change { answer, .. } => drop(answer.send(Err(error.clone()))),
            Self::Replays { answer, .. } | Self::PutJob { answer, .. } => {
                drop(answer.send(Err(error.clone())));
            }
            Self::Promote { answer, .. } | Self::Forget { answer, .. } => {
                drop(answer.send(Err(error.clone())));
            }
            Self::Close(closed) => drop(closed.send(())),
            Self::Record(_) => {}
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
            Self::Record(record) => (record.settled.len(), 0),
            Self::Forget { limit, .. } => (*limit, 0),
            _ => (1, 0),
        }
    }
}

/// How much is in a group.
#[derive(Debug, Default)]
pub(super) struct Weight {
    events: usize,
    bytes: usize,
    closes: bool,
}

impl Weight {
    /// Whether `work` still fits; if so, it is counted. Nothing comes after a close.
    pub(super) fn admits(&mut self, work: &Work) -> bool {
        let (events, bytes) = work.weight();
        let fits = !self.closes && self.events + events <= GROUP_EVENTS && self.bytes + bytes <= GROUP_BYTES;
        self.events += events;
        self.bytes += bytes;
        self.closes |= matches!(work, Work::Close(_));
        fits
    }
}
