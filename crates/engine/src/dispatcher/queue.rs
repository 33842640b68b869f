//! What a lane has in memory of its waiting deliveries: a window onto the backlog in the store.
//!
//! ```text
//!   timed    wait for a time of their own (deliver_at, a retry), by that time
//!   lines    keep an order: only the head of each line is exposed, the others stand behind it
//!   shelves  due and, if they keep an order, at its head; one shelf per priority and set of quiet windows,
//!            so that what may pass is found without walking past what may not
//! ```
//!
//! Every part is bounded. Of a halted line only the name is here, and a destination with `MAX_HALTED_LINES` of them is
//! paused. What does not fit stays in the store, and the part remembers that there is more. The store also has what is in
//! memory: where a refill brings that again, it is ignored.

mod parts;
mod refill;

use std::collections::{BTreeMap, BTreeSet};

use tidegate_core::delivery::{Delivery, OwnTime, Place, Status};
use tidegate_core::id::DeliveryId;
use tidegate_core::order::{Line, Turn};
use tidegate_core::policy::Policy;
use tidegate_core::refill::Group;
use tidegate_core::time::Timestamp;

use parts::{Head, LineQueue, Shelf};
use refill::RefillState;

/// The room of a lane that is held, or has just begun to read its backlog: 100,000 such lanes fit a small machine.
const LEAST_ROOM: usize = 8;
/// The room of a lane that empties its shelves: several commits' worth at full speed.
const MOST_ROOM: usize = 256;
/// Deliveries that wait for their own time, per lane.
const TIMED: usize = 16;

#[derive(Debug)]
pub(super) struct Queue {
    shelves: BTreeMap<Group, Shelf>,
    timed: BTreeMap<(Timestamp, Place), Delivery>,
    timed_from: Option<Timestamp>,
    lines: BTreeMap<Line, LineQueue>,
    /// Shelves on which heads belong of lines that are only in the store.
    other_lines: BTreeSet<Group>,
    /// How many deliveries lie on one shelf at most, and how many heads of lines. A hold shrinks it to the least; it doubles
    /// whenever a shelf or the lines run low.
    room: usize,
    /// No delivery here ends by itself before this.
    deadline: Option<Timestamp>,
    refill: RefillState,
}

impl Queue {
    /// With `backlog`, the store may have more than this.
    pub(super) fn new(backlog: bool) -> Self {
        Self {
            shelves: BTreeMap::new(),
            timed: BTreeMap::new(),
            timed_from: backlog.then_some(Timestamp::MIN),
            lines: BTreeMap::new(),
            other_lines: BTreeSet::new(),
            // What has just been accepted need not be read back; a backlog is read as it is needed.
            room: if backlog { LEAST_ROOM } else { MOST_ROOM },
            deadline: None,
            refill: RefillState::Idle,
        }
    }

    /// Nothing goes for a while: what is far back is left to the store.
    pub(super) fn shrink(&mut self) {
        self.room = LEAST_ROOM;
        let mut cut = Vec::new();
        for (group, shelf) in &mut self.shelves {
            while shelf.free.len() > LEAST_ROOM {
                shelf.free.pop_last();
                shelf.more = true;
                cut.push(*group);
            }
        }
        if !cut.is_empty() {
            self.leave(|left| left.shelves.extend(cut));
        }
    }

    /// Deliveries behind the head of one line.
    const fn behind(&self) -> usize {
        self.room / 4
    }

    /// Whether anything waits here.
    pub(super) fn is_empty(&self) -> bool {
        self.timed.is_empty() && self.shelves.values().all(|shelf| shelf.len() == 0) && self.lines.is_empty()
    }
    /// How many wait here.
    pub(super) fn len(&self) -> usize {
        self.timed.len()
            + self.shelves.values().map(Shelf::len).sum::<usize>()
            + self.lines.values().map(|line| line.behind.len()).sum::<usize>()
    }
    /// All that wait here, in no order that matters.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Delivery> {
        (self.timed.values())
            .chain(self.shelves.values().flat_map(Shelf::values))
            .chain(self.lines.values().flat_map(|line| line.behind.values()))
    }

    /// How many wait here for the time that their publisher asked for, for their next try, and for others of their line.
    pub(super) fn waits(&self) -> [usize; 3] {
        let retries = self.retries().count();
        let behind = self.lines.values().map(|line| line.behind.len()).sum();
        [self.timed.len() - retries, retries, behind]
    }

    /// A delivery that is new, or comes back after an attempt.
    pub(super) fn insert(&mut self, delivery: Delivery, policy: &Policy, now: Timestamp) {
        let ends = delivery.expires_at.map_or(delivery.too_old_at, |expiry| expiry.min(delivery.too_old_at));
        self.deadline = Some(self.deadline.map_or(ends, |deadline| deadline.min(ends)));
        match delivery.status {
            Status::RetryScheduled { at, reason } if at > now => {
                let line = policy.ordering.line(&delivery).filter(|_| reason == OwnTime::RetryBackoff);
                let heads = line.is_some();
                if let Some(line) = line {
                    self.expose(line, &delivery);
                }
                self.insert_timed(at, delivery, policy, heads);
            }
            _ => self.insert_due(delivery, policy),
        }
    }

    /// A delivery that waits for its own time; later ones than fit are left to the store. The head of a line is kept even if
    /// others of its time are only in the store, so that its line waits for it.
    fn insert_timed(&mut self, at: Timestamp, delivery: Delivery, policy: &Policy, heads: bool) {
        if !heads && self.timed_from.is_some_and(|from| at >= from) {
            self.leave_timed(at, &delivery, policy);
            return;
        }
        self.timed.insert((at, delivery.place), delivery);
        if self.timed.len() > TIMED {
            let ((at, _), last) = self.timed.pop_last().expect("it is over its size");
            self.leave_timed(at, &last, policy);
        }
    }

    /// Leaves a delivery that waits for its own time to the store, and with it the line that it heads: nothing else of
    /// that line may go meanwhile.
    fn leave_timed(&mut self, at: Timestamp, delivery: &Delivery, policy: &Policy) {
        self.timed_from = earliest(self.timed_from, Some(at));
        self.leave(|left| left.timed_from = earliest(left.timed_from, Some(at)));
        let headed = |line: &Line| self.lines.get(line).is_some_and(|queue| queue.is_headed_by(delivery.id));
        if let Some(line) = policy.ordering.line(delivery).filter(headed) {
            self.lines.remove(&line);
        }
    }

    /// A delivery is due. It becomes `Queued`, so that it does not wait for its own time again if the clock is set back.
    fn insert_due(&mut self, mut delivery: Delivery, policy: &Policy) {
        delivery.status = Status::Queued;
        match policy.ordering.line(&delivery) {
            None => self.shelve(delivery, policy),
            Some(line) => self.join(line, delivery, policy),
        }
    }

    fn shelve(&mut self, delivery: Delivery, policy: &Policy) {
        let group = Group::of(&delivery, policy);
        let shelf = self.shelves.entry(group).or_default();
        let beyond = shelf.free.last_key_value().is_none_or(|(last, _)| delivery.place > *last);
        let leaves = shelf.more && beyond;
        if !leaves {
            shelf.free.insert(delivery.place, delivery);
        }
        let overflows = shelf.free.len() > self.room;
        if overflows {
            shelf.free.pop_last();
        }
        if leaves || overflows {
            shelf.more = true;
            self.leave(|left| left.shelves.extend([group]));
        }
    }

    fn shelve_head(&mut self, delivery: Delivery, policy: &Policy) {
        let shelf = self.shelves.entry(Group::of(&delivery, policy)).or_default();
        shelf.heads.insert(delivery.place, delivery);
    }

    /// A due delivery that keeps an order takes its place in its line.
    fn join(&mut self, line: Line, delivery: Delivery, policy: &Policy) {
        let group = Group::of(&delivery, policy);
        if !self.lines.contains_key(&line) && (self.heads_on(group) >= self.room || !self.knows_all_lines()) {
            self.other_lines.insert(group);
            self.leave(|left| {
                left.other_lines.extend([group]);
                left.in_any_line = true;
            });
            return;
        }
        let queue = self.lines.entry(line.clone()).or_default();
        match queue.head {
            Head::None if queue.more && queue.behind.is_empty() => {
                self.leave(|left| left.lines.extend([line]));
            }
            Head::None => self.expose_and_shelve(line, delivery, policy),
            Head::Exposed { id, .. } if id == delivery.id => self.shelve_head(delivery, policy),
            Head::Exposed { id, place, tried: false } if delivery.place < place => {
                if let Some(head) = self.take_from_shelves(id) {
                    self.stand_behind(&line, head);
                    self.expose_and_shelve(line, delivery, policy);
                } else {
                    self.stand_behind(&line, delivery);
                }
            }
            Head::Exposed { .. } => self.stand_behind(&line, delivery),
            // A line that stands is in the store until a person resumes it.
            Head::Halted { .. } => {}
        }
    }

    fn stand_behind(&mut self, line: &Line, delivery: Delivery) {
        let most = self.behind();
        let queue = self.lines.get_mut(line).expect("the caller found it");
        let beyond = queue.behind.last_key_value().is_none_or(|(last, _)| delivery.place > *last);
        let leaves = queue.more && beyond;
        if !leaves {
            queue.behind.insert(delivery.place, delivery);
        }
        let overflows = queue.behind.len() > most;
        if overflows {
            queue.behind.pop_last();
        }
        if leaves || overflows {
            queue.more = true;
            self.leave(|left| left.lines.extend([line.clone()]));
        }
    }

    fn heads_on(&self, group: Group) -> usize {
        self.shelves.get(&group).map_or(0, |shelf| shelf.heads.len())
    }

    /// Whether every line is here. If not, a line that seems new may have its head in the store.
    fn knows_all_lines(&self) -> bool {
        self.other_lines.is_empty() && self.timed_from.is_none()
    }

    /// `delivery` has the turn in its line: it is in flight, or waits here.
    pub(super) fn expose(&mut self, line: Line, delivery: &Delivery) {
        let head =
            Head::Exposed { id: delivery.id, place: delivery.place, tried: delivery.attempts_made > 0 };
        self.lines.entry(line).or_default().head = head;
    }

    fn expose_and_shelve(&mut self, line: Line, delivery: Delivery, policy: &Policy) {
        self.expose(line, &delivery);
        self.shelve_head(delivery, policy);
    }

    /// The head of `line` is out: it has been tried, and keeps its turn.
    pub(super) fn head_started(&mut self, line: &Line) {
        if let Some(Head::Exposed { tried, .. }) = self.lines.get_mut(line).map(|queue| &mut queue.head) {
            *tried = true;
        }
    }

    /// A delivery of `line` is final: if it was the head, the next one has its turn.
    pub(super) fn done(&mut self, line: &Line, id: DeliveryId, policy: &Policy) {
        if self.lines.get(line).is_some_and(|queue| queue.is_headed_by(id)) {
            self.advance(line, policy);
        }
    }

    /// The line stands: `id` died, and a person must resume it. What is behind it stays in the store.
    pub(super) fn halt(&mut self, line: Line, id: DeliveryId) {
        self.lines.insert(line, LineQueue { head: Head::Halted { id }, behind: BTreeMap::new(), more: true });
    }

    /// A person resumes a line that stands: its next delivery is in the store.
    pub(super) fn resume(&mut self, line: &Line) {
        if self.lines.get(line).is_some_and(LineQueue::is_halted) {
            self.lines.remove(line);
            self.look_again();
        }
    }

    fn advance(&mut self, line: &Line, policy: &Policy) {
        let Some(queue) = self.lines.get_mut(line) else { return };
        queue.head = Head::None;
        match queue.behind.pop_first() {
            Some((_, next)) => self.expose_and_shelve(line.clone(), next, policy),
            None if queue.more => {}
            None => {
                self.lines.remove(line);
            }
        }
    }

    /// Whose turn it is in `line`, asked for the delivery `id`.
    pub(super) fn turn(&self, line: Option<&Line>, id: DeliveryId) -> Turn {
        match line.and_then(|line| self.lines.get(line)).map(|queue| queue.head) {
            Some(Head::Exposed { id: head, .. }) if head != id => Turn::Behind(head),
            Some(Head::Halted { id: head }) => Turn::Halted(head),
            _ => Turn::Its,
        }
    }

    /// The delivery that has the turn in `line`, if it is known and the line does not stand.
    pub(super) fn head(&self, line: &Line) -> Option<DeliveryId> {
        match self.lines.get(line)?.head {
            Head::Exposed { id, .. } => Some(id),
            Head::None | Head::Halted { .. } => None,
        }
    }

    /// Moves what has come due to where it can be found.
    pub(super) fn promote(&mut self, now: Timestamp, policy: &Policy) {
        while self.timed.first_key_value().is_some_and(|((at, _), _)| *at <= now) {
            let (_, delivery) = self.timed.pop_first().expect("just seen");
            self.insert_due(delivery, policy);
        }
    }

    /// The first of each shelf, or with `but` the first that is not that one.
    pub(super) fn firsts(&self, but: Option<DeliveryId>) -> impl Iterator<Item = (Group, &Delivery)> {
        self.shelves.iter().filter_map(move |(group, shelf)| Some((*group, shelf.first(but)?)))
    }

    /// Those that wait here for their next try.
    fn retries(&self) -> impl Iterator<Item = &Delivery> {
        let is_retry = |delivery: &&Delivery| {
            matches!(delivery.status, Status::RetryScheduled { reason: OwnTime::RetryBackoff, .. })
        };
        self.timed.values().filter(is_retry)
    }

    /// Where nothing is due, and something waits for its next try: the oldest of these, to be a probe.
    pub(super) fn first_retry(&self) -> Option<Delivery> {
        if self.firsts(None).next().is_some() {
            return None;
        }
        self.retries().min_by_key(|delivery| delivery.place).cloned()
    }

    /// Takes a delivery off its shelf.
    pub(super) fn take(&mut self, group: Group, place: Place) -> Option<Delivery> {
        self.shelves.get_mut(&group)?.remove(place)
    }

    fn take_from_shelves(&mut self, id: DeliveryId) -> Option<Delivery> {
        self.shelves.values_mut().find_map(|shelf| {
            let place = shelf.values().find(|delivery| delivery.id == id)?.place;
            shelf.remove(place)
        })
    }

    /// Takes a delivery out, wherever it waits.
    pub(super) fn remove(&mut self, id: DeliveryId) -> Option<Delivery> {
        if let Some(delivery) = self.take_from_shelves(id) {
            return Some(delivery);
        }
        if let Some(key) = self.timed.iter().find(|(_, delivery)| delivery.id == id).map(|(key, _)| *key) {
            return self.timed.remove(&key);
        }
        self.lines.values_mut().find_map(|line| {
            let place = *line.behind.iter().find(|(_, delivery)| delivery.id == id)?.0;
            line.behind.remove(&place)
        })
    }

    /// The deliveries whose end has come, if any can have: stale or too old. They stay where they are.
    pub(super) fn overdue(&mut self, now: Timestamp, over: impl Fn(&Delivery) -> bool) -> Vec<DeliveryId> {
        if self.deadline.is_none_or(|deadline| deadline > now) {
            return Vec::new();
        }
        let ends = |delivery: &Delivery| {
            delivery.expires_at.map_or(delivery.too_old_at, |expiry| expiry.min(delivery.too_old_at))
        };
        let ids = self.iter().filter(|delivery| over(delivery)).map(|delivery| delivery.id).collect();
        self.deadline = self.iter().filter(|delivery| !over(delivery)).map(ends).min();
        ids
    }

    /// When something happens here by itself: a delivery's own time, or an end.
    pub(super) fn next_event(&self) -> Option<Timestamp> {
        let own = self.timed.first_key_value().map(|((at, _), _)| *at);
        let deadline = self.deadline.filter(|_| !self.is_empty());
        // While a refill is on its way, its answer wakes the lane.
        let elsewhere = self.timed_from.filter(|_| !self.awaits_refill());
        [own, elsewhere, deadline].into_iter().flatten().min()
    }

    /// The policy changed: everything finds its place anew. The caller tells again which lines stand and which
    /// deliveries are in flight before it puts back what this returns.
    pub(super) fn take_all(&mut self) -> Vec<Delivery> {
        let before = std::mem::replace(self, Self::new(false));
        let more =
            before.shelves.values().any(|shelf| shelf.more) || before.lines.values().any(|line| line.more);
        let asked = before.awaits_refill();
        self.refill = before.refill;
        self.leave(|left| left.timed_from = Some(Timestamp::MIN));
        if asked || more || !before.other_lines.is_empty() || before.timed_from.is_some() {
            self.look_again();
        }
        let shelved = before.shelves.into_values().flat_map(Shelf::into_values);
        let behind = before.lines.into_values().flat_map(|line| line.behind.into_values());
        let mut all: Vec<Delivery> = shelved.chain(behind).chain(before.timed.into_values()).collect();
        sort_for_insertion(&mut all);
        all
    }
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

/// In order, so that the first of a line becomes its head; one that was tried before has its turn already.
fn sort_for_insertion(deliveries: &mut [Delivery]) {
    deliveries.sort_by_key(|delivery| (delivery.attempts_made == 0, delivery.place));
}
