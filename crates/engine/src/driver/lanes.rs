//! What the driver knows of each lane besides what the machine knows: where it sends, and what is stored of it.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_core::health::DisabledCause;
use tidegate_core::lane::{LaneState, LastStop, SavedLane};
use tidegate_core::policy::Policy;
use tidegate_core::time::{Millis, Mono, Now};
use tidegate_store::lane::StoredLane;
use tidegate_store::record::LaneSave;
use tidegate_store::{AccountNo, DestinationNo};

use crate::dispatcher::{Lane, LaneId};
use crate::sender::{Endpoint, Pool};

/// What timeouts have learned is large and changes slowly: a crash may cost this much of it.
const TIMEOUTS_EVERY: Millis = Millis::minutes(1);

/// A destination that is new, or read from the store.
#[derive(Clone, Debug)]
pub struct NewLane {
    /// Its number.
    pub destination: DestinationNo,
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

impl NewLane {
    /// The state behind its gates: as it was, or that of a destination that nothing is known of.
    pub(super) fn state(&self, now: Now, last_stop: LastStop) -> LaneState {
        let saved = self.stored.as_ref().and_then(|stored| {
            let state = stored.state.as_deref()?;
            let saved = SavedLane::decode(state, stored.timeouts.as_deref());
            if saved.is_none() {
                tracing::error!(
                    destination = self.destination.0,
                    "the stored state of a lane cannot be read: it starts anew"
                );
            }
            saved
        });
        let mut state = match saved {
            Some(saved) => saved.restore(&self.policy, now, last_stop),
            None => LaneState::new(&self.policy, now),
        };
        if self.disabled {
            state.standing.disabled = Some((now.wall, DisabledCause::ByRequest));
        }
        state
    }
}

/// One lane, as the driver sees it.
pub(super) struct Record {
    pub(super) destination: DestinationNo,
    pub(super) account: AccountNo,
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) pool: Arc<Pool>,
    /// Lines are looked at in the order of their keys: where the next look begins.
    pub(super) after_key: Option<Arc<str>>,
    /// The destination was deleted.
    pub(super) retired: bool,
    /// What the store has, so that nothing is written twice.
    state: Vec<u8>,
    timeouts_at: Mono,
}

impl Record {
    pub(super) fn new(lane: &NewLane, now: Now) -> Self {
        Self {
            destination: lane.destination,
            account: lane.account,
            endpoint: Arc::clone(&lane.endpoint),
            pool: Arc::default(),
            after_key: None,
            retired: false,
            state: lane.stored.as_ref().and_then(|stored| stored.state.clone()).unwrap_or_default(),
            timeouts_at: now.mono,
        }
    }

    /// Connections to another place are of no use.
    pub(super) fn point_to(&mut self, endpoint: Arc<Endpoint>) {
        if endpoint.target != self.endpoint.target {
            self.pool = Arc::default();
        }
        self.endpoint = endpoint;
    }

    /// What of the lane's state the store does not have yet. With `all`, also what its timeouts have learned lately.
    pub(super) fn unsaved(&mut self, lane: &Lane, now: Now, all: bool) -> Option<LaneSave> {
        let state = lane.encode_state(now);
        let state = (state != self.state).then_some(state);
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
    pub(super) fn find(&self, destination: DestinationNo) -> Option<LaneId> {
        self.by_destination.get(&destination).copied()
    }
}
