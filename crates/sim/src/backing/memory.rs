//! The reference: what is open, in a map.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tidegate_core::delivery::{Delivery, OwnTime, Place, Status};
use tidegate_core::lane::{HaltedLine, LastStop, SavedLane};
use tidegate_core::order::Line;
use tidegate_core::policy::Policy;
use tidegate_core::refill::{Group, Refill, Wanted};
use tidegate_core::sequence::Sequence;
use tidegate_core::time::Timestamp;
use tidegate_engine::dispatcher::Lane;

use super::{Op, Restarted, RestartedLane, SWEEP};

/// The durable state of a simulated node, in memory.
#[derive(Debug, Default)]
pub struct Memory {
    lanes: Vec<Stored>,
    /// Open deliveries with an expiry, by that.
    expiries: BTreeSet<(Timestamp, usize, Place)>,
    open: usize,
    /// The highest number that was stored with anything.
    sequence: Sequence,
}

#[derive(Debug, Default)]
struct Stored {
    open: BTreeMap<Place, Delivery>,
    /// State and timeouts, encoded: so that every restart reads what the real store would hold.
    state: Option<Vec<u8>>,
    timeouts: Option<Vec<u8>>,
}

impl Memory {
    pub(crate) fn new(lanes: usize) -> Self {
        Self { lanes: (0..lanes).map(|_| Stored::default()).collect(), ..Self::default() }
    }
    pub(crate) fn open_count(&self, lane: usize) -> usize {
        self.lanes[lane].open.len()
    }
    pub(crate) const fn open_total(&self) -> usize {
        self.open
    }
    pub(crate) fn find_open(
        &self,
        lane: usize,
        looks: usize,
        mut such: impl FnMut(&Delivery) -> bool,
    ) -> Option<Delivery> {
        self.lanes[lane].open.values().take(looks).find(|delivery| such(delivery)).cloned()
    }

    pub(crate) fn commit(&mut self, group: &mut [Op]) {
        for op in group {
            match op {
                Op::Accept { lane, delivery, .. } => self.accept(lane.index(), delivery),
                Op::Settle { lane, delivery, attempt, changed, .. } => {
                    *changed = self.settle(lane.index(), delivery);
                    if let Some((attempt, ..)) = attempt {
                        self.sequence = self.sequence.max(attempt.sequence());
                    }
                }
                Op::Save { lane, state, timeouts, .. } => {
                    let stored = &mut self.lanes[lane.index()];
                    stored.state = Some(std::mem::take(state));
                    stored.timeouts = timeouts.take().or_else(|| stored.timeouts.take());
                }
            }
        }
    }

    pub(crate) fn accept(&mut self, lane: usize, delivery: &Delivery) {
        self.sequence = self.sequence.max(delivery.id.sequence());
        if delivery.status.is_final() {
            return;
        }
        if let Some(expiry) = delivery.expires_at {
            self.expiries.insert((expiry, lane, delivery.place));
        }
        self.open += 1;
        self.lanes[lane].open.insert(delivery.place, delivery.clone());
    }

    pub(crate) fn settle(&mut self, lane: usize, delivery: &Delivery) -> bool {
        let open = &mut self.lanes[lane].open;
        if !delivery.status.is_final() {
            return open.get_mut(&delivery.place).map(|stored| stored.clone_from(delivery)).is_some();
        }
        if let Some(expiry) = delivery.expires_at {
            self.expiries.remove(&(expiry, lane, delivery.place));
        }
        let ended = open.remove(&delivery.place).is_some();
        self.open -= usize::from(ended);
        ended
    }

    /// What is stored of a lane: its state, and what its timeouts have learned.
    pub(crate) fn stored(&self, lane: usize) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        (self.lanes[lane].state.clone(), self.lanes[lane].timeouts.clone())
    }
    /// An open delivery, by its place.
    pub(crate) fn open(&self, lane: usize, place: Place) -> Option<&Delivery> {
        self.lanes[lane].open.get(&place)
    }
    /// A lane has a new state, or new timeouts; what is not new stays.
    pub(crate) fn keep(&mut self, lane: usize, state: Option<Vec<u8>>, timeouts: Option<Vec<u8>>) {
        let stored = &mut self.lanes[lane];
        stored.state = state.or_else(|| stored.state.take());
        stored.timeouts = timeouts.or_else(|| stored.timeouts.take());
    }

    pub(crate) fn restart(&mut self, last_stop: LastStop) -> Restarted {
        let lane = |stored: &Stored| RestartedLane {
            saved: stored.state.as_ref().map(|state| {
                SavedLane::decode(state, stored.timeouts.as_deref()).expect("it was encoded by the lane")
            }),
            backlog: !stored.open.is_empty(),
        };
        Restarted { last_stop, sequence: self.sequence, lanes: self.lanes.iter().map(lane).collect() }
    }

    pub(crate) fn next_expiry(&self) -> Option<Timestamp> {
        self.expiries.first().map(|(at, ..)| *at)
    }

    pub(crate) fn stale(&self, now: Timestamp) -> Vec<(usize, Delivery)> {
        (self.expiries.iter())
            .take_while(|(at, ..)| *at <= now)
            .take(SWEEP)
            .filter_map(|(_, lane, place)| Some((*lane, self.lanes[*lane].open.get(place)?.clone())))
            .collect()
    }

    /// What came due is ready from now on, whatever becomes of the clock.
    pub(crate) fn refill(&mut self, lane: &Lane, now: Timestamp) -> Refill {
        let open = &mut self.lanes[lane.id().index()].open;
        for delivery in open.values_mut() {
            if matches!(delivery.status, Status::RetryScheduled { at, .. } if at <= now) {
                delivery.status = Status::Queued;
            }
        }
        let waits = |delivery: &&Delivery| matches!(delivery.status, Status::RetryScheduled { .. });
        let (mut timed, due): (Vec<&Delivery>, Vec<&Delivery>) = open.values().partition(waits);
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
        halted: &[HaltedLine],
        waiting: &HashMap<Line, bool>,
    ) {
        // One that was tried has its turn before those of an earlier place.
        lined.sort_by_key(|delivery| (delivery.attempts_made == 0, delivery.place));
        let mut counts: HashMap<Line, Option<usize>> = halted
            .iter()
            .map(|halted| &halted.line)
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
                None if waiting.contains_key(&line) || halted.iter().any(|halted| halted.line == line) => {}
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
