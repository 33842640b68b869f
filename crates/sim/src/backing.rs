//! What survives a crash: open deliveries and lanes, in memory, behind the verbs of the store.
//!
//! Correctness runs will use the real SQLite store through the same verbs; this one is for experiments that need speed.
//! Nothing reaches it but through [`Memory::accept`], [`Memory::settle`] and [`Memory::save_lane`], and the driver calls
//! these only at a commit, so what a crash takes with it is exactly what was not committed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tidegate_core::delivery::{Delivery, OwnTime, Place, Status};
use tidegate_core::id::DeliveryId;
use tidegate_core::lane::SavedLane;
use tidegate_core::order::Line;
use tidegate_core::policy::Policy;
use tidegate_core::refill::{Group, Refill, Wanted};
use tidegate_core::time::Timestamp;
use tidegate_engine::dispatcher::{Lane, LaneId};

/// The durable state of a simulated node.
#[derive(Debug, Default)]
pub struct Memory {
    lanes: Vec<Stored>,
    /// Open deliveries with an expiry, by that.
    expiries: BTreeSet<(Timestamp, usize, Place)>,
    open: usize,
}

#[derive(Debug, Default)]
struct Stored {
    open: BTreeMap<Place, Delivery>,
    /// State and timeouts, encoded: so that every restart reads what the real store would hold.
    saved: Option<(Vec<u8>, Vec<u8>)>,
}

impl Memory {
    /// Room for one more lane.
    pub fn add_lane(&mut self) {
        self.lanes.push(Stored::default());
    }
    /// Open deliveries of a lane.
    pub fn open(&self, lane: LaneId) -> impl Iterator<Item = &Delivery> {
        self.lanes[lane.index()].open.values()
    }
    /// How many these are.
    pub fn open_count(&self, lane: LaneId) -> usize {
        self.lanes[lane.index()].open.len()
    }
    /// Open deliveries of all lanes.
    pub const fn open_total(&self) -> usize {
        self.open
    }
    /// A lane's state as it was last stored.
    pub fn saved_lane(&self, index: usize) -> Option<SavedLane> {
        let (state, timeouts) = self.lanes[index].saved.as_ref()?;
        Some(SavedLane::decode(state, Some(timeouts)).expect("it was encoded here"))
    }

    /// A delivery is accepted.
    pub fn accept(&mut self, lane: LaneId, delivery: &Delivery) {
        if delivery.status.is_final() {
            return;
        }
        if let Some(expiry) = delivery.expires_at {
            self.expiries.insert((expiry, lane.index(), delivery.place));
        }
        self.open += 1;
        self.lanes[lane.index()].open.insert(delivery.place, delivery.clone());
    }

    /// A delivery has a new state. One that is final already stays so. Says whether anything changed.
    pub fn settle(&mut self, lane: LaneId, delivery: &Delivery) -> bool {
        let open = &mut self.lanes[lane.index()].open;
        if !delivery.status.is_final() {
            return open.get_mut(&delivery.place).map(|stored| stored.clone_from(delivery)).is_some();
        }
        if let Some(expiry) = delivery.expires_at {
            self.expiries.remove(&(expiry, lane.index(), delivery.place));
        }
        let ended = open.remove(&delivery.place).is_some();
        self.open -= usize::from(ended);
        ended
    }

    /// A lane has a new state.
    pub fn save_lane(&mut self, lane: LaneId, saved: &SavedLane) {
        self.lanes[lane.index()].saved = Some((saved.encode_state(), saved.encode_timeouts()));
    }

    /// When the next open delivery goes stale.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.expiries.first().map(|(at, ..)| *at)
    }

    /// Open deliveries that are stale at `now`: the sweeper ends those that no lane has in memory.
    pub fn stale(&self, now: Timestamp) -> Vec<(usize, Delivery)> {
        (self.expiries.iter())
            .take_while(|(at, ..)| *at <= now)
            .filter_map(|(_, lane, place)| Some((*lane, self.lanes[*lane].open.get(place)?.clone())))
            .collect()
    }

    /// The first open deliveries of each shelf and line of `lane`.
    pub fn refill(&self, lane: &Lane, now: Timestamp) -> Refill {
        let open = self.lanes[lane.id().index()].open.values();
        let waits =
            |delivery: &&Delivery| matches!(delivery.status, Status::RetryScheduled { at, .. } if at > now);
        let (mut timed, due): (Vec<&Delivery>, Vec<&Delivery>) = open.partition(waits);
        timed.sort_by_key(|delivery| own_time(delivery));
        let policy = lane.policy();
        let (lined, free): (Vec<&Delivery>, Vec<&Delivery>) =
            due.into_iter().partition(|delivery| policy.ordering.line(delivery).is_some());
        let mut search = Search { policy, wanted: lane.wanted(), refill: Refill::default() };
        search.take_free(&free);
        let heads = search.take_timed(&timed);
        search.take_lines(lined, lane.halted(), &heads);
        search.refill
    }
}

/// One refill: a walk over what is open. The real store does the same with an index per part.
struct Search<'a> {
    policy: &'a Policy,
    wanted: Wanted,
    refill: Refill,
}

impl Search<'_> {
    fn group(&self, delivery: &Delivery) -> Group {
        Group { priority: delivery.priority, quiet: self.policy.quiet.mask_for(&delivery.event_type) }
    }

    /// Those that keep no order, in order of place.
    fn take_free(&mut self, free: &[&Delivery]) {
        let mut counts: HashMap<Group, usize> = HashMap::new();
        for delivery in free {
            let group = self.group(delivery);
            let count = counts.entry(group).or_default();
            *count += 1;
            if *count <= self.wanted.per_shelf {
                self.refill.deliveries.push((*delivery).clone());
            } else if *count == self.wanted.per_shelf + 1 {
                self.refill.more.shelves.push(group);
            }
        }
    }

    /// Those that wait for their own time, by that. Returns the lines that such a one heads, and whether it was taken.
    fn take_timed(&mut self, timed: &[&Delivery]) -> HashMap<Line, bool> {
        let cut = timed.get(self.wanted.timed).map(|delivery| own_time(delivery).0);
        self.refill.more.timed_from = cut;
        let mut heads = HashMap::new();
        for delivery in timed {
            // Deliveries of one time stay together: the lane remembers the rest by its time alone.
            let taken = cut.is_none_or(|cut| own_time(delivery).0 < cut);
            if taken {
                self.refill.deliveries.push((*delivery).clone());
            }
            let retries =
                matches!(delivery.status, Status::RetryScheduled { reason: OwnTime::RetryBackoff, .. });
            if let Some(line) = self.policy.ordering.line(delivery).filter(|_| retries) {
                heads.insert(line, taken);
            }
        }
        heads
    }

    /// The first of each line that does not stand and whose head does not wait for its next retry.
    fn take_lines(
        &mut self,
        mut lined: Vec<&Delivery>,
        halted: &[(Line, DeliveryId)],
        waiting: &HashMap<Line, bool>,
    ) {
        // One that was tried has its turn before those of an earlier place.
        lined.sort_by_key(|delivery| (delivery.attempts_made == 0, delivery.place));
        let mut counts: HashMap<Line, Option<usize>> = halted
            .iter()
            .map(|(line, _)| line)
            .chain(waiting.keys())
            .map(|line| (line.clone(), None))
            .collect();
        let mut heads: HashMap<Group, usize> = HashMap::new();
        let mut behind_waiting: BTreeSet<Line> = BTreeSet::new();
        for delivery in lined {
            let line =
                self.policy.ordering.line(delivery).expect("the caller has seen that it stands in one");
            let group = self.group(delivery);
            let count = counts.entry(line.clone()).or_insert_with(|| {
                let heads = heads.entry(group).or_default();
                *heads += 1;
                (*heads <= self.wanted.lines).then_some(0)
            });
            match count {
                Some(count) => {
                    *count += 1;
                    if *count <= self.wanted.per_line {
                        self.refill.deliveries.push(delivery.clone());
                    } else if *count == self.wanted.per_line + 1 {
                        self.refill.more.lines.push(line);
                    }
                }
                // If the lane gets the head that waits, it must know that there is more behind it.
                None if waiting.get(&line) == Some(&true) => behind_waiting.extend([line]),
                None if waiting.contains_key(&line) || halted.iter().any(|(stands, _)| *stands == line) => {}
                None => self.refill.more.other_lines.push(group),
            }
        }
        self.refill.more.lines.extend(behind_waiting);
    }
}

fn own_time(delivery: &Delivery) -> (Timestamp, Place) {
    match delivery.status {
        Status::RetryScheduled { at, .. } => (at, delivery.place),
        _ => (Timestamp::MIN, delivery.place),
    }
}
