//! What the driver knows of each lane besides what the machine knows: where it sends, and what is stored of it.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_core::health::DisabledCause;
use tidegate_core::id::DestinationId;
use tidegate_core::lane::{LaneState, LastStop, SavedLane};
use tidegate_core::policy::Policy;
use tidegate_core::slots::{Epoch, Slot};
use tidegate_core::time::{Millis, Mono, Now, Timestamp};
use tidegate_store::lane::StoredLane;
use tidegate_store::record::LaneSave;
use tidegate_store::{AccountNo, DestinationNo};
use tokio::sync::watch;

use crate::dispatcher::{Lane, LaneId};
use crate::orders::Progress;
use crate::sender::{Endpoint, Pool};

/// What timeouts have learned is large and changes slowly: a crash may cost this much of it.
const TIMEOUTS_EVERY: Millis = Millis::minutes(1);

/// A destination that is new, or read from the store.
#[derive(Clone, Debug)]
pub struct NewLane {
    /// Its number.
    pub destination: DestinationNo,
    /// What people know it by; `None`: it is deleted, and only ends what it has left.
    pub id: Option<DestinationId>,
    /// Whose.
    pub account: AccountNo,
    /// When, how fast, how many at once.
    pub policy: Arc<Policy>,
    /// Where to, and how it is signed.
    pub endpoint: Arc<Endpoint>,
    /// It begins switched off.
    pub disabled: bool,
    /// Its state from before; `None`: it is new.
    pub stored: Option<StoredLane>,
}

/// What the store knows of a lane.
#[derive(Clone, Copy, Debug)]
pub enum Past<'a> {
    /// Nothing, because it is new.
    None,
    /// Nothing, but it may have sent something: a crash may have come before its first state was stored.
    Unknown,
    /// This.
    Stored(&'a StoredLane),
}

/// The state behind a lane's gates: as it was stored, or that of a destination that nothing is known of.
pub fn restore(past: Past<'_>, policy: &Policy, disabled: bool, now: Now, last_stop: LastStop) -> LaneState {
    let saved = if let Past::Stored(stored) = past { read(stored) } else { None };
    let mut new = LaneState::new(policy, now);
    new.standing.disabled = disabled.then_some((now.wall, DisabledCause::ByRequest));
    match (saved, past) {
        (Some(saved), _) => saved.restore(policy, now, last_stop),
        (None, Past::None) => new,
        (None, _) => new.save(policy, now).restore(policy, now, last_stop),
    }
}

fn read(stored: &StoredLane) -> Option<SavedLane> {
    let saved = SavedLane::decode(stored.state.as_deref()?, stored.timeouts.as_deref());
    if saved.is_none() {
        tracing::error!(
            destination = stored.destination.0,
            "the stored state of a lane cannot be read: it starts anew"
        );
    }
    saved
}

/// One lane, as the driver sees it.
pub(super) struct Record {
    pub(super) destination: DestinationNo,
    /// For the log: nobody knows a number.
    pub(super) id: Option<DestinationId>,
    pub(super) account: AccountNo,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) pool: Arc<Pool>,
    /// Lines are looked at in the order of their keys: where the next look begins.
    pub(super) after_key: Option<Arc<str>>,
    /// The destination was deleted.
    pub(super) retired: bool,
    /// It began switched off, and may never have been stored.
    pub(super) disabled: bool,
    /// Grows with each change of hands: what was asked for in an earlier tenure counts no more.
    pub(super) tenure: u64,
    /// The epoch of its slot in this tenure: what comes about in it is written under that or not at all.
    pub(super) epoch: Option<Epoch>,
    /// How far orders of other nodes have got in this tenure.
    pub(super) orders: Progress,
    /// Where there are several nodes: when it is dropped, attempts in flight are cut off.
    pub(super) lifeline: watch::Sender<()>,
    /// When what is known of it was stored, if another node works it.
    pub(super) as_of: Option<Timestamp>,
    /// What that node had in flight then; or what this one has told others of.
    pub(super) shown_in_flight: u32,
    /// What the store has, so that nothing is written twice.
    state: Vec<u8>,
    timeouts_at: Mono,
}

impl Record {
    pub(super) fn new(lane: &NewLane, now: Now) -> Self {
        Self {
            destination: lane.destination,
            id: lane.id,
            account: lane.account,
            endpoint: Arc::clone(&lane.endpoint),
            pool: Arc::default(),
            after_key: None,
            retired: false,
            disabled: lane.disabled,
            tenure: 0,
            epoch: None,
            orders: Progress::default(),
            lifeline: watch::Sender::new(()),
            as_of: None,
            shown_in_flight: 0,
            state: lane.stored.as_ref().and_then(|stored| stored.state.clone()).unwrap_or_default(),
            timeouts_at: now.mono,
        }
    }

    /// It changed hands: attempts in flight are cut off, and what the store has of it is this.
    pub(super) fn change_hands(&mut self, stored: Option<&StoredLane>, now: Now) {
        self.tenure += 1;
        self.epoch = None;
        self.orders = Progress::default();
        self.after_key = None;
        self.lifeline = watch::Sender::new(());
        self.state = stored.and_then(|stored| stored.state.clone()).unwrap_or_default();
        // Whoever had it before may have died with something in flight: others would see that for ever.
        self.shown_in_flight = stored.map_or(0, |stored| stored.in_flight);
        self.timeouts_at = now.mono;
    }

    /// Attempts in flight are cut off.
    pub(super) fn cut(&mut self) {
        self.lifeline = watch::Sender::new(());
    }

    /// Connections to another place are of no use.
    pub(super) fn point_to(&mut self, endpoint: Arc<Endpoint>) {
        if endpoint.target != self.endpoint.target {
            self.pool = Arc::default();
        }
        self.endpoint = endpoint;
    }

    /// What of the lane's state the store does not have yet. With `all`, also what its timeouts have learned lately;
    /// where others look at it (`shared`), also what is in flight.
    pub(super) fn unsaved(&mut self, lane: &Lane, now: Now, all: bool, shared: bool) -> Option<LaneSave> {
        let state = lane.encode_state(now);
        let in_flight = std::mem::replace(&mut self.shown_in_flight, lane.state().in_flight);
        let state = (state != self.state || shared && in_flight != self.shown_in_flight).then_some(state);
        if let Some(state) = &state {
            self.state.clone_from(state);
        }
        let due = all || now.mono.since(self.timeouts_at) >= TIMEOUTS_EVERY;
        let timeouts = due.then(|| lane.encode_timeouts());
        if due {
            self.timeouts_at = now.mono;
        }
        (state.is_some() || timeouts.is_some()).then_some(LaneSave {
            destination: self.destination,
            state,
            timeouts,
            in_flight: self.shown_in_flight,
            epoch: self.epoch,
        })
    }
}

/// All lanes, by the machine's number and by the destination's.
#[derive(Default)]
pub(super) struct Lanes {
    records: Vec<Record>,
    pub(super) by_destination: HashMap<DestinationNo, LaneId>,
}

impl Lanes {
    pub(super) fn add(&mut self, id: LaneId, record: Record) {
        self.by_destination.insert(record.destination, id);
        self.records.push(record);
    }
    pub(super) fn get(&self, id: LaneId) -> &Record {
        &self.records[id.index()]
    }
    pub(super) fn get_mut(&mut self, id: LaneId) -> &mut Record {
        &mut self.records[id.index()]
    }
    /// The lanes of a slot.
    pub(super) fn of(&self, slot: Slot) -> Vec<LaneId> {
        let lanes = self.by_destination.iter();
        lanes.filter(|(destination, _)| Slot::of(destination.0) == slot).map(|(_, lane)| *lane).collect()
    }
    pub(super) fn find(&self, destination: DestinationNo) -> Option<LaneId> {
        self.by_destination.get(&destination).copied()
    }
}
