//! Collects what is to be written, hands it to the store in groups, and knows who waits for which commit.

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::time::Timestamp;
use tidegate_store::Store;
use tidegate_store::catalogue::AuditEntry;
use tidegate_store::record::{HoldRow, LaneSave, NoticeRow, OrderDone, Record, Settled};

use crate::dispatcher::{LaneId, Mark};

/// Called when everything is committed that was collected before it.
type Waiter = Box<dyn FnOnce() + Send>;

/// What waits for the next record, and what was handed over.
#[derive(Default)]
pub(super) struct Recorder {
    pub(super) settled: Vec<Settled>,
    pub(super) holds: Vec<HoldRow>,
    pub(super) notices: Vec<NoticeRow>,
    /// Orders of other nodes that are carried out.
    pub(super) orders: Vec<OrderDone>,
    /// Who asked for what is in it.
    pub(super) audit: Vec<AuditEntry>,
    /// Lanes whose state may have changed.
    pub(super) touched: BTreeSet<LaneId>,
    marks: BTreeMap<LaneId, Mark>,
    waiters: Vec<Waiter>,
    under_way: BTreeMap<u64, Handed>,
    tickets: u64,
    unsaved: usize,
}

/// A record that the store has, but has not committed yet.
struct Handed {
    marks: BTreeMap<LaneId, Mark>,
    waiters: Vec<Waiter>,
    settled: usize,
}

impl Recorder {
    /// A delivery has a new state, and its lane has got this far.
    pub(super) fn settle(&mut self, lane: LaneId, mark: Mark, settled: Settled) {
        self.settled.push(settled);
        self.await_commit(lane, mark);
    }
    /// A lane has got this far, and waits until that is committed.
    pub(super) fn await_commit(&mut self, lane: LaneId, mark: Mark) {
        self.marks.insert(lane, mark);
        self.touched.insert(lane);
    }
    /// Do this when everything so far is committed.
    pub(super) fn then(&mut self, tell: impl FnOnce() + Send + 'static) {
        self.waiters.push(Box::new(tell));
    }
    /// Results that are not committed.
    pub(super) fn unsaved(&self) -> usize {
        self.unsaved + self.settled.len()
    }

    /// Lanes that have got further.
    pub(super) fn lanes(&self) -> impl Iterator<Item = LaneId> {
        self.marks.keys().copied()
    }

    /// Hands what was collected to the store as one record. If there is nothing to write, waiters are told when the last record
    /// under way is committed, or at once if there is none. `awaited`: some lane starts nothing until this is committed.
    pub(super) fn flush(&mut self, store: &Store, now: Timestamp, lanes: Vec<LaneSave>, awaited: bool) {
        let nothing = self.settled.is_empty()
            && self.holds.is_empty()
            && self.notices.is_empty()
            && self.orders.is_empty()
            && self.audit.is_empty()
            && lanes.is_empty()
            && self.marks.is_empty();
        if nothing {
            match self.under_way.last_entry() {
                Some(mut last) => last.get_mut().waiters.append(&mut self.waiters),
                None => self.waiters.drain(..).for_each(|tell| tell()),
            }
            return;
        }
        self.tickets += 1;
        let settled = std::mem::take(&mut self.settled);
        self.unsaved += settled.len();
        let handed = Handed {
            marks: std::mem::take(&mut self.marks),
            waiters: std::mem::take(&mut self.waiters),
            settled: settled.len(),
        };
        self.under_way.insert(self.tickets, handed);
        store.record(Record {
            now,
            ticket: self.tickets,
            settled,
            lanes,
            holds: std::mem::take(&mut self.holds),
            notices: std::mem::take(&mut self.notices),
            orders: std::mem::take(&mut self.orders),
            audit: std::mem::take(&mut self.audit),
            awaited,
        });
    }

    /// A record is committed, but for rows that the store has refused and told of: how far its lanes have got.
    pub(super) fn committed(&mut self, ticket: u64) -> BTreeMap<LaneId, Mark> {
        let Some(handed) = self.under_way.remove(&ticket) else { return BTreeMap::new() };
        self.unsaved -= handed.settled;
        handed.waiters.into_iter().for_each(|tell| tell());
        handed.marks
    }
}
