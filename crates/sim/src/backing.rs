//! What survives a crash: open deliveries and lanes, in memory, behind the verbs of the store.
//!
//! Correctness runs will use the real SQLite store through the same verbs; this one is for experiments that need speed.
//! Nothing reaches it but through [`Memory::accept`], [`Memory::settle`] and [`Memory::save_lane`], and the driver calls
//! these only at a commit, so what a crash takes with it is exactly what was not committed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tidegate_core::delivery::{Delivery, OwnTime, Place, Status};
use tidegate_core::lane::SavedLane;
use tidegate_core::order::Line;
use tidegate_core::policy::Policy;
use tidegate_core::time::Timestamp;
use tidegate_engine::dispatcher::{Group, Lane, LaneId, More, Refill, Wanted};

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
    saved: Option<SavedLane>,
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
    pub fn saved_lane(&self, index: usize) -> Option<&SavedLane> {
        self.lanes[index].saved.as_ref()
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
    pub fn save_lane(&mut self, lane: LaneId, saved: SavedLane) {
        self.lanes[lane.index()].saved = Some(saved);
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
        Search { policy: lane.policy(), wanted: lane.wanted(), now, found: Refill::default() }
            .run(lane, &self.lanes[lane.id().index()].open)
    }
}

/// One refill: a walk over what is open, in order of place. The real store does the same with an index per part.
struct Search<'a> {
    policy: &'a Policy,
    wanted: Wanted,
    now: Timestamp,
    found: Refill,
}

impl Search<'_> {
    fn run(mut self, lane: &Lane, open: &BTreeMap<Place, Delivery>) -> Refill {
        let due = |delivery: &Delivery| !matches!(delivery.status, Status::RetryScheduled { at, .. } if at > self.now);
        let mut timed: Vec<&Delivery> = open.values().filter(|delivery| !due(delivery)).collect();
        timed.sort_by_key(|delivery| own_time(delivery));
        let mut shelves: HashMap<Group, usize> = HashMap::new();
        let mut lines: HashMap<Line, usize> = HashMap::new();
        let halted = |line: &Line| lane.halted().iter().any(|(halted, _)| halted == line);
        let cut = timed.get(self.wanted.timed).map(|delivery| own_time(delivery).0);
        // Deliveries of one time stay together: the lane remembers the rest by its time alone.
        let near = |delivery: &Delivery| cut.is_none_or(|cut| own_time(delivery).0 < cut);
        let waiting_heads: HashMap<Line, bool> =
            timed.iter().filter_map(|head| Some((self.headed_by(head)?, near(head)))).collect();
        let mut more = More::default();
        let mut deliveries = Vec::new();
        for delivery in open.values().filter(|delivery| due(delivery)) {
            match self.policy.ordering.line(delivery) {
                None => {
                    let group = Group {
                        priority: delivery.priority,
                        quiet: self.policy.quiet.mask_for(&delivery.event_type),
                    };
                    let count = shelves.entry(group).or_default();
                    *count += 1;
                    if *count <= self.wanted.per_shelf {
                        deliveries.push(delivery.clone());
                    } else if *count == self.wanted.per_shelf + 1 {
                        more.shelves.push(group);
                    }
                }
                Some(line) if halted(&line) => {}
                // Its head waits for its next retry. If the lane gets that head, it must know that more is behind it.
                Some(line) if waiting_heads.contains_key(&line) => {
                    if waiting_heads[&line] && !more.lines.contains(&line) {
                        more.lines.push(line);
                    }
                }
                Some(line) if !lines.contains_key(&line) && lines.len() >= self.wanted.lines => {
                    more.other_lines = true
                }
                Some(line) => {
                    let count = lines.entry(line.clone()).or_default();
                    *count += 1;
                    if *count <= self.wanted.per_line {
                        deliveries.push(delivery.clone());
                    } else if *count == self.wanted.per_line + 1 {
                        more.lines.push(line);
                    }
                }
            }
        }
        more.timed_from = cut;
        deliveries.extend(timed.into_iter().filter(|delivery| near(delivery)).cloned());
        self.found = Refill { deliveries, more };
        self.found
    }

    /// The line that `delivery` keeps waiting while it waits for its next retry.
    fn headed_by(&self, delivery: &Delivery) -> Option<Line> {
        let retries = matches!(delivery.status, Status::RetryScheduled { reason: OwnTime::RetryBackoff, .. });
        self.policy.ordering.line(delivery).filter(|_| retries)
    }
}

fn own_time(delivery: &Delivery) -> (Timestamp, Place) {
    match delivery.status {
        Status::RetryScheduled { at, .. } => (at, delivery.place),
        _ => (Timestamp::MIN, delivery.place),
    }
}
